/** Numbers, sizes and moments as people read them. */

export function size(bytes: number | null | undefined): string {
  if (bytes === undefined || bytes === null) {
    return "";
  }
  const units = ["B", "KB", "MB", "GB", "TB"];
  let value = bytes;
  let unit = 0;
  while (value >= 1000 && unit < units.length - 1) {
    value /= 1000;
    unit += 1;
  }
  return `${unit === 0 || value >= 100 ? Math.round(value) : Number(value.toFixed(1))} ${units[unit]}`;
}

export function count(n: number, one: string, many = `${one}s`): string {
  return `${n.toLocaleString("en")} ${n === 1 ? one : many}`;
}

/** A moment in the reader's own time zone; the text itself when it is no moment. */
export function moment(ts: string | undefined, now = new Date()): string {
  const then = new Date(ts ?? "");
  if (Number.isNaN(then.getTime())) {
    return ts ?? "";
  }
  const time = then.toLocaleTimeString([], { hour: "2-digit", minute: "2-digit" });
  const sameDay = then.toDateString() === now.toDateString();
  return sameDay ? time : `${then.toLocaleDateString([], { day: "numeric", month: "short" })}, ${time}`;
}

/** Pieces that say something, with a dot between them. */
export function joined(...pieces: (string | undefined | null | false)[]): string {
  return pieces.filter((piece) => piece !== "" && piece).join(" · ");
}
