"""`export`: a workspace as one archive, its files in their latest versions, its timeline and its sources.

OUT_DIR stays as it is: what is not there any more is taken from kept bytes, from the store, or from the timeline.
"""

from __future__ import annotations

import argparse
import base64
import hashlib
import io
import json
import os
import tempfile
from collections.abc import Iterator
from typing import IO, Any, NamedTuple

from artifact_client import Client

from sidecar.config import is_inside
from sidecar.console.bundle import CHUNK, Bundle, Taken, bundle
from sidecar.console.listing import all_artifacts
from sidecar.console.offline import store_of
from sidecar.console.output import Progress, complain, printable, progress, say, size_said
from sidecar.console.place import Place
from sidecar.core import crate
from sidecar.core.crate import Packed
from sidecar.core.errors import NotFound, StoreUnavailable, UnsafePath
from sidecar.core.hosting import without_hosting
from sidecar.ports import Store
from sidecar.stores.outdir import OutDir
from sidecar.stores.packs import Packs

OK, USAGE, TRY_AGAIN = 0, 64, 75
LONG = 600.0
SPOOL_BYTES = 16 * 1024 * 1024
PAGE = 1000


class _Wanted(NamedTuple):
    path: str
    ro_crate: bool
    internal: bool
    force: bool


class _Told(NamedTuple):
    """What the daemon says of the workspace."""

    conversation: dict[str, Any]
    artifacts: list[dict[str, Any]]
    rows: list[dict[str, Any]]
    blocks: list[dict[str, Any]]


def export(place: Place, asked: argparse.Namespace) -> int:
    """Write the archive. Exit code 75, and no archive, when the store does not answer for a file that only it has."""
    wanted = _Wanted(asked.ro_crate or asked.zip, bool(asked.ro_crate), asked.internal, asked.force)
    if is_inside(os.path.realpath(wanted.path), place.settings.out_dir):
        complain("the archive must not lie inside OUT_DIR, whose files it is to hold")
        return USAGE
    try:
        with bundle(wanted.path, replacing=wanted.force) as archive, progress() as report:
            with place.client("runtime", timeout=LONG) as client:
                told = _ask(place, client, internal=wanted.internal)
                packed, missing = _pack_files(archive, told, _Origins(place, client), report or _nobody)
            _pack_records(archive, told, packed, missing, ro_crate=wanted.ro_crate)
    except Taken as taken:
        complain(str(taken))
        return USAGE
    except StoreUnavailable as refusal:
        complain(f"{refusal.about} is only in the store, which does not answer: {refusal.hint}")
        return TRY_AGAIN
    for one in missing:
        complain(f"{one['path']} is not in the archive: {one['reason']}")
    say(f"{printable(wanted.path)}: {len(packed)} files, {size_said(sum(file.size for file in packed))}")
    return OK


# What is to be packed


def _ask(place: Place, client: Client, *, internal: bool) -> _Told:
    client.call("workspace/sync")
    conversation = client.call("workspace/status")["conversation"]
    every = list(all_artifacts(client, {}))
    kinds = ("external", "internal", "pending") if internal else ("external",)
    shown = [one for one in every if one["visibility"] in kinds]
    waiting = sum(one["visibility"] == "pending" for one in every)
    if waiting and not internal:
        complain(f"{waiting} files of a call that is still open are left out; --internal takes them in")
    hidden = {one["artifact_path"] for one in every} - {one["artifact_path"] for one in shown}
    rows = [without_hosting(row) for row in client.call("sources/list")["rows"]]
    # An editor is answered no block that is internal, or that tells of what is.
    with place.client("runtime" if internal else "editor", timeout=LONG) as reader:
        blocks = [without_hosting(block) for block in _all_blocks(reader)]
    return _Told(
        conversation,
        [one for one in shown if _is_file(one)],
        [row for row in rows if row.get("artifact_path") not in hidden],
        blocks,
    )


def _is_file(artifact: dict[str, Any]) -> bool:
    """Whether an artifact is a file of a turn; what was only shown is in the timeline."""
    return bool(artifact.get("turn_id")) and (artifact["kind"] == "file" or artifact["on_disk"])


def _all_blocks(client: Client) -> Iterator[dict[str, Any]]:
    since = 0
    while True:
        page = client.call("timeline/blocks", {"since": since, "limit": PAGE})
        yield from page["blocks"]
        if not page["blocks"] or page["next_since"] <= since:
            return
        since = page["next_since"]


# Packing


def _nobody(_: dict[str, Any]) -> None:
    return


