"""Which requests change the conversation, and are for its writer alone."""

from __future__ import annotations

from typing import Any

import pytest

from protocol.base import ChangingParams
from protocol.methods import REQUESTS
from protocol.requests.assets import PullParams
from protocol.requests.contents import ReadParams
from sidecar.core.errors import NotPermitted, StoreUnavailable
from sidecar.server.methods.gate import ONLY_IN_A_CALL, OPEN, changes
from tests.server.inside import Inside

pytestmark = pytest.mark.rule("store.one-writer-per-conversation")

CHANGING = {name for name, request in REQUESTS.items() if issubclass(request.params, ChangingParams)}


def test_a_read_and_a_pull_change_something_in_a_call_alone() -> None:
    assert not changes("artifact/read", ReadParams(paths=["a"]))
    assert changes("artifact/read", ReadParams(paths=["a"], tool_call_id="tc_1"))
    assert not changes("assets/pull", PullParams(content="a"))
    assert changes("assets/pull", PullParams(content="a", tool_call_id="tc_1"))


def test_whatever_can_be_made_safe_to_repeat_changes_something() -> None:
    assert {"turn/begin", "turn/end", "call/begin", "artifact/write", "sources/merge", "timeline/append"} <= CHANGING
    assert ONLY_IN_A_CALL <= CHANGING
    assert not CHANGING & {"timeline/announce", "workspace/sync", "artifact/rehost", "timeline/render"}
    assert frozenset({"turn/feedback"}) == OPEN


@pytest.mark.parametrize("method", sorted(CHANGING))
def test_every_change_may_be_refused_by_a_store_that_does_not_answer(method: str) -> None:
    assert {"not_permitted", "store_unavailable"} <= set(REQUESTS[method].fails_with)


APPEND: dict[str, Any] = {"blocks": [{"type": "note", "text": "x", "turn_id": "turn_1"}]}


async def test_a_reader_is_told_who_writes(inside: Inside) -> None:
    await inside.begin()
    inside.assembly.lease.lost()
    with pytest.raises(NotPermitted, match="another daemon writes this conversation"):
        await inside.ask("timeline/append", APPEND)
    await inside.ask("timeline/blocks")


async def test_who_slept_beyond_the_end_of_the_lease_asks_before_anything_is_changed(inside: Inside) -> None:
    await inside.begin()
    lease = inside.assembly.lease
    assert not lease.doubtful
    lease._until = 0.0
    assert lease.doubtful
    await inside.ask("timeline/append", APPEND)  # nobody went on meanwhile
    assert (lease.state, lease.doubtful) == ("writer", False)
    index, scope = inside.assembly.archive.index, inside.assembly.archive.scope
    index.release(scope, lease.holder)
    index.claim(scope, "another", "bob@there:out", seconds=30.0)
    lease._until = 0.0
    before = inside.workspace.revision
    with pytest.raises(NotPermitted, match="bob@there:out writes this conversation"):
        await inside.ask("timeline/append", APPEND)
    assert inside.workspace.revision == before
    await inside.ask("timeline/blocks")


async def test_who_does_not_know_changes_nothing(inside: Inside) -> None:
    inside.assembly.lease.state = "unknown"
    await inside.ask("timeline/append", APPEND)  # a journal of its own is the truth
    inside.assembly.lease.blind = True
    with pytest.raises(StoreUnavailable) as refused:
        await inside.ask("timeline/append", APPEND)
    assert refused.value.about == "index"
