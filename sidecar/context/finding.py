"""Find what an older path, or one of today's, leads to: an artifact, a slot, a message, a file, or rows of the pool."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from sidecar.context.found import Found
from sidecar.context.records import Record, Records
from sidecar.core.artifacts import Artifact
from sidecar.core.blocks import HOSTING_FIELDS
from sidecar.core.context_blocks import Place, file_named, place_at
from sidecar.core.errors import Refusal, StoreUnavailable
from sidecar.core.hosting import Verbatim
from sidecar.core.mime import mime_by_name
from sidecar.core.numbers import print_numbers
from sidecar.core.older_paths import (
    CURRENT,
    Made,
    Named,
    Names,
    OlderRefusal,
    Said,
    Slice,
    Sliced,
    Slotted,
    parse,
    sayable,
    shown,
)
from sidecar.core.older_values import descend, rows_in, sids_in, sliced, text_of
from sidecar.core.paths import FilePath, MessagePath, Path, PoolPath, parse_logical
from sidecar.core.slotting import implied_text
from sidecar.reading import Content, Reader, Window
from sidecar.rehost import Missing
from sidecar.workspace import Workspace


class Finder:
    """Reads paths of both generations. Everything that leads nowhere is an OlderRefusal."""

    def __init__(self, workspace: Workspace, records: Records, reader: Reader) -> None:
        self._workspace = workspace
        self._records = records
        self._reader = reader
        self._named: dict[tuple[str, str], Names] = {}
        self._recorded: dict[str, tuple[dict[str, FilePath], Names]] = {}
        self._names_at = -1

    async def find(self, text: str) -> Found:
        """What stands at a path. Raises OlderRefusal, and JournalUnavailable or ShuttingDown."""
        text = text.strip()
        try:
            if text.startswith(_TODAYS):
                return await self._today(text)
            return await self._older(text)
        except OlderRefusal as refusal:
            raise OlderRefusal(refusal.code, self.respelled(refusal.message)) from refusal
        except StoreUnavailable as refusal:
            raise OlderRefusal("tool_failure", refusal.hint or str(refusal)) from refusal

    def respelled(self, text: str) -> str:
        """A path, or a sentence about one, as an answer may say it: with the turn's own id."""
        return sayable(text, self._records.current_turn) if CURRENT in text else text

    def alias(self, text: str) -> str | None:
        """Today's path of a thing that an older path names in full, turn and all; None for any other text."""
        if not _TURN_LED.match(text):
            return None
        try:
            match parse(text):
                case Said(token, tail):
                    path = MessagePath(self._records.turn(token), tail).logical
                    return path if self._workspace.timeline.at(path) else None
                case Named() as named:
                    found = self._by_name(self._records.turn(named.turn), named)
                    return found[0].logical if found is not None and not found[1] else None
                case Made(token, name, (), None):
                    turn_id = self._records.turn(token)
                    is_told = self._records.index.artifact(turn_id, name) is not None
                    return Place(turn_id, "artifact", name).logical if is_told else None
                case Slotted(token, name, ""):
                    turn_id = self._records.turn(token)
                    is_told = self._records.index.slot(turn_id, name) is not None
                    return Place(turn_id, "slot", name).logical if is_told else None
                case _:
                    return None
        except OlderRefusal:
            return None

    async def _older(self, text: str) -> Found:
        match parse(text):
            case Said(turn, tail, leaf):
                return await self._said(self._records.turn(turn), tail, (leaf,) if leaf else ())
            case Named() as named:
                return await self.named(named)
            case Made(turn, name, leaf, rows):
                return await self._made(self._records.turn(turn), name, leaf, rows)
            case Slotted(turn, name, leaf):
                return await self._slot(self._records.turn(turn), name, leaf)
            case Sliced(rows):
                return self._pool(rows)

    async def _today(self, text: str) -> Found:
        """One of today's paths; `current_turn` is understood in it as well."""
        try:
            path = parse_logical(self.respelled(text))
        except Refusal as refusal:
            raise OlderRefusal("not_found", refusal.hint or str(refusal)) from refusal
        if isinstance(path, PoolPath):
            selection = path.numbers.select(self._workspace.pool.sids)
            return self._rows(selection.found, selection.missing)
        if isinstance(path, FilePath):
            return await self.file(path, ())
        place = place_at(path.logical) if isinstance(path, MessagePath) else None
        if place is not None and place.kind == "artifact":
            return await self._made(place.turn_id, place.name, (), None)
        if place is not None and place.kind == "slot":
            return await self._slot(place.turn_id, place.name, "")
        return await self._told(path)

    async def _said(self, turn_id: str, tail: str, leaf: tuple[str, ...]) -> Found:
        path = MessagePath(turn_id, tail).logical
        block = await self._records.newest(path)
        if block is None or not isinstance(block.get("text"), str):
            raise OlderRefusal("not_found", f"nothing was told at {path}")
        record: Record = {"text": block["text"], "ts": block["ts"], "turn_id": turn_id}
        used = (block.get("meta") or {}).get("sources_used")
        record |= {"sources_used": used} if used else {}
        return Found(path, "message", turn_id, record, block["text"] if leaf else record, leaf)

    async def _made(self, turn_id: str, name: str, leaf: tuple[str, ...], rows: Slice | None) -> Found:
        record = await self._records.artifact(turn_id, name)
        if record is None:
            raise OlderRefusal("not_found", f"{turn_id} has no artifact {name!r}")
        turn_id = record["turn_id"]
        path = Place(turn_id, "artifact", name).logical
        record = {"artifact_path": path, **record}
        file = file_of(record)
        if rows is not None:
            held = rows_in(descend(record, leaf or ("value",)))
            missing = tuple(rows.missing(sids_in(held)))
            return Found(path, "artifact", turn_id, record, sliced(held, rows), leaf, is_sliced=True, missing=missing)
        value = record if not leaf else artifact_leaf(record, leaf)
        return Found(path, "artifact", turn_id, record, value, leaf, file=file)

    async def _slot(self, turn_id: str, name: str, leaf: str) -> Found:
        told = await self._records.slot(turn_id, name)
        if told is None:
            raise OlderRefusal("not_found", f"{turn_id} has no slot {name!r}")
        held = told.get("value")
        value: Record = held if isinstance(held, dict) else {}
        path = Place(turn_id, "slot", name).logical
        record: Record = {"name": name, **value, "slot_path": path, "turn_id": turn_id, "ts": told["ts"]}
        if leaf == "text" and "text" not in record:
            record = {**record, "text": text_of(record["content"])} if "content" in record else record
        if leaf and record.get(leaf) is None:
            raise OlderRefusal("not_found", f"the slot {name!r} has no {leaf}")
        file = file_named(str(value["path"]), turn_id) if value.get("path") else None
        return Found(
            path, "slot", turn_id, record, record[leaf] if leaf else record, (leaf,) if leaf else (), file=file
        )

    async def named(self, named: Named) -> Found:
        """A file of a turn by its name, as it stands or normalised; what a record calls so counts as well."""
        turn_id = self._records.turn(named.turn)
        found = self._by_name(turn_id, named)
        if found is None and named.place == "files":
            by_record, names = await self._recorded_names(turn_id)
            name = names.find(named.name)
            found = (by_record[name[0]], name[1]) if name is not None else None
        if found is None and (exact := _exact(turn_id, named)) is not None and await self.is_there(exact):
            found = exact, ()
        if found is None:
            raise OlderRefusal("not_found", f"{turn_id} has no file {shown(named.name)} among its {named.place}")
        return await self.file(*found)

    def _by_name(self, turn_id: str, named: Named) -> tuple[FilePath, tuple[str, ...]] | None:
        """The known file that is meant, and the leaf behind its name; the latest of those that it may be."""
        exact = _exact(turn_id, named)
        if exact is not None and self._known(exact):
            return exact, ()
        found = self._names(turn_id, named.place).find(named.name)
        return (FilePath(turn_id, named.place, found[0]), found[1]) if found is not None else None

    def _names(self, turn_id: str, place: str) -> Names:
        """What the files of a turn may be called, the latest first. Remembered until something changes."""
        self._forget_old()
        if (turn_id, place) not in self._named:
            artifacts = [one for one in self._workspace.artifacts.of_turn(turn_id) if _is(one)]
            self._named[turn_id, place] = Names(one.path.rel for one in reversed(artifacts) if one.path.place == place)
        return self._named[turn_id, place]

    async def _recorded_names(self, turn_id: str) -> tuple[dict[str, FilePath], Names]:
        """What the records of a turn call its files, the latest first. Remembered until something changes."""
        self._forget_old()
        known = self._recorded.get(turn_id)
        if known is not None:
            return known
        revision = self._workspace.revision
        files: dict[str, FilePath] = {}
        numbers = self._records.about(turn_id)
        for at in range(0, len(numbers), _PAGE):
            for record in await self._records.read(numbers[at : at + _PAGE]):
                for name, path in _names_of(record):
                    files.setdefault(name, path)
        if revision == self._workspace.revision:
            self._recorded[turn_id] = files, Names(files)
        return files, Names(files)

    def _forget_old(self) -> None:
        if self._names_at != self._workspace.revision:
            self._names_at, self._named, self._recorded = self._workspace.revision, {}, {}

    async def file(self, path: FilePath, leaf: tuple[str, ...]) -> Found:
        """A file with what is known of it and, unless only a fact of it was asked, its content."""
        if not HOSTING_FIELDS.isdisjoint(leaf):
            raise OlderRefusal("not_found", f"the file {path.rel!r} has no {shown('.'.join(leaf))}")
        artifact = self._workspace.artifact(path)
        known = self._reader.record(artifact) if artifact is not None and artifact.versions else {}
        record: Record = {
            "artifact_path": path.logical,
            "path": path.physical,
            "physical_path": path.physical,
            "filename": path.rel.rpartition("/")[2],
            "turn_id": path.turn_id,
            "mime": known.get("mime") or mime_by_name(path.physical),
        }
        record |= {key: known[key] for key in _FACTS if known.get(key) not in (None, [])}
        record |= {"summary": known["description"]} if known.get("description") else {}
        record |= {"format": record["filename"].rpartition(".")[2]} if "." in record["filename"] else {}
        told = await self._told_of(path)
        if told is not None:
            record |= {key: told[key] for key in ("artifact_id", "summary", "content_lineage") if told.get(key)}
            record |= {"text": told["text_surrogate"]} if isinstance(told.get("text_surrogate"), str) else {}
        content: Content | None = None
        if not leaf or leaf[0] not in record or not (known or told):
            content = await self._content(path, surrogate="text" in record)
        if content is not None:
            used = await self._reader.sources_used(path, content)
            record |= _content_shown(content, record) | ({"sources_used": used} if used else {})
        if leaf and leaf[0] not in record:
            raise OlderRefusal("not_found", f"the file {path.rel!r} has no {leaf[0]!r}")
        value = descend(record, leaf) if leaf else record
        return Found(path.logical or "", "file", path.turn_id, record, value, leaf, file=path, content=content)

    def _pool(self, rows: Slice) -> Found:
        sids = self._workspace.pool.sids
        return self._rows(rows.select(sids), rows.missing(sids))

    def _rows(self, sids: list[int], missing: Iterable[int]) -> Found:
        """Rows of the pool; a slice of which nothing is there is empty, and no refusal."""
        rows = [row for sid in sids if (row := self._workspace.pool.get(sid)) is not None]
        path = f"so:sources_pool[{print_numbers(sids)}]"
        return Found(path, "rows", "", {"rows": rows}, rows, is_sliced=True, missing=tuple(missing))

    async def _told(self, path: Path) -> Found:
        logical = path.logical or ""
        blocks = [block for _, block in await self._reader.texts(logical)]
        said = [str(block["text"]) for block in blocks if isinstance(block.get("text"), str)]
        if not said:
            raise OlderRefusal("not_found", f"nothing was told at {logical}")
        newest = blocks[-1]
        text = "\n\n".join(said) if logical.startswith("tc:") else said[-1]
        record: Record = {"text": text, "mime": newest["mime"], "ts": newest["ts"], "turn_id": newest["turn_id"]}
        used = (newest.get("meta") or {}).get("sources_used")
        return Found(
            logical, "told", newest["turn_id"], record | ({"sources_used": used} if used else {}), record, file=None
        )

    async def _content(self, path: FilePath, *, surrogate: bool) -> Content | None:
        """What a file holds, brought back first. A file that is away and has a surrogate is known by that."""
        if path.logical is None:
            raise OlderRefusal("not_found", "this file has no logical path")
        try:
            content = await self._reader.told(path) or await self._reader.file(path, Window())
        except Refusal as refusal:
            if refusal.kind in ("unsafe_path", "not_found"):
                raise OlderRefusal("not_found", refusal.hint or str(refusal)) from refusal
            raise
        if not isinstance(content, Missing):
            return content
        if surrogate:
            return None
        if content.reason == "store_unavailable":
            raise OlderRefusal("tool_failure", "the store did not answer")
        raise OlderRefusal("not_found", f"{path.physical} is {content.reason}")

    async def _told_of(self, path: FilePath) -> Record | None:
        """The record of the artifact that a file is, if its turn was told of one."""
        for number in self._records.about(path.turn_id, path.logical) if path.turn_id and path.logical else ():
            (record,) = await self._records.read([number])
            if file_of(record) == path:
                return record
        return None

    def _known(self, path: FilePath) -> bool:
        artifact = self._workspace.artifact(path)
        return artifact is not None and _is(artifact)

    async def is_there(self, path: FilePath) -> bool:
        """Whether anything is known of a file, or it lies on disk."""
        return self._known(path) or await self._is_on_disk(path)

    async def _is_on_disk(self, path: FilePath) -> bool:
        try:
            await self._reader.unregistered(path)
        except Refusal:
            return False
        return self._known(path)


