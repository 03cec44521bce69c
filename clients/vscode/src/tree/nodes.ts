/**
 * The rows of the tree of artifacts, as plain objects that keep their identity and their id while what they say changes.
 *
 * Nothing here knows the editor; `rows.ts` draws them, `pages.ts` fills them.
 */

import type { Artifact, Outline, OutlineCall, OutlineTurn, Version } from "../wire";

export interface TurnNode {
  kind: "turn";
  id: string;
  turn: OutlineTurn;
  newest: boolean;
}

export interface CallNode {
  kind: "call";
  id: string;
  turn: string;
  call: OutlineCall;
  /** Whether it is shown open at first. */
  open: boolean;
}

export interface OtherNode {
  kind: "other";
  id: string;
  artifacts: number;
}

export interface ArtifactNode {
  kind: "artifact";
  id: string;
  artifact: Artifact;
  parent: Holder;
}

export interface VersionNode {
  kind: "version";
  id: string;
  version: Version;
  /** The number of the version before, if there is one. */
  before: number | undefined;
  latest: boolean;
  parent: ArtifactNode;
}

export interface MoreNode {
  kind: "more";
  id: string;
  left: number;
  parent: Holder;
}

/** What holds artifacts. */
export type Holder = TurnNode | CallNode | OtherNode;
export type Node = Holder | ArtifactNode | VersionNode | MoreNode;

const OPEN_AT_FIRST = 60; // A turn with more artifacts shows its calls closed.

/** Which holder an artifact is shown under. */
export function holderId(artifact: Artifact): string {
  if (artifact.turn_id === undefined) {
    return "other";
  }
  return artifact.tool_call_id === undefined ? turnId(artifact.turn_id) : callId(artifact.turn_id, artifact.tool_call_id);
}

export function turnId(turn: string): string {
  return `turn ${turn}`;
}

export function callId(turn: string, call: string): string {
  return `call ${turn} ${call}`;
}

export function artifactId(artifact: Artifact): string {
  return `artifact ${artifact.artifact_path}`;
}

/** The id of a row. The editor keeps it open or closed by that, so a turn gets another one when its first artifact lands. */
export function rowId(node: Node): string {
  return node.kind === "turn" && node.turn.artifacts === 0 ? `${node.id} empty` : node.id;
}

/** How many artifacts stand right below a holder, not below its calls. */
export function ownArtifacts(node: Holder): number {
  if (node.kind === "turn") {
    return node.turn.artifacts - node.turn.calls.reduce((sum, call) => sum + call.artifacts, 0);
  }
  return node.kind === "call" ? node.call.artifacts : node.artifacts;
}

export function parentOf(node: Node, holders: Holders): Node | undefined {
  if (node.kind === "turn" || node.kind === "other") {
    return undefined;
  }
  return node.kind === "call" ? holders.get(turnId(node.turn)) : node.parent;
}

/** Turns, calls and "other files" of the latest outline, each the same object as long as it is there. */
export class Holders {
  private readonly known = new Map<string, Holder>();
  private order: Holder[] = [];
  private shape = "";

  /** Newest turn first, then what belongs to no turn. */
  get roots(): Holder[] {
    return this.order;
  }

  get(id: string): Holder | undefined {
    return this.known.get(id);
  }

  /** The calls of a turn that left something behind, in the order in which they ran. */
  calls(turn: TurnNode): Holder[] {
    return turn.turn.calls
      .filter((call) => call.artifacts > 0)
      .flatMap((call) => this.known.get(callId(turn.turn.turn_id, call.tool_call_id)) ?? []);
  }

  clear(): void {
    this.known.clear();
    this.order = [];
    this.shape = "";
  }

  /** Take a new outline. Gives the holders that say something else now, or "all" when the roots are other ones. */
  take(outline: Outline): Holder[] | "all" {
    const seen = new Set<string>();
    const changed: Holder[] = [];
    const newest = outline.turns.at(-1)?.turn_id;
    for (const turn of outline.turns) {
      this.put({ kind: "turn", id: turnId(turn.turn_id), turn, newest: turn.turn_id === newest }, seen, changed);
      const open = turn.turn_id === newest && turn.artifacts <= OPEN_AT_FIRST;
      for (const call of turn.calls) {
        const id = callId(turn.turn_id, call.tool_call_id);
        this.put({ kind: "call", id, turn: turn.turn_id, call, open }, seen, changed);
      }
    }
    if (outline.other > 0) {
      this.put({ kind: "other", id: "other", artifacts: outline.other }, seen, changed);
    }
    for (const id of [...this.known.keys()].filter((one) => !seen.has(one))) {
      this.known.delete(id);
    }
    const turns = outline.turns.toReversed().flatMap((turn) => this.known.get(turnId(turn.turn_id)) ?? []);
    this.order = [...turns, ...(this.known.has("other") ? [this.known.get("other") as Holder] : [])];
    const before = this.shape;
    this.shape = this.order.map(rowId).join("\n");
    return this.shape === before ? changed : "all";
  }

  private put(next: Holder, seen: Set<string>, changed: Holder[]): void {
    seen.add(next.id);
    const known = this.known.get(next.id);
    if (known === undefined) {
      this.known.set(next.id, next);
    } else if (JSON.stringify(known) !== JSON.stringify(next)) {
      Object.assign(known, next);
      changed.push(known);
    }
  }
}
