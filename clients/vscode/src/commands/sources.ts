/** What can be done with a source: open it, copy its address or its citation, narrow the list. */

import * as vscode from "vscode";
import type { Session } from "../session";
import type { SourcesTree } from "../tree/sources";
import { documentUri } from "../versions";
import type { SourceRow } from "../wire";

export class SourceCommands {
  constructor(
    private readonly session: Session,
    private readonly tree: SourcesTree,
  ) {}

  async open(source: SourceRow | undefined): Promise<void> {
    if (source?.url) {
      const uri = vscode.Uri.parse(source.url, true);
      if (uri.scheme !== "http" && uri.scheme !== "https") {
        throw new Error(`An address of the scheme "${uri.scheme}" is not opened.`);
      }
      await vscode.env.openExternal(uri);
    } else if (source?.artifact_path) {
      const opened = await this.session.run("artifact-sidecar.open", { path: source.artifact_path });
      await vscode.commands.executeCommand("vscode.open", documentUri(opened), { preview: true });
    }
  }

  async copyAddress(source: SourceRow | undefined): Promise<void> {
    await copied(source?.url ?? source?.physical_path ?? source?.artifact_path ?? "");
  }

  async copyCitation(source: SourceRow | undefined): Promise<void> {
    if (source?.sid) {
      await copied((await this.session.run("artifact-sidecar.cite", { sids: [source.sid] })).text);
    }
  }

  /** The list follows what is typed; leaving the box without Enter brings the former filter back. */
  filter(): void {
    const before = this.tree.filter;
    const box = vscode.window.createInputBox();
    box.title = "Filter the sources";
    box.placeholder = "Words of a title, an address or a path, or a number";
    box.value = before;
    let kept = false;
    box.onDidChangeValue((words) => (this.tree.filter = words));
    box.onDidAccept(() => {
      kept = true;
      box.hide();
    });
    box.onDidHide(() => {
      this.tree.filter = kept ? box.value : before;
      box.dispose();
    });
    box.show();
  }
}

async function copied(text: string): Promise<void> {
  if (text !== "") {
    await vscode.env.clipboard.writeText(text);
    vscode.window.setStatusBarMessage(`Copied ${text}`, 3000);
  }
}
