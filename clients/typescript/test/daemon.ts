// Starts real daemons for tests: a private workspace and its sockets, ended by process id.

import { spawn, type ChildProcess } from "node:child_process";
import { createHash } from "node:crypto";
import { closeSync, mkdirSync, mkdtempSync, openSync, readFileSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import { dirname, join, resolve } from "node:path";
import type { TestContext } from "node:test";
import { fileURLToPath } from "node:url";

import { Client, type ClientOptions, type Role } from "artifact-sidecar-client";

export const PACKAGE = resolve(dirname(fileURLToPath(import.meta.url)), "..");
export const PROJECT = resolve(PACKAGE, "../..");
export const PYTHON = process.env.PYTHON ?? "python3";
const CEILING = 60_000;
const ROLES: readonly Role[] = ["runtime", "renderer", "exec", "editor"];

/** Ask again until the answer is true; the answer. For what has no event to wait for. */
export async function eventually<T>(look: () => T | Promise<T>, what: string): Promise<NonNullable<T>> {
  const deadline = performance.now() + CEILING;
  for (;;) {
    const found = await look();
    if (found) return found;
    if (performance.now() > deadline) throw new Error(`was not so within ${CEILING} ms: ${what}`);
    await new Promise((done) => setTimeout(done, 10));
  }
}

/** A promise and what settles it, with a ceiling. */
export async function soon<T>(start: (done: (value: T) => void) => void, what: string): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error(`did not come within ${CEILING} ms: ${what}`)), CEILING);
  });
  try {
    return await Promise.race([new Promise<T>(start), late]);
  } finally {
    clearTimeout(timer);
  }
}

/** Our own environment without anything that would configure a daemon, its modules found in this checkout. */
export function environment(extra: Record<string, string> = {}): NodeJS.ProcessEnv {
  const kept = Object.entries(process.env).filter(([name]) => !name.startsWith("ARTIFACT_SIDECAR_") && name !== "OUT_DIR");
  return { ...Object.fromEntries(kept), PYTHONPATH: PROJECT, PYTHONUNBUFFERED: "1", ...extra };
}

/** A workspace with its daemon running, for one test. */
export async function during(test: TestContext): Promise<Workspace> {
  const workspace = new Workspace();
  test.after(() => workspace.stop());
  return workspace.start();
}

/** One OUT_DIR with a private state folder, and the daemon that serves it. */
export class Workspace {
  readonly folder = mkdtempSync(join(tmpdir(), "as-"));
  readonly outDir = join(this.folder, "out");
  readonly stateDir = join(this.folder, "state");
  readonly socketDir = join(this.folder, "s");
  readonly #log = join(this.folder, "daemon.log");
  readonly #clients: Client[] = [];
  #daemon: ChildProcess | undefined;

  constructor() {
    mkdirSync(this.outDir);
  }

  /** Start the daemon and wait until it takes connections. */
  async start(): Promise<this> {
    const log = openSync(this.#log, "a");
    const settings = ["--state-dir", this.stateDir, "--socket-dir", this.socketDir, "--idle-exit", "600"];
    const words = ["-m", "sidecar", "serve", "--out-dir", this.outDir, ...settings];
    const daemon = spawn(PYTHON, words, { cwd: PROJECT, env: environment(), stdio: ["ignore", log, log] });
    closeSync(log);
    this.#daemon = daemon;
    await eventually(() => {
      if (daemon.exitCode !== null) throw new Error(`the daemon ended at its start\n${readFileSync(this.#log, "utf8")}`);
      return this.answers();
    }, "the daemon listens");
    return this;
  }

  /** Whether somebody listens on every socket: the daemon opens one after the other. */
  async answers(): Promise<boolean> {
    const listening = await Promise.all(ROLES.map((role) => this.#listens(role)));
    return listening.every(Boolean);
  }

  #listens(role: Role): Promise<boolean> {
    return new Promise((done) => {
      const socket = connect(this.socket(role));
      const tell = (yes: boolean): void => {
        socket.destroy();
        done(yes);
      };
      socket.once("connect", () => tell(true)).once("error", () => tell(false));
    });
  }

  /** SIGSTOP and SIGCONT: a daemon that holds still in the middle of whatever it does. */
  freeze(): void {
    this.#daemon?.kill("SIGSTOP");
  }

  thaw(): void {
    this.#daemon?.kill("SIGCONT");
  }

  /** SIGKILL, and wait for its end. */
  kill(): Promise<void> {
    return this.#end("SIGKILL");
  }

  /** Close this client with the daemon. */
  keep(client: Client): Client {
    this.#clients.push(client);
    return client;
  }

  async stop(): Promise<void> {
    this.thaw();
    for (const client of this.#clients) await client.close();
    await this.#end("SIGTERM");
    rmSync(this.folder, { recursive: true, force: true });
  }

  async #end(signal: NodeJS.Signals): Promise<void> {
    const daemon = this.#daemon;
    this.#daemon = undefined;
    if (daemon === undefined || daemon.exitCode !== null || daemon.signalCode !== null) return;
    await soon<void>((done) => {
      daemon.once("exit", () => done());
      daemon.kill(signal);
      daemon.kill("SIGCONT");
    }, "the daemon ends");
  }

  socket(role: Role): string {
    const name = createHash("sha256").update(realpathSync(this.outDir)).digest("hex").slice(0, 16);
    return join(this.socketDir, name, role, "s.sock");
  }

  /** A client on the socket of a role, closed with the daemon. */
  async connect(role: Role, options: ClientOptions = {}): Promise<Client> {
    return this.keep(await Client.connect({ socket: this.socket(role), timeout: CEILING, ...options }));
  }

  /** What a program needs to find this workspace by OUT_DIR. */
  variables(): NodeJS.ProcessEnv {
    return environment({
      OUT_DIR: this.outDir,
      ARTIFACT_SIDECAR_STATE_DIR: this.stateDir,
      ARTIFACT_SIDECAR_SOCKET_DIR: this.socketDir,
    });
  }

  /** The door to this workspace, as words of a command. */
  door(role: Role): string[] {
    const folders = ["--state-dir", this.stateDir, "--socket-dir", this.socketDir];
    return [PYTHON, "-m", "sidecar", "connect", "--role", role, "--out-dir", this.outDir, ...folders];
  }

  /** A file below OUT_DIR, complete when this returns. */
  write(path: string, content: string | Buffer): void {
    mkdirSync(dirname(join(this.outDir, path)), { recursive: true });
    writeFileSync(join(this.outDir, path), content);
  }
}
