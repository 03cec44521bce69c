"""Resolve, list, versions and search on the wire."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from protocol.requests.artifact import HITS, PATTERN_BYTES, ListResult, ResolveResult, SearchResult
from sidecar.core import limits
from tests.protocol.fit import refused, refused_by_the_model, taken
from tests.protocol.test_records import ARTIFACT


@pytest.mark.parametrize(
    ("method", "params"),
    [
        ("artifact/resolve", {"paths": ["a"] * 10_000}),
        (
            "artifact/list",
            {"turn_id": "t", "kind": "display", "mime": "image/*", "visibility": "pending", "prefix": "fi:"},
        ),
        ("artifact/list", {"limit": 1, "cursor": "abc"}),
        ("artifact/versions", {"path": "fi:turn_1.files/a"}),
        ("artifact/search", {"root": ""}),
        (
            "artifact/search",
            {"root": "turn_1", "name_regex": "a", "content_regex": "b", "context_lines": 20, "max_hits": 1},
        ),
    ],
)
def test_it_takes(method: str, params: dict[str, Any]) -> None:
    taken(method, params)


@pytest.mark.parametrize(
    ("method", "params", "at"),
    [
        ("artifact/list", {"kind": "folder"}, "kind"),
        ("artifact/list", {"visibility": "public"}, "visibility"),
        ("artifact/list", {"mime": ""}, "mime"),
        ("artifact/list", {"cursor": ""}, "cursor"),
        ("artifact/list", {"cursor": None}, "cursor"),
        ("artifact/versions", {}, "path"),
        ("artifact/versions", {"path": ["a"]}, "path"),
        ("artifact/search", {}, "root"),
        ("artifact/search", {"root": "", "name_regex": ""}, "name_regex"),
        ("artifact/search", {"root": "", "name_regex": "a" * 1001}, "name_regex"),
        ("artifact/search", {"root": "", "context_lines": 21}, "context_lines"),
        ("artifact/search", {"root": "", "context_lines": -1}, "context_lines"),
        ("artifact/search", {"root": "", "max_hits": 0}, "max_hits"),
        ("artifact/search", {"root": "", "max_hits": 1001}, "max_hits"),
    ],
)
def test_it_refuses(method: str, params: dict[str, Any], at: str) -> None:
    refused(method, params, at)


def test_a_pattern_is_measured_in_bytes() -> None:
    taken("artifact/search", {"root": "", "content_regex": "\u00e9" * 500})
    refused_by_the_model("artifact/search", {"root": "", "content_regex": "\u00e9" * 501}, "content_regex")


def test_the_wire_and_the_daemon_have_the_same_limits() -> None:
    assert (PATTERN_BYTES, HITS) == (limits.SEARCH_PATTERN_BYTES, limits.SEARCH_HITS)
    assert taken("artifact/list", {}).model_dump()["limit"] == limits.LIST_PAGE


def test_a_path_that_leads_nowhere_says_why() -> None:
    found = {"path": "a", "found": True, "artifact": ARTIFACT, "notices": []}
    lost = {"path": "../a", "found": False, "reason": "unsafe_path", "notices": []}
    answer = {"results": [found, lost]}
    assert ResolveResult.model_validate(answer).model_dump(exclude_none=True) == answer


def test_the_last_page_says_null() -> None:
    ListResult.model_validate({"artifacts": [], "next_cursor": None})
    with pytest.raises(ValidationError):
        ListResult.model_validate({"artifacts": []})


def test_a_hit_without_a_logical_path_has_none() -> None:
    hit = {"path": "logs/a", "size_bytes": 1, "matches": [{"line": 1, "text": "x", "before": [], "after": ["y"]}]}
    answer = {"root": "", "hits": [hit], "truncated": True}
    assert SearchResult.model_validate(answer).model_dump(exclude_none=True) == answer
