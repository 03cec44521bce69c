/** What the editor says and hears: the daemon's own types, and the commands that it offers to editors. */

import type { Artifact, Events, Method, Requests } from "../../typescript/src/protocol";

export type {
  Artifact,
  Notice,
  OutlineCall,
  OutlineResult as Outline,
  OutlineTurn,
  SourceRow,
  StatusResult,
  Version,
  WatcherStatus,
} from "../../typescript/src/protocol";
export type { Events, Method, Requests };

/** What `artifact-sidecar.open` answers. `version` is there for what is not the latest state. */
export interface Opened {
  uri: string;
  artifact_path?: string;
  physical_path?: string;
  name: string;
  mime: string;
  kind?: string;
  text: boolean;
  read_only: boolean;
  version?: number;
}

export interface BroughtBack {
  rehosted: { path: string; physical_path: string; uri?: string }[];
  missing: { path: string; reason: string }[];
}

/** Commands of `workspace/executeCommand`, each with its one argument and its answer. */
export interface Commands {
  "artifact-sidecar.open": { argument: { path: string; version?: number }; answer: Opened };
  "artifact-sidecar.rehost": { argument: { paths: string[] }; answer: BroughtBack };
  "artifact-sidecar.cite": { argument: { sids: number[] }; answer: { text: string; missing: number[] } };
}

/** A name for people, as the daemon gives it. */
export function nameOf(artifact: Artifact): string {
  return artifact.name ?? artifact.physical_path ?? artifact.artifact_path;
}
