/** The view of sources: number, title, host; narrowed by what somebody types. */

import * as vscode from "vscode";
import { size } from "../phrases";
import { Gathered } from "../queue";
import { NotRunning, type Session } from "../session";
import type { SourceRow } from "../wire";
import { fits, labelOf, merged } from "./pool";
import { plain } from "./rows";

const GATHER_MS = 250;

export class SourcesTree implements vscode.TreeDataProvider<SourceRow>, vscode.Disposable {
  private readonly changed = new vscode.EventEmitter<undefined>();
  private readonly news = new Gathered<SourceRow>(GATHER_MS, (rows) => this.hear(rows));
  private rows: SourceRow[] | undefined;
  private words = "";
  view: vscode.TreeView<SourceRow> | undefined;

  readonly onDidChangeTreeData = this.changed.event;

  constructor(private readonly session: Session) {
    session.onDidChange(() => this.refresh());
    session.onLost(() => this.refresh());
    session.on("sources/added", ({ rows }) => this.news.add(...rows));
  }

  dispose(): void {
    this.news.dispose();
    this.changed.dispose();
  }

  get filter(): string {
    return this.words;
  }

  set filter(words: string) {
    this.words = words.trim();
    void vscode.commands.executeCommand("setContext", "artifactSidecar.filtered", this.words !== "");
    this.changed.fire(undefined);
  }

  refresh(): void {
    this.rows = undefined;
    this.changed.fire(undefined);
  }

  getTreeItem(source: SourceRow): vscode.TreeItem {
    const label = labelOf(source);
    const where = source.domain ?? source.physical_path ?? "";
    const item = new vscode.TreeItem(`${source.sid} · ${label}`);
    item.id = `source ${source.sid}`;
    item.description = source.domain ?? size(source.size_bytes);
    item.iconPath = new vscode.ThemeIcon(source.url ? "globe" : source.mime?.startsWith("image/") ? "file-media" : "file");
    item.tooltip = this.card(source, label);
    item.contextValue = source.url ? "web" : "file";
    item.command = { command: "artifactSidecar.openSource", title: "Open Source", arguments: [source] };
    item.accessibilityInformation = { label: `${label}, source ${source.sid}${where ? `, ${where}` : ""}` };
    return item;
  }

  async getChildren(source?: SourceRow): Promise<SourceRow[]> {
    if (source !== undefined || this.session.state.kind !== "running") {
      return [];
    }
    try {
      this.rows ??= (await this.session.ask("sources/list", {})).rows;
    } catch (error) {
      if (!(error instanceof NotRunning)) {
        this.session.output.error(`The sources could not be listed: ${String(error)}`);
      }
      return [];
    }
    const shown = this.rows.filter((row) => fits(row, this.words));
    this.describe(shown.length, this.rows.length);
    return shown;
  }

  private describe(shown: number, all: number): void {
    if (this.view !== undefined) {
      this.view.description = this.words === "" ? `${all}` : `“${this.words}” · ${shown} of ${all}`;
    }
  }

  private hear(rows: SourceRow[]): void {
    if (this.rows !== undefined) {
      this.rows = merged(this.rows, rows);
      this.changed.fire(undefined);
    }
  }

  private card(source: SourceRow, label: string): vscode.MarkdownString {
    const snippet = plain(source.text ?? "").slice(0, 600);
    const where = plain(source.url ?? source.physical_path ?? "");
    const text = new vscode.MarkdownString(
      [`**${plain(label)}**`, where, snippet].filter((part) => part !== "").join("\n\n"),
    );
    text.isTrusted = false;
    text.supportHtml = false;
    return text;
  }
}
