/** The item at the foot of the window: how much there is, how the watch is, or what is wrong. */

import * as vscode from "vscode";
import { count, joined, moment } from "./phrases";
import { Gathered } from "./queue";
import type { Session, State } from "./session";
import type { StatusResult } from "./wire";

const GATHER_MS = 500;
const LOOK_EVERY_MS = 60_000; // The watch has no event of its own when it recovers.

export class Status implements vscode.Disposable {
  private readonly item = vscode.window.createStatusBarItem("status", vscode.StatusBarAlignment.Left, 0);
  private readonly language = vscode.languages.createLanguageStatusItem("artifactSidecar.language", [
    { scheme: "file", language: "markdown" },
    { scheme: "file", language: "html" },
  ]);
  private readonly news = new Gathered<undefined>(GATHER_MS, () => void this.look());
  private readonly timer = setInterval(() => this.news.add(undefined), LOOK_EVERY_MS);
  private wanted = false;

  constructor(private readonly session: Session) {
    this.item.name = "Artifact Sidecar";
    this.item.command = "artifactSidecar.menu";
    this.language.name = "Artifact Sidecar";
    this.language.command = { command: "artifactSidecar.menu", title: "More…" };
    session.onDidChange((state) => this.show(state));
    session.on("artifacts/changed", () => this.news.add(undefined));
    session.on("sources/added", () => this.news.add(undefined));
    session.on("notice/posted", () => this.news.add(undefined));
    this.show(session.state);
  }

  /** Somebody looks at our views or has configured something: from now on say what is missing. */
  want(): void {
    this.wanted = true;
    this.show(this.session.state);
  }

  dispose(): void {
    clearInterval(this.timer);
    this.news.dispose();
    this.item.dispose();
    this.language.dispose();
  }

  private show(state: State): void {
    this.language.busy = state.kind === "starting";
    switch (state.kind) {
      case "starting":
        return this.say("$(sync~spin) Artifacts", "Looking for the daemon…", "starting");
      case "noOutDir":
        return this.say("$(folder) Artifacts: not configured", state.why, "not configured", "warning");
      case "noCommand":
        return this.say("$(warning) Artifacts: not configured", state.why, "not configured", "warning");
      case "failed":
        return this.say("$(error) Artifacts: no daemon", state.why, "no daemon", "error");
      case "running":
        this.say("$(layers) Artifacts", "", "running");
        void this.look();
    }
  }

  private async look(): Promise<void> {
    if (this.session.state.kind !== "running") {
      return;
    }
    try {
      this.tell(await this.session.ask("workspace/status", {}));
    } catch (error) {
      this.session.output.debug(`No status: ${String(error)}`);
    }
  }

  private tell(status: StatusResult): void {
    const { counts, watcher, store } = status;
    const wrong = [
      watcher.state === "ok" ? "" : `The watch is ${watcher.state}${watcher.reason ? ` (${watcher.reason})` : ""}.`,
      watcher.over_limit > 0 ? `${count(watcher.over_limit, "entry", "entries")} of OUT_DIR ${watcher.over_limit === 1 ? "is" : "are"} over a limit and not registered.` : "",
      store.state === "unavailable" ? "The store does not answer." : "",
    ].filter((sentence) => sentence !== "");
    const sign = watcher.state === "lost" ? "$(error)" : wrong.length > 0 ? "$(warning)" : "$(layers)";
    const level = watcher.state === "lost" ? "error" : wrong.length > 0 ? "warning" : undefined;
    const text = `${sign} ${counts.artifacts.toLocaleString("en")} $(bookmark) ${counts.sources.toLocaleString("en")}`;
    const told = joined(count(counts.artifacts, "artifact"), count(counts.sources, "source"), count(counts.turns, "turn"));
    const lines = [told, ...wrong, `OUT_DIR ${status.out_dir}`, watcher.state === "ok" ? `Watched; last looked at ${moment(watcher.last_look)}` : ""];
    const tooltip = lines.filter((line) => line !== "").join("\n");
    this.say(text, tooltip, `${told}, watch ${watcher.state}`, level);
  }

  private say(text: string, tooltip: string, spoken: string, level?: "warning" | "error"): void {
    this.item.text = text;
    this.item.tooltip = tooltip;
    this.item.accessibilityInformation = { label: `Artifact Sidecar: ${spoken}`, role: "button" };
    const color = level === "error" ? "statusBarItem.errorBackground" : "statusBarItem.warningBackground";
    this.item.backgroundColor = level === undefined ? undefined : new vscode.ThemeColor(color);
    const { Information, Warning, Error } = vscode.LanguageStatusSeverity;
    this.language.severity = level === "error" ? Error : level === "warning" ? Warning : Information;
    this.language.text = text;
    this.language.detail = tooltip.split("\n")[0] ?? "";
    const silent = !this.wanted && (this.session.state.kind === "noOutDir" || this.session.state.kind === "noCommand");
    silent ? this.item.hide() : this.item.show();
  }
}
