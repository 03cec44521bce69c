// How the sidecar is found: as the caller says, else as the environment says, in the order of the Python client.

import { execFileSync } from "node:child_process";
import { accessSync, constants, statSync } from "node:fs";
import { delimiter, join } from "node:path";

import { NoSidecar } from "./errors.js";
import { dialDescriptor, dialProgram, dialSocket, type Link } from "./link.js";
import type { Role } from "./protocol.js";
import { words } from "./words.js";

/** Where the sidecar is. The first of the first four that is given counts; with none of them the environment does. */
export interface Way {
  /** The path of a role's socket. */
  socket?: string | undefined;
  /** The number of an inherited descriptor that is connected already. */
  descriptor?: number | undefined;
  /** A program that speaks the protocol on its stdin and stdout; a text is split as a shell would. */
  command?: string | readonly string[] | undefined;
  /** The workspace. Its daemon is reached by `artifact-sidecar connect`, and started where none answers. */
  outDir?: string | undefined;
  /** With `outDir`, given here or in the environment: as whom to connect; `exec` by default. */
  role?: Role | undefined;
  /** With `outDir`: the Python that has the daemon. By default `artifact-sidecar` on the PATH, else its `python3`. */
  python?: string | undefined;
  /** The environment to look in, and to give to programs that are started; that of this process by default. */
  env?: NodeJS.ProcessEnv | undefined;
}

/** Connect by the way that is given, else by the first that the environment offers and that works, or NoSidecar. */
export async function dial(way: Way): Promise<Link> {
  const env = way.env ?? process.env;
  if (way.socket !== undefined) return dialSocket(way.socket);
  if (way.descriptor !== undefined) return dialDescriptor(way.descriptor);
  if (way.command !== undefined) return dialCommand(way.command, env);
  if (way.outDir !== undefined) return dialDoor(way.outDir, way, env);
  return dialFromEnvironment(way, env);
}

async function dialFromEnvironment(way: Way, env: NodeJS.ProcessEnv): Promise<Link> {
  const ways: Array<[string, (text: string) => Link | Promise<Link>]> = [
    ["ARTIFACT_SIDECAR_FD", (text) => dialDescriptor(/^\s*\d+\s*$/.test(text) ? Number(text) : -1)],
    ["ARTIFACT_SIDECAR_SOCKET", dialSocket],
    ["ARTIFACT_SIDECAR_COMMAND", (text) => dialCommand(text, env)],
    ["OUT_DIR", (text) => dialDoor(text, way, env)],
  ];
  const looked: string[] = [];
  for (const [name, dialled] of ways) {
    const text = env[name] ?? "";
    if (text === "") {
      looked.push(`${name} is not set`);
      continue;
    }
    try {
      return await dialled(text);
    } catch (why) {
      if (!(why instanceof NoSidecar)) throw why;
      looked.push(`${name} is ${text}, but ${why.message}`);
    }
  }
  throw new NoSidecar(`no artifact sidecar is offered here: ${looked.join("; ")}`);
}

async function dialCommand(command: string | readonly string[], env: NodeJS.ProcessEnv): Promise<Link> {
  try {
    return await dialProgram(typeof command === "string" ? words(command) : command, env);
  } catch (error) {
    throw error instanceof SyntaxError ? new NoSidecar(error.message) : error;
  }
}

function dialDoor(outDir: string, way: Way, env: NodeJS.ProcessEnv): Promise<Link> {
  const program = way.python === undefined ? findProgram(env) : [way.python, "-m", "sidecar"];
  return dialProgram([...program, "connect", "--role", way.role ?? "exec", "--out-dir", outDir], env);
}

// Other packages are called `sidecar` too; ours has a door.
const OURS = `
import importlib.util, os
found = importlib.util.find_spec("sidecar")
places = (found.submodule_search_locations or ()) if found else ()
print(any(os.path.exists(os.path.join(place, "server", "bridge.py")) for place in places))
`;

function findProgram(env: NodeJS.ProcessEnv): string[] {
  const command = onPath("artifact-sidecar", env);
  if (command !== undefined) return [command];
  const python = onPath("python3", env);
  if (python !== undefined && has(python, env)) return [python, "-m", "sidecar"];
  throw new NoSidecar(
    "the daemon is not found: no artifact-sidecar is on the PATH, and " +
      (python === undefined ? "no python3 either" : `${python} does not have it`) +
      "; name the Python that has it as `python`",
  );
}

function has(python: string, env: NodeJS.ProcessEnv): boolean {
  try {
    const stdio: ["ignore", "pipe", "ignore"] = ["ignore", "pipe", "ignore"];
    return execFileSync(python, ["-c", OURS], { env, encoding: "utf8", timeout: 10_000, stdio }).trim() === "True";
  } catch {
    return false;
  }
}

function onPath(name: string, env: NodeJS.ProcessEnv): string | undefined {
  return (env.PATH ?? "")
    .split(delimiter)
    .filter(Boolean)
    .map((folder) => join(folder, name))
    .find(isProgram);
}

function isProgram(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return statSync(path).isFile();
  } catch {
    return false;
  }
}
