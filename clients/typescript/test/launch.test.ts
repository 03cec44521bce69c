// How the sidecar is found: each way leads to the same daemon, and where none does, everything that was tried is named.

import assert from "node:assert/strict";
import { execFile, spawn, type StdioOptions } from "node:child_process";
import { mkdirSync, symlinkSync } from "node:fs";
import { connect } from "node:net";
import { once } from "node:events";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { promisify } from "node:util";

import { Client, NoSidecar, Refusal, type ClientOptions } from "artifact-sidecar-client";

import { words } from "../dist/words.js";
import { PACKAGE, PYTHON, Workspace, environment } from "./daemon.js";

const run = promisify(execFile);
const FETCH = `
import { Client } from "artifact-sidecar-client";
const client = await Client.connect();
console.log((await client.request("artifact/fetch", { path: "fi:turn_1.files/a.txt" })).ret.text);
`;

describe("every way leads to the daemon", () => {
  const workspace = new Workspace();

  before(async () => {
    await workspace.start();
    workspace.write("turn_1/files/a.txt", "one 🍲");
    await (await workspace.connect("exec")).request("workspace/sync");
  });
  after(() => workspace.stop());

  async function outDir(options: ClientOptions): Promise<string> {
    await using client = await Client.connect({ timeout: 60_000, ...options });
    return (await client.request("workspace/status")).out_dir;
  }

  test("the path of a socket", async () => {
    assert.equal(await outDir({ socket: workspace.socket("exec") }), workspace.outDir);
    const env = environment({ ARTIFACT_SIDECAR_SOCKET: workspace.socket("exec") });
    assert.equal(await outDir({ env }), workspace.outDir);
  });

  test("the path of a socket that is too long for an address", async () => {
    const long = join(workspace.folder, "x".repeat(120));
    mkdirSync(long);
    const socket = join(long, "s.sock");
    symlinkSync(workspace.socket("exec"), socket);
    assert.equal(await outDir({ socket }), workspace.outDir);
  });

  test("a command, as words or as a shell would split it", async () => {
    assert.equal(await outDir({ command: workspace.door("exec"), env: environment() }), workspace.outDir);
    const line = workspace.door("exec").map((word) => `'${word}'`).join(" ");
    const env = environment({ ARTIFACT_SIDECAR_COMMAND: line });
    assert.equal(await outDir({ env }), workspace.outDir);
  });

  test("OUT_DIR, as whom one likes", async () => {
    const env = workspace.variables();
    assert.equal(await outDir({ env: { ...env, PATH: `${join(PYTHON, "..")}:${env.PATH}` } }), workspace.outDir);
    await using client = await Client.connect({ outDir: workspace.outDir, role: "renderer", python: PYTHON, env });
    assert.equal(client.sidecar?.role, "renderer");
  });

  test("a descriptor, for one program after another, and no program has to close it", async () => {
    const socket = connect(workspace.socket("exec"));
    await once(socket, "connect");
    const env = environment({ ARTIFACT_SIDECAR_FD: "3" });
    for (let times = 0; times < 3; times += 1) {
      const stdio: StdioOptions = ["ignore", "pipe", "inherit", socket];
      const child = spawn(process.execPath, ["--input-type=module", "-e", FETCH], { cwd: PACKAGE, env, stdio });
      let said = "";
      child.stdout?.setEncoding("utf8").on("data", (text: string) => (said += text));
      const [code] = (await once(child, "close")) as [number];
      assert.deepEqual([code, said], [0, "one 🍲\n"]);
    }
    socket.destroy();
  });

  test("a program that closes nothing ends by itself, and a listener keeps it", async () => {
    const env = environment({ ARTIFACT_SIDECAR_SOCKET: workspace.socket("exec") });
    const { stdout } = await run(process.execPath, ["--input-type=module", "-e", FETCH], { cwd: PACKAGE, env });
    assert.equal(stdout, "one 🍲\n");
    const listen = `
import { Client } from "artifact-sidecar-client";
const client = await Client.connect({ initializationOptions: { events: ["sources"] } });
client.on("sources/added", ({ rows }) => { console.log(rows[0].physical_path); process.exit(); });
console.log("listening");
`;
    const child = spawn(process.execPath, ["--input-type=module", "-e", listen], { cwd: PACKAGE, env });
    let said = "";
    child.stdout.setEncoding("utf8").on("data", (text: string) => {
      if (said === "") workspace.write("turn_1/files/later.txt", "two");
      said += text;
    });
    const [code] = (await once(child, "close")) as [number];
    assert.deepEqual([code, said], [0, "listening\nturn_1/files/later.txt\n"]);
  });

  test("the first way that works is taken", async () => {
    const env = environment({
      ARTIFACT_SIDECAR_FD: "999",
      ARTIFACT_SIDECAR_SOCKET: join(workspace.folder, "none.sock"),
      ARTIFACT_SIDECAR_COMMAND: workspace.door("exec").join(" "),
      OUT_DIR: "/nowhere",
    });
    assert.equal(await outDir({ env }), workspace.outDir);
  });

  test("a door that refuses a role says why", async () => {
    const command = workspace.door("exec").map((word) => (word === "exec" ? "king" : word));
    await assert.rejects(Client.connect({ command, env: environment() }), (error) =>
      error instanceof NoSidecar || error instanceof Refusal);
  });
});

test("where nothing offers a sidecar, the message names everything that was looked for", async () => {
  const env = { ARTIFACT_SIDECAR_FD: "3.5", ARTIFACT_SIDECAR_SOCKET: "/nowhere/s.sock", PATH: "/nowhere" };
  await assert.rejects(Client.connect({ env }), (error) => {
    assert.ok(error instanceof NoSidecar);
    assert.match(error.message, /^no artifact sidecar is offered here: ARTIFACT_SIDECAR_FD is 3\.5, but it is no connected socket/);
    assert.match(error.message, /ARTIFACT_SIDECAR_SOCKET is \/nowhere\/s\.sock, but nobody answers at/);
    assert.match(error.message, /ARTIFACT_SIDECAR_COMMAND is not set; OUT_DIR is not set$/);
    return true;
  });
  await assert.rejects(Client.connect({ env: { OUT_DIR: "/tmp", PATH: "/nowhere" } }), /the daemon is not found: .* no python3 either; name/);
  await assert.rejects(Client.connect({ command: "/nowhere/door --x", env: {} }), /\/nowhere\/door cannot be started \(ENOENT\)/);
  await assert.rejects(Client.connect({ command: "'open", env: {} }), NoSidecar);
  await assert.rejects(Client.connect({ command: "", env: {} }), NoSidecar);
});

test("a program that ends at once is no sidecar", async () => {
  await assert.rejects(Client.connect({ command: ["false"] }), NoSidecar);
  await assert.rejects(Client.connect({ command: ["echo", "hello"] }), NoSidecar);
});

test("a command line is split as a shell would", () => {
  const lines: Array<[string, string[]]> = [
    ["", []],
    ["  a  b\tc\n", ["a", "b", "c"]],
    ["a\\ b 'c d' \"e \\\"f\\\" \\$\"", ["a b", "c d", 'e "f" \\$']],
    ["a''b \"\" x'y'\"z\"", ["ab", "", "xyz"]],
    ["'it'\\''s'", ["it's"]],
    ["'a\\b'", ["a\\b"]],
  ];
  for (const [line, expected] of lines) assert.deepEqual(words(line), expected, line);
  for (const line of ["'a", '"a', "a\\", "\"a\\\""]) assert.throws(() => words(line), SyntaxError);
});
