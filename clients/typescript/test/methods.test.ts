// Every method of the table, asked of a real daemon; every answer is judged by protocol/schema.json.

import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";

import {
  METHODS,
  PROTOCOL_VERSION,
  Refusal,
  type Client,
  type Method,
  type Params,
  type Result,
} from "artifact-sidecar-client";

import { Workspace } from "./daemon.js";
import { declared, faults } from "./schema.js";

interface Step {
  method: Method;
  says: string;
  run(runtime: Client): Promise<void>;
}

const asked = new Set<Method>();

/** A step of the story: ask, let the schema judge the answer, and look at what it says. */
function ask<M extends Method>(says: string, method: M, params: Params<M>, look: (result: Result<M>) => void): Step {
  return { method, says, run: async (runtime) => look(await judged(runtime, method, params)) };
}

/** The same for what is refused. */
function refused<M extends Method>(says: string, method: M, params: Params<M>, kind: Refusal["kind"]): Step {
  const run = async (runtime: Client): Promise<void> => {
    await assert.rejects(judged(runtime, method, params), (error) => error instanceof Refusal && error.kind === kind);
    assert.ok(declared.methods[method]?.fails_with.includes(kind), `${method} may be refused as ${kind}`);
  };
  return { method, says, run };
}

async function judged<M extends Method>(client: Client, method: M, params: Params<M>): Promise<Result<M>> {
  asked.add(method);
  const row = declared.methods[method];
  assert.ok(row, method);
  assert.deepEqual(faults(row.params, params), [], "what we ask is what the method takes");
  const result = (await client.ask(method, params as object)) as Result<M>;
  assert.deepEqual(faults(row.result, result), []);
  return result;
}

const PAGE = "fi:turn_1.files/page.html";
const TS = "2026-02-18T09:00:00Z";

