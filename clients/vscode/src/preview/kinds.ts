/** What can be shown, and how, by media type or by the ending of a file's name. */

/** `markdown` goes to the editor's own preview, the others to ours. */
export type Kind = "image" | "pdf" | "table" | "markdown";
export type Page = Exclude<Kind, "markdown">;

const ENDINGS: Record<string, { kind: Page; mime: string }> = {
  png: { kind: "image", mime: "image/png" },
  jpg: { kind: "image", mime: "image/jpeg" },
  jpeg: { kind: "image", mime: "image/jpeg" },
  gif: { kind: "image", mime: "image/gif" },
  webp: { kind: "image", mime: "image/webp" },
  svg: { kind: "image", mime: "image/svg+xml" },
  bmp: { kind: "image", mime: "image/bmp" },
  ico: { kind: "image", mime: "image/x-icon" },
  avif: { kind: "image", mime: "image/avif" },
  pdf: { kind: "pdf", mime: "application/pdf" },
  csv: { kind: "table", mime: "text/csv" },
  tsv: { kind: "table", mime: "text/tab-separated-values" },
};

const SHOWN = new Map<string, Kind>([
  ...Object.values(ENDINGS).map(({ kind, mime }): [string, Kind] => [mime, kind]),
  ["text/markdown", "markdown"],
]);

export function previewOf(mime: string): Kind | undefined {
  return SHOWN.get(mime.split(";")[0]?.trim().toLowerCase() ?? "");
}

/** How a file that is opened by its name is shown. */
export function byEnding(name: string): { kind: Page; mime: string } | undefined {
  return ENDINGS[/\.([^.]+)$/.exec(name)?.[1]?.toLowerCase() ?? ""];
}
