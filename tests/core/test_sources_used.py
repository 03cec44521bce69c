"""Which sources a block uses."""

from __future__ import annotations

from typing import Any

import orjson
import pytest

from sidecar.core.sources_used import sources_used_in, speaks

POOL = (1, 2, 3, 4, 5)


def digest(**more: Any) -> str:
    return orjson.dumps({"artifact_path": "fi:turn_1.files/a.md", **more}).decode()


@pytest.mark.rule("turns.sources-used-of-a-turn")
@pytest.mark.parametrize(
    ("block", "used"),
    [
        ({"type": "assistant.completion", "text": "as [[S:1,3-4]] says"}, {1, 3, 4}),
        ({"type": "react.notes", "text": "see [[S:2]]"}, {2}),
        ({"type": "react.tool.result", "text": "a page that quotes [[S:2]]"}, set()),
        ({"type": "assistant.completion", "text": "no", "meta": {"sources_used": [5, "x", True]}}, {5}),
        ({"type": "react.tool.result", "mime": "application/json", "text": digest(sources_used=[2, 4])}, {2, 4}),
        ({"type": "react.tool.result", "text": "shown", "meta": {"rel": "read", "sources_used": [1]}}, set()),
        ({"type": "assistant.completion", "text": "`[[S:1]]` is how to cite"}, set()),
        ({"type": "user.prompt", "text": "[[S:1]]"}, set()),
        ({"type": "assistant.completion", "text": "[[S:1-999999999]]"}, set(POOL)),
    ],
)
def test_a_block_uses(block: dict[str, Any], used: set[int]) -> None:
    assert sources_used_in(block, POOL) == used


@pytest.mark.parametrize(
    ("kind", "expected"),
    [("react.notes", True), ("assistant.completion", True), ("user.prompt", False), ("user.attachment", False)],
)
def test_what_the_user_gave_uses_no_source(kind: str, expected: bool) -> None:
    head = (kind, "turn_1", 0.0, "text/markdown", "", "", 0)
    assert speaks(head) is expected
