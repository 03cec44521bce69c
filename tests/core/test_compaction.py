"""Where the timeline may be cut, which turns that covers, and what a summary has to keep."""

from __future__ import annotations

from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sidecar.core.blocks import SHOWN, SUMMARY, TURN, TYPE, Defaults, Head, tell
from sidecar.core.compaction import (
    CUT_POINTS,
    artifact_digest,
    artifacts_list,
    check_cut,
    choose_cut,
    coverage,
    cut_summary,
    files_lists,
    is_cut_point,
    is_of,
    tool_outputs,
)
from sidecar.core.entries import BlockTold, FileSeen
from sidecar.core.errors import BadSelector, Stale
from sidecar.core.happened import Happened
from sidecar.core.inventory import FileFact, StatKey
from sidecar.core.state import State

DIGEST = {
    "artifact_path": "fi:turn_1.files/a.md",
    "mime": "text/markdown",
    "tool_call_id": "tc_1",
    "description": "of a",
}


def head(kind: str, turn: str = "t1", call: str = "", flags: int = 0) -> Head:
    return (kind, turn, 0.0, "text/markdown", "", call, flags)


def heads(*kinds: str) -> list[Head]:
    """`header@t1`, `prompt@t1`, `call:a@t1`, `result:a@t1` and so on as heads."""
    names = {
        "header": "turn.header",
        "prompt": "user.prompt",
        "done": "assistant.completion",
        "call": "react.tool.call",
        "result": "react.tool.result",
        "summary": SUMMARY,
    }
    made: list[Head] = []
    for text in kinds:
        kind, _, turn = text.partition("@")
        kind, _, call = kind.partition(":")
        made.append(head(names.get(kind, kind), turn or "t1", call))
    return made


def cut(told: list[Head], keep: int, *, start: int = 0, tokens: list[int] | None = None) -> int | None:
    return choose_cut(told, tokens or [10] * (len(told) - start), start=start, keep=keep)


class World:
    """A state that everything is applied to at once."""

    def __init__(self) -> None:
        self.state = State()

    def apply(self, *entries: Any) -> World:
        for entry in entries:
            mark = self.state.revision + 1
            self.state.decide(entry, mark)
            self.state.apply(mark, entry, Happened())
        return self

    def tell(self, **block: Any) -> World:
        return self.apply(BlockTold(tell({"type": "react.tool.result", **block}, Defaults("turn_1", 1.0))))

    def see(self, path: str) -> World:
        fact = FileFact(path, StatKey(1, 2, 3, 4, 5), "aa", "text/plain", kept=True)
        return self.apply(FileSeen(fact, 1.0, "", "external"))


@pytest.mark.rule("compaction.cuts-at-stated-points")
def test_the_kept_part_begins_at_one_of_four_types() -> None:
    allowed = {"user.prompt", "assistant.completion", "react.tool.call", "turn.header"}
    others = {"react.tool.result", "react.notice", "conv.range.summary", "react.note", "user.attachment"}
    assert {kind for kind in allowed | others if is_cut_point(head(kind))} == allowed == CUT_POINTS


@pytest.mark.rule("compaction.cuts-at-stated-points")
def test_a_copy_that_a_read_showed_is_no_cut_point() -> None:
    assert not is_cut_point(head("user.prompt", flags=SHOWN))


TURNS = heads(
    "header", "prompt", "call:a", "result:a", "done", "header@t2", "prompt@t2", "call:b@t2", "result:b@t2", "done@t2"
)


@pytest.mark.parametrize(
    ("keep", "expected"),
    [
        (100, None),  # all of it
        (99, 2),  # after the header and the prompt of the first turn
        (60, 4),
        (55, 5),
        (50, 5),
        (40, 5),  # the second turn's header is shown again anyway
        (30, 7),
        (10, 9),
        (0, 9),  # nothing fits: the latest cut there is
    ],
)
def test_the_earliest_cut_that_leaves_few_enough_tokens_is_chosen(keep: int, expected: int | None) -> None:
    assert cut(TURNS, keep) == expected


@pytest.mark.rule("compaction.nothing-to-cut-is-null")
@pytest.mark.parametrize("told", [[], heads("header"), heads("prompt", "result", "result"), heads("result", "note")])
def test_without_a_cut_point_nothing_is_cut(told: list[Head]) -> None:
    assert cut(told, 0) is None


def test_the_first_kept_block_is_no_new_cut() -> None:
    assert cut(TURNS, 0, start=9) is None
    assert cut(TURNS, 0, start=8) == 9


