// The client against a real daemon: deadlines, aborts, events, progress, two at once, and daemons that end.

import assert from "node:assert/strict";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";

import {
  Client,
  ConnectionLost,
  NoAnswer,
  NoSidecar,
  Refusal,
  type Events,
  type NoticePosted,
} from "artifact-sidecar-client";
import { StreamMessageReader, StreamMessageWriter, type Message, type RequestMessage } from "vscode-jsonrpc/node";

import { PACKAGE, Workspace, during, soon } from "./daemon.js";
import { Relay } from "./relay.js";
import { declared, faults } from "./schema.js";

const TIMEOUT = 60_000;

describe("a client", () => {
  const workspace = new Workspace();

  before(() => workspace.start());
  after(() => workspace.stop());

  test("says what the daemon is, as soon as it is connected", async () => {
    const client = await workspace.connect("editor");
    assert.equal(client.sidecar?.role, "editor");
    assert.equal(client.sidecar?.out_dir, workspace.outDir);
  });

  test("has a refusal as an error with its kind, what it is about, and a hint", async () => {
    const client = await workspace.connect("exec");
    await assert.rejects(client.request("artifact/versions", { path: "../x" }), (error) => {
      assert.ok(error instanceof Refusal);
      assert.deepEqual([error.name, error.code, error.kind, error.about], ["Refusal", -32803, "unsafe_path", "../x"]);
      assert.ok(error.message.includes("../x"));
      return true;
    });
    await assert.rejects(client.ask("artifact/versions", { path: 1 }), (error) => {
      assert.ok(error instanceof Refusal);
      assert.deepEqual([error.code, error.kind], [-32602, ""]);
      assert.match(error.message, /path: /);
      return true;
    });
  });

  test("gets every answer to the one who asked, however many ask at once", async () => {
    const [one, two] = await Promise.all([workspace.connect("runtime"), workspace.connect("exec")]);
    const texts = Array.from({ length: 200 }, (_, number) => `text ${number}`);
    const answers = await Promise.all(
      texts.map((text, number) => (number % 2 ? one : two).request("citations/replace", { text })),
    );
    assert.deepEqual(answers.map((answer) => answer.text), texts);
    await one.close();
    assert.ok(await two.request("workspace/status"), "one client's end is not another's");
  });

  test("carries emoji and large contents both ways", async () => {
    const client = await workspace.connect("runtime");
    const text = "🧑‍🍳 soup – Ω \u2028 \\ \" \u0000\n".repeat(60_000);
    assert.equal((await client.request("citations/replace", { text })).text, text);
    workspace.write("turn_7/files/🍲 soup.md", "🍲 [[S:1]]".repeat(300_000));
    await client.request("workspace/sync");
    const answer = await client.request("artifact/read", { paths: ["turn_7/files/🍲 soup.md"], max_bytes: 4_194_304 });
    assert.ok(answer.blocks.some((block) => (block.text ?? "").length > 2_000_000));
    assert.deepEqual(faults({ $ref: "#/$defs/ReadResult" }, answer), []);
  });

  test("is told the events that it asked for, and the schema knows them", async () => {
    const editor = await workspace.connect("editor", { initializationOptions: { events: ["sources", "artifacts"] } });
    const deaf = await workspace.connect("editor");
    deaf.on("sources/added", () => assert.fail("it did not ask for events"));
    const added = soon<Events["sources/added"]>((done) => editor.on("sources/added", done), "sources/added");
    const changed = soon<Events["artifacts/changed"]>((done) => editor.on("artifacts/changed", done), "artifacts/changed");
    workspace.write("turn_8/files/a b 🍲.txt", "one");
    const { rows } = await added;
    assert.equal(rows[0]?.physical_path, "turn_8/files/a b 🍲.txt");
    assert.deepEqual(faults(declared.events["sources/added"]!.params, await added), []);
    assert.deepEqual(faults(declared.events["artifacts/changed"]!.params, await changed), []);
    await deaf.request("workspace/status");
    await Promise.all([editor.close(), deaf.close()]);
  });

  test("listens only as long as it wants to", async () => {
    const editor = await workspace.connect("editor", { initializationOptions: { events: ["sources"] } });
    let told = 0;
    const stop = editor.on("sources/added", () => (told += 1));
    stop();
    const added = soon((done) => editor.on("sources/added", done), "sources/added");
    workspace.write("turn_8/files/b.txt", "two");
    await added;
    assert.equal(told, 0);
    await editor.close();
  });

  test("reports progress where a method has any", async () => {
    for (let number = 0; number < 40; number += 1) workspace.write(`turn_6/files/${number}.txt`, `file ${number}`);
    const client = await workspace.connect("runtime");
    const values: Array<{ kind?: string }> = [];
    const onProgress = (value: unknown): void => void values.push(value as { kind?: string });
    await client.request("workspace/sync", {}, { onProgress });
    assert.deepEqual([values[0]?.kind, values.at(-1)?.kind], ["begin", "end"]);
  });

  test("gives a request up when its signal says so, and tells the daemon", async () => {
    const client = await workspace.connect("runtime");
    const never = new AbortController();
    never.abort(new Error("not today"));
    await assert.rejects(client.request("workspace/status", {}, { signal: never.signal }), /not today/);
    const abort = new AbortController();
    workspace.freeze();
    const asked = client.request("workspace/sync", {}, { signal: abort.signal });
    abort.abort();
    await assert.rejects(asked, { name: "AbortError" });
    workspace.thaw();
    assert.ok(await client.request("workspace/status"), "the connection goes on");
  });

  test("has a deadline on every call, and a late answer meets nobody", async () => {
    const client = await workspace.connect("runtime");
    workspace.freeze();
    const asked = client.request("citations/replace", { text: "late" }, { timeout: 50 });
    await assert.rejects(asked, (error) => error instanceof NoAnswer && /citations\/replace within 50 ms/.test(error.message));
    workspace.thaw();
    assert.equal((await client.request("citations/replace", { text: "soon" })).text, "soon");
  });

  test("has a deadline on its greeting too", async () => {
    workspace.freeze();
    await assert.rejects(Client.connect({ socket: workspace.socket("exec"), timeout: 50 }), NoAnswer);
    workspace.thaw();
  });

  test("ends with its block, and a later request connects again", async () => {
    let kept: Client;
    {
      await using client = await workspace.connect("exec");
      kept = client;
      assert.ok(await client.request("workspace/status"));
    }
    assert.equal(kept.sidecar, undefined);
    assert.equal((await kept.request("workspace/status")).out_dir, workspace.outDir);
    await kept.close();
  });

  test("shows the same version as its package", async () => {
    const { version } = JSON.parse(readFileSync(join(PACKAGE, "package.json"), "utf8")) as { version: string };
    const { VERSION } = await import("artifact-sidecar-client");
    assert.equal(VERSION, version);
  });

  test("is refused with the daemon's own words when it speaks another protocol", async () => {
    const initializationOptions = { protocol_version: "99.0" };
    await assert.rejects(workspace.connect("exec", { initializationOptions }), Refusal);
  });
});

