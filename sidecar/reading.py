"""What stands at a path, as bytes, text or blocks: the common ground of read and fetch."""

from __future__ import annotations

import base64
import hashlib
import io
import time
from dataclasses import dataclass
from typing import Any, BinaryIO, Literal

from sidecar.core import limits
from sidecar.core.artifacts import Artifact, describe
from sidecar.core.blocks import iso
from sidecar.core.citations import extract
from sidecar.core.counting import binary_tokens, count_tokens, text_tokens
from sidecar.core.errors import NotFound
from sidecar.core.inventory import StatKey
from sidecar.core.mime import is_packed, is_text_head, is_textual, mime_by_name, mime_of
from sidecar.core.paths import FilePath
from sidecar.looking import Looker
from sidecar.pieces import Pieces, packed, spelled
from sidecar.ports import OutDir
from sidecar.recall import recall_as_they_stand
from sidecar.rehost import Missing, Rehoster
from sidecar.workspace import Workspace

SHORT_BYTES = 64 * limits.KIB
SHORT_CHARS = 64 * limits.KIB  # a longer text is looked through off the loop


@dataclass(frozen=True, slots=True)
class Content:
    """A file's content as far as an answer may carry it.

    `form` is `text`, `base64`, `bare` for what stays in its file, or `unread` when only its size was asked.
    `lines` says which lines of how many were cut out, as in `3-4/7`; `next_line` is where reading goes on after a cut.
    """

    path: FilePath
    mime: str
    size_bytes: int
    form: Literal["text", "base64", "bare", "unread"]
    text: str = ""
    spelled: Pieces | None = None  # a long text as it goes out
    packed: Pieces | None = None
    truncated: bool = False
    lines: str | None = None
    next_line: int | None = None

    @property
    def tokens(self) -> int:
        """A quarter of the bytes: rounded up for text, down for what is none (spec section 12)."""
        if self.form == "text":
            return count_tokens(self.text)
        is_unread_text = self.form == "unread" and is_textual(self.mime)
        return text_tokens(self.size_bytes) if is_unread_text else binary_tokens(self.size_bytes)


@dataclass(frozen=True, slots=True)
class Held:
    """A file's whole content as a block carries it: text, base64 of a picture or a PDF, or neither."""

    text: str | None = None
    packed: str | None = None

    @property
    def weight(self) -> int:
        return len(self.text or "") + len(self.packed or "")


@dataclass(frozen=True, slots=True)
class Window:
    """Which part of a text is asked for: lines from `start`, `count` of them, at most `max_bytes`."""

    start: int = 1
    count: int | None = None
    max_bytes: int = limits.INLINE_TEXT_BYTES

    @property
    def is_whole(self) -> bool:
        return self.start == 1 and self.count is None


