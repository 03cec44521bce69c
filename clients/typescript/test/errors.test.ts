// Every number that an error can have, asked for on a bare vscode-jsonrpc connection, without our client in between.

import assert from "node:assert/strict";
import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { after, before, describe, test } from "node:test";

import { ERRORS, type Role } from "artifact-sidecar-client";
import {
  CancellationTokenSource,
  ResponseError,
  StreamMessageReader,
  StreamMessageWriter,
  createMessageConnection,
  type MessageConnection,
} from "vscode-jsonrpc/node";

import { Workspace, soon } from "./daemon.js";
import { declared, faults } from "./schema.js";

const HELLO = { processId: null, rootUri: null, capabilities: {} };

describe("errors", () => {
  const workspace = new Workspace();
  const open: MessageConnection[] = [];

  before(() => workspace.start());
  after(() => {
    for (const connection of open) connection.dispose();
    return workspace.stop();
  });

  async function dialled(role: Role): Promise<Socket> {
    const socket = connect(workspace.socket(role));
    await once(socket, "connect");
    socket.unref();
    return socket;
  }

  async function bare(role: Role = "runtime"): Promise<MessageConnection> {
    const socket = await dialled(role);
    const connection = createMessageConnection(new StreamMessageReader(socket), new StreamMessageWriter(socket));
    connection.onDispose(() => socket.destroy());
    connection.listen();
    open.push(connection);
    return connection;
  }

  async function greeted(role: Role = "runtime", options: object = {}): Promise<MessageConnection> {
    const connection = await bare(role);
    await connection.sendRequest("initialize", { ...HELLO, initializationOptions: options });
    await connection.sendNotification("initialized", {});
    return connection;
  }

  async function error(asked: Promise<unknown>): Promise<ResponseError<Record<string, unknown>>> {
    const told: unknown = await asked.then((result) => assert.fail(`answered ${JSON.stringify(result)}`), (why: unknown) => why);
    assert.ok(told instanceof ResponseError, String(told));
    return told;
  }

  /** The error has this kind's number, and data of the shape that the table gives it. */
  function isOf(kind: keyof typeof ERRORS, told: ResponseError<Record<string, unknown>>): void {
    const row = declared.errors.find((one) => one.kind === kind);
    assert.ok(row);
    assert.equal(told.code, row.number, told.message);
    if (row.data !== undefined) assert.deepEqual(faults(row.data, told.data), []);
    if (row.data?.$ref.includes("Refused")) assert.equal(told.data?.kind, kind);
  }

  test("the numbers of the types are those of the schema", () => {
    assert.deepEqual(ERRORS, Object.fromEntries(declared.errors.map((row) => [row.kind, row.number])));
  });

  test("nothing is answered before the greeting", async () => {
    const connection = await bare();
    isOf("not_initialized", await error(connection.sendRequest("workspace/status", {})));
    isOf("not_initialized", await error(connection.sendRequest("textDocument/hover", {})));
  });

  test("a second greeting is no request at that time", async () => {
    isOf("invalid_request", await error((await greeted()).sendRequest("initialize", HELLO)));
  });

  test("another major number of the protocol is refused", async () => {
    const connection = await bare();
    const hello = { ...HELLO, initializationOptions: { protocol_version: "99.0" } };
    const told = await error(connection.sendRequest("initialize", hello));
    assert.match(told.message, /99|protocol|version/);
  });

  test("a method that nobody knows is -32601", async () => {
    const connection = await greeted();
    for (const method of ["artifact/nothing", "textDocument/nothing", "", "artifact/Read"]) {
      const told = await error(connection.sendRequest(method, {}));
      isOf("method_not_found", told);
      assert.equal(told.code, -32601);
    }
  });

  test("wrong params are -32602, and every fault has its place", async () => {
    const connection = await greeted();
    const wrong: Array<[string, unknown, RegExp]> = [
      ["artifact/resolve", {}, /^paths$/],
      ["artifact/resolve", { paths: "fi:a" }, /^paths$/],
      ["artifact/resolve", { paths: [1] }, /^paths\.0$/],
      ["artifact/list", { limit: 0 }, /^limit$/],
      ["artifact/list", { odd: 1 }, /^odd$/],
      ["turn/begin", { turn_id: "no blanks" }, /^turn_id$/],
      ["timeline/append", { blocks: [{ text: "no type" }] }, /^blocks\.0\.type$/],
    ];
    for (const [method, params, where] of wrong) {
      const told = await error(connection.sendRequest(method, params));
      isOf("invalid_params", told);
      assert.equal(told.code, -32602);
      const [first] = told.data?.faults as Array<{ where: string }>;
      assert.match(first?.where ?? "", where);
    }
  });

  test("each kind of refusal has its number and says what it is about", async () => {
    const connection = await greeted();
    await connection.sendRequest("turn/begin", { turn_id: "turn_1", request_id: "once" });
    const refused: Array<[keyof typeof ERRORS, string, object]> = [
      ["bad_path", "artifact/versions", { path: "xx:what" }],
      ["unsafe_path", "artifact/versions", { path: "../x" }],
      ["not_found", "artifact/versions", { path: "fi:turn_1.files/none" }],
      ["bad_selector", "artifact/search", { root: "", content_regex: "(" }],
      ["unknown_turn", "turn/end", { turn_id: "turn_9" }],
      ["stale", "turn/begin", { turn_id: "turn_2", request_id: "once" }],
      ["too_large", "timeline/announce", { blocks: [{ type: "announce", text: "x".repeat(2 ** 20 + 1) }] }],
    ];
    for (const [kind, method, params] of refused) isOf(kind, await error(connection.sendRequest(method, params)));
    isOf("not_permitted", await error((await greeted("exec")).sendRequest("turn/begin", { turn_id: "turn_3" })));
  });

  test("a cancelled request is answered once, with -32800", async () => {
    const connection = await greeted();
    const cancel = new CancellationTokenSource();
    // Both messages lie there when the daemon goes on, so that the request cannot be over before its cancellation.
    workspace.freeze();
    const asked = error(connection.sendRequest("workspace/sync", {}, cancel.token));
    cancel.cancel();
    await connection.sendNotification("$/setTrace", { value: "off" });
    workspace.thaw();
    const told = await asked;
    isOf("cancelled", told);
    assert.equal(told.code, -32800);
    assert.ok(await connection.sendRequest("workspace/status", {}), "the connection goes on");
  });

  test("cancelling what is over, or what never was, changes nothing", async () => {
    const connection = await greeted();
    await connection.sendRequest("workspace/status", {});
    for (const id of [0, 1, 999, "odd"]) await connection.sendNotification("$/cancelRequest", { id });
    assert.ok(await connection.sendRequest("workspace/status", {}));
  });

  test("after shutdown a request is no request, and exit hangs up", async () => {
    const connection = await greeted();
    assert.equal(await connection.sendRequest("shutdown"), null);
    isOf("invalid_request", await error(connection.sendRequest("workspace/status", {})));
    const closed = soon<void>((done) => connection.onClose(() => done()), "the connection is closed");
    await connection.sendNotification("exit");
    await closed;
    assert.ok(await (await greeted()).sendRequest("workspace/status", {}), "others are not concerned");
  });

  test("a body that is no JSON is answered with -32700 and the connection goes on", async () => {
    const socket = await dialled("runtime");
    const answers: Array<{ error?: { code: number } }> = [];
    const bodies = ["{oops", "[]", '{"jsonrpc":"2.0","id":7}'];
    await soon<void>((done) => {
      new StreamMessageReader(socket).listen((message) => {
        if (answers.push(message as (typeof answers)[number]) === bodies.length) done();
      });
      socket.write(bodies.map((body) => `Content-Length: ${body.length}\r\n\r\n${body}`).join(""));
    }, "three answers");
    assert.deepEqual(answers.map((answer) => answer.error?.code), [-32700, -32600, -32600]);
    socket.destroy();
  });

  test("unknown notifications are passed over", async () => {
    const connection = await greeted();
    await connection.sendNotification("artifact/nothing", {});
    await connection.sendNotification("$/nothing", {});
    assert.ok(await connection.sendRequest("workspace/status", {}));
  });
});