_TURN_LED = re.compile(r"[A-Za-z0-9_-]{1,128}\.(?:user|assistant|attachments?|files|artifacts|slots)(?:[.]|\Z)")
_PAGE = 64  # that many records are held at once
_TODAYS = ("fi:", "ar:", "tc:", "su:", "so:")
_FACTS = ("sid", "size_bytes", "sources_used", "visibility", "sha256", "on_disk")


def file_of(record: Mapping[str, Any]) -> FilePath | None:
    """The file that an artifact of kind `file` is."""
    value = record.get("value")
    if record.get("artifact_kind") != "file" or not isinstance(value, Mapping):
        return None
    return file_named(str(value.get("path") or ""), record["turn_id"])


def artifact_leaf(record: Mapping[str, Any], leaf: tuple[str, ...]) -> Any:
    """What stands at a leaf of an artifact. Its text, path, format, mime and filename may stand in its value."""
    if leaf[0] in record:
        return descend(record, leaf)
    value = record.get("value")
    if isinstance(value, Mapping) and leaf[0] in value and leaf[0] in _VALUES:
        return descend(value, leaf)
    if leaf == ("text",) and (text := implied_text(record)):
        return text
    if leaf == ("filename",) and (file := file_of(record)) is not None:
        return file.rel.rpartition("/")[2]
    raise OlderRefusal("not_found", f"the artifact {record.get('artifact_id')!r} has no {'.'.join(leaf)[:200]}")


_VALUES = ("text", "path", "format", "mime", "filename", "summary", "sources_used")


def _is(artifact: Artifact) -> bool:
    return bool(artifact.versions)


def _exact(turn_id: str, named: Named) -> FilePath | None:
    try:
        return FilePath(turn_id, named.place, named.name)
    except Refusal:
        return None


def _names_of(record: Mapping[str, Any]) -> Iterator[tuple[str, FilePath]]:
    """What a file's artifact may be called: by its path and by its own filename."""
    path = file_of(record)
    if path is None:
        return
    yield path.rel, path
    filename = record["value"].get("filename")
    if isinstance(filename, str) and filename:
        yield filename, path


def _content_shown(content: Content, record: Mapping[str, Any]) -> Record:
    """What of a content stands in a record; a surrogate is what a file says, whatever its bytes are."""
    shown: Record = {"mime": content.mime, "size_bytes": content.size_bytes}
    if content.form == "text" and "text" not in record:
        shown["text"] = Verbatim(content.text)
    elif content.packed is not None:
        shown["base64"] = content.packed.text()
    return shown | ({"truncated": True} if content.truncated else {})
