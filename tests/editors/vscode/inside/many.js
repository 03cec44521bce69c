// Figures, not judgements: how long the extension host takes, and how long it is deaf, where there is very much to show.

const { monitorEventLoopDelay } = require("node:perf_hooks");
const vscode = require("vscode");
const { eventually, extension, flat, hover, inState, opened, rowsOf } = require("./looking.js");

async function told(what, work) {
  const deaf = monitorEventLoopDelay({ resolution: 1 });
  deaf.enable();
  const begun = performance.now();
  const answer = await work();
  const took = performance.now() - begun;
  await new Promise((resolve) => setTimeout(resolve, 20));
  deaf.disable();
  console.log(`test: ${what}: ${took.toFixed(1)} ms, the host deaf for at most ${(deaf.max / 1e6).toFixed(1)} ms`);
  return answer;
}

exports["tree"] = async () => {
  await inState("running");
  const { artifacts, sources } = await extension();
  const look = async () => {
    const rows = await rowsOf(artifacts, 1);
    return rows.length > 1 && rows;
  };
  const roots = await told("turns", () => eventually("turns", look));
  const [call] = await rowsOf(artifacts, 1, roots.find((one) => one.label === "The first of many").element);
  const below = await told("first rows of a call", () => rowsOf(artifacts, 1, call.element));
  console.log(`test: ${roots.length} turns, ${below.length} rows below a call`);
  const pool = await told("sources", () => rowsOf(sources, 1));
  console.log(`test: ${flat(pool).length} rows of sources`);
};

exports["documents"] = async (scene) => {
  const document = await opened(scene.report);
  await vscode.window.showTextDocument(document);
  await told("first hover", () => hover(document, "[[S:1]]", scene.titles[0]));
  await told("next hover", () => hover(document, "[[S:3]]", scene.titles[2]));
  const edit = new vscode.WorkspaceEdit();
  edit.insert(document.uri, document.positionAt(document.getText().length), "\n[[S:");
  await vscode.workspace.applyEdit(edit);
  const position = document.positionAt(document.getText().length);
  const ask = () => vscode.commands.executeCommand("vscode.executeCompletionItemProvider", document.uri, position);
  const list = await told("completion", ask);
  await told("completion again", ask);
  console.log(`test: ${list.items.length} completions`);
};
