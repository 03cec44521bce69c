"""What was made of what: up and down, in circles, cut where a limit or a role cuts, and only then called complete."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sidecar.core import limits
from sidecar.core.blocks import Defaults, tell
from sidecar.core.entries import BlockTold, CallBegun, Entry, FileSeen, SourceSet, Used
from sidecar.core.happened import Happened
from sidecar.core.inventory import FileFact, StatKey
from sidecar.core.lineage import Direction, Trace, named_in, nodes_of, source_node
from sidecar.core.paths import parse
from sidecar.core.state import State
from sidecar.pacing import at_once

WEB = "so:sources_pool[1]"


def fi(name: str) -> str:
    return f"fi:turn_1.files/{name}"


def begun(call: str, *, watched: bool = True) -> CallBegun:
    return CallBegun(call, "turn_1", "exec", 1.0, watched)


def made(name: str, call: str, sha256: str = "a") -> FileSeen:
    key = StatKey(1, 2, 3, 4, 5)
    fact = FileFact(f"turn_1/files/{name}", key, sha256 * 64, "text/plain", kept=True)
    return FileSeen(fact, 1.0, call, "external")


def used(call: str, *names: str) -> Used:
    return Used(call, tuple(fi(name) for name in names), "observed")


def told(**block: object) -> BlockTold:
    return BlockTold(tell(block, Defaults("turn_1", 1.0)))


def world(*entries: Entry) -> State:
    state = State()
    for seq, entry in enumerate(entries, start=1):
        state.apply(seq, entry, Happened())
    return state


def chain(length: int) -> State:
    """0 went into 1, 1 into 2, and so on."""
    return world(
        made("0", ""),
        *(
            entry
            for at in range(1, length + 1)
            for entry in (begun(f"tc_{at}"), used(f"tc_{at}", str(at - 1)), made(str(at), f"tc_{at}"))
        ),
    )


Edges = list[tuple[str, str, str, str]]


def trace(
    state: State,
    path: str,
    direction: Direction,
    depth: int = 3,
    sees: Callable[[str], bool] = lambda _: True,
) -> tuple[Edges, bool]:
    walk = Trace(state, direction, sees)
    at_once(walk.follow(nodes_of(state, parse(path)), depth))
    return [(edge.source, edge.target, edge.tool_call_id, edge.how) for edge in walk.edges], walk.complete


@pytest.mark.rule("lineage.edges-are-declared-or-observed")
def test_what_a_call_used_went_into_what_it_made() -> None:
    uses = (Used("tc_1", (fi("a"),), "observed"), Used("tc_1", (WEB,), "declared"))
    state = world(SourceSet({"sid": 1, "url": "http://x"}), begun("tc_1"), *uses, made("b", "tc_1"))
    both = [(fi("a"), fi("b"), "tc_1", "observed"), (WEB, fi("b"), "tc_1", "declared")]
    assert trace(state, fi("b"), "up") == (both, True)
    assert trace(state, fi("a"), "down") == (both[:1], True)
    assert trace(state, "sources_pool[1]", "down") == (both[1:], True)


def test_what_a_text_cites_went_into_it() -> None:
    state = world(
        SourceSet({"sid": 1, "url": "http://x"}),
        SourceSet({"sid": 2, "physical_path": "turn_1/files/a", "artifact_path": fi("a")}),
        made("a", ""),
        begun("tc_1"),
        made("b", "tc_1"),
        told(
            type="react.tool.result",
            mime="text/plain",
            path=fi("b"),
            text="see [[S:1,2]]",
            meta={"tool_call_id": "tc_1", "sources_used": [1, 2, 9]},
        ),
    )
    up, complete = trace(state, fi("b"), "up")
    assert up == [(WEB, fi("b"), "tc_1", "observed"), (fi("a"), fi("b"), "tc_1", "observed")]
    assert complete
    assert trace(state, fi("a"), "down")[0] == up[1:]
    assert trace(state, WEB, "down")[0] == up[:1]


def test_every_version_was_made_by_its_call() -> None:
    state = world(
        *(begun("tc_1"), used("tc_1", "a"), made("c", "tc_1")),
        *(begun("tc_2"), used("tc_2", "b"), made("c", "tc_2", "b")),
    )
    expected = [(fi("a"), fi("c"), "tc_1", "observed"), (fi("b"), fi("c"), "tc_2", "observed")]
    assert trace(state, fi("c"), "up") == (expected, True)
    assert trace(state, fi("a"), "down")[0] == expected[:1]


def test_what_reads_its_own_earlier_state_is_not_made_of_itself() -> None:
    state = world(begun("tc_1"), used("tc_1", "a"), made("a", "tc_1"))
    assert trace(state, fi("a"), "up") == ([], True)
    assert trace(state, fi("a"), "down") == ([], True)


def test_what_says_itself_what_it_was_made_of_shares_that_with_nothing_else_of_its_call() -> None:
    draft = "ar:turn_1.context.artifact.draft"
    state = world(
        begun("tc_1"),
        told(type="context.artifact", path=draft, text="x", meta={"tool_call_id": "tc_1"}),
        Used("tc_1", (fi("a"),), "declared", by=draft),
        Used("tc_1", (fi("b"),), "observed"),
        made("c", "tc_1"),
    )
    assert trace(state, draft, "up")[0] == [
        (fi("a"), draft, "tc_1", "declared"),
        (fi("b"), draft, "tc_1", "observed"),
    ]
    assert trace(state, fi("c"), "up")[0] == [(fi("b"), fi("c"), "tc_1", "observed")]
    assert trace(state, fi("a"), "down")[0] == [(fi("a"), draft, "tc_1", "declared")]


def test_what_a_call_answered_was_made_of_what_it_used() -> None:
    result = "tc:turn_1.tc_1.result"
    state = world(begun("tc_1"), used("tc_1", "a"), told(type="react.tool.result", path=result, text="done"))
    assert trace(state, result, "up")[0] == [(fi("a"), result, "tc_1", "observed")]


# How far


@pytest.mark.parametrize(("depth", "edges", "complete"), [(1, 1, False), (3, 3, False), (4, 4, True), (10, 4, True)])
@pytest.mark.parametrize("direction", ["up", "down"])
def test_depth_cuts_and_says_so(direction: Direction, depth: int, edges: int, complete: bool) -> None:
    found, whole = trace(chain(4), fi("4" if direction == "up" else "0"), direction, depth)
    assert (len(found), whole) == (edges, complete)


def test_what_is_nearest_comes_first() -> None:
    found, _ = trace(chain(4), fi("4"), "up", 10)
    assert [source for source, *_ in found] == [fi(name) for name in "3210"]


@pytest.mark.parametrize("direction", ["up", "down"])
def test_a_circle_is_walked_once(direction: Direction) -> None:
    state = world(
        *(begun("tc_1"), used("tc_1", "a"), made("b", "tc_1")),
        *(begun("tc_2"), used("tc_2", "b"), made("a", "tc_2")),
    )
    both = [(fi("a"), fi("b"), "tc_1", "observed"), (fi("b"), fi("a"), "tc_2", "observed")]
    found, complete = trace(state, fi("a"), direction, 10)
    assert sorted(found) == sorted(both)
    assert complete


def test_more_edges_than_an_answer_holds_are_cut_and_said_to_be(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "LINEAGE_EDGES", 6)
    state = world(begun("tc_1"), used("tc_1", *"abcd"), *(made(name, "tc_1") for name in "xyz"))
    assert trace(state, fi("x"), "up") == ([(fi(name), fi("x"), "tc_1", "observed") for name in "abcd"], True)
    found = [trace(state, fi(name), "down") for name in "ab"]
    assert [(len(edges), complete) for edges, complete in found] == [(3, True), (3, True)]
    state = world(begun("tc_1"), used("tc_1", *"abcdefgh"), made("x", "tc_1"))
    edges, complete = trace(state, fi("x"), "up")
    assert (len(edges), complete) == (6, False)


# How much is known


def test_a_call_without_a_channel_may_have_read_what_nobody_knows() -> None:
    state = world(begun("tc_1", watched=False), used("tc_1", "a"), made("b", "tc_1"))
    assert trace(state, fi("b"), "up") == ([(fi("a"), fi("b"), "tc_1", "observed")], False)


def test_a_call_that_was_only_told_of_is_not_known_in_full() -> None:
    digest = {"artifact_path": fi("b"), "mime": "text/plain", "kind": "file"}
    block = told(
        type="react.tool.result", mime="application/json", text=str(digest).replace("'", '"'),
        path="tc:turn_1.tc_9.result", meta={"tool_call_id": "tc_9"},
    )  # fmt: skip
    assert trace(world(block), fi("b"), "up") == ([], False)


def test_what_came_of_something_is_not_all_known_while_any_call_was_blind() -> None:
    state = world(made("a", ""), begun("tc_1", watched=False), made("b", "tc_1"))
    assert trace(state, fi("a"), "down") == ([], False)
    assert trace(state, fi("b"), "down") == ([], True)  # no other call made anything


def test_a_call_with_as_many_uses_as_are_kept_may_have_had_more(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "USES_PER_CALL", 2)
    state = world(begun("tc_1"), used("tc_1", "a", "b"), made("c", "tc_1"))
    assert trace(state, fi("c"), "up")[1] is False


def test_what_came_from_no_call_has_no_origin() -> None:
    assert trace(world(made("a", "")), fi("a"), "up") == ([], True)


def test_what_may_not_be_known_is_as_if_it_were_not_there() -> None:
    state = chain(3)
    assert trace(state, fi("3"), "up", 10, lambda node: node != fi("1"))[0] == [(fi("2"), fi("3"), "tc_3", "observed")]
    assert trace(state, fi("3"), "up", 1, lambda node: node != fi("1"))[1] is True


# Names


def test_a_source_is_its_file_where_it_has_one() -> None:
    state = world(
        SourceSet({"sid": 1, "url": "http://x"}),
        SourceSet({"sid": 2, "physical_path": "turn_1/files/a", "artifact_path": fi("a")}),
    )
    assert [source_node(state, sid) for sid in (1, 2)] == [WEB, fi("a")]
    assert nodes_of(state, parse("so:sources_pool[1-999999999]")) == (WEB, fi("a"))


def test_only_what_is_known_is_named_in_params() -> None:
    state = world(SourceSet({"sid": 1, "url": "http://x"}), made("a", ""))
    params = {
        "text": "turn_1/files/a is a path in a sentence",
        "path": "turn_1/files/a",
        "others": [{"deep": "so:sources_pool[1,7]"}, "fi:turn_1.files/nothing", "fi:../x", 3, None, "a"],
    }
    assert named_in(state, params) == (fi("a"), WEB)


NAMES = st.sampled_from("abcdef")
CALLS = st.lists(st.tuples(st.lists(NAMES, max_size=4), st.lists(NAMES, min_size=1, max_size=3)), max_size=6)


@given(CALLS)
def test_up_and_down_tell_of_the_same_edges(calls: list[tuple[list[str], list[str]]]) -> None:
    entries: list[Entry] = []
    for at, (reads, makes) in enumerate(calls):
        call = f"tc_{at}"
        entries += [begun(call), used(call, *reads), *(made(name, call, str(at)) for name in dict.fromkeys(makes))]
    state = world(*entries)
    up = {edge for name in "abcdef" for edge in trace(state, fi(name), "up", 10)[0]}
    down = {edge for name in "abcdef" for edge in trace(state, fi(name), "down", 10)[0]}
    assert up == down
