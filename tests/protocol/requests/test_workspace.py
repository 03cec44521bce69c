"""Status, sync and changes on the wire."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from protocol.requests.workspace import StatusResult, SyncResult
from sidecar.core import limits
from tests.protocol.fit import taken

STATUS: dict[str, Any] = {
    "revision": 3,
    "out_dir": "/out",
    "conversation": {"tenant": "default", "conversation_id": "c"},
    "counts": {"turns": 1, "blocks": 2, "artifacts": 3, "sources": 4, "versions": 5},
    "watcher": {"state": "ok", "missed": 0, "over_limit": 0},
    "store": {"state": "unset", "kind": "none"},
    "conversation_store": {"state": "ok", "kind": "sqlite", "lease": "writer", "change": 0, "next_block": 0},
    "clients": [{"role": "exec", "queued": 0}],
    "uptime_seconds": 1.5,
}


@pytest.mark.parametrize("params", [{}, {"since": 0}, {"since": 2**53}])
def test_sync_takes(params: dict[str, Any]) -> None:
    taken("workspace/sync", params)


def test_changes_are_paged_by_the_daemon_s_own_limit() -> None:
    assert taken("workspace/changes", {"since": 0}).model_dump()["limit"] == limits.CHANGES_PAGE


def test_a_status_fits() -> None:
    StatusResult.model_validate(STATUS)


@pytest.mark.parametrize("key", STATUS)
def test_a_status_without_one_of_its_fields_does_not_fit(key: str) -> None:
    with pytest.raises(ValidationError):
        StatusResult.model_validate({name: value for name, value in STATUS.items() if name != key})


@pytest.mark.parametrize("state", ["ok", "degraded", "polling", "lost"])
def test_a_watcher_may_be(state: str) -> None:
    StatusResult.model_validate(STATUS | {"watcher": {"state": state, "reason": "r", "missed": 1, "over_limit": 0}})


@pytest.mark.parametrize("lease", ["writer", "reader", "diverged", "unknown"])
def test_a_conversation_store_may_be(lease: str) -> None:
    more = {"state": "unavailable", "reason": "unreachable", "held_by": "ann@here:out", "unsaved": 2}
    StatusResult.model_validate(STATUS | {"conversation_store": STATUS["conversation_store"] | more | {"lease": lease}})


def test_a_sync_says_only_when_it_was_truncated() -> None:
    answer = {"revision": 1, "artifacts": ["fi:turn_1.files/a"], "sources": [1], "unsettled": []}
    assert SyncResult.model_validate(answer).model_dump(exclude_none=True) == answer
    SyncResult.model_validate(answer | {"truncated": True})
