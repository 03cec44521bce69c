// Ask the artifact sidecar of a workspace from Node.

export { Client, VERSION } from "./client.js";
export type { ClientEvents, ClientOptions, Params, RequestOptions, Result } from "./client.js";
export { ConnectionLost, NoAnswer, NoSidecar, Refusal, SidecarError } from "./errors.js";
export type { Way } from "./launch.js";
export * from "./protocol.js";
