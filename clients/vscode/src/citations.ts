/**
 * Citations in the editor's own Markdown preview.
 *
 * The daemon alone knows what a citation is. A text that it has read already is rendered as the daemon answered it; any
 * other one is rendered as it stands, the daemon is asked, and the preview is drawn again when its answer is there.
 */

import type MarkdownIt from "markdown-it";
import * as vscode from "vscode";
import { Answers } from "./answers";
import { Gathered } from "./queue";
import type { Session } from "./session";

const LONGEST = 1024 * 1024; // Characters; a longer text is shown as it stands.
const DRAW_MS = 100;

export class Citations implements vscode.Disposable {
  private readonly answers = new Answers((text) => this.ask(text));
  private readonly draw = new Gathered<undefined>(DRAW_MS, () => {
    void vscode.commands.executeCommand("markdown.preview.refresh");
  });

  constructor(private readonly session: Session) {
    const again = (): void => {
      if (this.answers.clear()) {
        this.draw.add(undefined);
      }
    };
    session.onDidChange((state) => state.kind === "running" && again());
    session.onLost(again);
    session.on("sources/added", again);
  }

  dispose(): void {
    this.draw.dispose();
  }

  /** What the built-in preview asks of an extension. */
  extendMarkdownIt = (md: MarkdownIt): MarkdownIt => {
    md.core.ruler.before("normalize", "artifact_sidecar_citations", (state) => {
      if (state.src.length <= LONGEST) {
        state.src = this.answers.of(state.src) ?? state.src;
      }
    });
    return md;
  };

  private async ask(text: string): Promise<string> {
    const answer = await this.session.ask("citations/replace", { text, mime: "text/markdown" });
    if (answer.text !== text) {
      this.draw.add(undefined);
    }
    return answer.text;
  }
}