class Reader:
    """Reads files of OUT_DIR and texts of the timeline."""

    def __init__(self, workspace: Workspace, looker: Looker, rehoster: Rehoster, outdir: OutDir) -> None:
        self._workspace = workspace
        self._looker = looker
        self._rehoster = rehoster
        self._outdir = outdir

    async def file(self, path: FilePath, window: Window) -> Content | Missing:
        """The content of a file, brought back first when it is absent. Raises UnsafePath for links and the like."""
        key = self._rehoster.latest_key(path)
        if key is not None and key.size <= SHORT_BYTES:
            # To count the lines of a part takes long enough for a thread.
            raw = self._outdir.bytes_now(path.physical, key) if window.is_whole else None
            if raw is not None:
                return self._content(path, window, io.BytesIO(raw))
            content = await self._looker.off_loop(self._read_as, path, window, key)
            if content is not None:
                return content
        if self._looker.registers(path) or await self._looker.look_at(path) is None:
            brought = await self._rehoster.rehost(path)
            if isinstance(brought, Missing):
                return brought
        try:
            known = self._workspace.files.get(path.physical)
            is_short = known is not None and known.size <= SHORT_BYTES
            read = self._looker.off_loop if is_short else self._looker.read_long
            return await read(self._read, path, window)
        except NotFound:
            return Missing("gone")

    async def held(self, artifact: Artifact, room: int) -> Held:
        """The content of the latest version for a block, where it is short enough and its bytes are at hand.

        `room` is how many bytes may still go into blocks of this change.
        """
        version = artifact.latest
        mime = version.facts.get("mime") or "application/octet-stream"
        most = limits.INLINE_BASE64_BYTES if is_packed(mime) else limits.INLINE_TEXT_BYTES
        if version.sha256 is None or version.size is None or version.size > min(most, room):
            return Held()
        raw = await self._rehoster.at_hand(artifact.path, version.sha256)
        if raw is None:
            return Held()
        if is_packed(mime):
            return Held(packed=base64.b64encode(raw).decode())
        return Held(text=_decode(raw, whole=True))

    async def told(self, path: FilePath) -> Content | None:
        """The text of a display artifact that never was a file: it is answered from the timeline, and stays no file."""
        artifact = self._workspace.artifact(path)
        if artifact is None or artifact.on_disk or not artifact.versions or artifact.latest.seen:
            return None
        held = await self._rehoster.inline(artifact.latest) if "text" in artifact.latest.blocks else None
        if held is None or await self._looker.look_at(path) is not None:
            return None
        mime = artifact.latest.facts.get("mime") or mime_of(path.physical, held[: 4 * limits.KIB])
        return _cut_bytes(path, mime, len(held), held, limits.INLINE_TEXT_BYTES)

    async def known_size(self, path: FilePath) -> Content | Missing:
        """What is known of a file without bringing it: its size and type. Raises UnsafePath."""
        key = await self._looker.look_at(path)
        artifact = self._workspace.artifact(path)
        if artifact is not None and artifact.versions:
            record = describe(artifact, {})
            if key is None and "size_bytes" not in record:
                return Missing("not_hosted")
            return Content(path, record["mime"], record.get("size_bytes", key.size if key else 0), "unread")
        if key is None:
            return Missing("unknown")
        return Content(path, mime_by_name(path.physical), key.size, "unread")

    async def unregistered(self, path: FilePath) -> dict[str, Any] | None:
        """Look at a file that is no artifact yet. It becomes one, or its record is answered when it is readable only.

        None when it became one, when nothing is there, or when somebody still writes to it. Raises UnsafePath.
        """
        key = await self._looker.look_at(path)
        if key is None or self._workspace.artifact(path) is not None or self._looker.registers(path):
            return None
        sha256, mime = await self._looker.off_loop(self._fingerprint, path)
        record: dict[str, Any] = {
            "artifact_path": path.logical,
            "physical_path": path.physical,
            "name": path.rel.rpartition("/")[2],
            **({"turn_id": path.turn_id} if path.turn_id else {}),
            "kind": "file",
            "mime": mime,
            "visibility": "external",
            "edited": False,
            "version": 1,
            "origin": "seen",
            "on_disk": True,
            "hidden": False,
            "size_bytes": key.size,
            "ts": iso(key.mtime_ns / 1e9),
            "sources_used": [],
        }
        return record | ({"sha256": sha256} if sha256 is not None else {})

    def now(self) -> str:
        return iso(time.time())

    async def texts(self, logical: str) -> list[tuple[int, dict[str, Any]]]:
        """The blocks at a path that is no file with their numbers, oldest first, as they stand."""
        numbers = [*self._workspace.timeline.at(logical)]  # which grows while they are read
        if not numbers:
            return []
        return [*zip(numbers, await recall_as_they_stand(self._workspace, self._looker, numbers), strict=True)]

    async def sources_used(self, path: FilePath, content: Content) -> list[int]:
        """The sources cited in a text, ascending; what was told of the artifact wins over what is found in it."""
        artifact = self._workspace.artifact(path)
        told = artifact.latest.facts.get("sources_used") if artifact is not None and artifact.versions else None
        if isinstance(told, list):
            return sorted({sid for sid in told if isinstance(sid, int)})
        if content.form != "text":
            return []
        sids = self._workspace.pool.sids
        if len(content.text) <= SHORT_CHARS:
            return extract(content.text, content.mime, sids)
        sids = tuple(sids)
        return await self._looker.search(lambda: extract(content.text, content.mime, sids))

    def record(self, artifact: Artifact) -> dict[str, Any]:
        """The artifact record as the wire has it, whole."""
        return describe(artifact, self._workspace.timeline.tools)

    def _fingerprint(self, path: FilePath) -> tuple[str | None, str]:
        with self._outdir.open(path.physical) as stream:
            head = stream.read(4 * limits.KIB)
            mime = mime_of(path.physical, head)
            if stream.seek(0, 2) > limits.HASHED_BYTES:
                return None, mime
            stream.seek(0)
            return hashlib.file_digest(stream, "sha256").hexdigest(), mime

    def _read_as(self, path: FilePath, window: Window, key: StatKey) -> Content | None:
        """Read the file if this very state of it stands there: one step for what is asked most. Blocking."""
        raw = self._outdir.bytes_of(path.physical, key)
        return self._content(path, window, io.BytesIO(raw)) if raw is not None else None

    def _read(self, path: FilePath, window: Window) -> Content:
        with self._outdir.open(path.physical) as stream:
            return self._content(path, window, stream)

    def _content(self, path: FilePath, window: Window, stream: BinaryIO) -> Content:
        head = stream.read(4 * limits.KIB)
        mime = self._mime(path, head)
        size = stream.seek(0, 2)
        stream.seek(0)
        if is_packed(mime):
            if size > limits.INLINE_BASE64_BYTES:
                return Content(path, mime, size, "bare", truncated=True)
            return Content(path, mime, size, "base64", packed=packed(stream))
        if not is_text_head(head) and size:
            return Content(path, mime, size, "bare")
        if window.is_whole:
            return _cut_bytes(path, mime, size, stream.read(window.max_bytes + 4), window.max_bytes)
        return _cut_lines(path, mime, size, stream, window)

    def _mime(self, path: FilePath, head: bytes) -> str:
        artifact = self._workspace.artifact(path)
        told = artifact.latest.facts.get("mime") if artifact is not None and artifact.versions else None
        return told or mime_of(path.physical, head)


