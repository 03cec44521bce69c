"""What the user attached to a turn: laid into OUT_DIR under a name of its own, registered, and told of."""

from __future__ import annotations

import asyncio
import base64
import binascii
import hashlib
import io
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import BinaryIO

from sidecar.core import limits
from sidecar.core.errors import BadPath, NotFound, NotPermitted, Refusal, StoreUnavailable, TooLarge
from sidecar.core.inventory import FileFact, StatKey
from sidecar.core.mime import is_packed, mime_of
from sidecar.core.paths import FilePath, parse
from sidecar.looking import Looker
from sidecar.ports import Blobs, OutDir

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
    """An attachment that stands in OUT_DIR; `packed` is its base64 where a block carries it."""

    path: FilePath
    fact: FileFact
    summary: str | None
    packed: str | None


class Attaching:
    """Lays attachments into OUT_DIR. `roots` are folders outside OUT_DIR from which they may be taken."""

    def __init__(self, looker: Looker, outdir: OutDir, blobs: Blobs, roots: Sequence[OutDir]) -> None:
        self._looker = looker
        self._outdir = outdir
        self._blobs = blobs
        self._roots = (outdir, *roots)

    async def bring(self, turn_id: str, attachments: Iterable[Attachment]) -> list[Attached]:
        """Lay them down in order, each under a free name.

        Raises UnsafePath for a name that is none, BadPath for base64 that does not decode, NotFound and NotPermitted
        for a path that leads nowhere or elsewhere, TooLarge over the hashing limit, StoreUnavailable for a full disk.
        """
        taken: set[str] = set()
        brought: list[Attached] = []
        wanted = list(attachments)
        for one in wanted:
            FilePath(turn_id, "attachments", one.name)  # refused before anything is written
        for one in wanted:
            path, key, sha256 = await self._looker.off_loop(self._lay_down, turn_id, one, frozenset(taken))
            taken.add(path.rel)
            fact = await self._take_in(path, key, sha256)
            if one.mime is not None:
                fact = replace(fact, mime=one.mime)
            packed = await self._looker.off_loop(self._pack, path, fact)
            brought.append(Attached(path, fact, one.summary, packed))
        return brought

    def _lay_down(self, turn_id: str, one: Attachment, taken: frozenset[str]) -> tuple[FilePath, StatKey, str]:
        """Write it under the first name that is free, or that holds these very bytes already. Blocking."""
        for rel in _names(one.name):
            path = FilePath(turn_id, "attachments", rel)
            if rel in taken:
                continue
            with self._open(one) as body:
                sha256 = _hash_of(body)
                try:
                    return path, self._outdir.put_back(path.physical, _chunks(body), sha256=sha256, over=None), sha256
                except FileExistsError:
                    key = self._standing(path, sha256)
                    if key is not None:
                        return path, key, sha256
                except ValueError as fault:
                    raise NotPermitted(one.name, "this file changed while it was read") from fault
                except OSError as fault:
                    raise StoreUnavailable(one.name, os.strerror(fault.errno or 0), fault="disk_full") from fault
        raise NotPermitted(one.name, "there are too many attachments of this name")

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
            except binascii.Error as fault:
                raise BadPath(one.name, "the attachment's base64 does not decode") from fault
        return self._open_path(one.path or "")

    def _open_path(self, text: str) -> BinaryIO:
        """A file below OUT_DIR, or an absolute path below one of the roots. Links are not followed in either."""
        if not os.path.isabs(text):
            path = parse(text)
            if not isinstance(path, FilePath):
                raise BadPath(text, "an attachment is a file")
            return self._outdir.open(path.physical)
        for root in self._roots:
            if text.startswith(f"{root.root}/"):
                return root.open(text.removeprefix(f"{root.root}/"))
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

    def _pack(self, path: FilePath, fact: FileFact) -> str | None:
        """The base64 that the attachment's block carries: of pictures and PDF, where they are not too large."""
        if not is_packed(fact.mime) or fact.key.size > limits.INLINE_BASE64_BYTES:
            return None
        try:
            with self._outdir.open(path.physical) as body:
                return base64.b64encode(body.read(limits.INLINE_BASE64_BYTES)).decode()
        except NotFound:
            return None


def digest_of_attachment(attached: Attached, ts: str) -> Mapping[str, object]:
    """The safe digest that `user.attachment.meta` carries (spec section 4)."""
    digest: dict[str, object] = {
        "artifact_path": attached.path.logical,
        "physical_path": attached.path.physical,
        "mime": attached.fact.mime,
        "kind": "file",
        "visibility": "external",
        "edited": False,
        "ts": ts,
        "size_bytes": attached.fact.key.size,
        "sha256": attached.fact.sha256,
    }
    return digest | ({"description": attached.summary} if attached.summary else {})


def _names(name: str) -> Iterator[str]:
    """The name, then `name-2.ext`, `name-3.ext`, so that two of one name never shadow each other."""
    yield name
    folder, slash, base = name.rpartition("/")
    stem, dot, extension = base.rpartition(".")
    if not stem:
        stem, dot, extension = base, "", ""
    for number in range(2, NAMES_TRIED):
        yield f"{folder}{slash}{stem}-{number}{dot}{extension}"


def _hash_of(body: BinaryIO) -> str:
    """The sha256 of all of it; the body stands at its begin again. Raises TooLarge."""
    if body.seek(0, 2) > limits.HASHED_BYTES:
        raise TooLarge("attachment", f"an attachment has at most {limits.HASHED_BYTES} bytes")
    body.seek(0)
    sha256 = hashlib.file_digest(body, "sha256").hexdigest()
    body.seek(0)
    return sha256


def _chunks(body: BinaryIO) -> Iterator[bytes]:
    return iter(lambda: body.read(CHUNK), b"")