const STORY: Step[] = [
  ask("a turn begins with what the user attached", "turn/begin", {
    turn_id: "turn_1",
    prompt: "what sells? 🍲",
    attachments: [{ name: "menu.txt", text: "soup" }],
  }, (turn) => assert.equal(turn.attachments[0]?.sid, 1)),
  ask("a call begins", "call/begin", { tool_call_id: "tc_1", tool_id: "exec_tools.run", params: { code: "1" } }, (call) =>
    assert.equal(call.turn_id, "turn_1")),
  ask("a file is written", "artifact/write", {
    path: "page.html",
    kind: "file",
    content: "<p>soup 🍲 [[S:1]]</p>\n<img src='turn_1/files/dot.png'>\n",
  }, ({ artifact }) => assert.equal(artifact.artifact_path, PAGE)),
  ask("a file is patched", "artifact/patch", {
    path: PAGE,
    patch: "@@ -1,2 +1,2 @@\n-<p>soup 🍲 [[S:1]]</p>\n+<p>fish 🐟 [[S:1]]</p>\n <img src='turn_1/files/dot.png'>\n",
  }, (patched) => assert.equal(patched.artifact?.version, 2)),
  ask("a call ends and says what is missing", "call/end", { tool_call_id: "tc_1", result: 1, expect: ["none.csv"] }, (end) =>
    assert.deepEqual(end.missing, ["none.csv"])),
  ask("the disk is looked at", "workspace/sync", {}, (look) => assert.deepEqual(look.unsettled, [])),
  ask("the daemon says how it is", "workspace/status", {}, (status) => assert.equal(status.watcher.state, "ok")),
  ask("changes are replayed", "workspace/changes", { since: 0 }, ({ changes }) => assert.ok(changes.length > 0)),
  ask("paths are resolved one by one", "artifact/resolve", { paths: [PAGE, "../x"] }, ({ results }) =>
    assert.deepEqual(results.map((one) => one.reason), [undefined, "unsafe_path"])),
  ask("artifacts are listed", "artifact/list", { turn_id: "turn_1", mime: "text/*" }, ({ artifacts }) =>
    assert.deepEqual(artifacts.map((one) => one.artifact_path), [PAGE, "fi:turn_1.user.attachments/menu.txt"])),
  ask("versions are listed", "artifact/versions", { path: PAGE }, ({ versions }) => assert.equal(versions.length, 2)),
  ask("contents are read", "artifact/read", { paths: [PAGE, "none.txt"] }, ({ status, blocks }) => {
    assert.deepEqual(status.missing, ["none.txt"]);
    assert.ok(blocks.some((block) => block.text?.includes("fish 🐟")));
  }),
  ask("a program fetches", "artifact/fetch", { path: "so:sources_pool[1,7]" }, ({ missing }) => assert.deepEqual(missing, [7])),
  ask("files come back", "artifact/rehost", { paths: [PAGE, "turn_1/files/none"] }, ({ rehosted, missing }) =>
    assert.deepEqual([rehosted[0]?.physical_path, missing[0]?.reason], ["turn_1/files/page.html", "unknown"])),
  ask("what is at a path is hidden", "artifact/hide", { paths: [PAGE], replacement: "a page" }, ({ results }) =>
    assert.equal(results[0]?.status, "ok")),
  refused("nothing can be linked that never was", "artifact/link", { path: "turn_1/files/none.txt" }, "not_found"),
  ask("lineage is followed", "artifact/lineage", { path: PAGE, direction: "up" }, ({ edges }) => assert.ok(Array.isArray(edges))),
  ask("files are searched", "artifact/search", { root: "", content_regex: "fish" }, ({ hits }) =>
    assert.equal(hits[0]?.path, "turn_1/files/page.html")),
  ask("sources are merged", "sources/merge", { rows: [{ url: "https://example.com/a", title: "A 🌍" }] }, ({ added }) =>
    assert.equal(added.length, 1)),
  ask("sources are listed", "sources/list", { selector: "1" }, ({ rows }) => assert.equal(rows[0]?.sid, 1)),
  ask("sources are printed", "sources/render", {}, ({ text }) => assert.match(text, /A 🌍/)),
  ask("citations are found", "citations/extract", { text: "🍲 [[S:1]]" }, ({ sids }) => assert.deepEqual(sids, [1])),
  ask("citations are replaced", "citations/replace", { text: "🍲 [[S:1,77]]" }, ({ unresolved }) =>
    assert.deepEqual(unresolved, [77])),
  ask("a citation may come in pieces", "citations/stream", { stream_id: "s", chunk: "🍲 [[S:" }, ({ text }) =>
    assert.equal(text, "🍲 ")),
  ask("a stream ends", "citations/stream", { stream_id: "s", chunk: "1]]", flush: true }, ({ sources_used }) =>
    assert.deepEqual(sources_used, [1])),
  ask("the assets of a page are pulled", "assets/pull", { path: PAGE }, ({ missing, sources_used }) =>
    assert.deepEqual([missing.map((one) => one.path), sources_used], [["turn_1/files/dot.png"], [1]])),
  ask("blocks are appended", "timeline/append", { blocks: [{ type: "agent.dream", ts: TS, text: "💤", odd: { jsonrpc: 1 } }] }, (told) =>
    assert.equal(told.blocks.length, 1)),
  ask("blocks are read as they were told", "timeline/blocks", { turn_id: "turn_1" }, ({ blocks }) =>
    assert.deepEqual(blocks.find((block) => block.type === "agent.dream")?.odd, { jsonrpc: 1 })),
  ask("something is announced", "timeline/announce", { blocks: [{ type: "announce", ts: TS, text: "one" }] }, (result) =>
    assert.deepEqual(result, {})),
  ask("the timeline is rendered", "timeline/render", { as: "text" }, ({ text }) => assert.match(text ?? "", /what sells\? 🍲/)),
  ask("the older context is fetched", "context/fetch", { path: "current_turn.artifacts.none" }, ({ ret, err }) =>
    assert.ok(ret === null && err !== null)),
  ask("what cannot be bound is told", "context/bind", {
    tool_id: "t",
    fetch_context: [{ path: "current_turn.user.prompt.text", param_name: "text" }],
  }, (bound) => assert.ok(bound)),
  ask("slots are filled, or told why not", "context/map_slots", { slots: [{ slot: "s", path: "current_turn.artifacts.none" }] }, (map) =>
    assert.ok(map)),
  ask("things are shown in few words", "context/show_artifacts", { paths: ["current_turn.artifacts.none"] }, (shown) =>
    assert.ok(shown)),
  ask("something of one's own is saved", "conversation/save", { kind: "my.note", content_str: "leeks" }, (saved) =>
    assert.ok(saved.message_id)),
  ask("a turn ends", "turn/end", { turn_id: "turn_1", completion: { text: "Fish, see [[S:1]]." } }, ({ sources_used }) =>
    assert.deepEqual(sources_used, [1])),
  ask("a turn is judged", "turn/feedback", { turn_id: "turn_1", reaction: "ok", text: "👍", origin: "user" }, ({ saved }) =>
    assert.equal(saved.kind, "turn.log.reaction")),
  ask("turns are shown", "conversation/fetch", {}, ({ turns }) => assert.equal(turns[0]?.user?.text, "what sells? 🍲")),
  ask("what was saved is listed", "conversation/recent", { kinds: ["my.note"] }, ({ items }) => assert.equal(items.length, 1)),
  ask("turns are found by words", "conversation/search", { query: "leeks" }, ({ hits }) => assert.equal(hits.length, 1)),
  ask("reactions are listed", "conversation/reactions", {}, ({ reactions }) => assert.equal(reactions[0]?.text, "👍")),
  ask("a compaction is planned", "timeline/plan_compaction", { keep_recent_tokens: 0 }, (plan) => assert.ok(plan.text)),
  refused("a cut must be one", "timeline/compact", { cut: 9999, summary: "soup" }, "bad_selector"),
  ask("the views are written", "timeline/flush", {}, ({ files }) => assert.ok(files.includes("timeline.json"))),
  ask("the workspace is outlined", "workspace/outline", {}, ({ turns }) =>
    assert.deepEqual(turns.map((turn) => turn.turn_id), ["turn_1"])),
];

