/** Draws the nodes of the tree: label, description, icon, tooltip, and what a screen reader says. */

import * as vscode from "vscode";
import { count, joined, moment, size } from "../phrases";
import { previewOf } from "../preview/kinds";
import { type Artifact, nameOf } from "../wire";
import { type ArtifactNode, type CallNode, type MoreNode, type Node, type OtherNode, type TurnNode, type VersionNode, rowId } from "./nodes";

const { None, Collapsed, Expanded } = vscode.TreeItemCollapsibleState;

export function row(node: Node): vscode.TreeItem {
  const item = drawn(node);
  item.id = rowId(node);
  return item;
}

function drawn(node: Node): vscode.TreeItem {
  switch (node.kind) {
    case "turn":
      return turnRow(node);
    case "call":
      return callRow(node);
    case "other":
      return otherRow(node);
    case "artifact":
      return artifactRow(node);
    case "version":
      return versionRow(node);
    case "more":
      return moreRow(node);
  }
}

function turnRow({ turn, newest }: TurnNode): vscode.TreeItem {
  const item = new vscode.TreeItem(turn.title || turn.turn_id, turn.artifacts === 0 ? None : newest ? Expanded : Collapsed);
  const open = turn.status === "open";
  item.description = joined(turn.artifacts.toLocaleString("en"), open && "open", turn.title ? turn.turn_id : "");
  item.iconPath = open
    ? new vscode.ThemeIcon("record", new vscode.ThemeColor("charts.green"))
    : new vscode.ThemeIcon("comment-discussion");
  item.tooltip = lines(`**${plain(turn.title || turn.turn_id)}**`, [
    ["turn", turn.turn_id],
    ["began", moment(turn.ts)],
    ["state", turn.status],
    ["holds", joined(count(turn.artifacts, "artifact"), count(turn.calls.length, "call"))],
  ]);
  item.contextValue = "turn";
  item.accessibilityInformation = { label: spoken(turn.title || turn.turn_id, "turn", count(turn.artifacts, "artifact")) };
  return item;
}

function callRow({ call, open }: CallNode): vscode.TreeItem {
  const item = new vscode.TreeItem(call.tool_id ?? call.tool_call_id, open ? Expanded : Collapsed);
  item.description = joined(call.artifacts.toLocaleString("en"));
  item.iconPath = new vscode.ThemeIcon("tools");
  item.tooltip = lines(`**${plain(call.tool_id ?? "call")}**`, [
    ["call", call.tool_call_id],
    ["made", count(call.artifacts, "artifact")],
  ]);
  item.contextValue = "call";
  item.accessibilityInformation = {
    label: spoken(call.tool_id ?? call.tool_call_id, "call", count(call.artifacts, "artifact")),
  };
  return item;
}

function otherRow(node: OtherNode): vscode.TreeItem {
  const item = new vscode.TreeItem("Other files", Collapsed);
  item.description = node.artifacts.toLocaleString("en");
  item.iconPath = new vscode.ThemeIcon("files");
  item.tooltip = "What lies in OUT_DIR and belongs to no turn.";
  item.contextValue = "other";
  item.accessibilityInformation = { label: spoken("Other files", count(node.artifacts, "artifact")) };
  return item;
}

function artifactRow(node: ArtifactNode): vscode.TreeItem {
  const { artifact } = node;
  const name = nameOf(artifact);
  const item = new vscode.TreeItem(name, artifact.version > 1 ? Collapsed : None);
  const states = stateOf(artifact);
  const sid = artifact.sid === undefined ? "" : `S:${artifact.sid}`;
  item.description = joined(sid, size(artifact.size_bytes), artifact.version > 1 && `v${artifact.version}`, ...states);
  item.iconPath = icon(artifact);
  item.tooltip = card(name, artifact, states);
  item.contextValue = contextOf(artifact);
  item.command = { command: "artifactSidecar.open", title: "Open", arguments: [node] };
  item.accessibilityInformation = {
    label: spoken(
      name,
      artifact.sid === undefined ? "" : `source ${artifact.sid}`,
      size(artifact.size_bytes),
      artifact.version > 1 ? count(artifact.version, "version") : "",
      ...states,
    ),
  };
  return item;
}

function versionRow(node: VersionNode): vscode.TreeItem {
  const { version, parent } = node;
  const item = new vscode.TreeItem(`Version ${version.version}`, None);
  item.description = joined(node.latest && "latest", moment(version.ts), size(version.size_bytes));
  item.iconPath = new vscode.ThemeIcon(node.latest ? "circle-filled" : "circle-outline");
  item.tooltip = lines(`**Version ${version.version}** of ${plain(nameOf(parent.artifact))}`, [
    ["made", moment(version.ts)],
    ["by call", version.tool_call_id],
    ["size", size(version.size_bytes)],
    ["bytes", version.kept === false ? "were not put aside" : undefined],
  ]);
  item.contextValue = joined("version", node.before !== undefined && "comparable").replace(" · ", " ");
  item.command = { command: "artifactSidecar.open", title: "Open", arguments: [node] };
  item.accessibilityInformation = {
    label: spoken(`Version ${version.version}`, `of ${nameOf(parent.artifact)}`, node.latest ? "latest" : "", moment(version.ts)),
  };
  return item;
}

