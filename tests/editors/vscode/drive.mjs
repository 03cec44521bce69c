// What a person does who wants to see what the agent made, in the page of a real VS Code; with a picture of each stage.

import { strict as assert } from "node:assert";
import { createInterface } from "node:readline";
import { browsing, given } from "./browser.mjs";
import { Workbench } from "./workbench.mjs";

const settings = given();
const answers = createInterface({ input: process.stdin })[Symbol.asyncIterator]();

/** Ask Python to do something that only the agent can. */
async function act(name, ...given) {
  process.stdout.write(`${JSON.stringify({ act: name, given })}\n`);
  return JSON.parse((await answers.next()).value);
}

const STAGES = {
  async "the tree shows turns, calls, artifacts and versions"(bench) {
    await bench.row("Artifacts", "How did our sales go").waitFor();
    await bench.unfold("How did our sales go");
    await bench.unfold("exec_tools.run");
    await bench.unfold("write_tools.patch");
    await bench.unfold("report.md");
    for (const words of ["sales.png", "sales.csv", "Version 2", "Version 1"]) {
      await bench.row("Artifacts", words).waitFor();
    }
    await bench.row("Sources", settings.titles[0]).waitFor();
    await bench.shoot("1-tree");
  },

  async "a file that lands is in the tree"(bench) {
    const { artifacts } = await act("land");
    await bench.unfold("Now the outlook");
    await bench.unfold("write_tools.write_file");
    await bench.row("Artifacts", "outlook.md").waitFor();
    await bench.status(String(artifacts));
    await bench.shoot("2-landed");
  },

  async "a report is opened, a citation in it hovered, an unknown source marked"(bench) {
    await bench.click("report.md");
    await bench.tab("report.md").waitFor();
    await bench.page.locator(".squiggly-error, .squiggly-warning").first().waitFor();
    await bench.shoot("3-hover", () => bench.hover("[[S:1]]", settings.titles[0]));
  },

  async "the preview of Markdown shows citations as links"(bench) {
    await bench.page.locator(".editor-instance .view-line").first().click();
    await bench.command("Markdown: Open Preview to the Side");
    const frame = await bench.webview('a[href*="example.org/coffee"]');
    const text = await frame.locator("body").innerText();
    assert.ok(!text.includes("[[S:1]]"), `a citation is shown as it is written: ${text}`);
    assert.ok(text.includes("Sales rose in every quarter"), text);
    await bench.shoot("4-markdown");
    await bench.clear();
  },

  async "a picture is shown"(bench) {
    await bench.press("sales.png", "Preview");
    const frame = await bench.webview("img");
    const whole = () => frame.locator("img").first().evaluate((img) => img.naturalWidth === 720);
    await bench.until("the picture whole", whole);
    await bench.shoot("5-picture");
  },

  async "the pages of a PDF are drawn"(bench) {
    await bench.unfold("Give me a page");
    await bench.unfold("write_tools.write_pdf");
    await bench.press("summary.pdf", "Preview");
    const frame = await bench.webview("canvas");
    await bench.until("ink on the first page", () => frame.locator("canvas").first().evaluate(inked));
    await bench.shoot("6-pdf");
  },

  async "a table is shown as a table"(bench) {
    await bench.press("sales.csv", "Preview");
    const frame = await bench.webview("table");
    const text = await frame.locator("table").innerText();
    for (const cell of ["quarter", "Q4", "14287.50", 'by post"', "beans, ground"]) assert.ok(text.includes(cell), text);
    await bench.shoot("7-table");
    await bench.clear();
  },

  async "two versions are compared"(bench) {
    await bench.press("report.md", "Compare with Previous");
    await bench.page.locator(".monaco-diff-editor .line-insert").first().waitFor();
    await bench.page.locator(".monaco-diff-editor .line-delete").first().waitFor();
    await bench.shoot("8-diff");
    await bench.clear();
  },

  async "sources are filtered"(bench) {
    await bench.row("Sources", settings.titles[0]).waitFor();
    await bench.command("Artifact Sidecar: Filter Sources…");
    await bench.answer("Words of a title", "harvest");
    await bench.row("Sources", settings.titles[0]).waitFor({ state: "detached" });
    await bench.row("Sources", settings.titles[1]).waitFor();
    await bench.shoot("9-filtered");
    await bench.command("Artifact Sidecar: Clear the Filter of Sources");
    await bench.row("Sources", settings.titles[0]).waitFor();
  },
};

await browsing(settings, async (page) => {
  const bench = new Workbench(page, settings);
  await bench.open(settings.folder);
  for (const [sentence, stage] of Object.entries(STAGES)) {
    const begun = Date.now();
    await stage(bench);
    console.log(`${sentence} (${Date.now() - begun} ms)`);
  }
});
process.stdin.destroy();

/** Whether a canvas has both light and dark pixels; runs in the page. */
function inked(canvas) {
  const { width, height } = canvas;
  if (width === 0 || height === 0) return false;
  const { data } = canvas.getContext("2d").getImageData(0, 0, width, height);
  let dark = 0;
  let light = 0;
  for (let i = 0; i < data.length; i += 4) {
    if (data[i + 3] > 200 && data[i] < 90) dark += 1;
    if (data[i] > 200) light += 1;
  }
  return dark > 50 && light > 50;
}