test("answers to somebody else's ids are passed over, and ids are nobody else's", async (t) => {
  const folder = mkdtempSync(join(tmpdir(), "as-"));
  t.after(() => rmSync(folder, { recursive: true }));
  const ids: string[] = [];
  const server = createServer((socket) => {
    const writer = new StreamMessageWriter(socket);
    new StreamMessageReader(socket).listen((message) => {
      const { id, params } = message as RequestMessage;
      if (id == null) return;
      ids.push(String(id));
      for (const stale of [0, 1, 2, null, "1", `${process.pid}-1`]) {
        void writer.write({ jsonrpc: "2.0", id: stale, result: "stale" } as Message);
      }
      void writer.write({ jsonrpc: "2.0", id, result: params } as Message);
    });
  });
  t.after(() => server.close());
  const path = join(folder, "s.sock");
  await new Promise<void>((done) => server.listen(path, done));
  const [one, two] = [await Client.connect({ socket: path }), await Client.connect({ socket: path })];
  t.after(() => Promise.all([one.close(), two.close()]));
  for (const client of [one, two]) assert.deepEqual(await client.ask("any/thing", { a: 1 }), { a: 1 });
  assert.equal(new Set(ids).size, 4);
  assert.ok(ids.every((id) => id.startsWith(String(process.pid))));
});

