"""What programs were and what they made, as two archives for every call that ran one: `pkg.zip` and `out.zip`.

The same contents make the same bytes: entries are in order, and have neither times nor modes of their own. Nothing
internal goes in, nor more than an archive may hold; what had to stay out is listed.
"""

from __future__ import annotations

import hashlib
import io
import logging
import tempfile
import zipfile
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import IO, Any, BinaryIO

import orjson

from sidecar.conversation.archive import Archive
from sidecar.core import limits
from sidecar.core.artifacts import Artifact, Version
from sidecar.core.blocks import CALL, FLAGS, INTERNAL, PATH, TYPE
from sidecar.core.conversation_names import execution_key
from sidecar.core.errors import NotFound, UnsafePath
from sidecar.core.mime import mime_by_name
from sidecar.core.paths import CodePath, parse
from sidecar.core.standing import as_it_stands, changes_since
from sidecar.hosting import Hosting
from sidecar.looking import Looker
from sidecar.ports import Blobs, OutDir, Store
from sidecar.workspace import Workspace

log = logging.getLogger(__name__)

PROGRAMS = "executed_programs"
LEFT_OUT = frozenset({".git", "__pycache__", "node_modules", ".pytest_cache", ".venv", "debug"})
CHUNK = 1024 * 1024
OUT, PKG = "out", "pkg"
_MIME = "application/zip"
_NO_TIME = (1980, 1, 1, 0, 0, 0)  # the first that an archive can name
_MODE = 0o100644 << 16


@dataclass(frozen=True, slots=True)
class _File:
    """A file for an archive: what is known of it, and how its bytes are had. `open_it` raises NotFound."""

    path: str
    size: int
    about: Mapping[str, Any]
    open_it: Callable[[], BinaryIO]


@dataclass(frozen=True, slots=True)
class _Program:
    """What is to be archived of one call."""

    exec_id: str
    call_id: str
    files: Mapping[str, Sequence[_File]]  # by archive


@dataclass(slots=True)
class _Packed:
    """What went into an archive, and what stayed out of it."""

    files: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    left_out: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])

    def manifest(self, name: str) -> dict[str, Any]:
        return {"dir": name, "files": self.files, "file_count": len(self.files), "left_out": self.left_out}