def _pack_files(
    archive: Bundle, told: _Told, origins: _Origins, report: Progress
) -> tuple[list[Packed], list[dict[str, str]]]:
    packed: list[Packed] = []
    missing: list[dict[str, str]] = []
    wanted = sorted(told.artifacts, key=lambda one: one["physical_path"].encode())
    for count, artifact in enumerate(wanted):
        path = artifact["physical_path"]
        report({"title": path, "percentage": 100 * count // len(wanted)})
        with tempfile.SpooledTemporaryFile(SPOOL_BYTES) as whole:
            sha256 = origins.bring(artifact, whole)
            if sha256 is None:
                missing.append({"path": path, "reason": "its bytes are nowhere any more"})
                continue
            length = whole.tell()
            whole.seek(0)
            archive.add(path, whole, size=length)
        packed.append(
            Packed(
                path,
                sha256,
                length,
                artifact["mime"],
                ts=artifact["ts"],
                description=artifact.get("description") or "",
                call=artifact.get("tool_call_id") or "",
                tool=artifact.get("tool_id") or "",
                sources=tuple(artifact["sources_used"]),
            )
        )
    return packed, missing


def _pack_records(
    archive: Bundle, told: _Told, packed: list[Packed], missing: list[dict[str, str]], *, ro_crate: bool
) -> None:
    known = {one["physical_path"]: one for one in told.artifacts}
    last = max((str(block["ts"]) for block in told.blocks), default=max((file.ts for file in packed), default=""))
    title = str(told.conversation.get("title") or f"Conversation {told.conversation.get('conversation_id', '')}")
    records: dict[str, Any] = {
        "timeline.json": {
            "version": 1,
            "ts": last or None,
            "blocks": told.blocks,
            "sources_pool": told.rows,
            "turn_ids": list(dict.fromkeys(block["turn_id"] for block in told.blocks)),
            "conversation_title": told.conversation.get("title"),
            "last_activity_at": last or None,
        },
        "sources_pool.json": {"version": 1, "sources_pool": told.rows},
        "manifest.json": {
            "version": 1,
            "conversation": told.conversation,
            "files": [
                {
                    "path": file.path,
                    "sha256": file.sha256,
                    "size_bytes": file.size,
                    "mime": file.mime,
                    "turn_id": known[file.path]["turn_id"],
                    "artifact_path": known[file.path]["artifact_path"],
                    "visibility": known[file.path]["visibility"],
                    **({"sid": sid} if (sid := known[file.path].get("sid")) is not None else {}),
                }
                for file in packed
            ],
            "missing": missing,
        },
    }
    bodies = {name: json.dumps(record, ensure_ascii=False, indent=1).encode() for name, record in records.items()}
    if ro_crate:
        described = [*packed, *(_record_as_file(name, body, last) for name, body in bodies.items())]
        metadata = crate.crate(
            described,
            told.rows,
            name=title,
            description=f"{len(packed)} files that an agent made or was given, the timeline of how, and their sources.",
            published=last or "1970-01-01",
        )
        bodies[crate.NAME] = json.dumps(metadata, ensure_ascii=False, indent=1).encode()
    for name, body in bodies.items():
        archive.add(name, io.BytesIO(body), size=len(body))


def _record_as_file(name: str, body: bytes, ts: str) -> Packed:
    return Packed(
        name, hashlib.sha256(body).hexdigest(), len(body), "application/json", ts=ts, description=_RECORDS[name]
    )


_RECORDS = {
    "timeline.json": "What was said and done, block by block.",
    "sources_pool.json": "Every source with its number, its address and its text.",
    "manifest.json": "The files of this archive with their hashes, and what could not be packed.",
}


class _Origins:
    """Where the bytes of an artifact's latest version may be, nearest first. None of them writes anything."""

    def __init__(self, place: Place, client: Client) -> None:
        self._out_dir = OutDir(place.settings.out_dir)
        self._kept = os.path.join(place.settings.state_dir, "kept")
        self._packs = Packs(os.path.join(self._kept, "packs"))
        self._store: Store | None = store_of(place)
        self._client = client

    def bring(self, artifact: dict[str, Any], target: IO[bytes]) -> str | None:
        """Write the bytes; answers their hash, None when they are nowhere. Raises StoreUnavailable."""
        for origin in (self._from_disk, self._from_kept, self._from_store, self._from_timeline):
            target.seek(0)
            target.truncate()
            hashing = hashlib.sha256()
            try:
                for chunk in origin(artifact):
                    hashing.update(chunk)
                    target.write(chunk)
            except (NotFound, UnsafePath, FileNotFoundError):
                continue
            if artifact.get("sha256") in (None, hashing.hexdigest()) and (artifact.get("sha256") or target.tell()):
                return hashing.hexdigest()
        return None

    def _from_disk(self, artifact: dict[str, Any]) -> Iterator[bytes]:
        if artifact["on_disk"]:
            with self._out_dir.open(artifact["physical_path"]) as body:
                yield from _chunks(body)

    def _from_kept(self, artifact: dict[str, Any]) -> Iterator[bytes]:
        # The daemon may run, so its folder is read and nothing more.
        sha256 = artifact.get("sha256") or ""
        if self._packs.size(sha256) is not None:
            yield self._packs.read(sha256)
            return
        with open(os.path.join(self._kept, sha256[:2], sha256[2:] or "-"), "rb") as body:
            yield from _chunks(body)

    def _from_store(self, artifact: dict[str, Any]) -> Iterator[bytes]:
        if self._store is None or not (artifact.get("hosted_uri") or artifact.get("key")):
            return
        uri = artifact.get("hosted_uri")
        key = self._store.key_of(uri) if uri else artifact.get("key")
        if key is not None:
            yield from self._store.get(key)

    def _from_timeline(self, artifact: dict[str, Any]) -> Iterator[bytes]:
        """What the timeline itself holds, if it is small enough to be answered whole."""
        held = self._client.call("artifact/fetch", {"path": artifact["artifact_path"]})["ret"] or {}
        if held.get("truncated"):
            return
        if isinstance(held.get("text"), str):
            yield held["text"].encode("utf-8", "surrogatepass")
        elif isinstance(held.get("base64"), str):
            yield base64.b64decode(held["base64"])


def _chunks(body: IO[bytes]) -> Iterator[bytes]:
    while chunk := body.read(CHUNK):
        yield chunk
