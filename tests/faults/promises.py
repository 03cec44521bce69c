"""What must hold of any state that a daemon wakes up with, whatever it died of. Each raises AssertionError."""

from __future__ import annotations

import hashlib
from collections.abc import Collection
from pathlib import Path
from typing import Any

from sidecar.stores.folder_store import FolderStore
from tests.server.inside import Inside

OURS = (".txt", ".md", ".bin")  # files whose every whole state the tests know

STORED = {"turn.log", "conv.timeline.v1", "conv:sources_pool", "conv.artifacts.stream"}  # kinds that have a blob


def store_of(folder: Path) -> FolderStore:
    """The store of a workspace that was given none."""
    return FolderStore(str(folder / "state" / "store"))


def no_half_version(inside: Inside, whole: Collection[str]) -> None:
    """Every registered state is one that a file was meant to have."""
    for artifact in inside.workspace.artifacts:
        for version in artifact.versions:
            if version.sha256 is not None and artifact.path.physical.endswith(OURS):
                assert version.sha256 in whole, f"half a file was registered: {artifact.path.physical}"


async def served_whole(inside: Inside) -> None:
    """Every file can be brought back with right bytes, or is honestly missing. Takes them all away first."""
    paths = [artifact.path.physical for artifact in inside.workspace.artifacts]
    known = {artifact.path.physical: artifact for artifact in inside.workspace.artifacts}
    for path in paths:
        (inside.out / path).unlink(missing_ok=True)
    await inside.sync()
    for at in range(0, len(paths), 50):
        for one in (await inside.ask("artifact/rehost", {"paths": paths[at : at + 50]}))["rehosted"]:
            served = hashlib.sha256((inside.out / one["physical_path"]).read_bytes()).hexdigest()
            states = {version.sha256 for version in known[one["physical_path"]].versions}
            assert served in states, f"wrong bytes were served: {one}"


def hosted_is_there(inside: Inside, store: FolderStore, *, but: str = "") -> None:
    """Blob first, then row: what the journal calls hosted is in the store, whole. `but` is a turn being erased."""
    for artifact in inside.workspace.artifacts:
        if but and artifact.path.physical.startswith(f"{but}/"):
            continue
        for version in artifact.versions:
            for key in inside.assembly.hosting.keys_of(version.facts):
                digest = hashlib.sha256(b"".join(store.get(key))).hexdigest()
                assert digest == version.sha256, f"{key} is hosted and has other bytes"


async def saved_is_there(inside: Inside, *, but: str = "") -> None:
    """What the journal calls saved is in the index, and what the index names can be read.

    The row may be of a later save than the journal knows of: then that one is done again, under the same names. `but`
    is a turn that is being erased.
    """
    for turn in inside.workspace.timeline.turns:
        if turn == but:
            continue
        items = await inside.assembly.services.saver.saved(turn)
        asked = {"turn_ids": [turn], "limit": 100, "with_payload": True}
        rows = (await inside.ask("conversation/recent", asked))["items"]
        lost = {item["message_id"] for item in items} - {row["message_id"] for row in rows}
        assert not lost, f"{turn} lost its rows: {lost}"
        unread = [row["kind"] for row in rows if row["kind"] in STORED and "payload" not in row]
        assert not unread, f"{turn} lost the blobs of {unread}"


async def answers_again(inside: Inside, asked: list[dict[str, Any]]) -> None:
    """`{method, params, answer}`: a request that was answered is answered the same, and changes nothing."""
    for one in asked:
        revision = inside.workspace.revision
        again = await inside.ask(one["method"], one["params"])
        assert again["artifact"]["sha256"] == one["answer"]["artifact"]["sha256"], "it was answered otherwise"
        assert inside.workspace.revision == revision, "a repeated request changed something"


async def next_number_is_new(inside: Inside, given: Collection[int]) -> None:
    """No source number that anybody was told is given to something else."""
    merged = await inside.ask("sources/merge", {"rows": [{"url": "https://example.com/after-the-dark"}]})
    assert not {*merged["added"]} & {*given}, f"given twice: {merged['added']}"
