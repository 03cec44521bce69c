/**
 * Where the daemon's program and OUT_DIR may be, in the order in which they are tried.
 *
 * Nothing here touches the disk or the editor: what is known goes in, candidates come out. `probing.ts` tries them.
 */

import * as path from "node:path";

/** One way to start the daemon's program. `from` says to people where it was named. */
export interface Candidate {
  command: string;
  args: string[];
  from: string;
  /** Somebody named it: when it fails, the next one is not tried in its place. */
  named: boolean;
}

export interface CommandSettings {
  path: string;
  interpreter: string;
}

export interface Surroundings {
  env: Readonly<Record<string, string | undefined>>;
  home: string;
  platform: NodeJS.Platform;
  /** Folders of the workspace, none of them while it is not trusted. */
  folders: readonly string[];
}

/** The oldest daemon that has what this extension asks for. */
export const OLDEST = "0.1.0";

/** Programs to try. A named one comes alone: starting another one behind its back would surprise. */
export function commands(settings: CommandSettings, around: Surroundings): Candidate[] {
  const override = (around.env["ARTIFACT_SIDECAR_PROGRAM"] ?? "").trim();
  if (override !== "") {
    const [command = "", ...args] = words(override);
    return [{ command, args, from: "the variable ARTIFACT_SIDECAR_PROGRAM", named: true }];
  }
  const program = expand(settings.path, around);
  if (program !== "") {
    return [{ command: program, args: [], from: "the setting artifactSidecar.path", named: true }];
  }
  const interpreter = expand(settings.interpreter, around);
  if (interpreter !== "") {
    return [module(interpreter, "the setting artifactSidecar.interpreter", true)];
  }
  const inside = around.folders.flatMap((folder) =>
    [".venv", "venv"].map((name) => module(python(path.join(folder, name), around), `${name} of this workspace`, false)),
  );
  return [...inside, ...onPath(around)];
}

/** Folders that may be OUT_DIR. A named one comes alone; of the others the first is taken that looks like one. */
export function outDirs(setting: string, around: Surroundings): { named?: string; from: string; maybe: string[] } {
  const variable = (around.env["OUT_DIR"] ?? "").trim();
  if (variable !== "") {
    return { named: path.resolve(variable), from: "the variable OUT_DIR", maybe: [] };
  }
  const folder = expand(setting, around);
  if (folder !== "") {
    const base = around.folders[0];
    const named = path.isAbsolute(folder) || base === undefined ? folder : path.join(base, folder);
    return { named: path.normalize(named), from: "the setting artifactSidecar.outDir", maybe: [] };
  }
  return { from: "this workspace", maybe: around.folders.flatMap((one) => [one, path.join(one, "out")]) };
}

/** The file that a daemon keeps in an OUT_DIR. */
export const MARK = "timeline.json";

/** The version in what `--version` printed, or undefined when it is another program's. */
export function versionIn(printed: string): string | undefined {
  return /^artifact-sidecar (\d+\.\d+\.\d+\S*)/m.exec(printed)?.[1];
}

/** Whether a version is at least another one; only the numbers count. */
export function atLeast(version: string, oldest: string): boolean {
  const numbers = (text: string): number[] => (text.match(/\d+/g) ?? []).slice(0, 3).map(Number);
  const [mine, theirs] = [numbers(version), numbers(oldest)];
  for (let i = 0; i < 3; i++) {
    const difference = (mine[i] ?? 0) - (theirs[i] ?? 0);
    if (difference !== 0) {
      return difference > 0;
    }
  }
  return true;
}

/** `~` and `${workspaceFolder}`, as people write them into settings. Empty when the workspace has no folder to put in. */
export function expand(text: string, around: Surroundings): string {
  const folder = around.folders[0];
  const placed = text.trim().replace(/\$\{workspaceFolder\}/g, () => folder ?? "");
  if (folder === undefined && placed !== text.trim()) {
    return "";
  }
  return /^~(?=$|[\\/])/.test(placed) ? path.join(around.home, placed.slice(1)) : placed;
}

/** Words of a command line: blanks part them, quotes keep them together, a backslash takes the next character as it is. */
export function words(line: string): string[] {
  const found = line.match(/(?:[^\s"'\\]|\\.|"(?:[^"\\]|\\.)*"|'[^']*')+/g) ?? [];
  return found.map((word) =>
    word.replace(/\\(.)|"((?:[^"\\]|\\.)*)"|'([^']*)'/g, (_, one?: string, two?: string, three?: string) =>
      one ?? two?.replace(/\\(["\\])/g, "$1") ?? three ?? ""),
  );
}

function module(interpreter: string, from: string, named: boolean): Candidate {
  // -P: a folder named `sidecar` where Python happens to be started is not the daemon.
  return { command: interpreter, args: ["-P", "-m", "sidecar"], from, named };
}

function python(environment: string, around: Surroundings): string {
  return around.platform === "win32"
    ? path.join(environment, "Scripts", "python.exe")
    : path.join(environment, "bin", "python");
}

function onPath(around: Surroundings): Candidate[] {
  const name = around.platform === "win32" ? "artifact-sidecar.exe" : "artifact-sidecar";
  const places = (around.env["PATH"] ?? "").split(path.delimiter).filter((place) => path.isAbsolute(place));
  return places.map((place) => ({ command: path.join(place, name), args: [], from: `the PATH (${place})`, named: false }));
}
