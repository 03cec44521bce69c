import { strict as assert } from "node:assert";
import { test } from "node:test";
import { Answers } from "../src/answers";
import { count, joined, size } from "../src/phrases";
import { byEnding, previewOf } from "../src/preview/kinds";
import { CHARS, COLUMNS, ROWS, cut } from "../src/preview/table";
import { OneMore } from "../src/queue";
import { fits, merged } from "../src/tree/pool";
import type { SourceRow } from "../src/wire";

const bytes = (text: string): Uint8Array => new TextEncoder().encode(text);
const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

test("sizes and counts read as people write them", () => {
  assert.deepEqual([size(0), size(999), size(1234), size(120_000), size(undefined)], ["0 B", "999 B", "1.2 KB", "120 KB", ""]);
  assert.deepEqual([count(1, "source"), count(1200, "source")], ["1 source", "1,200 sources"]);
  assert.equal(joined("a", "", false, undefined, "b"), "a · b");
});

test("a table keeps quoted cells whole, and says when rows or columns are left out", () => {
  assert.deepEqual(cut(bytes('a,b\n1,"x, ""y""\nz"\n')), { rows: [["a", "b"], ["1", 'x, "y"\nz']], note: "" });
  const long = cut(bytes("n\n".repeat(ROWS + 5)));
  assert.deepEqual([long.rows.length, long.note], [ROWS + 1, "Only the first 2,000 rows are shown."]);
  const wide = cut(bytes(`${"c,".repeat(COLUMNS + 1)}c\n`));
  assert.deepEqual([wide.rows[0]?.length, wide.note], [COLUMNS, "Only 200 of 202 columns are shown."]);
});

test("a file that is cut shows no half row", () => {
  const row = `${"x".repeat(CHARS / 4)},1\n`;
  const { rows, note } = cut(bytes(`a,b\n${row.repeat(5)}`));
  assert.ok(rows.every((one) => one.length === 2));
  assert.match(note, /^Only the first 3 rows/);
});

test("tabs part the cells of a file that has tabs", () => {
  assert.deepEqual(cut(bytes("a\tb\n1\t2\n")).rows, [["a", "b"], ["1", "2"]]);
});

test("what can be shown is known by media type, and by the ending of a name", () => {
  assert.deepEqual(["image/png", "application/pdf", "text/csv; header=present", "text/markdown", "text/x-python"].map(previewOf), [
    "image", "pdf", "table", "markdown", undefined,
  ]);
  assert.deepEqual([byEnding("A.PNG")?.mime, byEnding("a.tsv")?.kind, byEnding("README")], ["image/png", "table", undefined]);
});

test("sources are found by any of their words, in any case, and by their number", () => {
  const row: SourceRow = { sid: 12, title: "Coffee Prices", url: "https://example.org/coffee" };
  assert.ok(fits(row, "PRICES example") && fits(row, "12") && fits(row, ""));
  assert.ok(!fits(row, "prices tea"));
});

test("new sources take their places among known ones", () => {
  const rows = merged([{ sid: 1, title: "a" }, { sid: 3 }], [{ sid: 2 }, { sid: 1, title: "b" }]);
  assert.deepEqual(rows.map((row) => [row.sid, row.title]), [[1, "b"], [2, undefined], [3, undefined]]);
});

test("asked while it runs, a job runs once more and no oftener", async () => {
  let runs = 0;
  const queue = new OneMore(async () => {
    runs += 1;
    await turn();
  });
  await Promise.all([queue.ask(), queue.ask(), queue.ask()]);
  assert.equal(runs, 2);
});

test("a text is asked for once, and an answer from before everything was forgotten is not taken", async () => {
  const asked: string[] = [];
  const answers = new Answers(async (text) => {
    asked.push(text);
    await turn();
    return `${text}!`;
  });
  assert.equal(answers.of("a"), undefined);
  assert.equal(answers.of("a"), undefined);
  answers.clear();
  await turn();
  await turn();
  assert.equal(answers.of("a"), undefined);
  await turn();
  await turn();
  assert.deepEqual([answers.of("a"), asked], ["a!", ["a", "a"]]);
});

test("a text that could not be answered is asked for again", async () => {
  let times = 0;
  const answers = new Answers(async () => {
    times += 1;
    throw new Error("away");
  });
  answers.of("a");
  await turn();
  answers.of("a");
  assert.equal(times, 2);
});
