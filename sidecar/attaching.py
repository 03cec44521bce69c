"""What the user attached to a turn: laid into OUT_DIR under a name of its own, registered, and told of."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import io
import logging
import os
import secrets
from collections.abc import AsyncGenerator, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, asynccontextmanager
from dataclasses import dataclass, replace
from typing import BinaryIO

import orjson

from sidecar.core import limits
from sidecar.core.blocks import Defaults, iso, tell
from sidecar.core.entries import BlockTold
from sidecar.core.errors import BadPath, NotFound, NotPermitted, Refusal, StoreUnavailable, TooLarge, UnsafePath
from sidecar.core.inventory import FileFact, StatKey
from sidecar.core.mime import is_packed, mime_of
from sidecar.core.paths import FilePath, parse
from sidecar.looking import Looker
from sidecar.ports import Blobs, OutDir
from sidecar.workspace import Workspace

log = logging.getLogger(__name__)

BUSY_TRIES = 50
BUSY_REST = 0.02
NAMES_TRIED = 1000
CHUNK = 1024 * 1024


@dataclass(frozen=True, slots=True)
class Attachment:
    """One attachment as it was given: a name, and exactly one of `path`, `packed` (base64) and `text`."""

    name: str
    mime: str | None = None
    summary: str | None = None
    path: str | None = None
    packed: str | None = None
    text: str | None = None


@dataclass(frozen=True, slots=True)
class Attached:
    """An attachment that stands in OUT_DIR, and the blocks that tell of it."""

    path: FilePath
    fact: FileFact
    told: tuple[BlockTold, ...]


class Laid:
    """Attachments that stand in OUT_DIR for now: they go again, unless their turn is told and `keep` is called."""

    def __init__(self) -> None:
        self.attached: list[Attached] = []
        self.ours: list[tuple[FilePath, StatKey]] = []

    def keep(self) -> None:
        self.ours.clear()


class Attaching:
    """Lays attachments into OUT_DIR. `roots` are folders outside OUT_DIR from which they may be taken."""

    def __init__(
        self, workspace: Workspace, looker: Looker, outdir: OutDir, blobs: Blobs, roots: Sequence[OutDir]
    ) -> None:
        self._workspace = workspace
        self._looker = looker
        self._outdir = outdir
        self._blobs = blobs
        self._roots = (outdir, *roots)

    async def check(self, turn_id: str, attachments: Iterable[Attachment]) -> None:
        """Find out whether they can be attached, before anything is laid down.

        Raises UnsafePath for a name that is none, BadPath for base64 that does not decode, NotFound and NotPermitted
        for a path that leads nowhere or elsewhere, TooLarge over the hashing limit.
        """
        for one in attachments:
            FilePath(turn_id, "attachments", one.name)
            await self._looker.off_loop(self._check, one)

    @asynccontextmanager
    async def lay(self, turn_id: str, attachments: Iterable[Attachment], now: float) -> AsyncGenerator[Laid]:
        """Lay them down in order, each under a free name; `now` is the time of their blocks.

        They are held until the end, so that no look credits them to a call. Whoever holds them must not wait for one.
        Raises what `check` raises, and StoreUnavailable for a full disk; then nothing stays.
        """
        laid, taken = Laid(), set[str]()
        room = limits.ATTACHED_CONTENT_BYTES
        with ExitStack() as holds:
            try:
                for one in attachments:
                    path, key, sha256 = await self._lay_down(turn_id, one, taken, (laid, holds))
                    fact = await self._take_in(path, key, sha256)
                    if one.mime is not None:
                        fact = replace(fact, mime=one.mime)
                    blocks, weight = await self._looker.off_loop(self._tell, path, fact, one.summary, now, room)
                    room -= weight
                    laid.attached.append(Attached(path, fact, blocks))
                yield laid
            finally:
                for path, key in laid.ours:
                    await self._looker.off_loop(self._take_away, path, key)

    async def _lay_down(
        self, turn_id: str, one: Attachment, taken: set[str], holding: tuple[Laid, ExitStack]
    ) -> tuple[FilePath, StatKey, str]:
        """Write it under the first name that is free, or that holds these very bytes already."""
        laid, holds = holding
        name, at = one.name, one.name.count("/")
        number = 1
        for _ in range(NAMES_TRIED):
            path = FilePath(turn_id, "attachments", name)
            if name not in taken and path.physical not in self._workspace.claims:
                with ExitStack() as hold:
                    hold.enter_context(self._workspace.claims.hold(path.physical))
                    found = await self._looker.off_loop(self._try, path, one)
                    if not isinstance(found, int):
                        taken.add(name)
                        key, sha256, is_ours = found
                        laid.ours += [(path, key)] if is_ours else []
                        holds.push(hold.pop_all())
                        return path, key, sha256
                if found != at:
                    at, number = found, 1  # it is a folder above that another file is in the way of
            number += 1
            name = _numbered(one.name, at, number)
        raise NotPermitted(one.name, "there are too many attachments of this name")

    def _try(self, path: FilePath, one: Attachment) -> tuple[StatKey, str, bool] | int:
        """Write it there: its key, its hash, and whether we made it. Where another thing is in the way, the number of
        the part of its name that is taken. Blocking."""
        with self._open(one) as body:
            sha256 = _hash_of(body)
            try:
                key = self._outdir.put_back(path.physical, _chunks(body), sha256=sha256, over=None)
            except FileExistsError:
                standing = self._standing(path, sha256)
                return path.rel.count("/") if standing is None else (standing, sha256, False)
            except UnsafePath:
                taken = self._in_the_way(path)
                if taken is None:
                    raise
                return taken
            except ValueError as fault:
                raise NotPermitted(one.name, "this file changed while it was read") from fault
            except OSError as fault:
                raise StoreUnavailable(one.name, os.strerror(fault.errno or 0), fault="disk_full") from fault
            return key, sha256, True

    def _in_the_way(self, path: FilePath) -> int | None:
        """Which part of the name is taken: by a file where a folder is needed, or at its end by what is no file."""
        parts = path.rel.split("/")
        for at in range(len(parts)):
            here = FilePath(path.turn_id, "attachments", "/".join(parts[: at + 1])).physical
            try:
                if self._outdir.key(here) is not None:
                    return at
            except UnsafePath:
                if at == len(parts) - 1 and self._is_folder(here.rpartition("/")[0]):
                    return at
        return None

    def _is_folder(self, physical: str) -> bool:
        """Whether files may stand below it; a link to a folder is none."""
        try:
            return self._outdir.key(f"{physical}/{secrets.token_hex(16)}") is None
        except UnsafePath:
            return False

    def _take_away(self, path: FilePath, key: StatKey) -> None:
        """Undo what could not be told. What a program changed meanwhile stays, and the next look finds it."""
        try:
            if not self._outdir.take_away(path.physical, key):
                log.warning("%s changed before it could be told of; what is there now stays", path.physical)
        except (OSError, Refusal):
            log.exception("%s could not be taken back", path.physical)

    def _check(self, one: Attachment) -> None:
        with self._open(one) as body:
            _require_size(body)

    def _standing(self, path: FilePath, sha256: str) -> StatKey | None:
        """The key of the file at this path, when it holds these bytes."""
        try:
            with self._outdir.open(path.physical) as body:
                same = _hash_of(body) == sha256
            return self._outdir.key(path.physical) if same else None
        except Refusal:
            return None

    def _open(self, one: Attachment) -> BinaryIO:
        if one.text is not None:
            return io.BytesIO(one.text.encode("utf-8", "surrogatepass"))
        if one.packed is not None:
            try:
                return io.BytesIO(base64.b64decode(one.packed, validate=True))
            except ValueError as fault:
                raise BadPath(one.name, "the attachment's base64 does not decode") from fault
        return self._open_path(one.path or "")

    def _open_path(self, text: str) -> BinaryIO:
        """A file below OUT_DIR, or an absolute path below one of the roots. Links are not followed in either."""
        try:
            if not os.path.isabs(text):
                path = parse(text)
                if not isinstance(path, FilePath):
                    raise BadPath(text, "an attachment is a file")
                return self._outdir.open(path.physical)
            for root in self._roots:
                if text.startswith(f"{root.root}/"):
                    return root.open(text.removeprefix(f"{root.root}/"))
        except NotFound as fault:
            raise NotFound(text, "no file stands there; an attachment is there before its turn begins") from fault
        raise NotPermitted(text, "attachments come from below OUT_DIR or a folder of --attach-root")

    async def _take_in(self, path: FilePath, key: StatKey, sha256: str) -> FileFact:
        """What was laid down, as a look would find it. If somebody opened it already, what is known of it must do."""
        for _ in range(BUSY_TRIES):
            intake = await self._looker.off_loop(self._outdir.take_in, path.physical, self._blobs)
            if intake.outcome == "complete" and intake.fact is not None and intake.fact.sha256 == sha256:
                return intake.fact
            if intake.outcome != "busy":
                break
            await asyncio.sleep(BUSY_REST)
        return FileFact(path.physical, key, sha256, mime_of(path.physical, b""))

    def _tell(
        self, path: FilePath, fact: FileFact, summary: str | None, now: float, room: int
    ) -> tuple[tuple[BlockTold, ...], int]:
        """The blocks of an attachment, and how many bytes of content they hold, at most `room`. Blocking."""
        content = self._content(path, fact, room)
        packed = base64.b64encode(content).decode() if content is not None else None
        blocks = _blocks(path, fact, _digest_of(path, fact, summary, iso(now)), packed)
        told = tuple(BlockTold(tell(block, Defaults(path.turn_id, now))) for block in blocks)
        return told, len(content or b"")

    def _content(self, path: FilePath, fact: FileFact, room: int) -> bytes | None:
        """What the attachment's block carries: pictures and PDF, where they are not too large."""
        most = min(limits.INLINE_BASE64_BYTES, room)
        if not is_packed(fact.mime) or fact.key.size > most:
            return None
        try:
            with self._outdir.open(path.physical) as body:
                content = body.read(most + 1)
        except NotFound:
            return None
        return content if len(content) <= most else None


