/** Rows and cells of a CSV or TSV file, as many as a page shows without stalling. */

import Papa from "papaparse";

export const ROWS = 2000;
export const COLUMNS = 200;
export const CHARS = 4 * 1024 * 1024;
const CELL = 500;

/** The rows that are shown, and a sentence when they are not all. */
export function cut(bytes: Uint8Array): { rows: string[][]; note: string } {
  const text = new TextDecoder().decode(bytes.subarray(0, CHARS));
  const whole = bytes.length <= CHARS;
  const { data } = Papa.parse<string[]>(text, { skipEmptyLines: "greedy", preview: ROWS + 2 });
  const parsed = whole || data.length > ROWS + 1 ? data : data.slice(0, -1); // The last row may be half a row.
  const rows = parsed.slice(0, ROWS + 1).map((row) => row.slice(0, COLUMNS).map(short));
  const widest = parsed.reduce((most, row) => Math.max(most, row.length), 0);
  const notes = [
    parsed.length > ROWS + 1 || !whole ? `Only the first ${(rows.length - 1).toLocaleString("en")} rows are shown.` : "",
    widest > COLUMNS ? `Only ${COLUMNS} of ${widest.toLocaleString("en")} columns are shown.` : "",
  ];
  return { rows, note: notes.filter((note) => note !== "").join(" ") };
}

function short(cell: string): string {
  return cell.length > CELL ? `${cell.slice(0, CELL)}…` : cell;
}