describe("when the daemon ends", () => {
  test("what is in flight is rejected clearly, and a change says how to have it once", async (t) => {
    const workspace = await during(t);
    const client = await workspace.connect("runtime");
    const lost = soon<ConnectionLost>((done) => client.on("lost", done), "lost");
    workspace.freeze();
    const asked = client.request("turn/begin", { turn_id: "turn_1", request_id: "begin-1" });
    const rejected = assert.rejects(asked, (error) => {
      assert.ok(error instanceof ConnectionLost && error.delivered);
      assert.match(error.message, /repeat turn\/begin with the same request_id/);
      return true;
    });
    // The daemon has the whole message when a second one, written behind it, is given up.
    await assert.rejects(client.request("workspace/status", {}, { timeout: 50 }), NoAnswer);
    await workspace.kill();
    await rejected;
    assert.ok((await lost) instanceof ConnectionLost);
    await workspace.start();
    assert.equal((await client.request("turn/begin", { turn_id: "turn_1", request_id: "begin-1" })).turn_id, "turn_1");
  });

  test("a plain read that was lost is asked once more over a new connection", async (t) => {
    const workspace = await during(t);
    const relay = await Relay.during(t, join(workspace.folder, "r.sock"), workspace.socket("exec"));
    const client = await workspace.connect("exec", { socket: relay.path });
    workspace.freeze();
    const asked = client.request("workspace/status");
    const rejected = assert.rejects(client.request("workspace/sync"), (error) => error instanceof ConnectionLost);
    await assert.rejects(client.request("sources/list", {}, { timeout: 50 }), NoAnswer);
    relay.cut();
    workspace.thaw();
    assert.equal((await asked).out_dir, workspace.outDir);
    await rejected;
  });

  test("what was given up while there was no connection is never asked", async (t) => {
    const workspace = await during(t);
    const relay = await Relay.during(t, join(workspace.folder, "r.sock"), workspace.socket("runtime"));
    const client = await workspace.connect("exec", { socket: relay.path });
    const lost = soon((done) => client.on("lost", done), "lost");
    const flow = relay.stall();
    relay.cut();
    await lost;
    await assert.rejects(client.request("turn/begin", { turn_id: "turn_1" }, { timeout: 50 }), NoAnswer);
    flow();
    await client.request("turn/begin", { turn_id: "turn_2" });
    const { turns } = await client.request("workspace/outline");
    assert.deepEqual(turns.map((turn) => turn.turn_id), ["turn_2"]);
  });

  test("a new request finds the next daemon, and a client of events is told that some were dropped", async (t) => {
    const workspace = await during(t);
    const client = await workspace.connect("editor", { initializationOptions: { events: ["artifacts"] } });
    const lost = soon((done) => client.on("lost", done), "lost");
    await workspace.kill();
    await lost;
    await workspace.start();
    const posted = soon<NoticePosted>((done) => client.on("notice/posted", done), "notice/posted");
    assert.equal((await client.request("workspace/status")).out_dir, workspace.outDir);
    const { notice, revision } = await posted;
    assert.deepEqual([notice.code, notice.count, typeof revision], ["events_dropped", 0, "number"]);
    assert.deepEqual(faults(declared.events["notice/posted"]!.params, await posted), []);
    const changed = soon((done) => client.on("artifacts/changed", done), "artifacts/changed");
    workspace.write("turn_1/files/after.txt", "it goes on");
    await changed;
  });

  test("and none follows, a request says who does not answer", async (t) => {
    const workspace = await during(t);
    const client = await workspace.connect("exec");
    await workspace.kill();
    const asked = client.request("sources/list", {}, { timeout: TIMEOUT });
    await assert.rejects(asked, (error) => error instanceof NoSidecar && error.message.includes(workspace.socket("exec")));
  });

  test("a door finds the next daemon by itself", async (t) => {
    const workspace = await during(t);
    const client = workspace.keep(await Client.connect({ command: workspace.door("runtime"), timeout: TIMEOUT }));
    client.on("lost", () => assert.fail("the door stays"));
    await client.request("turn/begin", { turn_id: "turn_1" });
    await workspace.kill();
    await workspace.start();
    assert.equal((await client.request("workspace/status")).turn_id, "turn_1");
  });
});
