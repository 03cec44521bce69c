// Splits a command line into its words as a POSIX shell does, without expanding anything.

const PIECE = /\\([^])|'([^']*)'|"((?:[^"\\]|\\[^])*)"|(\s+)|([^\\'"\s]+)|([^])/g;

/** The words of a command line. Throws a SyntaxError where a quote is left open or nothing follows a backslash. */
export function words(line: string): string[] {
  const found: string[] = [];
  let word: string | undefined;
  for (const [, escaped, single, double, space, plain] of line.matchAll(PIECE)) {
    const part = escaped ?? single ?? double?.replace(/\\([\\"])/g, "$1") ?? plain;
    if (part !== undefined) {
      word = (word ?? "") + part;
    } else if (space === undefined) {
      throw new SyntaxError("a quote is left open, or nothing follows a backslash");
    } else if (word !== undefined) {
      found.push(word);
      word = undefined;
    }
  }
  return word === undefined ? found : [...found, word];
}
