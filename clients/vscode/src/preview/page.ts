/** The frame of a preview. It loads one script and one style of ours and nothing else; contents come by messages. */

import { randomBytes } from "node:crypto";
import * as vscode from "vscode";

export function page(webview: vscode.Webview, folder: vscode.Uri): string {
  const nonce = randomBytes(18).toString("base64");
  const at = (name: string): string => webview.asWebviewUri(vscode.Uri.joinPath(folder, name)).toString();
  const policy = [
    "default-src 'none'",
    `script-src 'nonce-${nonce}'`,
    `style-src ${webview.cspSource}`,
    "img-src blob:",
    "font-src blob: data:",
    "worker-src blob:",
    `connect-src ${webview.cspSource}`,
    "form-action 'none'",
    "base-uri 'none'",
  ].join("; ");
  return `<!DOCTYPE html>
<html lang="en">
<head>
  <meta charset="utf-8">
  <meta http-equiv="Content-Security-Policy" content="${policy}">
  <meta name="viewport" content="width=device-width, initial-scale=1">
  <link rel="stylesheet" href="${at("style.css")}">
  <title>Artifact preview</title>
</head>
<body data-worker="${at("pdf.worker.mjs")}" data-fonts="${at("standard_fonts")}/" data-cmaps="${at("cmaps")}/">
  <main id="main" aria-live="polite"><p class="note">Loading…</p></main>
  <script type="module" nonce="${nonce}" src="${at("preview.mjs")}"></script>
</body>
</html>`;
}
