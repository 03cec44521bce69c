"""Quick fixes: bring a file back, take the newer one, say what was meant instead of what is not there."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator

from lsprotocol import types

from sidecar.core.numbers import NumberSet
from sidecar.core.paths import FilePath, PoolPath
from sidecar.core.references import Reference, is_older_spelling, respelled
from sidecar.server.editor.diagnostics import newer_than
from sidecar.server.editor.documents import Documents, Opened
from sidecar.server.editor.edits import workspace_edit
from sidecar.server.editor.names import ALIKE, closest
from sidecar.server.editor.seen import Met, Seen, one_line, title
from sidecar.server.lsp import NAME, Editor, Feature
from sidecar.services import Services

REHOST = f"{NAME}.rehost"
REFERENCES = 20  # of one range that fixes are looked for
NUMBERS = 3  # unknown ones of one citation

_BRING = "Bring the file back"
_QUICK_FIX = types.CodeActionKind.QuickFix


def features(services: Services, documents: Documents) -> list[Feature]:
    return [Feature(types.TEXT_DOCUMENT_CODE_ACTION, _Fixes(services, documents).actions, _options)]


def _options(capabilities: types.ClientCapabilities) -> types.CodeActionOptions | None:
    text_document = capabilities.text_document
    action = text_document.code_action if text_document is not None else None
    # Without literals a client takes commands alone, and most fixes are edits.
    offered = action is not None and action.code_action_literal_support is not None
    return types.CodeActionOptions(code_action_kinds=[_QUICK_FIX]) if offered else None


class _Fixes:
    def __init__(self, services: Services, documents: Documents) -> None:
        self._services = services
        self._documents = documents

    async def actions(self, editor: Editor, params: types.CodeActionParams) -> list[types.CodeAction]:
        only = params.context.only
        if only and not any(str(getattr(one, "value", one)) in ("", "quickfix") for one in only):
            return []
        opened = await self._documents.opened(editor, params.text_document.uri)
        if opened is None:
            return []
        seen = Seen(self._services, editor.client.role)
        await self._documents.names.ready()
        actions: list[types.CodeAction] = []
        for met in await seen.met(opened.within(params.range)[:REFERENCES]):
            place = opened.range(met.reference.start, met.reference.end)
            about = [one for one in params.context.diagnostics if one.source == NAME and one.range == place]
            async for said, does in self._fixes(seen, opened, met):
                fix = types.CodeAction(said, kind=_QUICK_FIX, diagnostics=about or None)
                if isinstance(does, str):
                    fix.edit = workspace_edit(editor, [(opened, [(met.reference.start, met.reference.end, does)])])
                else:
                    fix.command = does
                actions.append(fix)
        for at, fix in enumerate(actions):
            fix.is_preferred = True if at == 0 and len(actions) == 1 else None
        return actions

    async def _fixes(self, seen: Seen, opened: Opened, met: Met) -> AsyncIterator[tuple[str, str | types.Command]]:
        """Titles, each with the new text of the reference or with a command."""
        reference, path = met.reference, met.path
        numbers = path.numbers if isinstance(path, PoolPath) else reference.numbers
        if numbers is not None:
            if not reference.settled:
                for fix in _citations(seen, reference, numbers):
                    yield fix
            return
        if not isinstance(path, FilePath):
            return
        if is_older_spelling(reference, path) and path.logical is not None:
            yield f"Replace by {one_line(path.logical, 200)}", path.logical
        if met.state == "absent":
            command = types.Command(_BRING, REHOST, arguments=[{"paths": [path.logical or path.physical]}])
            yield _BRING, command
        newer = newer_than(self._documents, seen, opened, met)
        others = [newer] if newer is not None else []
        if met.state in ("unknown", "gone"):
            others = [other for other in await self._alike(seen, path) if other != path]
        for other in others:
            text = respelled(reference, other, opened.folder, instead_of=path)
            yield f"Replace by {one_line(text, 200)}", text

    async def _alike(self, seen: Seen, path: FilePath) -> list[FilePath]:
        """The files that a wrong path may have meant: of the same name elsewhere, then of a similar one."""
        names, last = self._documents.names, path.rel.rpartition("/")[2]
        found = [other for other in names.same_name(last) if seen.artifact(other) is not None]
        if not found:
            similar = await self._services.looker.search(lambda: closest(last, names.like(last)))
            found = [other for name in similar for other in names.same_name(name) if seen.artifact(other) is not None]
        # Those of the turn that was named come first, then those that came last.
        found.reverse()
        return sorted(found, key=lambda other: other.turn_id != path.turn_id)[:ALIKE]


def _citations(seen: Seen, reference: Reference, numbers: NumberSet) -> Iterator[tuple[str, str]]:
    unknown = seen.unknown(numbers)
    rest = tuple(sid for sid in numbers.singles if sid not in unknown)
    for sid in unknown[:NUMBERS]:
        for other in _near(sid):
            row = seen.row(other)
            if row is not None and other not in numbers.singles:
                meant = tuple(other if one == sid else one for one in numbers.singles)
                said = f"Cite [S:{other}] {title(row)} instead of {sid}"
                yield one_line(said, 200), _token(reference, NumberSet(meant, numbers.ranges))
    if unknown and (rest or numbers.ranges):
        named = ", ".join(map(str, unknown[:NUMBERS])) + (", …" if len(unknown) > NUMBERS else "")
        yield f"Remove {named} from the citation", _token(reference, NumberSet(rest, numbers.ranges))
    elif unknown and reference.kind == "citation":
        yield "Remove the citation", ""


def _token(reference: Reference, numbers: NumberSet) -> str:
    listed = str(numbers).replace(" ", "")
    if reference.kind == "citation":
        return f"[[S:{listed}]]"
    return f"{reference.written.partition('[')[0]}[{listed}]"


def _near(sid: int) -> list[int]:
    """The numbers that one slip of the finger makes into this one, the nearest first."""
    text = str(sid)
    slips = {f"{text[:at]}{text[at + 1 :]}" for at in range(len(text))}
    slips |= {f"{text[:at]}{digit}{text[at + 1 :]}" for at in range(len(text)) for digit in "0123456789"}
    slips |= {f"{text[:at]}{digit}{text[at:]}" for at in range(len(text) + 1) for digit in "0123456789"}
    slips |= {f"{text[:at]}{text[at + 1]}{text[at]}{text[at + 2 :]}" for at in range(len(text) - 1)}
    numbers = {int(slip) for slip in slips if slip} - {sid, 0}
    return sorted(numbers, key=lambda number: (abs(number - sid), number))
