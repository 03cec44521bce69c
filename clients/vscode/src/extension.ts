/** Puts the parts together when the editor starts the extension, and takes them apart when it ends. */

import type MarkdownIt from "markdown-it";
import * as vscode from "vscode";
import { Citations } from "./citations";
import { ArtifactCommands } from "./commands/artifacts";
import { chooseCommand, chooseOutDir, debugInformation, menu, showDaemonLog } from "./commands/setup";
import { SourceCommands } from "./commands/sources";
import { MARK } from "./discovery";
import { failed, tellFailures, tellNotices } from "./notices";
import { Preview, VIEW_TYPE } from "./preview/editor";
import { Session, type State } from "./session";
import { SECTION, STARTING, settings } from "./settings";
import { Status } from "./status";
import { ArtifactsTree } from "./tree/artifacts";
import type { MoreNode, Node } from "./tree/nodes";
import { SourcesTree } from "./tree/sources";
import { Contents, SCHEME } from "./versions";
import type { SourceRow } from "./wire";

/** What other extensions get: the state, a way to wait for it, the views, and what the Markdown preview asks for. */
export interface Api {
  artifacts: vscode.TreeDataProvider<Node>;
  sources: vscode.TreeDataProvider<SourceRow>;
  state(): State;
  onDidChangeState: vscode.Event<State>;
  extendMarkdownIt(md: MarkdownIt): MarkdownIt;
}

let running: Session | undefined;

export function activate(context: vscode.ExtensionContext): Api {
  const home = context.extensionPath;
  const output = vscode.window.createOutputChannel("Artifact Sidecar", { log: true });
  const trace = vscode.window.createOutputChannel("Artifact Sidecar Trace", { log: true });
  const session = new Session(home, output, trace);
  running = session;
  const artifacts = new ArtifactsTree(session);
  const sources = new SourcesTree(session);
  const status = new Status(session);
  const citations = new Citations(session);
  const contents = new Contents(session);
  const made = { treeDataProvider: artifacts, showCollapseAll: true, canSelectMany: true };
  const artifactsView = vscode.window.createTreeView("artifactSidecar.artifacts", made);
  const sourcesView = vscode.window.createTreeView("artifactSidecar.sources", { treeDataProvider: sources });
  sources.view = sourcesView;
  const previewOptions = { webviewOptions: { retainContextWhenHidden: false }, supportsMultipleEditorsPerDocument: true };
  context.subscriptions.push(
    ...[output, trace, session, artifacts, sources, status, citations, contents, artifactsView, sourcesView],
    vscode.workspace.registerTextDocumentContentProvider(SCHEME, contents),
    vscode.window.registerCustomEditorProvider(VIEW_TYPE, new Preview(context.extensionUri), previewOptions),
    tellFailures(session),
    ...[artifactsView, sourcesView].map((view) => view.onDidChangeVisibility(({ visible }) => visible && status.want())),
    ...registered(context, { session, artifacts, sources }),
    ...reasonsToRestart(session, status),
  );
  tellNotices(session);
  if (settings().outDir !== "" || process.env["OUT_DIR"] || artifactsView.visible || sourcesView.visible) {
    status.want();
  }
  void session.restart();
  return {
    artifacts,
    sources,
    state: () => session.state,
    onDidChangeState: session.onDidChange,
    extendMarkdownIt: citations.extendMarkdownIt,
  };
}

export async function deactivate(): Promise<void> {
  await running?.end();
}

interface Parts {
  session: Session;
  artifacts: ArtifactsTree;
  sources: SourcesTree;
}

function registered(context: vscode.ExtensionContext, { session, artifacts, sources }: Parts): vscode.Disposable[] {
  const one = new ArtifactCommands(session);
  const source = new SourceCommands(session, sources);
  const version = String((context.extension.packageJSON as { version?: string }).version);
  const walk = `${context.extension.id}#start`;
  const acts: Record<string, [string, (...given: unknown[]) => unknown]> = {
    open: ["It could not be opened", (node) => one.open(node)],
    openToSide: ["It could not be opened", (node) => one.open(node, true)],
    preview: ["It could not be shown", (node) => one.preview(node)],
    diffPrevious: ["The versions could not be compared", (node) => one.diffPrevious(node)],
    diffVersions: ["The versions could not be compared", (node, selected) => one.diffVersions(node, selected)],
    rehost: ["It could not be brought back", (node, selected) => one.rehost(node, selected)],
    download: ["It could not be downloaded", (node) => one.download(node)],
    copyPhysicalPath: ["The path could not be copied", (node) => one.copyPath(node, "physical")],
    copyLogicalPath: ["The path could not be copied", (node) => one.copyPath(node, "logical")],
    fetchMore: ["There is no more to be had", (node) => artifacts.fetchMore(node as MoreNode)],
    openSource: ["The source could not be opened", (row) => source.open(row as SourceRow)],
    copySourceAddress: ["The address could not be copied", (row) => source.copyAddress(row as SourceRow)],
    copyCitation: ["The citation could not be copied", (row) => source.copyCitation(row as SourceRow)],
    filterSources: ["The sources could not be filtered", () => source.filter()],
    clearSourcesFilter: ["The filter could not be cleared", () => (sources.filter = "")],
    refresh: ["The disk could not be looked at", () => refresh(session, artifacts, sources)],
    chooseOutDir: ["OUT_DIR could not be kept", chooseOutDir],
    chooseCommand: ["The sidecar could not be kept", chooseCommand],
    openSettings: ["", () => vscode.commands.executeCommand("workbench.action.openSettings", `@ext:${context.extension.id}`)],
    menu: ["", () => menu(session)],
    restart: ["It could not be restarted", () => session.restart()],
    showOutput: ["", () => session.output.show(true)],
    showDaemonLog: ["The log could not be shown", () => showDaemonLog(session, context.extensionPath)],
    debugInformation: ["There is no debug information", () => debugInformation(session, version)],
    walkthrough: ["", () => vscode.commands.executeCommand("workbench.action.openWalkthrough", walk, false)],
  };
  return Object.entries(acts).map(([name, [wrong, act]]) =>
    vscode.commands.registerCommand(`${SECTION}.${name}`, async (...given: unknown[]) => {
      try {
        return await act(...given);
      } catch (error) {
        void failed(session, wrong || "That did not work", error);
        return undefined;
      }
    }),
  );
}

/** Look at the disk, and draw both views from the beginning. */
async function refresh(session: Session, artifacts: ArtifactsTree, sources: SourcesTree): Promise<void> {
  if (session.state.kind !== "running") {
    return session.restart();
  }
  await session.ask("workspace/sync", {});
  artifacts.refresh();
  sources.refresh();
}

function reasonsToRestart(session: Session, status: Status): vscode.Disposable[] {
  const marks = vscode.workspace.createFileSystemWatcher(`{${MARK},out/${MARK}}`, false, true, true);
  return [
    marks,
    marks.onDidCreate(() => session.state.kind === "noOutDir" && session.restart()),
    vscode.workspace.onDidChangeConfiguration((change) => {
      if (STARTING.some((name) => change.affectsConfiguration(name))) {
        status.want();
        void session.restart();
      }
    }),
    vscode.workspace.onDidGrantWorkspaceTrust(() => session.restart()),
    vscode.workspace.onDidChangeWorkspaceFolders(() => session.state.kind === "noOutDir" && session.restart()),
  ];
}
