"""The rival of an editor's requests: pygls as its own documentation uses it, answering from lists made beforehand.

    python -m tests.bench.bare SOCKET COUNTS

COUNTS is JSON, how many items each method answers. Nothing is looked up, and nobody's role is asked for.
"""

from __future__ import annotations

import asyncio
import json
import sys
import threading
from typing import Any

from lsprotocol import types
from pygls.io_ import run_async
from pygls.lsp.server import LanguageServer

HERE = types.Range(types.Position(0, 0), types.Position(0, 3))


def items(count: int) -> list[types.CompletionItem]:
    return [
        types.CompletionItem(
            f"chart_{number:04d}.dat", kind=types.CompletionItemKind.File, detail="application/octet-stream",
            label_details=types.CompletionItemLabelDetails(description="turn_100"), sort_text=f"{number:03d}",
            filter_text=f"fi:turn_100.files/chart_{number:04d}.dat", data={"path": f"fi:turn_100.files/{number:04d}"},
            text_edit=types.TextEdit(HERE, f"fi:turn_100.files/chart_{number:04d}.dat"),
        )
        for number in range(count)
    ]  # fmt: skip


def symbols(count: int) -> list[types.WorkspaceSymbol]:
    place = types.Location("file:///out/turn_100/files/chart.dat", HERE)
    kind = types.SymbolKind.File
    return [
        types.WorkspaceSymbol(place, f"chart_{number:04d}.dat", kind, container_name="x") for number in range(count)
    ]


def faults(count: int) -> list[types.Diagnostic]:
    severity = types.DiagnosticSeverity.Warning
    return [
        types.Diagnostic(HERE, "There is no such source.", severity=severity, code="unknown_source", source="bare")
        for _ in range(count)
    ]


def turns(count: int) -> list[dict[str, Any]]:
    return [
        {
            "turn_id": f"turn_{number}",
            "title": "What was asked for",
            "status": "completed",
            "artifacts": 100,
            "calls": [],
        }
        for number in range(count)
    ]


def records(count: int) -> list[dict[str, Any]]:
    fields = (
        "artifact_path",
        "physical_path",
        "name",
        "turn_id",
        "kind",
        "mime",
        "visibility",
        "origin",
        "ts",
        "sha256",
    )
    return [{**dict.fromkeys(fields, f"a value {number}"), "version": 1, "on_disk": True} for number in range(count)]


def server(counts: dict[str, int]) -> LanguageServer:
    made = LanguageServer("bare", "0")
    completions, found = items(counts["completion"]), symbols(counts["symbols"])
    wrong, outline, page = faults(counts["diagnostics"]), turns(counts["outline"]), records(counts["page"])

    @made.feature(types.TEXT_DOCUMENT_COMPLETION)
    def complete(_: types.CompletionParams) -> types.CompletionList:
        return types.CompletionList(is_incomplete=True, items=completions)

    @made.feature(types.WORKSPACE_SYMBOL)
    def symbol(_: types.WorkspaceSymbolParams) -> list[types.WorkspaceSymbol]:
        return found

    @made.feature(types.TEXT_DOCUMENT_DIAGNOSTIC)
    def diagnose(_: types.DocumentDiagnosticParams) -> types.RelatedFullDocumentDiagnosticReport:
        return types.RelatedFullDocumentDiagnosticReport(items=wrong)

    @made.feature("workspace/outline")
    def outlined(_: Any) -> dict[str, Any]:
        return {"revision": 1, "turns": outline, "other": 0}

    @made.feature("artifact/list")
    def listed(_: Any) -> dict[str, Any]:
        return {"artifacts": page, "next_cursor": None}

    return made


async def main(socket: str, counts: str) -> None:
    told = json.loads(counts)

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        made = server(told)
        made.protocol.set_writer(writer)  # type: ignore[arg-type]
        await run_async(threading.Event(), reader, made.protocol)
        writer.close()

    async with await asyncio.start_unix_server(serve, socket, limit=1 << 26) as listening:
        await listening.serve_forever()


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
