// VS Code's page as a person sees it: views, rows, commands, editors, previews. All is waited for, nothing slept.

import { strict as assert } from "node:assert";
import { join } from "node:path";
import { CEILING } from "./browser.mjs";

const VIEWLET = "Artifact Sidecar";
const STATUS = '[id="artifact-sidecar.artifact-sidecar.status"]';
const OTHER_THEME = "Control+Alt+Shift+L"; // vscode_server.py binds it

export class Workbench {
  /** @param {import("playwright-core").Page} page */
  constructor(page, settings) {
    this.page = page;
    this.settings = settings;
  }

  /** Load the page with this folder open, and show the views of the extension. */
  async open(folder) {
    await this.page.goto(`${this.settings.url}?folder=${encodeURIComponent(folder)}`);
    await this.page.locator(`.activitybar a[aria-label^="${VIEWLET}"]`).click();
    await this.away();
    await this.page.locator(this.pane("Artifacts")).waitFor();
  }

  /** Take the mouse to where nothing is explained: the tooltip of one thing lies over the next and takes its click. */
  async away() {
    await this.page.mouse.move(1000, 780);
    await this.page.locator(".monaco-hover.workbench-hover:not(.hidden)").first().waitFor({ state: "hidden" });
  }

  pane(view) {
    return `.pane:has(.pane-header[aria-label^="${view}"])`;
  }

  /** The rows of a view whose spoken label holds these words. */
  rows(view, words = "") {
    const having = words === "" ? "" : `[aria-label*="${words}"]`;
    return this.page.locator(`${this.pane(view)} .monaco-list-row${having}`);
  }

  row(view, words) {
    return this.rows(view, words).first();
  }

  /** Open a row of the tree of artifacts, as soon as it can be opened, so that those below it are seen. */
  async unfold(words) {
    const rows = `${this.pane("Artifacts")} .monaco-list-row[aria-label*="${words}"][aria-expanded]`;
    const row = this.page.locator(rows).first();
    await row.waitFor();
    if ((await row.getAttribute("aria-expanded")) === "true") return;
    await this.away();
    await row.click({ position: await this.twistie(row) });
    await this.until(`${words} is open`, async () => (await row.getAttribute("aria-expanded")) === "true");
  }

  /** Where the twistie is, from the row's corner: both at one moment, for rows move when others come in above. */
  async twistie(row) {
    return row.evaluate((outer) => {
      const at = outer.getBoundingClientRect();
      const twistie = outer.querySelector(".monaco-tl-twistie").getBoundingClientRect();
      return { x: twistie.right - at.x - 8, y: at.height / 2 };
    });
  }

  /** Click a row of the tree of artifacts. */
  async click(words) {
    await this.away();
    await this.row("Artifacts", words).click();
  }

  /** Click one of the buttons that a row shows when the mouse is over it. */
  async press(words, button) {
    const row = this.row("Artifacts", words);
    await this.away();
    await row.hover();
    await row.locator(`.actions a[aria-label^="${button}"]`).first().click();
  }

  /** Run a command of the palette by its whole title. */
  async command(title) {
    await this.page.keyboard.press("F1");
    const input = this.page.locator(".quick-input-widget input.input");
    await input.waitFor();
    await input.fill(`>${title}`);
    const found = this.page.locator(".quick-input-list .monaco-list-row", { hasText: title }).first();
    await found.waitFor();
    await found.click();
    await found.waitFor({ state: "hidden" }); // the command may ask for something in the same place
  }

  /** Answer the question at the top of the window whose empty field says this. */
  async answer(question, text) {
    const input = this.page.locator(`.quick-input-widget input.input[placeholder*="${question}"]`);
    await input.fill(text);
    await input.press("Enter");
  }

  tab(name) {
    return this.page.locator(`.tabs-container .tab[aria-label*="${name}"]`).first();
  }

