import { strict as assert } from "node:assert";
import { test } from "node:test";
import { type ArtifactNode, type Holder, Holders, holderId, ownArtifacts, rowId } from "../src/tree/nodes";
import { type Ask, PAGE, Pages } from "../src/tree/pages";
import type { Artifact, Outline } from "../src/wire";

function outline(turns: [string, number, Record<string, number>][], other = 0): Outline {
  return {
    revision: 1,
    other,
    turns: turns.map(([turn_id, artifacts, calls]) => ({
      turn_id,
      artifacts,
      calls: Object.entries(calls).map(([tool_call_id, n]) => ({ tool_call_id, artifacts: n })),
    })),
  };
}

function artifact(path: string, rest: Partial<Artifact> = {}): Artifact {
  const fixed = { kind: "file", mime: "text/plain", visibility: "external", origin: "seen", ts: "2026-01-01T00:00:00Z" } as const;
  const plain = { edited: false, version: 1, on_disk: true, hidden: false, sources_used: [] };
  return { artifact_path: path, ...fixed, ...plain, ...rest };
}

/** A daemon that holds `n` artifacts and answers pages of them; `asked` are the limits that it was asked for. */
function daemon(n: number): { ask: Ask; asked: number[] } {
  const asked: number[] = [];
  const ask = (async (_: string, params: { limit?: number; cursor?: string }) => {
    const from = Number(params.cursor ?? 0);
    const to = Math.min(n, from + (params.limit ?? 100));
    asked.push(params.limit ?? 0);
    const artifacts = Array.from({ length: to - from }, (__, i) => artifact(`a${from + i}`, { turn_id: "t", tool_call_id: "c" }));
    return { artifacts, next_cursor: to < n ? String(to) : null };
  }) as unknown as Ask;
  return { ask, asked };
}

function call(n: number): Holder {
  const holders = new Holders();
  holders.take(outline([["t", n, { c: n }]]));
  return holders.get("call t c") as Holder;
}

test("the newest turn is at the top, and what belongs to no turn at the end", () => {
  const holders = new Holders();
  holders.take(outline([["t1", 1, { c: 1 }], ["t2", 0, {}]], 3));
  assert.deepEqual(holders.roots.map((node) => node.id), ["turn t2", "turn t1", "other"]);
});

test("nodes stay the same objects, and only those that say something else are drawn again", () => {
  const holders = new Holders();
  assert.equal(holders.take(outline([["t1", 1, { a: 1 }], ["t2", 1, {}]])), "all");
  const turn = holders.get("turn t1");
  const changed = holders.take(outline([["t1", 2, { a: 2 }], ["t2", 1, {}]]));
  assert.deepEqual(changed === "all" ? [] : changed.map((node) => node.id), ["turn t1", "call t1 a"]);
  assert.equal(holders.get("turn t1"), turn);
  assert.deepEqual(holders.take(outline([["t1", 2, { a: 2 }], ["t2", 1, {}]])), []);
});

test("a new turn, a turn that is gone and the first artifact of a turn change the top of the tree", () => {
  const holders = new Holders();
  holders.take(outline([["t1", 0, {}]]));
  assert.equal(rowId(holders.get("turn t1") as Holder), "turn t1 empty");
  assert.equal(holders.take(outline([["t1", 1, { a: 1 }]])), "all");
  assert.equal(rowId(holders.get("turn t1") as Holder), "turn t1");
  assert.equal(holders.take(outline([["t1", 1, { a: 1 }], ["t2", 0, {}]])), "all");
  assert.equal(holders.take(outline([["t2", 0, {}]])), "all");
  assert.equal(holders.get("call t1 a"), undefined);
});

test("what a turn holds beside its calls is counted, and an artifact is shown where its maker is", () => {
  const holders = new Holders();
  holders.take(outline([["t1", 5, { a: 2, b: 1 }]]));
  assert.equal(ownArtifacts(holders.get("turn t1") as Holder), 2);
  assert.equal(holderId(artifact("x", { turn_id: "t1", tool_call_id: "a" })), "call t1 a");
  assert.equal(holderId(artifact("x", { turn_id: "t1" })), "turn t1");
  assert.equal(holderId(artifact("x")), "other");
});

test("ten thousand artifacts are fetched a page at a time", async () => {
  const { ask, asked } = daemon(10_000);
  const pages = new Pages(ask);
  const holder = call(10_000);
  const rows = await pages.rows(holder);
  assert.deepEqual([rows.length, rows.at(-1)?.kind, asked], [PAGE + 1, "more", [PAGE]]);
  await pages.fetchMore(holder);
  assert.deepEqual([(await pages.rows(holder)).length, asked], [2 * PAGE + 1, [PAGE, PAGE]]);
});

test("what is fetched again keeps its rows", async () => {
  const { ask } = daemon(3);
  const pages = new Pages(ask);
  const holder = call(3);
  const before = await pages.rows(holder);
  await pages.again(holder);
  const after = await pages.rows(holder);
  assert.ok(before.length === 3 && after.every((node, i) => node === before[i]));
  assert.equal(pages.row((after[0] as ArtifactNode).artifact), after[0]);
});
