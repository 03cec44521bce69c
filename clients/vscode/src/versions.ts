/**
 * What only the daemon holds, as read-only documents: older versions, and displays that never were files.
 *
 * The daemon gives each of them a URI and its text. Ours carries that URI in its query, with the number beside it in the
 * form in which the editor's labels can read it: "report.md (version 2)".
 */

import * as vscode from "vscode";
import type { Session } from "./session";
import type { Opened } from "./wire";

export const SCHEME = "artifact-sidecar";

interface Query {
  version?: number;
  uri: string;
}

/** Where the editor finds what was opened. */
export function documentUri(opened: Opened): vscode.Uri {
  const uri = vscode.Uri.parse(opened.uri, true);
  if (uri.scheme !== SCHEME) {
    return uri;
  }
  const query: Query = { version: opened.version, uri: opened.uri };
  return uri.with({ query: JSON.stringify(query) });
}

export class Contents implements vscode.TextDocumentContentProvider, vscode.Disposable {
  private readonly changed = new vscode.EventEmitter<vscode.Uri>();
  readonly onDidChange = this.changed.event;

  constructor(private readonly session: Session) {
    // What could not be shown while the daemon was away is shown when it is back.
    session.onDidChange((state) => {
      if (state.kind === "running") {
        vscode.workspace.textDocuments.filter((one) => one.uri.scheme === SCHEME).forEach((one) => this.changed.fire(one.uri));
      }
    });
  }

  dispose(): void {
    this.changed.dispose();
  }

  async provideTextDocumentContent(uri: vscode.Uri, token: vscode.CancellationToken): Promise<string> {
    const answer = await this.session.raw<{ text: string }>("workspace/textDocumentContent", { uri: asked(uri) }, token);
    return answer.text;
  }
}

function asked(uri: vscode.Uri): string {
  try {
    const query = JSON.parse(uri.query) as Query;
    return typeof query.uri === "string" ? query.uri : uri.toString();
  } catch {
    return uri.toString(); // The daemon's own spelling, from a link or a definition.
  }
}
