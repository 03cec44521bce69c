"""What is wrong with the references of a document: judged here, published or answered by `reporting`."""

from __future__ import annotations

import re
from typing import Any, Literal

from lsprotocol import types

from sidecar.core.paths import FilePath, Path, PoolPath
from sidecar.core.references import is_older_spelling
from sidecar.pacing import Pace
from sidecar.server.editor.documents import Documents, Opened
from sidecar.server.editor.reporting import Reporting
from sidecar.server.editor.seen import Met, Seen, one_line
from sidecar.server.lsp import NAME, Editor, Feature
from sidecar.services import Services

Code = Literal[
    "unknown_source", "unknown_path", "missing_asset", "unsafe_path", "older_spelling", "newer_exists", "not_on_disk"
]
TOLD = 1000  # of one document
NUMBERS_NAMED = 10

_SEVERITY: dict[Code, types.DiagnosticSeverity] = {
    "unsafe_path": types.DiagnosticSeverity.Error,
    "unknown_source": types.DiagnosticSeverity.Warning,
    "unknown_path": types.DiagnosticSeverity.Warning,
    "missing_asset": types.DiagnosticSeverity.Warning,
    "older_spelling": types.DiagnosticSeverity.Information,
    "newer_exists": types.DiagnosticSeverity.Information,
    "not_on_disk": types.DiagnosticSeverity.Information,
}


def features(services: Services, documents: Documents) -> list[Feature]:
    judge = Judge(services, documents)
    return Reporting(services, documents, judge.diagnostics).features()


class Judge:
    """Finds what is wrong, as the client's role sees it."""

    def __init__(self, services: Services, documents: Documents) -> None:
        self._services = services
        self._documents = documents

    async def diagnostics(self, editor: Editor, opened: Opened) -> list[types.Diagnostic]:
        """In order, at most `TOLD` of them."""
        seen = Seen(self._services, editor.client.role)
        await self._documents.names.ready()
        told: list[types.Diagnostic] = []
        pace = Pace()
        for met in await seen.met(opened.references):
            await pace.rest()
            found = self._judged(seen, opened, met)
            if found is not None:
                told.append(_diagnostic(opened, met, *found))
                if len(told) == TOLD:
                    break
        return told

    def _judged(self, seen: Seen, opened: Opened, met: Met) -> tuple[Code, str, dict[str, Any]] | None:
        reference, path = met.reference, met.path
        match met.state:
            case "unsafe":
                return "unsafe_path", "This path leads out of OUT_DIR, or is none that is ever followed.", {}
            case "cited" if reference.numbers is not None:
                return _unknown_numbers(seen.unknown(reference.numbers), bool(seen.rows(reference.numbers, 1)))
            case "unknown":
                return self._unknown(met)
            case "told" if isinstance(path, PoolPath):
                return _unknown_numbers(seen.unknown(path.numbers), True)
            case "gone" if path is not None:
                return "missing_asset", "This file is not on disk, and its bytes are kept nowhere.", _data(path)
            case _ if not isinstance(path, FilePath):
                return None
        if is_older_spelling(reference, path):
            return "older_spelling", f"An older spelling of {path.logical}.", {**_data(path), "by": path.logical}
        newer = newer_than(self._documents, seen, opened, met)
        if newer is not None:
            said = f"There is a newer one of this name: {one_line(newer.physical, 300)}"
            return "newer_exists", said, {**_data(path), "by": newer.physical}
        if met.state == "absent":
            return "not_on_disk", "This file is not on disk; it can be brought back.", _data(path)
        return None

    def _unknown(self, met: Met) -> tuple[Code, str, dict[str, Any]] | None:
        reference, path = met.reference, met.path
        if path is None:
            return None
        if reference.form == "relative":
            if not reference.embedded and not isinstance(path, FilePath):
                return None
            return "missing_asset", "There is no such file in OUT_DIR.", _data(path)
        if isinstance(path, PoolPath):
            return "unknown_source", "None of these sources is known.", _data(path)
        is_ours = reference.form == "logical" or (
            isinstance(path, FilePath) and self._services.workspace.is_turn(path.turn_id)
        )
        if not is_ours or _PATTERN.search(reference.written):
            return None  # other projects have folders called `files`, and prose names whole families of files
        return "unknown_path", "Nothing is known at this path.", _data(path)


def newer_than(documents: Documents, seen: Seen, opened: Opened, met: Met) -> FilePath | None:
    """The newest file of the same name, where a document names the one of an earlier turn.

    A page of a turn is not told of turns that came after it, and means what lies beside it when it says so.
    """
    if not isinstance(met.path, FilePath) or met.reference.form == "relative" or met.artifact is None:
        return None
    home = opened.path.turn_id if opened.path is not None else ""
    for other in documents.names.later(met.path):
        if home and documents.names.is_later(other.turn_id, home):
            continue
        if seen.artifact(other) is not None:
            return other
    return None


def _unknown_numbers(unknown: list[int], has_others: bool) -> tuple[Code, str, dict[str, Any]] | None:
    if not unknown and has_others:
        return None
    if not unknown:
        return "unknown_source", "None of these sources is known.", {}
    named = ", ".join(map(str, unknown[:NUMBERS_NAMED])) + (", …" if len(unknown) > NUMBERS_NAMED else "")
    said = f"There is no source {named}." if len(unknown) == 1 else f"There are no sources {named}."
    return "unknown_source", said, {"sids": unknown[:NUMBERS_NAMED]}


def _data(path: Path) -> dict[str, Any]:
    return {"path": path.logical or (path.physical if isinstance(path, FilePath) else "")}


def _diagnostic(opened: Opened, met: Met, code: Code, said: str, data: dict[str, Any]) -> types.Diagnostic:
    return types.Diagnostic(
        range=opened.range(met.reference.start, met.reference.end),
        message=said,
        severity=_SEVERITY[code],
        code=code,
        source=NAME,
        data=data,
    )


_PATTERN = re.compile(r"[*?{}$…]|\.\.\.")