class Executions:
    """Archives the programs of a turn. Without a store, or where nobody wants it, there is nothing to do."""

    def __init__(
        self, workspace: Workspace, looker: Looker, outdir: OutDir, blobs: Blobs, archive: Archive, hosting: Hosting
    ) -> None:
        self._workspace = workspace
        self._looker = looker
        self._outdir = outdir
        self._blobs = blobs
        self._archive = archive
        self._hosting = hosting

    async def keep(
        self, turn_id: str, made: Iterable[Artifact], known: Callable[[], Awaitable[Sequence[Any]]]
    ) -> list[dict[str, Any]]:
        """`{exec_id, tool_call_id, out, pkg}` for every program of a turn, once its archives stand in the store.

        `made` are the files of the turn. `known` is asked, where there is any program, for what an earlier save of the
        turn answered: archives of the same files are not made again. Raises StoreUnavailable.
        """
        programs = await self._programs(turn_id, list(made))
        if not programs:
            return []
        before = {one.get("exec_id"): one for one in await known() if isinstance(one, dict)}
        return [await self._keep(turn_id, program, before.get(program.exec_id)) for program in programs]

    async def _keep(self, turn_id: str, program: _Program, before: Any) -> dict[str, Any]:
        kept: dict[str, Any] = {"exec_id": program.exec_id, "tool_call_id": program.call_id}
        for name, files in program.files.items():
            known = before.get(name) if isinstance(before, dict) else None
            if _is_of(known, files):
                kept[name] = known
            else:
                key = execution_key(self._archive.identity, turn_id, program.exec_id, f"{name}.zip")
                kept[name] = await self._hosting.ask(self._store, key, name, files)
        return kept

    def _store(self, key: str, name: str, files: Sequence[_File]) -> dict[str, Any]:
        """Make an archive and put it under its key; answers its manifest, and where it is. Blocking."""
        store = self._hosting.store
        assert store is not None
        try:
            return self._packed(store, key, name, files)
        except OSError as fault:
            log.warning("%s could not be made: %s", key, fault)
            left_out = [{"path": file.path, "size": file.size, "reason": "no_room"} for file in files]
            return _Packed(left_out=left_out[: limits.ARCHIVE_ENTRIES]).manifest(name)

    def _packed(self, store: Store, key: str, name: str, files: Sequence[_File]) -> dict[str, Any]:
        with tempfile.TemporaryFile() as body:
            packed = _pack(body, name, files)
            size = body.tell()
            body.seek(0)
            sha256 = hashlib.file_digest(body, "sha256").hexdigest()
            body.seek(0)
            try:
                store.put(key, body, size=size, sha256=sha256, mime=_MIME)
            except ValueError:
                # The layout leaves one name for it: a save that was not finished, or files that changed since.
                store.delete([key])
                body.seek(0)
                store.put(key, body, size=size, sha256=sha256, mime=_MIME)
        return {**packed.manifest(name), "key": key, "url": store.uri(key), "size": size, "sha256": sha256}

    # What belongs to a program ---------------------------------------------------------------------------------------

    async def _programs(self, turn_id: str, made: Sequence[Artifact]) -> list[_Program]:
        workspace = self._workspace
        heads = workspace.timeline.heads
        codes: dict[str, int] = {}
        calls: dict[str, None] = {}
        for number in workspace.timeline.of_turn(turn_id):
            head = heads[number]
            calls[head[CALL]] = None
            if head[TYPE] == "react.tool.code" and not head[FLAGS] & INTERNAL and (call := _call_of_code(head[PATH])):
                codes[call] = number
        if not codes and calls.keys() <= {""}:
            return []
        survey = await self._looker.off_loop(self._outdir.survey, PROGRAMS)
        folders = {path.split("/")[1] for path in survey.files if path.count("/") >= 2}
        ran = {call: [name for name in (call, f"exec_{call}") if name in folders] for call in calls if call}
        programs: list[_Program] = []
        for call in dict.fromkeys([*codes, *(call for call, names in ran.items() if names)]):
            within = tuple(f"{PROGRAMS}/{name}/" for name in ran.get(call, ()))
            sizes = {path: key.size for path, key in survey.files.items() if path.startswith(within)} if within else {}
            code = await self._code(codes[call]) if call in codes else None
            pkg = [*([code] if code is not None else []), *await self._on_disk(sizes)]
            files = {OUT: self._produced(call, made), PKG: sorted(pkg, key=lambda file: file.path.encode())}
            programs.append(_Program(f"exec_{call}", call, files))
        return programs

    async def _code(self, number: int) -> _File | None:
        """The program as it was told."""
        workspace = self._workspace
        changes = changes_since(workspace.timeline, workspace.artifacts, number)
        (body,) = await self._looker.off_loop(workspace.bodies, [number])
        block = orjson.loads(as_it_stands(body, changes))
        text = block.get("text")
        if not isinstance(text, str):
            return None
        told = text.encode("utf-8", "surrogatepass")
        mime = str(block.get("mime") or "text/plain")
        name = f"main{_extension((block.get('meta') or {}).get('lang'), mime)}"
        about = {"sha256": hashlib.sha256(told).hexdigest(), "mime": mime, "kind": "program"}
        return _File(name, len(told), about, lambda: io.BytesIO(told))

    async def _on_disk(self, sizes: Mapping[str, int]) -> list[_File]:
        """Files beside a program, as they stand in OUT_DIR; what is left out by its name is not looked at."""
        paths = [path for path in sizes if LEFT_OUT.isdisjoint(path.split("/"))]
        return await self._looker.off_loop(lambda: list(self._hashed(paths, sizes)))

    def _hashed(self, paths: Iterable[str], sizes: Mapping[str, int]) -> Iterator[_File]:
        room, entries = limits.ARCHIVE_BYTES, limits.ARCHIVE_ENTRIES
        for path in sorted(paths, key=str.encode):
            sha256, size = None, sizes[path]
            if size <= room and entries > 0:  # what has no place in the archive need not be read
                try:
                    with self._outdir.open(path) as body:
                        sha256 = hashlib.file_digest(body, "sha256").hexdigest()
                        size = body.tell()
                except (NotFound, UnsafePath, OSError):
                    continue  # it is gone, or no file any more
                room, entries = room - size, entries - 1
            about = {"sha256": sha256, "mime": mime_by_name(path), "kind": "program"}
            yield _File(path, size, about, lambda path=path: self._outdir.open(path))

    def _produced(self, call: str, made: Iterable[Artifact]) -> list[_File]:
        """The external files that a call produced, each in the latest state that it gave them."""
        files: list[_File] = []
        for artifact in made:
            version = next((one for one in reversed(artifact.versions) if one.seen and one.call == call), None)
            if version is None or version.sha256 is None or artifact.visibility != "external":
                continue
            if LEFT_OUT.isdisjoint(artifact.path.physical.split("/")):
                physical = artifact.path.physical
                files.append(
                    _File(physical, version.size or 0, _about(version), self._opener(physical, version.sha256))
                )
        return sorted(files, key=lambda file: file.path.encode())

    def _opener(self, physical: str, sha256: str) -> Callable[[], BinaryIO]:
        """The bytes of a file from what is kept, else from OUT_DIR, where they may be others by now."""

        def open_it() -> BinaryIO:
            try:
                return self._blobs.open(sha256)
            except NotFound:
                return self._outdir.open(physical)

        return open_it