def _digest_of(path: FilePath, fact: FileFact, summary: str | None, ts: str) -> Mapping[str, object]:
    """The safe digest that `user.attachment.meta` carries (spec section 4)."""
    digest: dict[str, object] = {
        "artifact_path": path.logical,
        "physical_path": path.physical,
        "mime": fact.mime,
        "kind": "file",
        "visibility": "external",
        "edited": False,
        "ts": ts,
        "size_bytes": fact.key.size,
        "sha256": fact.sha256,
    }
    return digest | ({"description": summary} if summary else {})


def _blocks(
    path: FilePath, fact: FileFact, digest: Mapping[str, object], packed: str | None
) -> Iterator[dict[str, object]]:
    """The metadata block, and for pictures and PDF the content; other types are read by their path (seed 001)."""
    said = orjson.dumps(digest).decode()
    meta = {"artifact_path": path.logical, "physical_path": path.physical, "kind": "file", "visibility": "external"}
    base = {"author": "user", "path": path.logical}
    yield {**base, "type": "user.attachment.meta", "mime": "application/json", "text": said, "meta": meta}
    if packed is not None:
        whole = {**meta, "mime": fact.mime, "digest": said}
        yield {**base, "type": "user.attachment", "mime": fact.mime, "base64": packed, "meta": whole}


