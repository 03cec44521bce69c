"""An outline counts by turn and call, and stands in the order of the timeline."""

from __future__ import annotations

import pytest

from sidecar.core.artifacts import Artifact, Artifacts
from sidecar.core.inventory import FileFact, StatKey
from sidecar.core.outline import Made, Outline, in_order, title_of
from sidecar.core.paths import parse_physical

pytestmark = pytest.mark.rule("outline.turns-calls-and-counts")


def seen(known: Artifacts, physical: str, *, ts: float, call: str = "") -> Artifact:
    fact = FileFact(physical, StatKey(1, int(ts), 10, int(ts), int(ts)), physical, "text/plain", True)
    return known.see(parse_physical(physical), fact, ts=ts, call=call, visibility="external")


EVERYTHING = frozenset({"external", "internal", "pending"})


def test_artifacts_count_for_their_turn_and_for_the_call_of_their_latest_version() -> None:
    known, outline = Artifacts(), Outline()
    seen(known, "turn_1/files/a", ts=2, call="tc_1")
    twice = seen(known, "turn_1/files/b", ts=1, call="tc_1")
    seen(known, "turn_1/files/c", ts=3)
    for artifact in known:
        outline.put(artifact)
    fact = FileFact("turn_1/files/b", StatKey(1, 9, 9, 9, 9), "other", "text/plain", True)
    known.see(twice.path, fact, ts=9.0, call="tc_2", visibility="external")
    for _ in range(2):  # again changes nothing
        outline.put(twice)
    assert outline.made(EVERYTHING) == {"turn_1": Made(1.0, 3, {"tc_1": 1, "tc_2": 1})}


@pytest.mark.rule("outline.cut-to-the-role")
def test_what_may_not_be_known_is_not_counted_until_it_may() -> None:
    known, outline = Artifacts(), Outline()
    hidden = seen(known, "turn_1/files/a", ts=1, call="tc_1")
    outside = seen(known, "logs/a.txt", ts=1)
    for artifact in (hidden, outside):
        artifact.visibility = "pending"
        outline.put(artifact)
    visible = frozenset({"external"})
    assert (outline.made(visible), outline.others(visible)) == ({}, 0)
    for artifact in (hidden, outside):
        artifact.visibility = "external"
        outline.put(artifact)
    assert (outline.made(visible), outline.others(visible)) == ({"turn_1": Made(1.0, 1, {"tc_1": 1})}, 1)


def test_what_has_no_version_counts_for_nothing() -> None:
    known, outline = Artifacts(), Outline()
    outline.put(known.at(parse_physical("turn_1/files/a")))
    assert outline.made(EVERYTHING) == {}


def test_a_turn_that_only_the_disk_knows_stands_where_its_files_appeared() -> None:
    found = {"turn_b": 5.0, "turn_z": 15.0, "turn_1": 99.0}
    assert list(in_order([("turn_1", 1), ("turn_2", 10)], found)) == ["turn_1", "turn_b", "turn_2", "turn_z"]


def test_the_order_of_the_timeline_counts_more_than_its_clocks() -> None:
    assert list(in_order([("turn_1", 10), ("turn_2", 0), ("turn_3", 5)], {})) == ["turn_1", "turn_2", "turn_3"]


@pytest.mark.parametrize(
    ("prompt", "title"),
    [
        ("Draw  a\n\tchart ", "Draw a chart"),
        ("", ""),
        ("a" * 20, "a" * 20),
        ("a" * 21, "a" * 19 + "…"),
        ("word " * 10, "word word word word…"),
        ("🎉" * 30, "🎉" * 19 + "…"),
    ],
)
def test_a_title_is_one_short_line(prompt: str, title: str) -> None:
    assert title_of(prompt, 20) == title
