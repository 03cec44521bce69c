// A connected stream to a sidecar: a socket, an inherited descriptor, or the stdin and stdout of a program.

import { spawn, type ChildProcess } from "node:child_process";
import { closeSync, fstatSync, openSync } from "node:fs";
import { Socket, connect } from "node:net";
import { basename, dirname } from "node:path";
import type { Readable, Writable } from "node:stream";

import { NoSidecar } from "./errors.js";

const ADDRESS_BYTES = 107; // of a socket's path
const PATIENCE = 2000; // milliseconds that a program has to end by itself

/** One connection. Nothing of it keeps the process alive, unless `hold(true)` says so. */
export interface Link {
  readonly name: string;
  readonly input: Readable;
  readonly output: Writable;
  /** Whether somebody before us may have spoken on it, and somebody after us will. */
  readonly inherited: boolean;
  hold(alive: boolean): void;
  /** Hang up, and see the program out, if there is one. */
  close(): Promise<void>;
}

/** Connect to the socket of a role. Rejects with NoSidecar, as all of these do. */
export async function dialSocket(path: string): Promise<Link> {
  // A path that is too long for a socket's address is reached by way of its folder.
  const folder = Buffer.byteLength(path) > ADDRESS_BYTES ? opened(dirname(path)) : undefined;
  const address = folder === undefined ? path : `/proc/self/fd/${folder}/${basename(path)}`;
  try {
    const socket = connect({ path: address });
    await new Promise<void>((resolve, reject) => socket.once("connect", resolve).once("error", reject));
    return overSocket(socket, path, false);
  } catch (error) {
    throw new NoSidecar(`nobody answers at ${path} (${reason(error)})`);
  } finally {
    if (folder !== undefined) closeSync(folder);
  }
}

const spent = new Set<number>(); // a second session on one descriptor cannot work

/** Use an inherited descriptor that is connected already; once. */
export function dialDescriptor(descriptor: number): Link {
  if (spent.has(descriptor)) {
    throw new NoSidecar("it was used before, and one that has ended cannot be made anew");
  }
  try {
    if (!fstatSync(descriptor).isSocket()) throw new Error("no socket");
    const socket = new Socket({ fd: descriptor, readable: true, writable: true });
    spent.add(descriptor);
    return overSocket(socket, `descriptor ${descriptor}`, true);
  } catch (error) {
    throw new NoSidecar(`it is no connected socket here (${reason(error)}); was it passed on to this program?`);
  }
}

/** Start a program that speaks the protocol on its stdin and stdout; what it complains of goes to our stderr. */
export async function dialProgram(command: readonly string[], env: NodeJS.ProcessEnv): Promise<Link> {
  const [program, ...rest] = command;
  if (!program) throw new NoSidecar("the command is empty");
  const name = command.join(" ");
  const child = spawn(program, rest, { stdio: ["pipe", "pipe", "inherit"], env });
  try {
    await new Promise<void>((resolve, reject) => child.once("spawn", resolve).once("error", reject));
  } catch (error) {
    throw new NoSidecar(`${program} cannot be started (${reason(error)})`);
  }
  const { stdin, stdout } = child;
  if (stdin === null || stdout === null) throw new NoSidecar(`${program} has no pipes`);
  for (const part of [child, stdin, stdout]) part.on("error", quiet);
  const hold = (alive: boolean): void => {
    // Pipes are sockets, whatever their types say.
    for (const part of [child, stdin as unknown as Socket, stdout as unknown as Socket]) {
      if (alive) part.ref();
      else part.unref();
    }
  };
  hold(false);
  return { name, input: stdout, output: stdin, inherited: false, hold, close: () => seeOut(child) };
}

function overSocket(socket: Socket, name: string, inherited: boolean): Link {
  socket.unref();
  socket.on("error", quiet);
  const hold = (alive: boolean): void => void (alive ? socket.ref() : socket.unref());
  const close = async (): Promise<void> => {
    // `end` would end the session of those who use an inherited descriptor after us.
    if (!inherited && !socket.destroyed) await within(PATIENCE, (done) => socket.end(done));
    socket.destroy();
  };
  return { name, input: socket, output: socket, inherited, hold, close };
}

async function seeOut(child: ChildProcess): Promise<void> {
  const ended = new Promise<void>((resolve) => {
    if (child.exitCode !== null || child.signalCode !== null) resolve();
    else child.once("exit", () => resolve());
  });
  child.stdin?.end();
  for (const signal of ["SIGTERM", "SIGKILL"] as const) {
    if (await within(PATIENCE, (done) => void ended.then(done))) break;
    child.kill(signal);
  }
  child.stdin?.destroy();
  child.stdout?.destroy();
}

/** Whether `step` called back within so many milliseconds. */
function within(milliseconds: number, step: (done: () => void) => void): Promise<boolean> {
  return new Promise((resolve) => {
    const timer = setTimeout(() => resolve(false), milliseconds);
    step(() => {
      clearTimeout(timer);
      resolve(true);
    });
  });
}

function opened(folder: string): number {
  try {
    return openSync(folder, "r");
  } catch (error) {
    throw new NoSidecar(`nobody answers in ${folder} (${reason(error)})`);
  }
}

function reason(error: unknown): string {
  return (error as NodeJS.ErrnoException).code ?? (error as Error).message;
}

/** What breaks a stream is told by its `close`; an `error` that nobody listens to would end the process. */
function quiet(): void {}
