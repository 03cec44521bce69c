"""The index over blocks answers by path, turn, call and revision, and forgets nothing."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sidecar.core.blocks import Defaults, tell
from sidecar.core.timeline import Timeline

PROMPT = "ar:turn_1.user.prompt"


def timeline(*blocks: dict[str, Any]) -> Timeline:
    made = Timeline()
    for seq, block in enumerate(blocks, start=10):
        told = tell({"type": "note", **block}, Defaults("turn_1", float(seq)))
        made.add(seq, (*told.head, told.part) if told.part else told.head)
    return made


@pytest.mark.rule("discovery.finds-by-path")
def test_blocks_are_found_by_path_oldest_first() -> None:
    made = timeline({"path": PROMPT}, {}, {"path": PROMPT}, {"path": PROMPT}, {"path": "ar:turn_1.x"})
    assert list(made.at(PROMPT)) == [0, 2, 3]
    assert list(made.at("ar:turn_1.x")) == [4]
    assert list(made.at("ar:turn_1.y")) == []


def test_turns_stand_in_the_order_of_their_first_block() -> None:
    made = timeline({"turn_id": "b"}, {"turn_id": "a"}, {"turn_id": "b"})
    assert made.turns == ("b", "a")
    assert list(made.of_turn("b")) == [0, 2]
    assert made.knows("a")
    assert not made.knows("c")


@pytest.mark.rule("discovery.tool-id-through-the-call-map")
def test_the_call_map_knows_the_tool_of_a_call() -> None:
    call = {"type": "react.tool.call", "text": '{"tool_id":"react.write","tool_call_id":"tc_1"}'}
    assert timeline(call, {"type": "react.tool.call", "text": '{"tool_id":"lost"}'}).tools == {"tc_1": "react.write"}


def test_the_revision_of_every_block_is_known() -> None:
    made = timeline({}, {}, {})
    assert list(made.since_revision(10)) == [(11, 1), (12, 2)]
    assert list(made.since_revision(0)) == [(10, 0), (11, 1), (12, 2)]
    assert list(made.since_revision(12)) == []


@pytest.mark.parametrize(
    ("blocks", "hidden", "visible"),
    [
        ([{}], False, (0,)),
        ([{"hidden": True}], True, ()),
        ([{}, {"hidden": True}], True, (0,)),
        ([{"hidden": True}, {"meta": {"rel": "read"}}], False, (1,)),
    ],
)
def test_the_newest_block_says_whether_a_path_is_hidden(
    blocks: list[dict[str, Any]], hidden: bool, visible: tuple[int, ...]
) -> None:
    made = timeline(*({"path": PROMPT, **block} for block in blocks))
    assert (made.hidden(PROMPT), made.visible(PROMPT)) == (hidden, visible)


def test_a_path_that_was_never_told_is_not_hidden() -> None:
    assert not timeline().hidden(PROMPT)


@pytest.mark.rule("blocks.tool-results-live-in-the-timeline")
def test_the_newest_block_answers_for_a_path_that_is_no_file() -> None:
    call = {"type": "react.tool.call", "text": '{"tool_id":"t","tool_call_id":"tc_1"}'}
    path = "tc:turn_1.tc_1.result"
    made = timeline(call, {"path": path}, {"path": path, "mime": "application/json"})
    assert made.told(path) == {
        "artifact_path": path,
        "turn_id": "turn_1",
        "kind": "display",
        "mime": "application/json",
        "visibility": "external",
        "tool_call_id": "tc_1",
        "tool_id": "t",
        "edited": True,
        "version": 2,
        "ts": 12.0,
    }
    assert made.versions(path) == [
        {"version": 1, "origin": "told", "edited": False, "ts": 11.0, "tool_call_id": "tc_1"},
        {"version": 2, "origin": "told", "edited": True, "ts": 12.0, "tool_call_id": "tc_1"},
    ]


def test_the_program_of_a_call_is_a_file_without_a_place_on_disk() -> None:
    path = "fi:turn_1.code.tc_1"
    told = timeline({"type": "react.tool.code", "path": path}).told(path)
    assert told is not None
    assert told["kind"] == "file"


def test_copies_that_a_read_showed_are_no_versions() -> None:
    made = timeline({"path": PROMPT}, {"path": PROMPT, "meta": {"rel": "read"}})
    told = made.told(PROMPT)
    assert told is not None
    assert (told["version"], told["edited"]) == (1, False)
    assert len(made.versions(PROMPT)) == 1
    assert timeline({"path": PROMPT, "meta": {"rel": "read"}}).told(PROMPT) is None


SUMMARY_BLOCK = {"type": "conv.range.summary", "path": "su:turn_1.conv.range.summary"}


@pytest.mark.rule("render.slices-from-the-latest-summary")
@pytest.mark.parametrize(
    ("blocks", "summary", "kept_from"),
    [
        ([{}, {}], None, 0),
        ([{}, {}, {**SUMMARY_BLOCK, "meta": {"cut": 1}}], 2, 1),
        ([{}, {}, {**SUMMARY_BLOCK, "meta": {"cut": 1}}, {}, {**SUMMARY_BLOCK, "meta": {"cut": 3}}], 4, 3),
        ([{}, SUMMARY_BLOCK, {}], 1, 2),
        ([{}, {**SUMMARY_BLOCK, "meta": {"cut": 7}}, {}], 1, 2),
        ([{}, {**SUMMARY_BLOCK, "meta": {"cut": True}}, {}], 1, 2),
        ([{}, {**SUMMARY_BLOCK, "meta": {"cut": -1}}, {}], 1, 2),
        ([{}, {**SUMMARY_BLOCK, "meta": {"cut": 1, "rel": "read"}}], None, 0),
    ],
    ids=["none", "cut", "latest", "no cut", "cut ahead", "no number", "negative", "a copy"],
)
def test_the_latest_summary_says_where_the_kept_part_begins(
    blocks: list[dict[str, Any]], summary: int | None, kept_from: int
) -> None:
    made = timeline(*blocks)
    assert (made.summary, made.kept_from) == (summary, kept_from)


def test_a_summary_that_an_older_journal_holds_stands_for_all_before_it() -> None:
    made = Timeline()
    heads = [tell({"type": kind}, Defaults("turn_1", 1.0)).head for kind in ("note", "conv.range.summary", "note")]
    made.extend(range(3), heads)
    assert (made.summary, made.kept_from) == (1, 2)


def test_what_is_left_to_a_summary_is_not_in_view() -> None:
    made = timeline({"path": PROMPT}, {"path": "ar:turn_1.x"}, {**SUMMARY_BLOCK, "meta": {"cut": 1}})
    assert not made.in_view(PROMPT)
    assert made.in_view("ar:turn_1.x")
    assert made.in_view(SUMMARY_BLOCK["path"])
    assert not made.in_view("ar:turn_1.y")


def test_what_is_hidden_is_not_in_view_until_it_is_shown_again() -> None:
    made = timeline({"path": PROMPT})
    made.veil([0], "HIDDEN")
    assert not made.in_view(PROMPT)
    made.veil([0], None)
    assert made.in_view(PROMPT)
    assert list(made.veilings) == [0, 0]


@given(st.lists(st.tuples(st.sampled_from(["a", "b", "c"]), st.sampled_from([None, "x", "y"]))))
def test_every_block_is_in_the_index_exactly_once(told: list[tuple[str, str | None]]) -> None:
    paths = [f"ar:{turn}.{tail}" if tail else None for turn, tail in told]
    made = timeline(*({"turn_id": turn, "path": path} for (turn, _), path in zip(told, paths, strict=True)))
    assert len(made) == len(told)
    for turn in "abc":
        assert list(made.of_turn(turn)) == [at for at, (one, _) in enumerate(told) if one == turn]
    for path in {path for path in paths if path}:
        assert list(made.at(path)) == [at for at, one in enumerate(paths) if one == path]


def test_a_block_at_another_path_knows_the_artifacts_that_it_tells_of() -> None:
    file, other = "fi:turn_1.files/a.md", "fi:turn_1.files/b.md"
    result = {"type": "react.tool.result", "path": "tc:turn_1.tc_1.result", "text": "done"}
    digest = {**result, "mime": "application/json", "text": f'{{"artifact_path":"{file}"}}'}
    call = {"type": "react.tool.call", "text": '{"tool_id":"t","tool_call_id":"tc_1"}', "meta": {"about": [other]}}
    named = {**result, "meta": {"about": [other, file, "tc:turn_1.tc_1.call", "no path", 7]}}
    made = timeline(result, digest, call, named, {"path": file, "text": "hello", "meta": {"about": [other]}})
    assert made.abouts == {1: (file,), 2: (other,), 3: (file, other)}
    assert made.tools == {"tc_1": "t"}


def test_blocks_that_one_does_not_see_are_no_answer() -> None:
    made = timeline({"path": PROMPT, "mime": "text/plain"}, {"path": PROMPT, "mime": "text/html"})
    told = made.told(PROMPT, lambda number: number == 0)
    assert told is not None
    assert (told["mime"], told["version"]) == ("text/plain", 1)
    assert made.told(PROMPT, lambda _: False) is None
    assert len(made.versions(PROMPT, lambda number: number == 1)) == 1
