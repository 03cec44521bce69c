// A headless Chromium with one page of VS Code in it, ended whatever happens; what it said lies in a file.

import { appendFileSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { chromium } from "playwright-core";

/** Milliseconds that one wait may take. The machine may be busy with other tests. */
export const CEILING = 60_000;

/** Nothing but the server on this machine is reachable from the page. */
const ALONE = "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1, EXCLUDE localhost";

/**
 * Run `work(page)` in a fresh profile. When it fails, a picture of what the page showed lies in `settings.pictures`.
 *
 * @param {{chromium: string, pictures: string, log: string}} settings
 * @param {(page: import("playwright-core").Page) => Promise<T>} work
 * @returns {Promise<T>}
 * @template T
 */
export async function browsing(settings, work) {
  const profile = mkdtempSync(join(tmpdir(), "as-chromium-"));
  try {
    const context = await chromium.launchPersistentContext(profile, {
      executablePath: settings.chromium,
      headless: true,
      colorScheme: "dark",
      viewport: { width: 1440, height: 900 },
      args: ["--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu", ALONE],
    });
    try {
      context.setDefaultTimeout(CEILING);
      const page = context.pages()[0] ?? (await context.newPage());
      const say = (what) => appendFileSync(settings.log, `${what}\n`);
      page.on("console", (message) => say(`${message.type()}: ${message.text()}`));
      page.on("pageerror", (error) => say(`thrown: ${error.stack}`));
      try {
        return await work(page);
      } catch (error) {
        await page.screenshot({ path: join(settings.pictures, "when-it-failed.png") }).catch(() => undefined);
        throw error;
      }
    } finally {
      await context.close();
    }
  } finally {
    rmSync(profile, { recursive: true, force: true, maxRetries: 5 });
  }
}

/** What Python gave to this program: one JSON object as its only argument. */
export function given() {
  return JSON.parse(process.argv[2]);
}
