/** What can be done with an artifact or a version: open, preview, compare, bring back, download, copy a path. */

import * as vscode from "vscode";
import { joined, moment, size } from "../phrases";
import { previewOf } from "../preview/kinds";
import type { Session } from "../session";
import type { ArtifactNode, Node, VersionNode } from "../tree/nodes";
import { documentUri } from "../versions";
import { type Artifact, type Opened, nameOf } from "../wire";

export const PREVIEW = "artifactSidecar.preview";

type Chosen = ArtifactNode | VersionNode;

export class ArtifactCommands {
  constructor(private readonly session: Session) {}

  async open(node: unknown, beside = false): Promise<void> {
    const chosen = taken(node);
    if (chosen === undefined) {
      return this.openPreviewed();
    }
    await this.show(await this.opened(chosen), beside, false);
  }

  async preview(node: unknown): Promise<void> {
    const chosen = taken(node);
    if (chosen !== undefined) {
      return this.show(await this.opened(chosen), false, true);
    }
    const artifact = await this.pick("Preview which artifact?", (one) => previewOf(one.mime) !== undefined);
    if (artifact !== undefined) {
      await this.show(await this.session.run("artifact-sidecar.open", { path: artifact.artifact_path }), false, true);
    }
  }

  /** A version beside the one before it; of an artifact, its latest two. */
  async diffPrevious(node: unknown): Promise<void> {
    const chosen = taken(node);
    const artifact = chosen ? artifactOf(chosen) : await this.pick("Compare which artifact?", (one) => one.version > 1);
    if (artifact === undefined) {
      return;
    }
    const after = chosen?.kind === "version" ? chosen.version.version : artifact.version;
    const before = chosen?.kind === "version" ? chosen.before : await this.before(artifact, after);
    if (before === undefined) {
      void vscode.window.showInformationMessage(`${nameOf(artifact)} has no version before that one.`);
      return;
    }
    await this.diff(artifact, before, after);
  }

  /** Any two versions: those that are selected in the tree, else those that somebody picks. */
  async diffVersions(node: unknown, selected: unknown): Promise<void> {
    const nodes = Array.isArray(selected) ? selected.map(taken).filter((one) => one?.kind === "version") : [];
    if (nodes.length === 2 && nodes[0] && nodes[1] && artifactOf(nodes[0]) === artifactOf(nodes[1])) {
      const [one, two] = nodes.map((each) => (each as VersionNode).version.version) as [number, number];
      return this.diff(artifactOf(nodes[0]), Math.min(one, two), Math.max(one, two));
    }
    const chosen = taken(node);
    const artifact = chosen ? artifactOf(chosen) : await this.pick("Compare which artifact?", (one) => one.version > 1);
    if (artifact === undefined) {
      return;
    }
    const after = chosen?.kind === "version" ? chosen.version.version : await this.pickVersion(artifact, "Newer version");
    const before = after === undefined ? undefined : await this.pickVersion(artifact, "Compare with which version?", after);
    if (before !== undefined && after !== undefined) {
      await this.diff(artifact, Math.min(before, after), Math.max(before, after));
    }
  }

  async rehost(node: unknown, selected: unknown): Promise<void> {
    const nodes = (Array.isArray(selected) && selected.length > 0 ? selected : [node]).map(taken);
    const paths = [...new Set(nodes.flatMap((one) => (one ? [artifactOf(one).artifact_path] : [])))];
    if (paths.length === 0) {
      return;
    }
    const title = paths.length === 1 ? "Bringing it back…" : `Bringing ${paths.length} files back…`;
    const where = { location: vscode.ProgressLocation.Window, title };
    const answer = await vscode.window.withProgress(where, () => this.session.run("artifact-sidecar.rehost", { paths }));
    if (answer.missing.length > 0) {
      const reasons = answer.missing.map(({ path, reason }) => `${path}: ${reason.replaceAll("_", " ")}`).join("; ");
      void vscode.window.showWarningMessage(`Not everything could be brought back. ${reasons}`);
    }
  }

