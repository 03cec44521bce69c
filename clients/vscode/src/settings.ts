/** The settings, read when they are needed, and what the editor knows of its surroundings. */

import { homedir } from "node:os";
import * as vscode from "vscode";
import type { CommandSettings, Surroundings } from "./discovery";

export const SECTION = "artifactSidecar";

export type Notifying = "off" | "onError" | "onWarning" | "always";

export interface Settings extends CommandSettings {
  args: string[];
  outDir: string;
  showNotifications: Notifying;
}

export function settings(): Settings {
  const read = vscode.workspace.getConfiguration(SECTION);
  return {
    path: read.get<string>("path", ""),
    interpreter: read.get<string>("interpreter", ""),
    args: read.get<string[]>("args", []),
    outDir: read.get<string>("outDir", ""),
    showNotifications: read.get<Notifying>("showNotifications", "onError"),
  };
}

/** Settings whose change needs another daemon or another door to it. */
export const STARTING = ["path", "interpreter", "args", "outDir"].map((name) => `${SECTION}.${name}`);

export function surroundings(): Surroundings {
  const folders = vscode.workspace.isTrusted ? (vscode.workspace.workspaceFolders ?? []) : [];
  return {
    env: process.env,
    home: homedir(),
    platform: process.platform,
    folders: folders.filter((folder) => folder.uri.scheme === "file").map((folder) => folder.uri.fsPath),
  };
}

/** Keep a choice where it holds: for this workspace when one is open, else for the user. */
export async function keep(name: string, value: string): Promise<void> {
  const target = vscode.workspace.workspaceFile ?? vscode.workspace.workspaceFolders?.[0]
    ? vscode.ConfigurationTarget.Workspace
    : vscode.ConfigurationTarget.Global;
  await vscode.workspace.getConfiguration(SECTION).update(name, value, target);
}
