// The extension where nothing is named and nothing is found: it says what is missing, and goes on when it is there.

const assert = require("node:assert/strict");
const vscode = require("vscode");
const { extension, inState, row } = require("./looking.js");

async function set(name, value) {
  const section = vscode.workspace.getConfiguration("artifactSidecar");
  await section.update(name, value, vscode.ConfigurationTarget.Global);
}

exports["a program that is nowhere is said to be nowhere"] = async () => {
  const state = await inState("noCommand");
  assert.ok(state.why, "a state without words");
};

exports["with the program named, OUT_DIR is what is missing"] = async (scene) => {
  await set("path", scene.program);
  await inState("noOutDir");
};

exports["with both named, it runs and shows what is there"] = async (scene) => {
  await set("outDir", scene.outDir);
  await inState("running");
  await row((await extension()).artifacts, "report.md");
};

exports["a program that is none is told, and the old one taken again when it is named again"] = async (scene) => {
  await set("path", "/nowhere/artifact-sidecar");
  await inState("noCommand", "failed");
  await set("path", scene.program);
  await inState("running");
  await row((await extension()).artifacts, "report.md");
};
