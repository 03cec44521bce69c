// The ten-line renderer of the README, run as its users run it.

import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { readFileSync, rmSync } from "node:fs";
import { dirname, join } from "node:path";
import { after, before, describe, test } from "node:test";

import { PACKAGE, PYTHON, Workspace } from "./daemon.js";

describe("the example", () => {
  const workspace = new Workspace();

  before(async () => {
    await workspace.start();
    workspace.write("turn_1/files/soup 🍲.svg", "<svg xmlns='http://www.w3.org/2000/svg'/>");
    workspace.write("turn_1/files/page.html", "<img src='turn_1/files/soup 🍲.svg'> <img src='turn_1/files/none.png'>");
    await (await workspace.connect("runtime")).request("workspace/sync");
  });
  after(() => workspace.stop());

  function pulled(page: string): { status: number | null; stdout: string; stderr: string } {
    const env = workspace.variables();
    const words = [join(PACKAGE, "examples/pull.mjs"), page];
    return spawnSync(process.execPath, words, { env: { ...env, PATH: `${dirname(PYTHON)}:${env.PATH}` }, encoding: "utf8" });
  }

  test("brings the assets of a page and says which are missing", () => {
    const file = join(workspace.outDir, "turn_1/files/soup 🍲.svg");
    rmSync(file);
    const { status, stdout, stderr } = pulled("turn_1/files/page.html");
    assert.deepEqual([status, stdout, stderr], [1, "turn_1/files/soup 🍲.svg\n", "turn_1/files/none.png: unknown\n"]);
    assert.match(readFileSync(file, "utf8"), /svg/);
  });

  test("ends with the refusal when there is no such page", () => {
    const { status, stderr } = pulled("turn_1/files/other.html");
    assert.notEqual(status, 0);
    assert.match(stderr, /Refusal: .*turn_1\/files\/other\.html/s);
  });

  test("stands in the README as it is", () => {
    const example = readFileSync(join(PACKAGE, "examples/pull.mjs"), "utf8");
    const readme = readFileSync(join(PACKAGE, "README.md"), "utf8");
    assert.ok(readme.includes(example.slice(example.indexOf("import"))));
  });
});