def test_a_cut_between_a_call_and_its_result_is_second_choice() -> None:
    told = heads("prompt", "call:a", "call:b", "result:a", "result:b", "done")
    assert cut(told, 40) == 5
    # With nothing behind the calls, one of them is torn from its result rather than keeping more than was asked.
    assert cut(told[:-1], 30) == 2
    assert cut(told[:-1], 0) == 1


def test_results_of_calls_that_were_cut_before_hold_nothing_up() -> None:
    told = heads("call:a", "prompt", "result:a", "done")
    assert cut(told, 25, start=1) == 3
    assert cut(told, 5, start=1) == 3


KINDS = st.sampled_from(["header", "prompt", "done", "call:a", "call:b", "result:a", "result:b", "note", "summary"])


@pytest.mark.rule("compaction.cuts-at-stated-points")
@given(
    st.lists(st.tuples(KINDS, st.sampled_from(["t1", "t2"]), st.integers(0, 30))),
    st.integers(0, 200),
    st.integers(0, 5),
)
def test_a_cut_lies_behind_the_start_at_a_cut_point_and_leaves_no_more_than_it_must(
    blocks: list[tuple[str, str, int]], keep: int, start: int
) -> None:
    told = heads(*(f"{kind}@{turn}" for kind, turn, _ in blocks))
    tokens = [count for _, _, count in blocks][start:]
    chosen = choose_cut(told, tokens, start=start, keep=keep)
    says = [number for number in range(start, len(told)) if told[number][TYPE] not in ("turn.header", SUMMARY)]
    points = [number for number in range(len(told)) if says and number > says[0] and is_cut_point(told[number])]
    if sum(tokens) <= keep or not points:
        assert chosen is None
        return
    assert chosen in points
    fitting = [number for number in points if sum(tokens[number - start :]) <= keep]
    if fitting:
        # A header in front of the cut may come on top, since it would be shown again anyway.
        while (
            told[chosen][TYPE] == "turn.header"
            and chosen + 1 in points
            and told[chosen + 1][TURN] == told[chosen][TURN]
        ):
            chosen += 1
        assert sum(tokens[chosen - start :]) <= keep


def test_a_cut_leaves_more_than_headers_to_the_summary() -> None:
    assert cut(heads("header", "summary", "prompt"), 0) is None


@pytest.mark.rule("compaction.a-cut-inside-a-turn-splits-it")
@pytest.mark.parametrize(
    ("at", "covered", "split", "path"),
    [
        (2, (), "t1", "su:t1.conv.range.summary"),
        (5, ("t1",), None, "su:t1.conv.range.summary"),
        (6, ("t1",), None, "su:t1.conv.range.summary"),  # only the header of the second turn is before it
        (7, ("t1",), "t2", "su:t1.conv.range.summary"),
        (1, (), None, "su:t1.conv.range.summary"),
    ],
)
def test_a_turn_is_covered_whole_or_split(at: int, covered: tuple[str, ...], split: str | None, path: str) -> None:
    found = coverage(TURNS, start=0, cut=at, before={})
    assert (found.covered_turn_ids, found.split_turn_id, found.path) == (covered, split, path)


def test_a_later_summary_covers_what_the_one_before_it_covered() -> None:
    before = {"covered_turn_ids": ["t0", 7, "a.b"]}
    assert coverage(TURNS, start=2, cut=5, before=before).covered_turn_ids == ("t0", "t1")
    assert coverage(TURNS, start=0, cut=5, before={"covered_turn_ids": "t0"}).covered_turn_ids == ("t1",)


def test_a_summary_in_between_belongs_to_no_turn() -> None:
    told = heads("prompt@t1", "summary@t0", "prompt@t2")
    assert coverage(told, start=0, cut=2, before={}).covered_turn_ids == ("t1",)


def test_a_cut_must_be_new_and_at_a_cut_point() -> None:
    world = World().tell(type="user.prompt").tell().tell(type="user.prompt").tell(type="user.prompt")
    timeline = world.state.timeline
    check_cut(timeline, 2)
    for wrong in (1, 4, 2**53):
        with pytest.raises(BadSelector):
            check_cut(timeline, wrong)
    world.tell(type=SUMMARY, meta={"cut": 2})
    with pytest.raises(Stale) as late:
        check_cut(timeline, 2)
    assert (late.value.expected, late.value.actual) == ("2", "2")
    check_cut(timeline, 3)


