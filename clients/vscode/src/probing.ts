/** Tries what `discovery.ts` lists: which program answers as the daemon does, and which folder is OUT_DIR. */

import { execFile } from "node:child_process";
import { constants } from "node:fs";
import { access, stat } from "node:fs/promises";
import * as path from "node:path";
import { type Candidate, MARK, OLDEST, atLeast, versionIn } from "./discovery";

export interface Found {
  candidate: Candidate;
  version: string;
}

/** Why nothing was found, in sentences for the output. */
export interface NotFound {
  why: string;
  tried: string[];
}

const PATIENCE_MS = 30_000;

/** The first candidate that is there and answers `--version` as the daemon does. */
export async function findCommand(candidates: readonly Candidate[], cwd: string): Promise<Found | NotFound> {
  const tried: string[] = [];
  for (const candidate of candidates) {
    const wrong = await unusable(candidate.command);
    if (wrong !== undefined) {
      tried.push(`${candidate.command}: ${wrong} (${candidate.from})`);
      continue;
    }
    const answer = await askVersion(candidate, cwd);
    if (answer.version !== undefined && atLeast(answer.version, OLDEST)) {
      return { candidate, version: answer.version };
    }
    const said = answer.version === undefined ? answer.why : `version ${answer.version} is older than ${OLDEST}`;
    tried.push(`${candidate.command}: ${said} (${candidate.from})`);
  }
  const named = candidates.find((candidate) => candidate.named);
  const why = named ? `${named.from} names no daemon that works` : "the daemon was not found";
  return { why: tried.length > 0 && named ? `${why}: ${tried[0]}` : why, tried };
}

/** Whether OUT_DIR is there; a named one must be a folder, another one must look like one. */
export async function findOutDir(choice: { named?: string; from: string; maybe: string[] }): Promise<
  { folder: string; from: string } | NotFound
> {
  if (choice.named !== undefined) {
    return (await isFolder(choice.named))
      ? { folder: choice.named, from: choice.from }
      : { why: `${choice.from} names ${choice.named}, which is no folder`, tried: [choice.named] };
  }
  for (const folder of choice.maybe) {
    if (await exists(path.join(folder, MARK))) {
      return { folder, from: choice.from };
    }
  }
  return { why: "OUT_DIR is not set, and no folder of this workspace looks like one", tried: choice.maybe };
}

async function unusable(command: string): Promise<string | undefined> {
  if (!path.isAbsolute(command)) {
    return undefined; // The system looks it up on the PATH.
  }
  try {
    await access(command, constants.X_OK);
    return undefined;
  } catch {
    return (await exists(command)) ? "it may not be run" : "it is not there";
  }
}

function askVersion(candidate: Candidate, cwd: string): Promise<{ version?: string; why: string }> {
  return new Promise((resolve) => {
    const options = { cwd, timeout: PATIENCE_MS, windowsHide: true, encoding: "utf8" as const };
    execFile(candidate.command, [...candidate.args, "--version"], options, (error, stdout, stderr) => {
      const version = versionIn(stdout);
      const last = stderr.trim().split("\n").at(-1) ?? "";
      const failed = error ? last || error.message : "it is another program: --version did not say artifact-sidecar";
      resolve({ version: error ? undefined : version, why: failed });
    });
  });
}

async function exists(file: string): Promise<boolean> {
  return stat(file).then(() => true, () => false);
}

async function isFolder(file: string): Promise<boolean> {
  return stat(file).then((found) => found.isDirectory(), () => false);
}