def _numbered(name: str, at: int, number: int) -> str:
    """The name with `-2`, `-3` in this part of it and before its extension: two of one name never shadow each other."""
    parts = name.split("/")
    stem, dot, extension = parts[at].rpartition(".")
    if not stem:
        stem, dot, extension = parts[at], "", ""
    end = f"-{number}{dot}{extension}"
    room = limits.SEGMENT_BYTES - len(end.encode())
    if room <= 0:
        stem, end = parts[at], f"-{number}"
        room = limits.SEGMENT_BYTES - len(end)
    parts[at] = stem.encode()[:room].decode(errors="ignore") + end
    return "/".join(parts)


def _hash_of(body: BinaryIO) -> str:
    """The sha256 of all of it; the body stands at its begin again. Raises TooLarge."""
    _require_size(body)
    sha256 = hashlib.file_digest(body, "sha256").hexdigest()
    body.seek(0)
    return sha256


def _require_size(body: BinaryIO) -> None:
    if body.seek(0, 2) > limits.HASHED_BYTES:
        raise TooLarge("attachment", f"an attachment has at most {limits.HASHED_BYTES} bytes")
    body.seek(0)


def _chunks(body: BinaryIO) -> Iterator[bytes]:
    return iter(lambda: body.read(CHUNK), b"")
