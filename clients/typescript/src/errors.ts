// Everything that can keep the sidecar from answering, as a small tree of errors.

import type { InvalidParams, ParamsFault, RefusalKind } from "./protocol.js";

/** Anything that kept the sidecar from answering. */
export class SidecarError extends Error {
  override get name(): string {
    return this.constructor.name;
  }
}

/** Nothing offers a sidecar here. The message names everything that was looked for. */
export class NoSidecar extends SidecarError {}

/** The deadline passed. The sidecar was told to stop; a late answer meets nobody. */
export class NoAnswer extends SidecarError {}

/** The connection ended before the answer came. Repeated with the same `request_id`, a change is made only once. */
export class ConnectionLost extends SidecarError {
  /** @param delivered false when the sidecar cannot have got the whole message */
  constructor(
    message: string,
    readonly delivered = true,
  ) {
    super(message);
  }
}

/** The sidecar answered with an error. `kind`, `about` and `hint` are empty for faults of the protocol itself. */
export class Refusal extends SidecarError {
  readonly kind: RefusalKind | "";
  readonly about: string;
  readonly hint: string;

  /** @param data the error's data as it came: of a refusal, of wrong params, of an incident, or nothing */
  constructor(
    readonly code: number,
    message: string,
    readonly data: Readonly<Record<string, unknown>> = {},
  ) {
    const said = (field: string): string => String(data[field] ?? "");
    const faults = ((data as Partial<InvalidParams>).faults ?? []).map(inWords);
    const told = [message.replace(/\.$/, ""), said("about"), said("hint"), said("incident"), ...faults];
    super(told.filter(Boolean).join("; "));
    this.kind = said("kind") as RefusalKind | "";
    this.about = said("about");
    this.hint = said("hint");
  }
}

function inWords(fault: ParamsFault): string {
  return `${fault.where}: ${fault.problem}`;
}
