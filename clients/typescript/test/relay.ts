// A socket in front of the daemon's that can cut or stall its connections while the daemon lives on.

import { createServer, connect, type Server, type Socket } from "node:net";
import type { TestContext } from "node:test";

export class Relay {
  readonly path: string;
  readonly #server: Server;
  readonly #links = new Set<Socket>();
  #flowing: Promise<void> = Promise.resolve();

  private constructor(path: string, behind: string) {
    this.path = path;
    this.#server = createServer((front) => {
      const back = connect(behind);
      for (const [one, other] of [[front, back], [back, front]] as const) {
        this.#links.add(one);
        one.on("error", () => undefined);
        void this.#flowing.then(() => one.pipe(other));
        one.on("close", () => {
          this.#links.delete(one);
          other.destroy();
        });
      }
    });
  }

  /** A relay for one test. */
  static async during(test: TestContext, path: string, behind: string): Promise<Relay> {
    const relay = new Relay(path, behind);
    test.after(() => relay.#close());
    await new Promise<void>((done) => relay.#server.listen(path, done));
    return relay;
  }

  /** End every connection, in the middle of whatever it carries. */
  cut(): void {
    for (const link of this.#links) link.destroy();
  }

  /** Take new connections, and pass nothing on until the answer is called. */
  stall(): () => void {
    let flow = (): void => undefined;
    this.#flowing = new Promise((done) => (flow = done));
    return flow;
  }

  async #close(): Promise<void> {
    this.cut();
    await new Promise((done) => this.#server.close(done));
  }
}