def _cut_bytes(path: FilePath, mime: str, size: int, head: bytes, max_bytes: int) -> Content:
    whole = len(head) <= max_bytes
    kept = head if whole else head[:max_bytes]
    text = _decode(kept, whole=whole)
    if text is None:
        return Content(path, mime, size, "bare")
    if whole:
        return _as_text(path, mime, size, text)
    # Reading goes on with the line that was cut, unless it is the only one: then it would be cut again.
    return _as_text(path, mime, size, text, truncated=True, next_line=max(text.count("\n") + 1, 2))


def _as_text(path: FilePath, mime: str, size: int, text: str, **cut: Any) -> Content:
    long = spelled(text) if len(text) > SHORT_CHARS else None
    return Content(path, mime, size, "text", text=text, spelled=long, **cut)


def _cut_lines(path: FilePath, mime: str, size: int, stream: Any, window: Window) -> Content:
    """Lines are counted to the end, so that an answer can say how many there are; only the window is held."""
    wanted: list[bytes] = []
    taken = total = 0
    last = window.start + (window.count or 2**53) - 1
    truncated = False
    fresh = True
    while piece := stream.readline(limits.MIB):  # a line may be as long as the file
        total += fresh
        fresh = piece.endswith(b"\n")
        if window.start <= total <= last and not truncated:
            truncated = taken + len(piece) > window.max_bytes
            if not truncated:
                wanted.append(piece)
            elif not wanted:
                wanted.append(piece[: window.max_bytes])  # a line longer than the answer may be is shown in part
            taken += len(piece)
    text = _decode(b"".join(wanted), whole=not truncated)
    if text is None:
        return Content(path, mime, size, "bare")
    end = window.start + text.count("\n") - (1 if text.endswith("\n") or not text else 0)
    return _as_text(
        path, mime, size, text, truncated=truncated,
        lines=f"{window.start}-{end}/{total}", next_line=end + 1 if truncated else None,
    )  # fmt: skip


def _decode(held: bytes, *, whole: bool) -> str | None:
    """UTF-8 without NUL is text; a cut may fall inside a character, which then is left for the next read."""
    if b"\0" in held:
        return None
    try:
        return held.decode()
    except UnicodeDecodeError as fault:
        if not whole and fault.start >= len(held) - 3:
            return held[: fault.start].decode()
        return None
