/** The view of artifacts: turns, calls, artifacts, versions; fetched when they are opened, and kept up to date by events. */

import * as vscode from "vscode";
import { Gathered, OneMore } from "../queue";
import { NotRunning, type Session } from "../session";
import type { Artifact } from "../wire";
import { type ArtifactNode, type Holder, Holders, type MoreNode, type Node, holderId, ownArtifacts, parentOf } from "./nodes";
import { Pages } from "./pages";
import { row } from "./rows";

const GATHER_MS = 250;

export class ArtifactsTree implements vscode.TreeDataProvider<Node>, vscode.Disposable {
  private readonly changed = new vscode.EventEmitter<Node[] | undefined>();
  private readonly holders = new Holders();
  private readonly pages: Pages;
  private readonly news = new Gathered<Artifact>(GATHER_MS, (all) => this.hear(all));
  private readonly look = new OneMore(() => this.lookAgain());
  private stale = new Map<string, Artifact>();
  private outlined: Promise<unknown> | undefined;

  readonly onDidChangeTreeData = this.changed.event;

  constructor(private readonly session: Session) {
    this.pages = new Pages((method, params) => session.ask(method, params));
    session.onDidChange(() => this.refresh());
    session.onLost(() => this.refresh());
    session.on("artifacts/changed", ({ artifacts }) => this.news.add(...artifacts));
  }

  dispose(): void {
    this.news.dispose();
    this.changed.dispose();
  }

  /** Forget everything and ask anew for what is open. */
  refresh(): void {
    this.holders.clear();
    this.pages.clear();
    this.outlined = undefined;
    this.changed.fire(undefined);
  }

  getTreeItem(node: Node): vscode.TreeItem {
    return row(node);
  }

  getParent(node: Node): Node | undefined {
    return parentOf(node, this.holders);
  }

  async getChildren(node?: Node): Promise<Node[]> {
    if (this.session.state.kind !== "running") {
      return [];
    }
    try {
      return await this.children(node);
    } catch (error) {
      if (!(error instanceof NotRunning)) {
        this.session.output.error(`The tree could not be filled: ${String(error)}`);
      }
      return [];
    }
  }

  async fetchMore(node: MoreNode): Promise<void> {
    await this.pages.fetchMore(node.parent);
    this.changed.fire([node.parent]);
  }

  private async children(node: Node | undefined): Promise<Node[]> {
    if (node === undefined) {
      this.outlined ??= this.outline();
      try {
        await this.outlined;
      } catch (error) {
        this.outlined = undefined; // The next look asks again.
        throw error;
      }
      return this.holders.roots;
    }
    switch (node.kind) {
      case "turn":
        return [...this.holders.calls(node), ...(await this.pages.rows(node))];
      case "call":
      case "other":
        return this.pages.rows(node);
      case "artifact":
        return this.pages.versions(node);
      default:
        return [];
    }
  }

  private async outline(): Promise<Holder[] | "all"> {
    return this.holders.take(await this.session.ask("workspace/outline", {}));
  }

  /** What is shown already and stays where it is, is drawn again at once; for anything else the outline is asked. */
  private hear(artifacts: Artifact[]): void {
    const latest = new Map(artifacts.map((artifact) => [artifact.artifact_path, artifact]));
    const redrawn: ArtifactNode[] = [];
    for (const artifact of latest.values()) {
      const node = this.pages.row(artifact);
      if (node !== undefined && node.parent.id === holderId(artifact)) {
        node.artifact = artifact;
        redrawn.push(node);
      } else {
        this.stale.set(artifact.artifact_path, artifact);
      }
    }
    if (redrawn.length > 0) {
      this.changed.fire(redrawn);
    }
    if (this.stale.size > 0 && this.outlined !== undefined) {
      this.look.ask().catch((error: unknown) => this.session.output.debug(`No outline: ${String(error)}`));
    }
  }

  private async lookAgain(): Promise<void> {
    const moved = [...this.stale.values()];
    this.stale = new Map();
    const drawn = await this.outline();
    const touched = new Map<string, Holder>();
    for (const artifact of moved) {
      for (const id of [holderId(artifact), this.pages.row(artifact)?.parent.id ?? ""]) {
        const holder = this.holders.get(id);
        if (holder !== undefined) {
          touched.set(id, holder);
        }
      }
    }
    for (const holder of touched.values()) {
      if (this.pages.fetched(holder) !== undefined && ownArtifacts(holder) > 0) {
        await this.pages.again(holder);
      }
    }
    this.changed.fire(drawn === "all" ? undefined : [...new Set([...drawn, ...touched.values()])]);
  }
}
