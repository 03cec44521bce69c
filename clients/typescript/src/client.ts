// A client of the sidecar: typed requests with a deadline, events, and the next connection when this one has ended.

import { ConnectionLost, NoAnswer, NoSidecar, Refusal } from "./errors.js";
import { dial, type Way } from "./launch.js";
import { PROTOCOL_VERSION } from "./protocol.js";
import type {
  Commands,
  Events,
  InitializationOptions,
  NoticePosted,
  Requests,
  SidecarCapability,
  StatusResult,
} from "./protocol.js";
import { Session } from "./session.js";

export const VERSION = "0.1.0";
const TIMEOUT = 30_000;
const PATIENCE = 5_000; // milliseconds of a call that wait for a daemon that follows another
const PAUSE = 20;

// These change nothing, so that one whose answer was lost can simply be asked again.
const READS: ReadonlySet<string> = new Set(
  "fetch read resolve list versions search status changes render blocks extract replace".split(" "),
);

export interface ClientOptions extends Way {
  /** Milliseconds that a call may take, its connecting included; 30,000 by default. */
  timeout?: number | undefined;
  /** What goes into the greeting: `events` to be told of, labels for the daemon's log. */
  initializationOptions?: InitializationOptions | undefined;
}

export interface RequestOptions {
  /** Gives the request up: the daemon gets `$/cancelRequest`, and the call rejects with the signal's reason. */
  signal?: AbortSignal | undefined;
  /** Milliseconds that this call may take. */
  timeout?: number | undefined;
  /** Gets the values of `$/progress`, where the method reports any. */
  onProgress?: ((value: unknown) => void) | undefined;
}

export type Params<M extends keyof Requests> = Requests[M]["params"];
export type Result<M extends keyof Requests> = Requests[M]["result"];

/** What a client can listen to: the daemon's events, and `lost`, the end of a connection that nobody here wanted. */
export interface ClientEvents extends Events {
  lost: ConnectionLost;
}

type Asked<M extends keyof Requests> =
  {} extends Params<M>
    ? [params?: Params<M>, options?: RequestOptions]
    : [params: Params<M>, options?: RequestOptions];

export class Client implements AsyncDisposable {
  readonly #options: ClientOptions;
  readonly #timeout: number;
  readonly #listeners = new Map<string, Set<(payload: never) => void>>();
  #session: Session | undefined;
  #connecting: Promise<Session> | undefined;
  #anew = false; // whether the next connection follows another

  private constructor(options: ClientOptions) {
    this.#options = options;
    this.#timeout = options.timeout ?? TIMEOUT;
  }

