/** Messages at the corner of the window, as much of them as the reader wants; all of it is in the output anyway. */

import * as vscode from "vscode";
import { NotRunning, type Session } from "./session";
import { type Notifying, settings } from "./settings";
import type { Notice } from "./wire";

const RANK: Record<Notifying, number> = { off: 0, onError: 1, onWarning: 2, always: 3 };

function wanted(at: Notifying): boolean {
  return RANK[settings().showNotifications] >= RANK[at];
}

/** Say that what somebody asked for failed. It is always said: they wait for it. */
export async function failed(session: Session, what: string, error: unknown): Promise<void> {
  const why = error instanceof Error ? error.message : String(error);
  session.output.error(`${what}: ${why}`);
  const action = error instanceof NotRunning ? "Restart" : "Show Output";
  const chosen = await vscode.window.showErrorMessage(`${what}. ${why}`, action);
  if (chosen !== undefined) {
    await vscode.commands.executeCommand(chosen === "Restart" ? "artifactSidecar.restart" : "artifactSidecar.showOutput");
  }
}

/** Say once per fault that the daemon cannot be reached. */
export function tellFailures(session: Session): vscode.Disposable {
  return session.onDidChange((state) => {
    if (state.kind === "failed" && wanted("onError")) {
      void failed(session, "The artifacts of the agent are not shown", new Error(state.why));
    }
  });
}

const WARNINGS = new Set<Notice["code"]>([
  "watch_lost",
  "watch_degraded",
  "store_unavailable",
  "hosting_failed",
  "over_limit",
  "oversize",
  "conversation_diverged",
  "conversation_incomplete",
]);

export function tellNotices(session: Session): void {
  session.on("notice/posted", ({ notice }) => {
    const warning = WARNINGS.has(notice.code);
    session.output[warning ? "warn" : "info"](`${notice.code}: ${notice.message}`);
    if (warning && wanted("onWarning")) {
      void vscode.window.showWarningMessage(notice.message);
    } else if (!warning && wanted("always")) {
      void vscode.window.showInformationMessage(notice.message);
    }
  });
}
