"""A told block is a part of a version that is there, or begins a new one."""

from __future__ import annotations

from typing import Any

import pytest

from sidecar.core.artifacts import Artifact
from sidecar.core.blocks import Defaults, tell
from sidecar.core.joining import join
from sidecar.core.paths import FilePath, parse

PATH = "fi:turn_1.files/a.md"


def joined(*blocks: dict[str, Any]) -> Artifact:
    path = parse(PATH)
    assert isinstance(path, FilePath)
    artifact = Artifact(path)
    for number, block in enumerate(blocks):
        told = tell({"type": "react.tool.result", **block}, Defaults("turn_1", float(number)))
        assert told.part is not None
        join(artifact, told.head, told.part, number)
    return artifact


def content(text: str, call: str = "") -> dict[str, Any]:
    return {"path": PATH, "text": text, "meta": {"tool_call_id": call}}


def digest(call: str = "", said: str = "") -> dict[str, Any]:
    text = f'{{"artifact_path":"{PATH}"{said}}}'
    return {"mime": "application/json", "text": text, "meta": {"tool_call_id": call}}


@pytest.mark.parametrize(
    ("blocks", "versions"),
    [
        ([digest("tc_1"), content("a", "tc_1")], [{"digest": 0, "text": 1}]),
        ([content("a", "tc_1"), content("b", "tc_2")], [{"text": 0}, {"text": 1}]),
        ([content("a", "tc_1"), digest("tc_2"), digest("tc_1")], [{"text": 0, "digest": 2}, {"digest": 1}]),
        ([content("a"), content("b")], [{"text": 0}, {"text": 1}]),
        ([content("a", "tc_1"), content("b", "tc_1")], [{"text": 1}]),
    ],
    ids=["digest and content", "two calls", "out of order", "no call", "content again"],
)
def test_blocks_of_one_call_are_one_version(blocks: list[dict[str, Any]], versions: list[dict[str, int]]) -> None:
    assert [version.blocks for version in joined(*blocks).versions] == versions


def test_a_digest_may_say_who_may_see_it() -> None:
    assert joined(digest(said=',"visibility":"internal"')).visibility == "internal"
    assert joined(digest(said=',"visibility":"pending"')).visibility == "external"