  async download(node: unknown): Promise<void> {
    const chosen = taken(node);
    if (chosen === undefined) {
      return;
    }
    const { rn, artifact_path } = artifactOf(chosen);
    const { url } = await this.session.ask("artifact/link", rn ? { rn } : { path: artifact_path });
    const uri = vscode.Uri.parse(url, true);
    if (uri.scheme !== "file") {
      await vscode.env.openExternal(uri);
      return;
    }
    const target = await vscode.window.showSaveDialog({
      defaultUri: vscode.Uri.joinPath(vscode.workspace.workspaceFolders?.[0]?.uri ?? uri, "..", nameOf(artifactOf(chosen))),
      title: "Save a copy",
    });
    if (target !== undefined) {
      await vscode.workspace.fs.copy(uri, target, { overwrite: true });
    }
  }

  async copyPath(node: unknown, kind: "physical" | "logical"): Promise<void> {
    const chosen = taken(node);
    if (chosen !== undefined) {
      const artifact = artifactOf(chosen);
      const path = kind === "logical" ? artifact.artifact_path : (artifact.physical_path ?? artifact.artifact_path);
      await vscode.env.clipboard.writeText(path);
      vscode.window.setStatusBarMessage(`Copied ${path}`, 3000);
    }
  }

  private async opened(chosen: Chosen): Promise<Opened> {
    const path = artifactOf(chosen).artifact_path;
    const version = chosen.kind === "version" && !chosen.latest ? chosen.version.version : undefined;
    return this.session.run("artifact-sidecar.open", version === undefined ? { path } : { path, version });
  }

  private async show(opened: Opened, beside: boolean, previewed: boolean): Promise<void> {
    const uri = documentUri(opened);
    const viewColumn = beside ? vscode.ViewColumn.Beside : vscode.ViewColumn.Active;
    const kind = previewOf(opened.mime);
    if (previewed && kind === "markdown") {
      await vscode.commands.executeCommand(beside ? "markdown.showPreviewToSide" : "markdown.showPreview", uri);
    } else if (kind !== undefined && kind !== "markdown" && (previewed || !opened.text)) {
      await vscode.commands.executeCommand("vscode.openWith", uri, PREVIEW, { viewColumn, preview: true });
    } else {
      await vscode.commands.executeCommand("vscode.open", uri, { viewColumn, preview: true });
    }
  }

  /** The text behind the preview that is in front. */
  private async openPreviewed(): Promise<void> {
    const input = vscode.window.tabGroups.activeTabGroup.activeTab?.input;
    if (input instanceof vscode.TabInputCustom) {
      await vscode.commands.executeCommand("vscode.openWith", input.uri, "default");
    }
  }

  private async before(artifact: Artifact, version: number): Promise<number | undefined> {
    const { versions } = await this.session.ask("artifact/versions", { path: artifact.artifact_path });
    return versions.map((one) => one.version).findLast((one) => one < version);
  }

  private async diff(artifact: Artifact, before: number, after: number): Promise<void> {
    const path = artifact.artifact_path;
    const [left, right] = await Promise.all([
      this.session.run("artifact-sidecar.open", { path, version: before }),
      this.session.run("artifact-sidecar.open", { path, version: after }),
    ]);
    const title = `${right.name} (version ${before} ↔ version ${after})`;
    await vscode.commands.executeCommand("vscode.diff", documentUri(left), documentUri(right), title, { preview: true });
  }

  private async pick(title: string, fits: (artifact: Artifact) => boolean): Promise<Artifact | undefined> {
    const { artifacts } = await this.session.ask("artifact/list", { limit: 1000 });
    const items = artifacts.filter(fits).map((artifact) => ({
      label: nameOf(artifact),
      description: joined(artifact.turn_id, size(artifact.size_bytes)),
      artifact,
    }));
    return (await vscode.window.showQuickPick(items, { title, matchOnDescription: true }))?.artifact;
  }

  private async pickVersion(artifact: Artifact, title: string, except?: number): Promise<number | undefined> {
    const { versions } = await this.session.ask("artifact/versions", { path: artifact.artifact_path });
    const items = versions
      .filter((one) => one.version !== except)
      .map((one) => ({ label: `Version ${one.version}`, description: joined(moment(one.ts), size(one.size_bytes)), one }))
      .reverse();
    return (await vscode.window.showQuickPick(items, { title }))?.one.version;
  }
}

function artifactOf(chosen: Chosen): Artifact {
  return chosen.kind === "version" ? chosen.parent.artifact : chosen.artifact;
}

/** A node of the tree that can be opened; anything else that a menu may hand over is undefined. */
function taken(node: unknown): Chosen | undefined {
  const one = node as Node | undefined;
  return one?.kind === "artifact" || one?.kind === "version" ? one : undefined;
}
