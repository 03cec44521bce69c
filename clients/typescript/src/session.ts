// One greeted connection: requests out, answers and events in, and a clear word when it is over.

import {
  CancellationTokenSource,
  ErrorCodes,
  ProgressType,
  ResponseError,
  StreamMessageReader,
  StreamMessageWriter,
  createMessageConnection,
  type MessageConnection,
} from "vscode-jsonrpc/node";

import { ConnectionLost, Refusal } from "./errors.js";
import type { Link } from "./link.js";
import { ownIds } from "./own_ids.js";
import type { InitializationOptions, SidecarCapability } from "./protocol.js";

const GREETED_BEFORE = -32600;
const LOCAL: ReadonlySet<number> = new Set([ErrorCodes.MessageWriteError, ErrorCodes.PendingResponseRejected]);
const FAREWELL = 2000; // milliseconds for the answer to `shutdown`

/** What a session tells by itself. */
export interface Listener {
  told(method: string, params: unknown): void;
  /** It is over, and not because we ended it. */
  lost(why: ConnectionLost): void;
}

interface Greeting {
  capabilities?: { experimental?: { artifact_sidecar?: SidecarCapability } };
}

let tokens = 0;

export class Session {
  /** What the daemon said of itself; absent where another program has greeted on the same descriptor before us. */
  sidecar: SidecarCapability | undefined;
  /** Why it is over, once it is. */
  over: ConnectionLost | undefined;
  readonly link: Link;
  readonly #connection: MessageConnection;
  readonly #written: WeakSet<object>;
  readonly #listener: Listener;
  #asked = 0;
  #retired = false;
  #ended = false;

  constructor(link: Link, listener: Listener) {
    this.link = link;
    this.#listener = listener;
    const mine = ownIds(new StreamMessageReader(link.input), new StreamMessageWriter(link.output));
    this.#written = mine.written;
    this.#connection = createMessageConnection(mine.reader, mine.writer);
    this.#connection.onNotification((method, params) => {
      if (!method.startsWith("$/")) listener.told(method, Array.isArray(params) ? params[0] : params);
    });
    this.#connection.onClose(() => this.#end("the other side hung up", true));
    this.#connection.onError(([error]) => this.#end(error.message, true));
    this.#connection.listen();
  }

  /** Shake hands. Rejects with ConnectionLost or Refusal; the caller hangs up then. */
  async greet(version: string, options: InitializationOptions, stop: AbortSignal): Promise<void> {
    const clientInfo = { name: "artifact-sidecar-client", version };
    const hello = { processId: process.pid, clientInfo, capabilities: {}, rootUri: null };
    try {
      const answer = (await this.ask("initialize", { ...hello, initializationOptions: options }, stop)) as Greeting;
      this.sidecar = answer.capabilities?.experimental?.artifact_sidecar;
      await this.#connection.sendNotification("initialized", {});
    } catch (error) {
      // Another process greeted on this very descriptor, and its session is still good.
      if (!(this.link.inherited && error instanceof Refusal && error.code === GREETED_BEFORE)) throw error;
    }
  }

  /** The answer as it came. `stop` sends `$/cancelRequest`; whoever asked does not wait for what comes of that. */
  async ask(
    method: string,
    params: object,
    stop?: AbortSignal,
    onProgress?: (value: unknown) => void,
  ): Promise<unknown> {
    stop?.throwIfAborted(); // given up before there was a connection
    if (this.over !== undefined) throw new ConnectionLost(this.over.message, false);
    const sent: Record<string, unknown> = { ...params };
    const token = onProgress && `${process.pid}-${++tokens}`;
    const watched = token && this.#connection.onProgress(new ProgressType<unknown>(), token, onProgress);
    if (token) sent.workDoneToken = token;
    const cancel = new CancellationTokenSource();
    const cancelled = (): void => cancel.cancel();
    stop?.addEventListener("abort", cancelled, { once: true });
    this.#asked += 1;
    try {
      return await this.#connection.sendRequest(method, sent, cancel.token);
    } catch (error) {
      throw this.#asOurs(error, sent);
    } finally {
      this.#asked -= 1;
      stop?.removeEventListener("abort", cancelled);
      if (watched) watched.dispose();
      if (this.#retired && this.#asked === 0) void this.hangUp();
    }
  }

  /** Take no more requests, and hang up when the last one is answered. */
  retire(): void {
    this.over ??= new ConnectionLost("the sidecar is about to end", false);
    this.#retired = true;
    if (this.#asked === 0) void this.hangUp();
  }

  /** End it politely: `shutdown`, `exit`, and hang up. An inherited descriptor is only let go: others come after us. */
  async close(): Promise<void> {
    if (this.over === undefined && !this.link.inherited) {
      const bound = new AbortController();
      const timer = setTimeout(() => bound.abort(), FAREWELL);
      const late = new Promise((resolve) => bound.signal.addEventListener("abort", resolve));
      await Promise.race([this.ask("shutdown", {}, bound.signal).catch(() => undefined), late]);
      clearTimeout(timer);
      if (this.over === undefined) await this.#connection.sendNotification("exit").catch(() => undefined);
    }
    await this.hangUp();
  }

  /** Hang up at once. What is in flight is rejected as lost. */
  async hangUp(): Promise<void> {
    this.#end("the connection was closed", false);
    await this.link.close();
  }

  #end(why: string, tell: boolean): void {
    if (this.#ended) return;
    this.#ended = true;
    this.over ??= new ConnectionLost(`the connection to the sidecar was lost (${why})`);
    this.#connection.dispose();
    if (!tell) return;
    void this.link.close();
    if (!this.#retired) this.#listener.lost(this.over);
  }

  #asOurs(error: unknown, sent: object): unknown {
    if (error instanceof ResponseError && !LOCAL.has(error.code)) {
      return new Refusal(error.code, error.message, (error.data ?? {}) as Record<string, unknown>);
    }
    const why = this.over?.message ?? `the connection to the sidecar was lost (${(error as Error).message})`;
    return new ConnectionLost(why, this.#written.has(sent));
  }
}
