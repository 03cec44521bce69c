/** Texts and what became of them: the latest few, each asked for once. */

const KEPT = 64;

export class Answers {
  private readonly known = new Map<string, string | undefined>();
  private age = 0;

  constructor(private readonly ask: (text: string) => Promise<string>) {}

  /** The answer, if it is there; else it is asked for, and undefined. */
  of(text: string): string | undefined {
    if (this.known.has(text)) {
      const answer = this.known.get(text);
      this.known.delete(text);
      this.known.set(text, answer); // The latest asked for stays longest.
      return answer;
    }
    const age = this.age;
    this.known.set(text, undefined);
    this.ask(text).then(
      (answer) => age === this.age && this.known.set(text, answer),
      () => age === this.age && this.known.delete(text),
    );
    const oldest = this.known.keys().next();
    if (this.known.size > KEPT && !oldest.done) {
      this.known.delete(oldest.value);
    }
    return undefined;
  }

  /** Forget all; whether there was anything. */
  clear(): boolean {
    const any = this.known.size > 0;
    this.age += 1;
    this.known.clear();
    return any;
  }
}