def _pack(body: IO[bytes], name: str, files: Sequence[_File]) -> _Packed:
    """Write an archive of these files with its manifest. Blocking.

    Bytes that are not those that are known are not taken for them.
    """
    packed = _Packed()
    room, entries = limits.ARCHIVE_BYTES, limits.ARCHIVE_ENTRIES
    with zipfile.ZipFile(body, "w", zipfile.ZIP_DEFLATED) as archive:
        for file in files:
            if file.size > room or entries == 0:
                packed.left_out.append({"path": file.path, "size": file.size, "reason": "too_much"})
                continue
            with tempfile.SpooledTemporaryFile(CHUNK) as copy:
                found = _copy(file, copy)
                if found != (file.size, file.about["sha256"]):
                    packed.left_out.append({"path": file.path, "size": file.size, "reason": "gone"})
                    continue
                copy.seek(0)
                with archive.open(_entry(file.path), "w") as entry:
                    while chunk := copy.read(CHUNK):
                        entry.write(chunk)
            room, entries = room - file.size, entries - 1
            packed.files.append({"path": file.path, "size": file.size, **file.about})
        packed.left_out = packed.left_out[: limits.ARCHIVE_ENTRIES]
        archive.writestr(_entry("manifest.json"), orjson.dumps(packed.manifest(name), option=orjson.OPT_INDENT_2))
    return packed


def _copy(file: _File, copy: IO[bytes]) -> tuple[int, str] | None:
    """Copy a file and answer its size and hash; None when it cannot be had."""
    hashing, size = hashlib.sha256(), 0
    try:
        with file.open_it() as opened:
            while chunk := opened.read(CHUNK):
                hashing.update(chunk)
                size += len(chunk)
                if size > file.size:
                    return None
                copy.write(chunk)
    except (NotFound, UnsafePath, OSError):
        return None
    return size, hashing.hexdigest()


def _entry(path: str) -> zipfile.ZipInfo:
    entry = zipfile.ZipInfo(path, _NO_TIME)
    entry.compress_type = zipfile.ZIP_DEFLATED
    entry.create_system = 3
    entry.external_attr = _MODE
    return entry


def _about(version: Version) -> dict[str, Any]:
    """What a manifest says of a file that was produced: its hash, and where it is hosted, if it is."""
    facts = version.facts
    about = {
        "key": facts.get("key"),
        "url": facts.get("hosted_uri"),
        "rn": facts.get("rn"),
        "sha256": version.sha256,
        "mime": facts.get("mime"),
        "kind": facts.get("kind") or "file",
    }
    return {name: value for name, value in about.items() if value is not None}


def _is_of(known: Any, files: Sequence[_File]) -> bool:
    """Whether an archive that is known was made of these very files."""
    if not isinstance(known, dict) or not isinstance(known.get("files"), list):
        return False
    told = [*known["files"], *(known.get("left_out") or [])]
    listed = {(one.get("path"), one.get("size")) for one in told if isinstance(one, dict)}
    hashes = {one.get("sha256") for one in known["files"] if isinstance(one, dict)}
    wanted = {file.about["sha256"] for file in files if file.about["sha256"] is not None}
    return listed == {(file.path, file.size) for file in files} and hashes <= wanted


def _call_of_code(path: str) -> str:
    parsed = parse(path) if path else None
    return parsed.call_id if isinstance(parsed, CodePath) else ""


def _extension(lang: Any, mime: str) -> str:
    """How a program's file ends: by its language, else by its type."""
    known = str(lang or "").strip().lower() or mime.partition(";")[0].strip().lower()
    return _EXTENSIONS.get(known, ".py" if not lang and mime.startswith("text/") else ".txt")


_EXTENSIONS = {
    **dict.fromkeys(("python", "py", "python3", "text/x-python", "application/x-python"), ".py"),
    **dict.fromkeys(("javascript", "js", "node", "text/javascript", "application/javascript"), ".js"),
    **dict.fromkeys(("typescript", "ts"), ".ts"),
    **dict.fromkeys(("bash", "sh", "shell", "text/x-shellscript", "application/x-sh"), ".sh"),
    **dict.fromkeys(("r", "text/x-r"), ".r"),
    **dict.fromkeys(("sql", "application/sql"), ".sql"),
}
