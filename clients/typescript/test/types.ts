// What the compiler has to say of requests and events; it is compiled, and nothing of it runs.

import type { Client } from "artifact-sidecar-client";

export async function typed(client: Client): Promise<void> {
  const { revision } = await client.request("workspace/status");
  const next: number = revision;
  const { artifacts } = await client.request("artifact/list", { turn_id: "turn_1" });
  const paths: string[] = artifacts.map((artifact) => artifact.artifact_path);
  await client.request("artifact/list");
  await client.request("workspace/sync", {}, { timeout: next, signal: AbortSignal.timeout(1) });
  client.on("sources/added", ({ rows }) => paths.push(rows[0]?.title ?? ""));
  client.on("lost", (why) => paths.push(why.message, String(why.delivered)));
  // @ts-expect-error - params are needed here
  await client.request("artifact/resolve");
  // @ts-expect-error - a list is needed here
  await client.request("artifact/resolve", { paths: "fi:a" });
  // @ts-expect-error - there is no such param
  await client.request("artifact/list", { turn: "turn_1" });
  // @ts-expect-error - there is no such method
  await client.request("artifact/nothing", {});
  // @ts-expect-error - there is no such event
  client.on("artifacts/nothing", () => undefined);
}
