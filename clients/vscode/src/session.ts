/**
 * The one connection to the daemon, from "not configured" to "running" and back, and who is told of it.
 *
 * A session is never dead: whatever is wrong has a state with words, and a setting that arrives, trust that is granted
 * or the command "Restart" begins it anew.
 */

import * as vscode from "vscode";
import {
  CloseAction,
  ErrorAction,
  type Executable,
  LanguageClient,
  type LanguageClientOptions,
  RevealOutputChannelOn,
  State as ClientState,
} from "vscode-languageclient/node";
import { commands, outDirs } from "./discovery";
import { type Found, findCommand, findOutDir } from "./probing";
import { OneMore } from "./queue";
import { settings, surroundings } from "./settings";
import type { Commands, Events, Method, Requests } from "./wire";

export type State =
  | { kind: "starting" }
  | { kind: "noOutDir"; why: string; tried: string[] }
  | { kind: "noCommand"; why: string; tried: string[] }
  | { kind: "failed"; why: string }
  | { kind: "running"; outDir: string; version: string; program: string };

/** The daemon is not there to be asked; who asks shows nothing and waits for the next state. */
export class NotRunning extends Error {
  constructor() {
    super("The daemon is not running.");
  }
}

const DOCUMENTS = ["markdown", "html", "plaintext", "json", "jsonl", "csv", "tsv", "latex", "restructuredtext"];
const QUICK_ENDS = 3; // A door that ends so often within QUICK_MS is not opened again by itself.
const QUICK_MS = 180_000;

export class Session implements vscode.Disposable {
  private readonly changed = new vscode.EventEmitter<State>();
  private readonly listeners = new Map<string, ((params: unknown) => void)[]>();
  private readonly restarts = new OneMore(() => this.begin());
  private client: LanguageClient | undefined;
  private ends: number[] = [];
  private now: State = { kind: "starting" };

  readonly onDidChange = this.changed.event;

  constructor(
    private readonly home: string,
    readonly output: vscode.LogOutputChannel,
    readonly trace: vscode.LogOutputChannel,
  ) {}

  get state(): State {
    return this.now;
  }

  /** Find program and folder anew, and connect. Asked while that is under way, it is done once more. */
  restart(): Promise<void> {
    return this.restarts.ask();
  }

  ask<M extends Method>(
    method: M,
    params: Requests[M]["params"],
    token?: vscode.CancellationToken,
  ): Promise<Requests[M]["result"]> {
    return this.raw<Requests[M]["result"]>(method, params, token);
  }

  /** Run one of the daemon's commands. */
  run<C extends keyof Commands>(command: C, argument: Commands[C]["argument"]): Promise<Commands[C]["answer"]> {
    return this.raw<Commands[C]["answer"]>("workspace/executeCommand", { command, arguments: [argument] });
  }

  /** Ask by a name that the generated types do not have: LSP's own. */
  async raw<R>(method: string, params: unknown, token?: vscode.CancellationToken): Promise<R> {
    const client = this.client;
    if (client === undefined || this.now.kind !== "running") {
      throw new NotRunning();
    }
    // A token that is there but undefined would count as a second param.
    return token === undefined ? client.sendRequest<R>(method, params) : client.sendRequest<R>(method, params, token);
  }

  /** Hear of an event, over every restart. */
  on<E extends keyof Events>(event: E, listener: (params: Events[E]) => unknown): void {
    this.listeners.set(event, [...(this.listeners.get(event) ?? []), listener as (params: unknown) => void]);
  }

  /** Hear that events were lost, because another daemon took over or too much happened: what is shown is to be asked anew. */
  onLost(listener: () => void): void {
    this.on("notice/posted", ({ notice }) => notice.code === "events_dropped" && listener());
  }

  dispose(): void {
    this.changed.dispose();
    void this.end();
  }

  async end(): Promise<void> {
    const client = this.client;
    this.client = undefined;
    if (client !== undefined) {
      await client.dispose(3000).catch((error: unknown) => this.output.warn(`The door did not close: ${String(error)}`));
    }
  }

  private async begin(): Promise<void> {
    this.enter({ kind: "starting" });
    await this.end();
    const read = settings();
    const around = surroundings();
    const found = await findCommand(commands(read, around), this.home);
    if (!("candidate" in found)) {
      return this.enter({ kind: "noCommand", ...found });
    }
    const place = await findOutDir(outDirs(read.outDir, around));
    if (!("folder" in place)) {
      return this.enter({ kind: "noOutDir", ...place });
    }
    this.output.info(`${found.candidate.command} ${found.version}, from ${found.candidate.from}`);
    this.output.info(`OUT_DIR ${place.folder}, from ${place.from}`);
    await this.connect(found, place.folder, read.args);
  }

  private async connect(found: Found, outDir: string, more: string[]): Promise<void> {
    const { command, args } = found.candidate;
    // No `transport`: the client would add `--stdio` for it, which is an option of another command of the daemon's.
    const door: Executable = {
      command,
      args: [...args, "connect", "--role", "editor", "--out-dir", outDir, ...more],
      options: { cwd: this.home, detached: false },
    };
    const client = new LanguageClient("artifactSidecar", "Artifact Sidecar", door, this.options());
    this.client = client;
    for (const [event, listeners] of this.listeners) {
      client.onNotification(event, (params: unknown) => listeners.forEach((listener) => listener(params)));
    }
    client.onDidChangeState(({ newState }) => {
      if (newState === ClientState.Stopped && this.client === client && this.now.kind === "running") {
        this.ended();
      }
    });
    try {
      await client.start();
    } catch (error) {
      return this.failed(client, error);
    }
    if (this.client === client) {
      this.enter({ kind: "running", outDir, version: found.version, program: command });
    }
  }

  private options(): LanguageClientOptions {
    return {
      documentSelector: DOCUMENTS.map((language) => ({ scheme: "file", language })),
      initializationOptions: { events: ["artifacts", "sources", "notices"] },
      outputChannel: this.output,
      traceOutputChannel: this.trace,
      revealOutputChannelOn: RevealOutputChannelOn.Never,
      initializationFailedHandler: () => false,
      errorHandler: {
        error: () => ({ action: ErrorAction.Continue, handled: true }),
        closed: () => ({ action: CloseAction.DoNotRestart, handled: true }),
      },
      // Old versions are served by versions.ts, which stays while the client comes and goes.
      middleware: { provideTextDocumentContent: () => null },
      markdown: { isTrusted: false, supportHtml: false },
    };
  }

  private failed(client: LanguageClient, error: unknown): void {
    if (this.client === client) {
      this.client = undefined;
    }
    client.dispose().catch(() => undefined);
    this.enter({ kind: "failed", why: error instanceof Error ? error.message : String(error) });
  }

  private ended(): void {
    this.client = undefined;
    const now = Date.now();
    this.ends = [...this.ends.filter((then) => now - then < QUICK_MS), now];
    if (this.ends.length < QUICK_ENDS) {
      this.output.warn("The door to the daemon ended; it is opened again.");
      void this.restart();
    } else {
      this.ends = [];
      this.enter({ kind: "failed", why: "The door to the daemon ended again and again." });
    }
  }

  private enter(state: State): void {
    this.now = state;
    if (state.kind === "noCommand" || state.kind === "noOutDir" || state.kind === "failed") {
      this.output.warn(state.why);
      ("tried" in state ? state.tried : []).forEach((one) => this.output.warn(`  tried ${one}`));
    }
    void vscode.commands.executeCommand("setContext", "artifactSidecar.state", state.kind);
    this.changed.fire(state);
  }
}
