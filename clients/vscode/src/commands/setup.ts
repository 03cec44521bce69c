/** Commands that lead from nothing to a running daemon, and those that say what is going on. */

import { execFile } from "node:child_process";
import { promisify } from "node:util";
import * as vscode from "vscode";
import { commands } from "../discovery";
import { findCommand } from "../probing";
import type { Session } from "../session";
import { keep, settings, surroundings } from "../settings";

const run = promisify(execFile);

export async function chooseOutDir(): Promise<void> {
  const chosen = await vscode.window.showOpenDialog({
    title: "Which folder does the agent write into?",
    openLabel: "This is OUT_DIR",
    canSelectFolders: true,
    canSelectFiles: false,
    defaultUri: vscode.workspace.workspaceFolders?.[0]?.uri,
  });
  if (chosen?.[0] !== undefined) {
    await keep("outDir", chosen[0].fsPath);
  }
}

export async function chooseCommand(): Promise<void> {
  const kinds = [
    { label: "$(terminal) The program artifact-sidecar…", detail: "In the bin folder of the environment it was installed into.", setting: "path" },
    { label: "$(symbol-misc) A Python…", detail: "In which the daemon is installed; python -m sidecar is run.", setting: "interpreter" },
  ];
  const kind = await vscode.window.showQuickPick(kinds, { title: "How is the daemon started here?" });
  if (kind === undefined) {
    return;
  }
  const chosen = await vscode.window.showOpenDialog({ title: "Which file is it?", openLabel: "Use this", canSelectFiles: true });
  if (chosen?.[0] !== undefined) {
    await keep(kind.setting, chosen[0].fsPath);
  }
}

/** The daemon's log, as its own command prints it, in an editor. */
export async function showDaemonLog(session: Session, home: string): Promise<void> {
  const state = session.state;
  if (state.kind !== "running") {
    throw new Error("The daemon is not running; what was tried stands in the output.");
  }
  const found = await findCommand(commands(settings(), surroundings()), home);
  if (!("candidate" in found)) {
    throw new Error(found.why);
  }
  const { command, args } = found.candidate;
  const options = { cwd: home, maxBuffer: 64 * 1024 * 1024 };
  const { stdout } = await run(command, [...args, "logs", "--out-dir", state.outDir], options);
  const document = await vscode.workspace.openTextDocument({ content: stdout, language: "log" });
  await vscode.window.showTextDocument(document, { preview: true });
}

/** Everything that a report of a fault should say; no content of the workspace is in it. */
export async function debugInformation(session: Session, version: string): Promise<void> {
  const { showNotifications, ...read } = settings();
  const state = session.state;
  const status = state.kind === "running" ? await session.ask("workspace/status", {}).catch(String) : undefined;
  const told = {
    extension: version,
    editor: `${vscode.env.appName} ${vscode.version}, ${vscode.env.remoteName ?? "local"}`,
    trusted: vscode.workspace.isTrusted,
    state,
    settings: { ...read, showNotifications },
    variables: { ARTIFACT_SIDECAR_PROGRAM: process.env["ARTIFACT_SIDECAR_PROGRAM"], OUT_DIR: process.env["OUT_DIR"] },
    candidates: commands(read, surroundings()).map(({ command, args, from }) => ({ command, args, from })),
    status: typeof status === "object" ? { watcher: status.watcher, store: status.store.state, counts: status.counts } : status,
  };
  session.output.info(`Debug information:\n${JSON.stringify(told, null, 2)}`);
  session.output.show(true);
}

/** What the status item opens. */
export async function menu(session: Session): Promise<void> {
  const running = session.state.kind === "running";
  const items: (vscode.QuickPickItem & { command?: string })[] = [
    { label: "$(list-tree) Show the artifacts", command: "artifactSidecar.artifacts.focus" },
    { label: "$(bookmark) Show the sources", command: "artifactSidecar.sources.focus" },
    { label: "", kind: vscode.QuickPickItemKind.Separator },
    { label: "$(debug-restart) Restart", command: "artifactSidecar.restart" },
    { label: "$(folder-opened) Choose OUT_DIR…", command: "artifactSidecar.chooseOutDir" },
    { label: "$(terminal) Choose the sidecar…", command: "artifactSidecar.chooseCommand" },
    { label: "$(gear) Settings", command: "artifactSidecar.openSettings" },
    { label: "", kind: vscode.QuickPickItemKind.Separator },
    { label: "$(output) Show the output", command: "artifactSidecar.showOutput" },
    ...(running ? [{ label: "$(history) Show the log of the daemon", command: "artifactSidecar.showDaemonLog" }] : []),
    { label: "$(info) Print debug information", command: "artifactSidecar.debugInformation" },
  ];
  const state = session.state;
  const title = state.kind === "running" ? `Artifacts of ${state.outDir}` : "why" in state ? state.why : "Artifacts";
  const chosen = await vscode.window.showQuickPick(items, { title });
  if (chosen?.command !== undefined) {
    await vscode.commands.executeCommand(chosen.command);
  }
}
