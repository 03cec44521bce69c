// The wire as protocol/schema.json declares it, for a judge that shares nothing with the daemon.

import { readFileSync } from "node:fs";
import { join } from "node:path";

import { Ajv2020, type ValidateFunction } from "ajv/dist/2020.js";

import { PROJECT } from "./daemon.js";

interface Row {
  params: { $ref: string };
  result: { $ref: string };
  asked_by: string[];
  fails_with: string[];
  progress: boolean;
}

export interface Declared {
  protocol_version: string;
  methods: Record<string, Row>;
  commands: Record<string, { params: { $ref: string }; result: { $ref: string } }>;
  events: Record<string, { topic: string; params: { $ref: string } }>;
  errors: Array<{ number: number; kind: string; data?: { $ref: string } }>;
}

const NAME = "wire";
const document = JSON.parse(readFileSync(join(PROJECT, "protocol/schema.json"), "utf8")) as Declared & object;
const ajv = new Ajv2020({ strict: false, allErrors: true });
ajv.addSchema({ ...document, $id: NAME });
const compiled = new Map<string, ValidateFunction>();

export const declared: Declared = document;

/** What is wrong with a value, by a type of the schema; empty when nothing is. */
export function faults(reference: { $ref: string }, value: unknown): string[] {
  const validate = compiled.get(reference.$ref) ?? ajv.compile({ $ref: `${NAME}${reference.$ref}` });
  compiled.set(reference.$ref, validate);
  return validate(value) ? [] : (validate.errors ?? []).map((error) => `${error.instancePath}: ${error.message}`);
}
