/** Runs one job at a time; asked while one is under way, it runs one more afterwards, however often it was asked. */
export class OneMore {
  private running: Promise<void> | undefined;
  private again: Promise<void> | undefined;

  constructor(private readonly job: () => Promise<void>) {}

  /** Resolves when a run that began after this call is over. */
  ask(): Promise<void> {
    if (this.running === undefined) {
      this.running = this.job().finally(() => (this.running = undefined));
      return this.running;
    }
    this.again ??= this.running
      .catch(() => undefined)
      .then(() => {
        this.again = undefined;
        return this.ask();
      });
    return this.again;
  }
}

/** Calls `job` once for all calls within `ms`, with what they brought. */
export class Gathered<T> {
  private waiting: T[] = [];
  private timer: NodeJS.Timeout | undefined;

  constructor(
    private readonly ms: number,
    private readonly job: (all: T[]) => void,
  ) {}

  add(...items: T[]): void {
    this.waiting.push(...items);
    this.timer ??= setTimeout(() => {
      this.timer = undefined;
      const all = this.waiting;
      this.waiting = [];
      this.job(all);
    }, this.ms);
  }

  dispose(): void {
    clearTimeout(this.timer);
  }
}
