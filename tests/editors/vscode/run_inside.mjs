// Runs the tests of `inside/` in the real extension host of a VS Code server, as VS Code's own repository does: the page
// is asked for with the tests named in its address, and tells how they ended by two functions that we lay into it.

import { appendFileSync } from "node:fs";
import { browsing, CEILING, given } from "./browser.mjs";

/** Our own lines begin with this; the rest is what VS Code says of itself. */
const OURS = "test: ";

const settings = given();

const code = await browsing(settings, async (page) => {
  const ended = new Promise((resolve, reject) => {
    const late = setTimeout(() => reject(new Error("the tests did not end; see the console log")), 7 * CEILING);
    const end = (exit) => {
      clearTimeout(late);
      resolve(exit);
    };
    return Promise.all([
      page.exposeFunction("codeAutomationLog", (_type, args) => hear(args.join(" "))),
      page.exposeFunction("codeAutomationExit", end),
    ]).then(() => page.goto(address()), reject);
  });
  return ended;
});
process.exitCode = code === 0 ? 0 : 1;

function hear(said) {
  if (said.startsWith(OURS)) console.log(said.slice(OURS.length));
  else appendFileSync(settings.log, `${said}\n`);
}

function address() {
  const { host } = new URL(settings.url);
  const remote = (path) => `vscode-remote://${host}${path}`;
  const payload = [
    ["extensionDevelopmentPath", remote(settings.inside)],
    ["extensionTestsPath", remote(`${settings.inside}/index.js`)],
    ["skipWelcome", "true"],
  ];
  const query = new URLSearchParams({ folder: settings.folder, payload: JSON.stringify(payload) });
  return `${settings.url}?${query}`;
}