function moreRow(node: MoreNode): vscode.TreeItem {
  const item = new vscode.TreeItem("Show more…", None);
  item.description = `${node.left.toLocaleString("en")} left`;
  item.iconPath = new vscode.ThemeIcon("ellipsis");
  item.command = { command: "artifactSidecar.fetchMore", title: "Show More", arguments: [node] };
  item.contextValue = "more";
  item.accessibilityInformation = { label: spoken("Show more artifacts", item.description) };
  return item;
}

/** What is unusual about an artifact, in a word each. */
function stateOf(artifact: Artifact): string[] {
  const file = artifact.physical_path !== undefined;
  return [
    file && !artifact.on_disk ? "not on disk" : "",
    artifact.hidden ? "hidden from the agent" : "",
    artifact.incomplete ? "incomplete" : "",
    artifact.error === undefined ? "" : "failed",
  ].filter((state) => state !== "");
}

/** Words that menus ask for. */
function contextOf(artifact: Artifact): string {
  const file = artifact.physical_path !== undefined;
  return [
    "artifact",
    file ? "file" : "",
    file && !artifact.on_disk ? "absent" : "",
    artifact.version > 1 ? "several comparable" : "",
    previewOf(artifact.mime) === undefined ? "" : "previewable",
  ]
    .filter((word) => word !== "")
    .join(" ");
}

const FAMILIES: [RegExp, string][] = [
  [/^image\//, "file-media"],
  [/^(audio|video)\//, "play-circle"],
  [/^application\/pdf/, "file-pdf"],
  [/^text\/markdown/, "markdown"],
  [/csv|tab-separated|spreadsheet|excel/, "table"],
  [/json|yaml|toml/, "json"],
  [/^text\/html/, "globe"],
  [/zip|tar|compressed|gzip|octet-stream/, "file-zip"],
  [/python|javascript|typescript|x-sh|xml|css|sql/, "file-code"],
  [/presentation|powerpoint/, "preview"],
];

/** By media type. What is not on the disk looks paler, what went wrong looks so. */
function icon(artifact: Artifact): vscode.ThemeIcon {
  const family = FAMILIES.find(([pattern]) => pattern.test(artifact.mime))?.[1];
  const name = family ?? (artifact.mime.startsWith("text/") ? "file-text" : "file");
  if (artifact.error !== undefined || artifact.incomplete) {
    return new vscode.ThemeIcon("warning", new vscode.ThemeColor("list.warningForeground"));
  }
  const absent = artifact.physical_path !== undefined && !artifact.on_disk;
  return new vscode.ThemeIcon(name, absent || artifact.hidden ? new vscode.ThemeColor("disabledForeground") : undefined);
}

function card(name: string, artifact: Artifact, states: string[]): vscode.MarkdownString {
  return lines(`**${plain(name)}**${artifact.description ? `\n\n${plain(artifact.description)}` : ""}`, [
    ["path", artifact.physical_path ?? artifact.artifact_path],
    ["type", artifact.mime],
    ["size", size(artifact.size_bytes)],
    ["source", artifact.sid === undefined ? undefined : `number ${artifact.sid}`],
    ["version", artifact.version > 1 ? String(artifact.version) : undefined],
    ["made", joined(moment(artifact.ts), artifact.tool_id)],
    ["state", states.join(", ")],
  ]);
}

/** A heading and a small table of what is known; all of it is taken as text, whatever an agent wrote into it. */
function lines(heading: string, facts: [string, string | undefined][]): vscode.MarkdownString {
  const told = facts.filter(([, value]) => value !== undefined && value !== "");
  const table = told.map(([name, value]) => `| ${name} | ${plain(value ?? "")} |`).join("\n");
  const text = new vscode.MarkdownString(`${heading}\n\n| | |\n|:--|:--|\n${table}`);
  text.isTrusted = false;
  text.supportHtml = false;
  return text;
}

/** Markdown that shows a text as it is. */
export function plain(text: string): string {
  return text.replace(/\s+/g, " ").replace(/[\\`*_{}[\]()#+\-.!|<>~:@&$]/g, "\\$&");
}

function spoken(...pieces: string[]): string {
  return pieces.filter((piece) => piece !== "").join(", ");
}
