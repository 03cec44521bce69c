// Figures of the page where there is very much to show: how long a person waits, and the longest task of the page.

import { browsing, given } from "./browser.mjs";
import { Workbench } from "./workbench.mjs";

const settings = given();

await browsing(settings, async (page) => {
  await page.addInitScript(() => {
    window.longest = 0;
    new PerformanceObserver((list) => {
      for (const task of list.getEntries()) window.longest = Math.max(window.longest, task.duration);
    }).observe({ type: "longtask", buffered: true });
  });
  const bench = new Workbench(page, settings);
  const told = async (what, work) => {
    await page.evaluate(() => void (window.longest = 0));
    const begun = performance.now();
    await work();
    const took = performance.now() - begun;
    const longest = await page.evaluate(() => window.longest);
    console.log(`${what}: ${took.toFixed(0)} ms, longest task of the page ${longest.toFixed(0)} ms`);
  };
  await told("page and turns", async () => {
    await bench.open(settings.folder);
    await bench.row("Artifacts", "The first of many").waitFor();
  });
  await bench.unfold("The first of many");
  await told("a call of 1,000 artifacts unfolded", async () => {
    await bench.unfold("exec_tools.first");
    await bench.row("Artifacts", "part-").waitFor();
  });
  await told("scrolled to the end of the first page", async () => {
    await bench.click("part-");
    await page.keyboard.press("End");
    await bench.row("Artifacts", "Show more").waitFor();
  });
});
