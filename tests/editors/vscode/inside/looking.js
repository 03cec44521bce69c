// How tests inside the extension host look at the extension: by what VS Code itself was told, and by its exports.

const assert = require("node:assert/strict");
const vscode = require("vscode");

const ID = "artifact-sidecar.artifact-sidecar";
const CEILING = 60_000;

/** Ask again until the answer is true; the answer. Fails with what was looked for, and the last answer or error. */
async function eventually(what, look) {
  const deadline = Date.now() + CEILING;
  let last;
  for (;;) {
    try {
      last = await look();
      if (last) return last;
    } catch (error) {
      last = error;
    }
    const sought = typeof what === "function" ? what() : what;
    assert.ok(Date.now() < deadline, `was not so within ${CEILING / 1000} s: ${sought}; last was ${shown(last)}`);
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}

function shown(value) {
  return value instanceof Error ? value.stack : JSON.stringify(value)?.slice(0, 2000);
}

/** What `activate()` of the extension answered. */
async function extension() {
  const found = vscode.extensions.getExtension(ID);
  assert.ok(found, `${ID} is not installed`);
  return found.isActive ? found.exports : await found.activate();
}

/** Wait until the extension is in this state: `running`, `noOutDir`, `noCommand`, … */
async function inState(...states) {
  const ours = await extension();
  const wanted = () => `state ${states.join(" or ")}, which is ${shown(ours.state())}`;
  return eventually(wanted, () => states.includes(kindOf(ours.state())) && ours.state());
}

function kindOf(state) {
  return typeof state === "string" ? state : state?.kind;
}

/** The rows of a tree, as nested `{label, rows}`, as deep as `depth`. */
async function rowsOf(provider, depth = 9, parent = undefined) {
  const children = (await provider.getChildren(parent)) ?? [];
  return Promise.all(
    children.map(async (element) => {
      const item = await provider.getTreeItem(element);
      const open = item.collapsibleState !== vscode.TreeItemCollapsibleState.None && depth > 1;
      const words = item.accessibilityInformation?.label ?? "";
      const label = typeof item.label === "string" ? item.label : (item.label?.label ?? "");
      return { label, words, item, element, rows: open ? await rowsOf(provider, depth - 1, element) : [] };
    }),
  );
}

/** All rows of a tree in one list, outer ones first. */
function flat(rows) {
  return rows.flatMap((row) => [row, ...flat(row.rows)]);
}

/** The row whose label holds this text, once there is one. */
async function row(provider, text) {
  let seen = [];
  const look = async () => {
    const rows = flat(await rowsOf(provider));
    seen = rows.map((one) => one.label);
    return rows.find((one) => one.label.includes(text));
  };
  return eventually(() => `a row ${text} among ${seen.join(", ") || "none"}`, look);
}

async function opened(path) {
  return vscode.workspace.openTextDocument(vscode.Uri.file(path));
}

/** The position of a text in a document, `shift` characters into it. */
function positionOf(document, text, shift = 0) {
  const offset = document.getText().indexOf(text);
  assert.ok(offset >= 0, `${text} is not in ${document.uri}`);
  return document.positionAt(offset + shift);
}

/** What the hovers over this text say, once they hold `wanted`. */
async function hover(document, text, wanted) {
  const position = positionOf(document, text, 2);
  return eventually(`a hover on ${text} that says ${wanted}`, async () => {
    const found = await vscode.commands.executeCommand("vscode.executeHoverProvider", document.uri, position);
    const said = found.flatMap((one) => one.contents.map((part) => part.value ?? part)).join("\n");
    return said.includes(wanted) && said;
  });
}

module.exports = { eventually, extension, flat, hover, ID, inState, kindOf, opened, positionOf, row, rowsOf };