@pytest.mark.rule("compaction.keeps-the-metadata-blocks")
def test_a_digest_is_made_of_a_hidden_block_and_of_one_that_lost_its_metadata() -> None:
    path = "fi:turn_1.files/b.md"
    world = World()
    world.tell(mime="application/json", path="tc:turn_1.tc_1.result", text=orjson.dumps(DIGEST).decode(), hidden=True)
    world.tell(
        path=path, text="b", meta={"digest": '{"description":"of b"}', "rn": "ef:x", "hosted_uri": "s3://b", "key": "k"}
    )
    found = {one["artifact_path"]: one for one in (artifact_digest(a, {"tc_1": "exec"}) for a in world.state.artifacts)}
    assert found["fi:turn_1.files/a.md"]["description"] == "of a"
    assert found["fi:turn_1.files/a.md"]["tool_id"] == "exec"
    assert found[path]["description"] == "of b"
    assert found[path]["physical_path"] == "turn_1/files/b.md"
    assert not found[path].keys() & {"hosted_uri", "rn", "key"}
    (told,) = artifacts_list(found.values())
    assert [orjson.loads(line) for line in told.splitlines()[1:-1]] == list(found.values())


def test_an_artifact_is_of_the_blocks_that_tell_of_it() -> None:
    world = World().tell(type="note").tell(path="fi:turn_1.files/a.md", text="a").see("turn_1/files/a.md")
    (artifact,) = world.state.artifacts
    assert is_of(artifact, frozenset(), start=0, cut=2)
    assert not is_of(artifact, frozenset(), start=0, cut=1)
    assert not is_of(artifact, frozenset({"turn_1"}), start=2, cut=3)


def test_a_file_that_was_only_seen_is_of_its_folders_turn() -> None:
    (artifact,) = World().see("turn_1/files/a.md").state.artifacts
    assert is_of(artifact, frozenset({"turn_1"}), start=0, cut=1)
    assert not is_of(artifact, frozenset({"turn_2"}), start=0, cut=1)


def test_nothing_told_is_an_empty_list() -> None:
    assert list(artifacts_list(())) == []
    assert list(files_lists(World().state.timeline, (), start=0, cut=0)) == []


def test_results_of_calls_are_listed_once_with_their_tool() -> None:
    world = World().tell(type="react.tool.call", path="tc:turn_1.tc_1.call", text='{"tool_id":"exec"}')
    for _ in range(2):
        world.tell(path="tc:turn_1.tc_1.result", text="{}")
    world.tell(path="tc:turn_1.tc_2.result", text="{}").tell(path="fi:turn_1.files/a", text="a")
    assert tool_outputs(world.state.timeline, start=0, cut=9) == [
        {"path": "tc:turn_1.tc_1.result", "tool_call_id": "tc_1", "tool_id": "exec"},
        {"path": "tc:turn_1.tc_2.result", "tool_call_id": "tc_2"},
    ]
    assert tool_outputs(world.state.timeline, start=0, cut=1) == []


def test_files_that_were_read_and_changed_are_listed() -> None:
    world = World().tell(path="fi:turn_1.files/a", text="a", meta={"rel": "read", "tool_call_id": "tc_1"})
    changed = [
        {"artifact_path": "fi:turn_1.files/b", "edited": True},
        {"artifact_path": "fi:turn_1.files/c", "edited": False},
    ]
    assert list(files_lists(world.state.timeline, changed, start=0, cut=1)) == [
        "<read-files>\nfi:turn_1.files/a\n</read-files>",
        "<modified-files>\nfi:turn_1.files/b\n</modified-files>",
    ]


def test_a_summary_names_only_what_may_be_named() -> None:
    digest = {
        "artifacts": [{"artifact_path": "fi:a"}, {"artifact_path": "fi:b"}],
        "tool_outputs": [{"path": "tc:a"}, {"path": "tc:b"}],
        "hidden_blocks": [{"path": "fi:b", "blocks": 1}, {"index": 3}, {"index": 4}],
        "forgotten": ["fi:a", "fi:b", 7.5],
        "unresolved": ["x"],
    }
    summary = {"type": "conv.range.summary", "meta": {"cut": 1, "compaction_digest": digest}}
    cut = cut_summary(summary, lambda name: name in ("fi:a", "tc:a", 3))
    assert cut["meta"] == {
        "cut": 1,
        "compaction_digest": {
            "artifacts": [{"artifact_path": "fi:a"}],
            "tool_outputs": [{"path": "tc:a"}],
            "hidden_blocks": [{"index": 3}],
            "forgotten": ["fi:a"],
            "unresolved": ["x"],
        },
    }
    assert summary["meta"]["compaction_digest"] is digest
    other = {**summary, "type": "x"}
    assert cut_summary(other, lambda _: False) is other
