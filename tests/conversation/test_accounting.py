"""Accounting records lie at the layout of the seed, one of the daemon's own for every turn."""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from sidecar.conversation.accounting import Accounting
from sidecar.core.conversation_names import spelled
from sidecar.core.errors import StoreUnavailable
from sidecar.stores.folder_store import FolderStore
from tests.conversation.shelf import CONVERSATION, Shelf, have_turn
from tests.daemon_process import Workspace
from tests.server.inside import Inside, awake


@pytest_asyncio.fixture
async def inside(tmp_path: Path) -> AsyncIterator[Inside]:
    async with awake(tmp_path, store=FolderStore(str(tmp_path / "store"))) as inside:
        await inside.ask("turn/begin", {"turn_id": "turn_1", "conversation": CONVERSATION})
        yield inside


def accounting(inside: Inside) -> Accounting:
    return Accounting(inside.assembly.archive, inside.assembly.hosting)


@pytest.mark.rule("store.accounting-files-have-their-place")
async def test_a_record_lies_where_the_seed_says(inside: Inside) -> None:
    record = {"service_name": "search", "agent": "planner", "cost": 0.5}
    kept = await accounting(inside).keep("turn_1", record)
    place = r"accounting/acme/project/\d{4}\.\d\d\.\d\d/search/default/"
    name = r"cb\|ann\|c-1\|turn_1\|planner\|\d{4}-\d\d-\d\dT\d\d-\d\d-\d\d\.\d{6}\.json"
    assert re.fullmatch(place + name, spelled(kept["key"]))
    store = inside.assembly.hosting.store
    assert store is not None
    assert kept["hosted_uri"] == store.uri(kept["key"])
    told = json.loads(b"".join(store.get(kept["key"])))
    assert told.items() >= {**record, "turn_id": "turn_1", "user_id": "ann", "tenant": "acme"}.items()


async def test_records_of_one_turn_never_share_a_place(inside: Inside) -> None:
    keys = {(await accounting(inside).keep("turn_1", {"n": number}))["key"] for number in range(5)}
    assert len(keys) == 5


@pytest.mark.parametrize("odd", ["", "..", 7, None, "s" * 500])
async def test_a_service_that_no_key_can_name_is_ours(inside: Inside, odd: object) -> None:
    kept = await accounting(inside).keep("turn_1", {"service_name": odd})
    assert "/sidecar/default/" in kept["key"]


async def test_what_is_kept_again_for_the_same_moment_stays_as_it_was(inside: Inside) -> None:
    first = await accounting(inside).keep_at(1000.5, "turn_1", {"n": 1})
    assert await accounting(inside).keep_at(1000.5, "turn_1", {"n": 2}) == first
    store = inside.assembly.hosting.store
    assert store is not None
    assert json.loads(b"".join(store.get(first["key"])))["n"] == 1


async def test_without_a_store_nothing_is_kept(tmp_path: Path) -> None:
    async with awake(tmp_path) as inside:
        with pytest.raises(StoreUnavailable):
            await accounting(inside).keep("turn_1", {})


@pytest.mark.rule("store.accounting-files-have-their-place")
def test_every_turn_leaves_one_record_of_the_daemons_own(workspace: Workspace) -> None:
    runtime = workspace.connect("runtime")
    shelf = Shelf.of(workspace)
    for number in (1, 2):
        have_turn(runtime, number)
    keys = [spelled(key) for key in shelf.stored("accounting/")]
    assert [re.sub(r"\|[^|]*\.json$", "", key.rpartition("/")[2]) for key in keys] == [
        "cb|ann|c-1|turn_1|answer.generator.regular",
        "cb|ann|c-1|turn_2|answer.generator.regular",
    ]
    record = json.loads(shelf.bytes_at(shelf.stored("accounting/")[0]))
    log = shelf.payload("turn_1", "turn.log")
    assert (record["blocks"], record["tokens"]) == (log["blocks_count"], log["tokens"])
    assert (record["files"], record["bytes"]) == (1, len("# Report 1\n"))
    assert record["seconds"] >= 0
    shelf.close()
