// Every command for editors, run on a real daemon; the schema judges what it answers.

import assert from "node:assert/strict";
import { existsSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { fileURLToPath } from "node:url";

import { COMMANDS, Refusal, type Client, type Commands } from "artifact-sidecar-client";

import { Workspace } from "./daemon.js";
import { declared, faults } from "./schema.js";

describe("commands for editors", () => {
  const workspace = new Workspace();
  const run = new Set<string>();
  let editor: Client;

  before(async () => {
    await workspace.start();
    const runtime = await workspace.connect("runtime");
    for (const text of ["one 🍲", "two 🐟"]) {
      workspace.write("turn_1/files/a 100% 🍲.md", text);
      await runtime.request("workspace/sync");
    }
    await runtime.request("turn/begin", { turn_id: "turn_1" });
    await runtime.request("call/begin", { tool_call_id: "tc_1", tool_id: "t", params: {} });
    await runtime.request("artifact/write", { path: "note.md", kind: "file", content: "n", visibility: "internal" });
    editor = await workspace.connect("editor");
  });
  after(() => workspace.stop());

  async function judged<C extends keyof Commands>(command: C, params: Commands[C]["params"]): Promise<Commands[C]["result"]> {
    run.add(command);
    const row = declared.commands[command];
    assert.ok(row, command);
    assert.deepEqual(faults(row.params, params), []);
    const result = await editor.execute(command, params);
    assert.deepEqual(faults(row.result, result), []);
    return result;
  }

  const refused = (kind: string) => (error: unknown) => {
    assert.ok(error instanceof Refusal, String(error));
    assert.equal(error.kind, kind);
    return true;
  };

  test("an artifact is opened by a uri that any editor understands, and an absent file is brought back first", async () => {
    const file = join(workspace.outDir, "turn_1/files/a 100% 🍲.md");
    rmSync(file);
    const { uri, name, text } = await judged("artifact-sidecar.open", { path: "fi:turn_1.files/a 100% 🍲.md" });
    assert.deepEqual([fileURLToPath(uri), name, text], [file, "a 100% 🍲.md", true]);
    assert.equal(readFileSync(file, "utf8"), "two 🐟");
  });

  test("an older version is a read-only document of the daemon's", async () => {
    const { uri, read_only } = await judged("artifact-sidecar.open", { path: "turn_1/files/a 100% 🍲.md", version: 1 });
    assert.equal(read_only, true);
    assert.deepEqual(await editor.ask("workspace/textDocumentContent", { uri }), { text: "one 🍲" });
  });

  test("files come back, with a word for each that does not", async () => {
    const file = join(workspace.outDir, "turn_1/files/a 100% 🍲.md");
    rmSync(file);
    const { rehosted, missing } = await judged("artifact-sidecar.rehost", { paths: ["turn_1/files/a 100% 🍲.md", "../x"] });
    assert.deepEqual([rehosted.length, missing[0]?.reason], [1, "unsafe_path"]);
    assert.ok(existsSync(file));
  });

  test("sources are cited in the daemon's words", async () => {
    const { text, missing } = await judged("artifact-sidecar.cite", { sids: [1, 99] });
    assert.deepEqual(missing, [99]);
    const { sids } = await editor.request("citations/extract", { text });
    assert.deepEqual(sids, [1]);
  });

  test("what is not for users does not exist for an editor", async () => {
    await assert.rejects(judged("artifact-sidecar.open", { path: "fi:turn_1.files/note.md" }), refused("not_found"));
    await assert.rejects(judged("artifact-sidecar.open", { path: "../x" }), refused("unsafe_path"));
  });

  test("every command of the table was run", () => {
    assert.deepEqual([...run].sort(), [...COMMANDS].sort());
    assert.deepEqual(Object.keys(declared.commands), [...COMMANDS]);
  });
});
