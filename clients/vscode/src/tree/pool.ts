/** Rows of the sources pool as the view has them: their label, the filter, and new rows among known ones. */

import type { SourceRow } from "../wire";

export function labelOf(source: SourceRow): string {
  return source.title || source.url || source.physical_path || source.artifact_path || `Source ${source.sid}`;
}

/** Whether a row has every word somewhere, in any case. A number finds its source. */
export function fits(source: SourceRow, words: string): boolean {
  const text = [source.sid, source.title, source.url, source.domain, source.physical_path, source.mime]
    .filter((part) => part !== undefined && part !== null)
    .join(" ")
    .toLowerCase();
  return words
    .toLowerCase()
    .split(/\s+/)
    .every((word) => text.includes(word));
}

/** Known rows with the new ones in their places, in order of their numbers. */
export function merged(known: readonly SourceRow[], news: readonly SourceRow[]): SourceRow[] {
  const rows = new Map(known.map((row) => [row.sid, row]));
  news.forEach((row) => rows.set(row.sid, row));
  return [...rows.values()].sort((a, b) => (a.sid ?? 0) - (b.sid ?? 0));
}
