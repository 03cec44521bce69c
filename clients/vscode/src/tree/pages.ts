/** Fills the tree page by page: the artifacts of a holder, and the versions of an artifact. */

import type { Artifact, Requests, Version } from "../wire";
import { type ArtifactNode, type Holder, type MoreNode, type VersionNode, artifactId, ownArtifacts } from "./nodes";

export type Ask = <M extends "artifact/list" | "artifact/versions">(
  method: M,
  params: Requests[M]["params"],
) => Promise<Requests[M]["result"]>;

export const PAGE = 200;
const AT_ONCE = 1000;

interface Shelf {
  nodes: ArtifactNode[];
  cursor: string | undefined;
  done: boolean;
}

/** What was fetched of each holder. One that is not asked for again costs nothing. */
export class Pages {
  private readonly shelves = new Map<string, Shelf>();
  private readonly known = new Map<string, ArtifactNode>();

  constructor(private readonly ask: Ask) {}

  clear(): void {
    this.shelves.clear();
    this.known.clear();
  }

  /** The row of an artifact, if it was fetched. */
  row(artifact: Artifact): ArtifactNode | undefined {
    return this.known.get(artifactId(artifact));
  }

  /** How many rows of a holder were fetched, undefined when it was never opened. */
  fetched(holder: Holder): number | undefined {
    return this.shelves.get(holder.id)?.nodes.length;
  }

  /** What was fetched, and a row that fetches more where there is more. */
  async rows(holder: Holder): Promise<(ArtifactNode | MoreNode)[]> {
    if (ownArtifacts(holder) <= 0) {
      return [];
    }
    const shelf = this.shelves.get(holder.id) ?? (await this.fill(holder, emptyShelf(), PAGE));
    return shelf.done ? shelf.nodes : [...shelf.nodes, more(holder, shelf)];
  }

  async fetchMore(holder: Holder): Promise<void> {
    const shelf = this.shelves.get(holder.id);
    if (shelf !== undefined && !shelf.done) {
      await this.fill(holder, shelf, PAGE);
    }
  }

  /** Fetch again as much as was fetched before, keeping the rows of what is still there. */
  async again(holder: Holder): Promise<void> {
    const fetched = this.fetched(holder);
    if (fetched !== undefined) {
      await this.fill(holder, emptyShelf(), Math.max(fetched, PAGE));
    }
  }

  /** Versions of an artifact, the latest first. */
  async versions(node: ArtifactNode): Promise<VersionNode[]> {
    const { versions } = await this.ask("artifact/versions", { path: node.artifact.artifact_path });
    return versions
      .map((version: Version, i): VersionNode => ({
        kind: "version",
        id: `version ${version.version} ${node.artifact.artifact_path}`,
        version,
        before: versions[i - 1]?.version,
        latest: i === versions.length - 1,
        parent: node,
      }))
      .reverse();
  }

  private async fill(holder: Holder, shelf: Shelf, wanted: number): Promise<Shelf> {
    const own = ownArtifacts(holder);
    const target = Math.min(own, shelf.nodes.length + wanted);
    while (!shelf.done && shelf.nodes.length < target) {
      const limit = Math.min(target - shelf.nodes.length, AT_ONCE);
      const answer = await this.ask("artifact/list", { ...below(holder), limit, cursor: shelf.cursor });
      shelf.nodes.push(...answer.artifacts.map((artifact) => this.node(artifact, holder)));
      shelf.cursor = answer.next_cursor ?? undefined;
      shelf.done = answer.next_cursor === null;
    }
    this.shelves.set(holder.id, shelf);
    return shelf;
  }

  private node(artifact: Artifact, parent: Holder): ArtifactNode {
    const id = artifactId(artifact);
    const node = this.known.get(id);
    if (node !== undefined) {
      return Object.assign(node, { artifact, parent });
    }
    const made: ArtifactNode = { kind: "artifact", id, artifact, parent };
    this.known.set(id, made);
    return made;
  }
}

function emptyShelf(): Shelf {
  return { nodes: [], cursor: undefined, done: false };
}

function more(holder: Holder, shelf: Shelf): MoreNode {
  const left = Math.max(ownArtifacts(holder) - shelf.nodes.length, 0);
  return { kind: "more", id: `more ${holder.id}`, left, parent: holder };
}

/** What stands right below a holder; an empty id takes what has none. */
function below(holder: Holder): Requests["artifact/list"]["params"] {
  switch (holder.kind) {
    case "turn":
      return { turn_id: holder.turn.turn_id, tool_call_id: "" };
    case "call":
      return { turn_id: holder.turn, tool_call_id: holder.call.tool_call_id };
    case "other":
      return { turn_id: "" };
  }
}
