// The extension beside a daemon that runs: it asks it for everything, hears what lands, and outlives it.

const assert = require("node:assert/strict");
const { mkdirSync, writeFileSync } = require("node:fs");
const { dirname, join } = require("node:path");
const vscode = require("vscode");
const { eventually, extension, flat, hover, inState, opened, row, rowsOf } = require("./looking.js");

exports["the extension finds the daemon by the variables alone"] = async (scene) => {
  const state = await inState("running");
  assert.equal(state.outDir, scene.outDir);
};

exports["the tree shows turns, their calls, what these made, and versions"] = async (scene) => {
  const { artifacts } = await extension();
  await row(artifacts, "report.md");
  const rows = await rowsOf(artifacts);
  const report = flat(rows).find((one) => one.label === "report.md");
  assert.deepEqual(report.rows.map((one) => one.label), ["Version 2", "Version 1"]);
  const labels = new Set(flat(rows).map((one) => one.label));
  for (const name of ["sales.png", "sales.csv", "summary.pdf", "größe 🍰.md", "targets.txt"]) {
    assert.ok(labels.has(name), `${name} is not in ${[...labels]}`);
  }
  assert.ok(flat(rows).every((one) => one.words !== ""), "a row that a screen reader cannot read");
  for (const secret of scene.unseen) assert.ok(![...labels].some((label) => label.includes(secret)), secret);
};

exports["the sources are listed with their titles"] = async (scene) => {
  const { sources } = await extension();
  for (const title of scene.titles) await row(sources, title);
};

exports["a hover on a citation shows its source"] = async (scene) => {
  const document = await opened(scene.report);
  await hover(document, "[[S:1]]", scene.titles[0]);
  await hover(document, "[[S:3]]", scene.titles[2]);
};

exports["a citation and a picture are links"] = async (scene) => {
  const document = await opened(scene.report);
  const links = await eventually("links", async () => {
    const found = await vscode.commands.executeCommand("vscode.executeLinkProvider", document.uri);
    const texts = found.map((link) => document.getText(link.range));
    return texts.some((text) => text.includes("S:1")) && found;
  });
  const targets = links.map((link) => String(link.target));
  assert.ok(targets.some((target) => target.includes("example.org/coffee")), targets.join("\n"));
};

exports["an unknown source is marked where it stands, emoji before it or not"] = async (scene) => {
  const document = await opened(scene.report);
  await vscode.window.showTextDocument(document);
  const found = await eventually("a diagnostic", () => {
    const all = vscode.languages.getDiagnostics(document.uri);
    return all.find((one) => one.message.includes("99"));
  });
  assert.match(document.getText(found.range), /^(\[\[S:99\]\]|99)$/);
};

exports["completion offers sources by their titles"] = async (scene) => {
  const document = await opened(scene.report);
  const end = document.positionAt(document.getText().length);
  const edit = new vscode.WorkspaceEdit();
  edit.insert(document.uri, end, "\n😀 [[S:");
  assert.ok(await vscode.workspace.applyEdit(edit));
  const position = document.positionAt(document.getText().length);
  await eventually("a completion that names the first source", async () => {
    const list = await vscode.commands.executeCommand("vscode.executeCompletionItemProvider", document.uri, position);
    return JSON.stringify(list.items).includes(scene.titles[0]);
  });
  await vscode.window.showTextDocument(document);
  await vscode.commands.executeCommand("workbench.action.files.revert");
  assert.equal(document.getText(), scene.second);
};

exports["an earlier version is read only, and compared with the present one"] = async (scene) => {
  const { artifacts } = await extension();
  const report = await row(artifacts, "report.md");
  await vscode.commands.executeCommand("artifactSidecar.diffPrevious", report.element);
  const diff = await eventually("a diff", () => {
    const input = vscode.window.tabGroups.activeTabGroup.activeTab?.input;
    return input instanceof vscode.TabInputTextDiff && input;
  });
  assert.equal(diff.original.scheme, "artifact-sidecar");
  const sides = [diff.original, diff.modified].map((uri) => vscode.workspace.openTextDocument(uri));
  const [before, after] = await Promise.all(sides);
  assert.equal(before.getText(), scene.first);
  assert.equal(after.getText(), scene.second);
};

exports["pictures, PDFs and tables are shown in a preview"] = async () => {
  const { artifacts } = await extension();
  for (const name of ["sales.png", "summary.pdf", "sales.csv"]) {
    await vscode.commands.executeCommand("artifactSidecar.preview", (await row(artifacts, name)).element);
    await eventually(`a preview of ${name}`, () => {
      const tab = vscode.window.tabGroups.activeTabGroup.activeTab;
      return tab?.label.includes(name) && /preview/i.test(tab.input?.viewType ?? "");
    });
  }
  await vscode.commands.executeCommand("workbench.action.closeAllEditors");
};

exports["a file that lands is in the tree by itself"] = async (scene) => {
  const { artifacts } = await extension();
  const told = new Promise((resolve) => {
    const listening = artifacts.onDidChangeTreeData(() => (listening.dispose(), resolve()));
  });
  land(scene, "turn_3/files/landed.txt", "here\n");
  await told;
  await row(artifacts, "landed.txt");
};

exports["what nobody outside may see is not there after it landed either"] = async (scene) => {
  const { artifacts } = await extension();
  const labels = flat(await rowsOf(artifacts)).map((one) => one.label);
  for (const secret of scene.unseen) assert.ok(!labels.some((label) => label.includes(secret)), secret);
};

exports["the daemon is killed, and another one answers"] = async (scene) => {
  const { artifacts } = await extension();
  const document = await opened(scene.report);
  process.kill(scene.daemon, "SIGKILL");
  await hover(document, "[[S:1]]", scene.titles[0]);
  await inState("running");
  land(scene, "turn_3/files/after.txt", "and still here\n");
  await row(artifacts, "after.txt");
};

exports["the command Restart begins anew"] = async (scene) => {
  const ours = await extension();
  await vscode.commands.executeCommand("artifactSidecar.restart");
  await inState("running");
  await row(ours.artifacts, "report.md");
  await hover(await opened(scene.report), "[[S:1]]", scene.titles[0]);
};

function land(scene, path, text) {
  const file = join(scene.outDir, path);
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(file, text);
}
