/** A table with a head that stays, numbers at the right, sorting by a click, and a box that narrows the rows. */

import type { Told } from "../preview/editor";
import { bar, element } from "./elements";

type Table = Extract<Told, { kind: "table" }>;

const NUMBER = /^\s*[+\-−]?[\d,. ]*\d\s*%?\s*$/;

export function showTable(main: HTMLElement, told: Table, gone: AbortSignal): void {
  const [head = [], ...rows] = told.rows;
  const width = told.rows.reduce((most, row) => Math.max(most, row.length), 0);
  const numeric = Array.from({ length: width }, (_, i) => {
    const cells = rows.map((row) => row[i] ?? "").filter((cell) => cell.trim() !== "");
    return cells.length > 0 && cells.every((cell) => NUMBER.test(cell));
  });
  const body = element("tbody");
  const search = element("input", "search");
  search.type = "search";
  search.placeholder = "Filter rows";
  search.setAttribute("aria-label", "Filter rows");
  const shown = element("span", "fact");
  let sorted: { column: number; down: boolean } | undefined;

  function draw(): void {
    const words = search.value.toLowerCase();
    const kept = rows.map((row, i) => ({ row, i })).filter(({ row }) => row.some((cell) => cell.toLowerCase().includes(words)));
    if (sorted !== undefined) {
      const { column, down } = sorted;
      kept.sort((a, b) => compared(a.row[column] ?? "", b.row[column] ?? "", numeric[column] === true) * (down ? -1 : 1));
    }
    body.replaceChildren(...kept.map(({ row, i }) => line(row, i)));
    shown.textContent = kept.length === rows.length ? "" : `${kept.length.toLocaleString("en")} found`;
  }

  function line(row: string[], i: number): HTMLElement {
    const made = element("tr");
    made.append(element("th", "nth", String(i + 1)));
    for (let column = 0; column < width; column++) {
      made.append(element("td", numeric[column] ? "number" : "", row[column] ?? ""));
    }
    return made;
  }

  const heads = Array.from({ length: width }, (_, column) => {
    const made = element("th", numeric[column] ? "number" : "");
    const sort = element("button", "sort", head[column] ?? "");
    sort.type = "button";
    sort.title = "Sort by this column";
    sort.addEventListener("click", () => {
      sorted = { column, down: sorted?.column === column && !sorted.down };
      heads.forEach((one) => one.removeAttribute("aria-sort"));
      made.setAttribute("aria-sort", sorted.down ? "descending" : "ascending");
      draw();
    });
    made.scope = "col";
    made.append(sort);
    return made;
  });
  const headRow = element("tr");
  headRow.append(element("th", "nth"), ...heads);
  const thead = element("thead");
  thead.append(headRow);
  const table = element("table", "grid");
  table.append(thead, body);
  const stage = element("div", "sheet");
  stage.tabIndex = 0;
  stage.append(table);
  const facts = [`${rows.length.toLocaleString("en")} rows`, `${width} columns`, told.size];
  const top = bar(facts, [search]);
  top.querySelector(".facts")?.append(shown);
  search.addEventListener("input", draw, { signal: gone });
  draw();
  main.replaceChildren(top, ...(told.note ? [element("p", "cut", told.note)] : []), stage);
}

function compared(a: string, b: string, numeric: boolean): number {
  return numeric ? value(a) - value(b) : a.localeCompare(b, undefined, { numeric: true });
}

function value(cell: string): number {
  const number = Number(cell.replace(/[,\s%]/g, "").replace("−", "-"));
  return Number.isNaN(number) || cell.trim() === "" ? Number.NEGATIVE_INFINITY : number;
}