  /** Find the sidecar and shake hands. Rejects with NoSidecar, NoAnswer, or Refusal where the greeting is refused. */
  static async connect(options: ClientOptions = {}): Promise<Client> {
    const client = new Client(options);
    await bounded(client.#timeout, undefined, "initialize", () => client.#connected());
    return client;
  }

  /** What the daemon said of itself in its greeting: role, OUT_DIR, limits. Absent on a descriptor greeted before. */
  get sidecar(): SidecarCapability | undefined {
    return this.#session?.sidecar;
  }

  /**
   * Ask a method of the protocol. Rejects with Refusal, NoAnswer, NoSidecar or ConnectionLost, or with the reason of
   * the signal. What was not delivered, and a plain read whose answer was lost, is asked once more, over a new
   * connection.
   */
  async request<M extends keyof Requests>(method: M, ...[params, options]: Asked<M>): Promise<Result<M>> {
    return (await this.ask(method, params ?? {}, options)) as Result<M>;
  }

  /** Run one of the daemon's commands for editors, such as `artifact-sidecar.open`. */
  async execute<C extends keyof Commands>(
    command: C,
    params: Commands[C]["params"],
    options?: RequestOptions,
  ): Promise<Commands[C]["result"]> {
    const result = await this.ask("workspace/executeCommand", { command, arguments: [params] }, options);
    return result as Commands[C]["result"];
  }

  /** The same for anything else that the daemon answers, `textDocument/hover` for example. */
  async ask(method: string, params: object = {}, options: RequestOptions = {}): Promise<unknown> {
    const { signal, timeout = this.#timeout, onProgress } = options;
    const plain = READS.has(method.split("/").pop() ?? "") && !("tool_call_id" in params);
    return bounded(timeout, signal, method, async (stop) => {
      const session = await this.#connected();
      try {
        return await session.ask(method, params, stop, onProgress);
      } catch (error) {
        if (stop.aborted || !mayBeRepeated(error, plain, method)) throw error;
        if (session === this.#session) this.#session = undefined;
        session.retire();
      }
      return (await this.#connected()).ask(method, params, stop, onProgress);
    });
  }

  /** Listen to an event, one of the `events` of `initializationOptions`, or to `lost`. The answer ends that. */
  on<E extends keyof ClientEvents>(event: E, listener: (payload: ClientEvents[E]) => void): () => void {
    const listeners = this.#listeners.get(event) ?? new Set();
    this.#listeners.set(event, listeners.add(listener));
    this.#hold();
    return () => {
      listeners.delete(listener);
      this.#hold();
    };
  }

  /** Say goodbye and hang up. The sidecar goes on; a later request connects again. */
  async close(): Promise<void> {
    const session = this.#session ?? (await this.#connecting?.catch(() => undefined));
    this.#session = undefined;
    this.#anew = false;
    await session?.close();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  async #connected(): Promise<Session> {
    if (this.#session !== undefined && this.#session.over === undefined) return this.#session;
    this.#connecting ??= this.#connect().finally(() => (this.#connecting = undefined));
    return this.#connecting;
  }

  async #connect(): Promise<Session> {
    const anew = this.#anew;
    const session = await this.#greeted(performance.now() + (anew ? PATIENCE : 0));
    this.#session = session;
    this.#anew = !session.link.inherited;
    this.#hold();
    if (anew && this.#options.initializationOptions?.events?.length) await this.#tellOfDropped(session);
    return session;
  }

  async #tellOfDropped(session: Session): Promise<void> {
    const method = "workspace/status";
    const status = await bounded(this.#timeout, undefined, method, (stop) => session.ask(method, {}, stop));
    const message = "reconnected; ask workspace/changes";
    const { revision } = status as StatusResult;
    const posted: NoticePosted = { notice: { code: "events_dropped", message, count: 0 }, revision };
    this.#tell("notice/posted", posted);
  }

  /** A greeted connection. Until this moment, somebody who follows the last daemon is waited for. */
  async #greeted(until: number): Promise<Session> {
    for (;;) {
      try {
        return await this.#greet();
      } catch (error) {
        if (!isPassing(error) || performance.now() >= until) throw error;
        await new Promise((resolve) => setTimeout(resolve, PAUSE));
      }
    }
  }

  async #greet(): Promise<Session> {
    const link = await dial(this.#options);
    const session = new Session(link, {
      told: (method, params) => this.#tell(method, params),
      lost: (why) => this.#tell("lost", why),
    });
    const hello = { protocol_version: PROTOCOL_VERSION, ...this.#options.initializationOptions };
    try {
      await bounded(this.#timeout, undefined, "initialize", (stop) => session.greet(VERSION, hello, stop));
      return session;
    } catch (error) {
      void session.hangUp();
      throw error instanceof ConnectionLost ? new NoSidecar(`${link.name}: ${error.message}`) : error;
    }
  }

  /** A connection keeps the process alive while somebody listens; what is in flight does so by its deadline. */
  #hold(): void {
    this.#session?.link.hold([...this.#listeners.values()].some((listeners) => listeners.size > 0));
  }

  #tell(event: string, payload: unknown): void {
    for (const listener of [...(this.#listeners.get(event) ?? [])]) {
      try {
        (listener as (payload: unknown) => void)(payload);
      } catch (error) {
        // A listener's fault is the program's, as with any emitter, and not the connection's.
        queueMicrotask(() => {
          throw error;
        });
      }
    }
  }
}

/** Whether there may be a daemon in a moment: none is there yet, or it is the last one, about to end. */
function isPassing(error: unknown): boolean {
  return error instanceof NoSidecar || (error instanceof Refusal && error.kind === "shutting_down");
}

/** Whether a request is asked once more. Throws in the place of an error that says too little of what may have been. */
function mayBeRepeated(error: unknown, plain: boolean, method: string): boolean {
  if (error instanceof Refusal) return plain && error.kind === "shutting_down";
  if (!(error instanceof ConnectionLost)) return false;
  if (plain || !error.delivered) return true;
  throw new ConnectionLost(`${error.message}; repeat ${method} with the same request_id to have it once`);
}

/** `work`, given up when its time is over or when `signal` says so: then its own signal is aborted with the reason. */
async function bounded<T>(
  milliseconds: number,
  signal: AbortSignal | undefined,
  what: string,
  work: (stop: AbortSignal) => Promise<T>,
): Promise<T> {
  signal?.throwIfAborted();
  const stop = new AbortController();
  const late = (): void => stop.abort(new NoAnswer(`the sidecar did not answer ${what} within ${milliseconds} ms`));
  const unwanted = (): void => stop.abort(signal?.reason);
  const timer = setTimeout(late, milliseconds);
  signal?.addEventListener("abort", unwanted, { once: true });
  const stopped = new Promise<never>((_, reject) => {
    stop.signal.addEventListener("abort", () => reject(stop.signal.reason), { once: true });
  });
  try {
    return await Promise.race([work(stop.signal), stopped]);
  } finally {
    clearTimeout(timer);
    signal?.removeEventListener("abort", unwanted);
  }
}
