"""Read, fetch and rehost on the wire."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from protocol.requests.contents import INLINE_BYTES, INLINE_BYTES_MOST, FetchResult, ReadResult, RehostResult
from sidecar.core import limits
from tests.protocol.fit import refused, taken


@pytest.mark.parametrize(
    "params",
    [
        {"paths": ["a"]},
        {"paths": ["a"], "stats_only": True, "max_bytes": 0, "tool_call_id": "c"},
        {"items": [{"path": "a"}]},
        {"items": [{"path": "a", "line_start": 1, "line_count": 1}]},
    ],
)
def test_read_takes(params: dict[str, Any]) -> None:
    taken("artifact/read", params)


@pytest.mark.parametrize(
    ("params", "at"),
    [
        ({}, ""),
        ({"paths": ["a"], "items": [{"path": "a"}]}, ""),
        ({"paths": []}, "paths"),
        ({"items": []}, "items"),
        ({"items": ["a"]}, "items.0"),
        ({"items": [{"path": "a", "line_start": 0}]}, "items.0.line_start"),
        ({"items": [{"path": "a", "line_count": 0}]}, "items.0.line_count"),
        ({"items": [{"path": "a", "lines": "1-2"}]}, "items.0.lines"),
        ({"paths": ["a"], "max_bytes": INLINE_BYTES_MOST + 1}, "max_bytes"),
        ({"paths": ["a"], "tool_call_id": "a b"}, "tool_call_id"),
    ],
)
def test_read_refuses(params: dict[str, Any], at: str) -> None:
    refused("artifact/read", params, at)


def test_the_wire_and_the_daemon_cut_contents_at_the_same_size() -> None:
    assert (INLINE_BYTES, INLINE_BYTES_MOST) == (limits.INLINE_TEXT_BYTES, limits.INLINE_BASE64_BYTES)


def test_a_read_says_of_every_path_what_came_of_it() -> None:
    paths = [
        {"path": "a", "tokens": 3, "lines": "3-4/7"},
        {"path": "b", "tokens": 1, "status": "exists_in_visible_context"},
        {"path": "c", "missing": "gone"},
    ]
    answer = {
        "status": {"paths": paths, "total_tokens": 4, "missing": ["c"]},
        "blocks": [{"type": "react.tool.result", "odd": 1}],
        "notices": [{"code": "read_paths_missing", "message": "m", "missing": ["c"]}],
    }
    assert ReadResult.model_validate(answer).model_dump(exclude_none=True) == answer


@pytest.mark.parametrize(
    "answer",
    [
        {"ret": [{"sid": 1, "odd": 1}], "err": None},
        {"ret": [], "err": None, "missing": [4]},
        {"ret": {"path": "a", "kind": "file", "mime": "text/plain", "text": "", "size_bytes": 0}, "err": None},
        {"ret": None, "err": {"code": "not_found", "message": "m", "details": {"path": "a"}}},
    ],
)
def test_a_fetch_answers(answer: dict[str, Any]) -> None:
    FetchResult.model_validate(answer)


@pytest.mark.parametrize("answer", [{"ret": []}, {"err": None}, {"ret": "text", "err": None}])
def test_a_fetch_never_answers(answer: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        FetchResult.model_validate(answer)


def test_fetch_takes_a_long_selector() -> None:
    taken("artifact/fetch", {"path": f"so:sources_pool[{','.join(map(str, range(10_000)))}]"})


@pytest.mark.parametrize("reason", ["unknown", "not_hosted", "gone", "store_unavailable", "unsafe_path", "bad_path"])
def test_a_file_may_be_missing_because(reason: str) -> None:
    RehostResult.model_validate({"rehosted": [], "missing": [{"path": "a", "reason": reason}], "notices": []})


@pytest.mark.parametrize("origin", ["on_disk", "kept", "store", "inline"])
def test_bytes_may_come_from(origin: str) -> None:
    file = {"path": "a", "physical_path": "t/files/a", "size_bytes": 0, "sha256": "e3", "origin": origin}
    RehostResult.model_validate({"rehosted": [file], "missing": [], "notices": []})
