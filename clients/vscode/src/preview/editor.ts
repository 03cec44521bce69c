/** The preview as a read-only editor: images, PDF and tables, for files and for what only the daemon holds. */

import * as vscode from "vscode";
import { size } from "../phrases";
import { SCHEME } from "../versions";
import { byEnding } from "./kinds";
import { page } from "./page";
import { cut } from "./table";

export const VIEW_TYPE = "artifactSidecar.preview";
const LARGEST = 64 * 1024 * 1024; // Bytes that are handed to a page at most.

interface Shown extends vscode.CustomDocument {
  readonly uri: vscode.Uri;
}

/** What the page is told. */
export type Told =
  | { kind: "image" | "pdf"; mime: string; bytes: Uint8Array; name: string; size: string }
  | { kind: "table"; rows: string[][]; note: string; name: string; size: string }
  | { kind: "nothing"; note: string };

export class Preview implements vscode.CustomReadonlyEditorProvider<Shown> {
  constructor(private readonly root: vscode.Uri) {}

  openCustomDocument(uri: vscode.Uri): Shown {
    return { uri, dispose: () => undefined };
  }

  resolveCustomEditor({ uri }: Shown, panel: vscode.WebviewPanel): void {
    const folder = vscode.Uri.joinPath(this.root, "dist", "webview");
    panel.webview.options = { enableScripts: true, localResourceRoots: [folder] };
    panel.webview.html = page(panel.webview, folder);
    const tell = async (): Promise<void> => void (await panel.webview.postMessage(await told(uri)));
    panel.webview.onDidReceiveMessage((message: { say?: string }) => {
      if (message.say === "ready") {
        void tell();
      }
    });
    const watched = watch(uri, () => void tell());
    panel.onDidDispose(() => watched.dispose());
  }
}

/** Tell again when the file is written again. Older versions never change. */
function watch(uri: vscode.Uri, again: () => void): vscode.Disposable {
  if (uri.scheme !== "file") {
    return new vscode.Disposable(() => undefined);
  }
  const name = uri.path.slice(uri.path.lastIndexOf("/") + 1).replace(/[[\]{}*?]/g, "?");
  const watcher = vscode.workspace.createFileSystemWatcher(
    new vscode.RelativePattern(vscode.Uri.joinPath(uri, ".."), name),
  );
  watcher.onDidChange(again);
  watcher.onDidCreate(again);
  return watcher;
}

async function told(uri: vscode.Uri): Promise<Told> {
  const name = uri.path.slice(uri.path.lastIndexOf("/") + 1);
  const kind = byEnding(name);
  if (kind === undefined) {
    return { kind: "nothing", note: "There is no preview for files of this kind." };
  }
  try {
    const bytes = await read(uri);
    if (bytes.length > LARGEST && kind.kind !== "table") {
      return { kind: "nothing", note: `With ${size(bytes.length)} this file is too large for the preview.` };
    }
    if (kind.kind !== "table") {
      return { kind: kind.kind, mime: kind.mime, bytes, name, size: size(bytes.length) };
    }
    return { kind: "table", ...cut(bytes), name, size: size(bytes.length) };
  } catch (error) {
    return { kind: "nothing", note: error instanceof Error ? error.message : String(error) };
  }
}

async function read(uri: vscode.Uri): Promise<Uint8Array> {
  if (uri.scheme === SCHEME) {
    return new TextEncoder().encode((await vscode.workspace.openTextDocument(uri)).getText());
  }
  // A copy: what a server hands over is a Buffer, and only plain arrays travel to a page.
  return new Uint8Array(await vscode.workspace.fs.readFile(uri));
}