describe("every method of the table", () => {
  const workspace = new Workspace();
  let runtime: Client;

  before(async () => {
    await workspace.start();
    runtime = await workspace.connect("runtime");
  });
  after(() => workspace.stop());

  for (const step of STORY) test(`${step.method}: ${step.says}`, () => step.run(runtime));

  test("the story asks every method of the table", () => {
    assert.deepEqual(METHODS.filter((method) => !asked.has(method)), []);
    assert.deepEqual(Object.keys(declared.methods), [...METHODS]);
  });

  test("the greeting tells what each role may ask, and the table says the same", async () => {
    for (const role of ["runtime", "renderer", "exec", "editor"] as const) {
      const { sidecar } = await workspace.connect(role);
      assert.ok(sidecar);
      assert.deepEqual(faults({ $ref: "#/$defs/SidecarCapability" }, sidecar), []);
      assert.deepEqual([sidecar.role, sidecar.protocol_version], [role, PROTOCOL_VERSION]);
      const allowed = METHODS.filter((method) => declared.methods[method]?.asked_by.includes(role));
      assert.deepEqual([...sidecar.methods].sort(), allowed.sort());
    }
  });

  test("a role is refused what the table does not let it ask", async () => {
    for (const role of ["renderer", "exec", "editor"] as const) {
      const client = await workspace.connect(role);
      for (const method of METHODS.filter((name) => !declared.methods[name]?.asked_by.includes(role))) {
        await assert.rejects(client.ask(method), (error) => error instanceof Refusal && error.kind === "not_permitted");
      }
    }
  });
});