  /** Close everything that is open in the middle. */
  async clear() {
    await this.command("View: Close All Editors");
    await this.page.locator(".tabs-container .tab").first().waitFor({ state: "detached" });
  }

  /** Move the mouse over a text in the editor, and wait until a hover says something of `wanted`. */
  async hover(text, wanted) {
    const shown = this.page.locator(".monaco-hover:not(.hidden) .hover-contents", { hasText: wanted }).first();
    const loading = this.page.locator(".monaco-hover:not(.hidden)", { hasText: "Loading..." });
    await this.until(`a hover on ${text} with ${wanted}`, async () => {
      const place = await this.page.evaluate(placeOf, text);
      if (place === null) return false;
      await this.page.mouse.move(place.x, place.y + 200);
      await this.page.mouse.move(place.x, place.y);
      const seen = await shown.waitFor({ timeout: 5000 }).then(() => true, () => false);
      return seen && (await loading.waitFor({ state: "hidden", timeout: 5000 }).then(() => true, () => false));
    });
  }

  /** The frame of a webview in which this is to be seen. */
  async webview(selector) {
    return this.until(`a webview with ${selector}`, async () => {
      for (const frame of this.page.frames()) {
        const seen = await frame.locator(selector).first().isVisible().catch(() => false);
        if (seen && frame !== this.page.mainFrame()) return frame;
      }
      return undefined;
    });
  }

  async status(words) {
    await this.page.locator(STATUS, { hasText: words }).waitFor();
  }

  /** A picture of the window in a dark theme and one in a light theme; `again` shows what a change of theme hides. */
  async shoot(name, again = async () => undefined) {
    for (const theme of ["vs-dark", "vs"]) {
      const there = await this.page.locator(`.monaco-workbench.${theme}`).isVisible();
      if (!there) await this.page.keyboard.press(OTHER_THEME);
      await this.themed(theme);
      await again();
      const path = join(this.settings.pictures, `${name}-${theme === "vs" ? "light" : "dark"}.png`);
      await this.page.screenshot({ path, animations: "disabled" });
    }
  }

  async themed(theme) {
    await this.page.locator(`.monaco-workbench.${theme}`).waitFor();
    const word = theme === "vs" ? "vscode-light" : "vscode-dark";
    await this.until(`webviews in ${word}`, async () => {
      const bodies = await Promise.all(this.page.frames().map((frame) => classOf(frame)));
      return bodies.every((body) => !/vscode-(light|dark)/.test(body) || body.includes(word));
    });
  }

  /** Ask again until the answer is true; the answer. */
  async until(what, look) {
    const deadline = Date.now() + CEILING;
    for (;;) {
      const found = await look();
      if (found) return found;
      assert.ok(Date.now() < deadline, `was not so within ${CEILING / 1000} s: ${what}`);
      await this.page.waitForTimeout(50);
    }
  }
}

async function classOf(frame) {
  return frame.evaluate(() => document.body?.className ?? "").catch(() => "");
}

/** Where a text stands in the lines of an editor; runs in the page. The editor draws blanks as no-break spaces. */
function placeOf(text) {
  for (const line of document.querySelectorAll(".editor-instance .view-line")) {
    const walker = document.createTreeWalker(line, NodeFilter.SHOW_TEXT);
    const pieces = [];
    for (let node = walker.nextNode(); node !== null; node = walker.nextNode()) pieces.push(node);
    const whole = pieces.map((node) => node.data).join("").replaceAll("\u00a0", " ");
    const found = whole.indexOf(text);
    if (found < 0) continue;
    let middle = found + Math.floor(text.length / 2);
    const piece = pieces.find((node) => (middle -= node.data.length) < 0);
    middle += piece.data.length;
    const range = document.createRange();
    range.setStart(piece, middle);
    range.setEnd(piece, middle + 1);
    const box = range.getBoundingClientRect();
    return { x: box.x + box.width / 2, y: box.y + box.height / 2 };
  }
  return null;
}
