import { strict as assert } from "node:assert";
import { test } from "node:test";
import { type Surroundings, atLeast, commands, expand, outDirs, versionIn, words } from "../src/discovery";

const around = (changes: Partial<Surroundings> = {}): Surroundings => ({
  env: { PATH: "/usr/bin:relative:/opt/bin" },
  home: "/users/ann",
  platform: "linux",
  folders: ["/project"],
  ...changes,
});
const nothing = { path: "", interpreter: "" };

test("the variable goes before every setting, and comes alone", () => {
  const env = { ARTIFACT_SIDECAR_PROGRAM: "'/my tools/door' --fast" };
  const [only, ...more] = commands({ path: "/a", interpreter: "/b" }, around({ env }));
  assert.deepEqual([only?.command, only?.args, only?.named, more], ["/my tools/door", ["--fast"], true, []]);
});

test("a program that is set goes before an interpreter, and neither is replaced by another one", () => {
  assert.deepEqual(commands({ path: "~/bin/x", interpreter: "/b" }, around()).map((one) => one.command), ["/users/ann/bin/x"]);
  const [only, ...more] = commands({ path: " ", interpreter: "/b/python" }, around());
  assert.deepEqual([only?.command, only?.args, more], ["/b/python", ["-P", "-m", "sidecar"], []]);
});

test("without settings, environments of the workspace are tried, then absolute places of the PATH", () => {
  assert.deepEqual(
    commands(nothing, around()).map((one) => one.command),
    ["/project/.venv/bin/python", "/project/venv/bin/python", "/usr/bin/artifact-sidecar", "/opt/bin/artifact-sidecar"],
  );
});

test("a workspace that is not trusted is looked into by nobody", () => {
  const untrusted = around({ folders: [] });
  assert.ok(commands(nothing, untrusted).every((one) => !one.command.startsWith("/project")));
  assert.deepEqual(outDirs("", untrusted).maybe, []);
});

test("OUT_DIR is the variable, else the setting, else a folder that may look like one", () => {
  assert.equal(outDirs("/b", around({ env: { OUT_DIR: "/a" } })).named, "/a");
  assert.equal(outDirs("${workspaceFolder}/made", around()).named, "/project/made");
  assert.equal(outDirs("made", around()).named, "/project/made");
  assert.deepEqual(outDirs("", around()).maybe, ["/project", "/project/out"]);
});

test("a setting that needs a folder of the workspace is as good as empty without one", () => {
  assert.equal(expand("${workspaceFolder}/out", around({ folders: [] })), "");
  assert.equal(expand("~", around()), "/users/ann");
  assert.equal(expand("a~b", around()), "a~b");
});

test("only the daemon's own answer is a version", () => {
  assert.equal(versionIn("artifact-sidecar 0.1.0\n"), "0.1.0");
  assert.equal(versionIn("Python 3.11.7\n"), undefined);
});

test("versions are compared as numbers", () => {
  assert.ok(atLeast("0.10.0", "0.9.9") && atLeast("1.0.0", "1.0.0") && atLeast("1.0.1.dev3", "1.0.0"));
  assert.ok(!atLeast("0.0.9", "0.1.0"));
});

test("a command line is parted as a shell parts it", () => {
  assert.deepEqual(words(` a 'b c' "d \\"e\\"" f\\ g `), ["a", "b c", 'd "e"', "f g"]);
  assert.deepEqual(words("  "), []);
});
