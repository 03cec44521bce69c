"""What was saved is taken in again, and is then as it was: blocks, versions, hosting, veils, sources, turns."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sidecar.core import limits
from sidecar.core.entries import BlockTold, Noticed, TurnEnded
from sidecar.core.lineage import Trace
from sidecar.core.paths import parse_physical
from sidecar.core.resumed import Reach, Resuming
from sidecar.core.state import State
from sidecar.core.uses import How
from tests.core.saved_story import IDENTITY, Story, take_over

FILES = ("turn_1/files/a.txt", "turn_1/files/b.txt", "turn_2/files/a.txt")
CONTENTS = ("one", "two", "three")

file, content = st.sampled_from(FILES), st.sampled_from(CONTENTS)
deeds = st.lists(
    st.one_of(
        st.tuples(st.just("call")),
        st.tuples(st.just("watched_call")),
        st.tuples(st.just("use"), file, st.sampled_from(["declared", "observed"])),
        st.tuples(st.just("record"), st.sampled_from(["r", "s"]), st.booleans(), st.one_of(st.just(""), file)),
        st.tuples(st.just("end_call")),
        st.tuples(st.just("turn")),
        st.tuples(st.just("see"), file, content),
        st.tuples(st.just("see_quietly"), file, content),
        st.tuples(st.just("lose"), file),
        st.tuples(st.just("host"), file),
        st.tuples(st.just("digest"), file, st.one_of(st.none(), content)),
        st.tuples(st.just("content"), file, content),
        st.tuples(st.just("write"), file, content),
        st.tuples(st.just("read"), file, content),
        st.tuples(st.just("hide"), file),
    ),
    max_size=25,
)


def logical(physical: str) -> str:
    return str(parse_physical(physical).logical)


class Doing:
    """Does what hypothesis chose, one call after the other, as an agent loop would."""

    def __init__(self) -> None:
        self.story = Story()
        self.story.begin("turn_1")
        self._turns = 1
        self._calls = 0
        self._open = ""

    def all_of(self, chosen: list[tuple[Any, ...]]) -> Story:
        for name, *more in chosen:
            getattr(self, f"_{name}")(*more)
        self._end_call()
        self.story.end(f"turn_{self._turns}")
        return self.story

    @property
    def _latest(self) -> str:
        if not self._calls:
            self._call()
        return f"tc_{self._calls}"

    def _call(self, *, watched: bool = False) -> None:
        self._end_call()
        self._calls += 1
        self._open = f"tc_{self._calls}"
        self.story.call(self._open, f"turn_{self._turns}", watched=watched)

    def _watched_call(self) -> None:
        self._call(watched=True)

    def _use(self, path: str, how: How) -> None:
        self.story.use(self._latest, logical(path), how)

    def _record(self, name: str, called: bool, path: str) -> None:
        self.story.record(name, self._latest if called else "", logical(path) if path else "")

    def _end_call(self) -> None:
        if self._open:
            self.story.end_call(self._open)
            self._open = ""

    def _turn(self) -> None:
        self._end_call()
        self.story.end(f"turn_{self._turns}")
        self._turns += 1
        self.story.begin(f"turn_{self._turns}")

    def _see(self, path: str, said: str) -> None:
        self.story.see(path, said, self._open)

    def _see_quietly(self, path: str, said: str) -> None:
        self.story.see(path, said)

    def _lose(self, path: str) -> None:
        self.story.lose(path)

    def _host(self, path: str) -> None:
        self.story.host(path)

    def _digest(self, path: str, said: str | None) -> None:
        self.story.digest(path, self._latest, said)

    def _content(self, path: str, said: str) -> None:
        self.story.content(path, self._latest, said)

    def _write(self, path: str, said: str) -> None:
        self._call()
        self.story.see(path, said, self._open)
        self.story.digest(path, self._open, said)
        self.story.content(path, self._open, said)

    def _read(self, path: str, said: str) -> None:
        self.story.shown(path, said, self._latest)

    def _hide(self, path: str) -> None:
        turn, _, rest = path.partition("/")
        self.story.hide(f"fi:{turn}.{rest}", "nothing to see")


@pytest.mark.rule("store.a-conversation-is-resumed-from-the-store")
@settings(deadline=None, max_examples=200)
@given(deeds)
def test_what_was_saved_is_as_it_was(chosen: list[tuple[Any, ...]]) -> None:
    story = Doing().all_of(chosen)
    other = take_over(story)
    before, after = story.known(), other.known()
    for part in before:
        assert after[part] == before[part], part
    assert not other.state.files
    assert other.state.turn_id == ""


@settings(deadline=None, max_examples=60)
@given(deeds, deeds)
def test_who_follows_has_what_who_began_anew_has(first: list[tuple[Any, ...]], second: list[tuple[Any, ...]]) -> None:
    doing = Doing()
    doing.all_of(first)
    follower = take_over(doing.story)
    doing._turn()
    doing.all_of(second)
    follower = take_over(doing.story, follower)
    anew = take_over(doing.story)
    before, after = anew.known(), follower.known()
    for part in before:
        assert after[part] == before[part], part


def incomplete(entries: list[Any]) -> list[dict[str, Any]]:
    said = [entry.notice for entry in entries if isinstance(entry, Noticed)]
    return [{name: one[name] for name in ("code", "count", "reason")} for one in said]


def two_turns() -> Story:
    doing = Doing()
    doing._write(FILES[0], "one")
    doing._turn()
    return doing.all_of([("write", FILES[2], "two")])


def test_blocks_that_no_log_has_leave_hidden_placeholders() -> None:
    story = two_turns()
    lost = len(story.state.timeline.of_turn("turn_1"))
    resuming = Resuming(State(), IDENTITY, len(story.bodies))
    other = Story()
    other.apply(*resuming.take(story.log("turn_2")))
    rest = resuming.finish(story.pool(), story.timeline())
    other.apply(*rest)
    assert incomplete(rest) == [{"code": "conversation_incomplete", "count": lost, "reason": "lost"}]
    assert [head[6] & 1 for head in other.state.timeline.heads] == [1] * lost + [0] * (len(story.bodies) - lost)
    assert {head[0] for head in other.state.timeline.heads[:lost]} == {"system.message"}
    kept = story.known()["blocks"][lost:]
    assert other.known()["blocks"][lost:] == kept


def test_placeholders_are_saved_and_taken_in_as_what_they_are() -> None:
    story = two_turns()
    resuming = Resuming(State(), IDENTITY, len(story.bodies))
    second = Story()
    second.apply(*resuming.take(story.log("turn_2")))
    second.apply(*resuming.finish(story.pool(), story.timeline()))
    third = take_over(second)
    assert third.known()["blocks"] == second.known()["blocks"]
    assert third.known()["hidden"] == second.known()["hidden"]


def test_a_block_beyond_what_is_saved_is_held_over_until_those_before_it_come() -> None:
    """A late block of an ended turn is saved while the next turn is open."""
    story = two_turns()
    end = len(story.bodies) - 3
    resuming = Resuming(State(), IDENTITY, end)
    for log in story.logs():
        resuming.take(log)
    assert resuming.held_over
    assert resuming.lost == 0
    follower = take_over(story, end=end)
    assert len(follower.bodies) == end
    assert take_over(story, follower).known() == take_over(story).known()


@pytest.mark.rule("store.pool-is-loaded-at-turn-start")
def test_a_number_that_was_given_is_never_given_again_though_its_row_is_lost() -> None:
    resuming = Resuming(State(), IDENTITY, 0)
    rows = [{"sid": 1, "url": "https://example.com"}, {"sid": "two"}, "no row", {"sid": 3, "source_type": "odd"}]
    other = Story()
    other.apply(*resuming.finish({"sources_pool": rows, "max_sid": 7}, None))
    assert resuming.left_out == 3
    assert list(other.state.pool.sids) == [1]
    assert other.state.pool.highest == 7


MALFORMED: tuple[Any, ...] = (
    None,
    [],
    {"turn_id": 7},
    {"turn_id": "turn.1"},
    {"turn_id": "turn_1", "blocks": [7, {}, {"type": 7}, {"type": "a", "ts": "never"}], "indexes": [0, 1, 2, 3, 4]},
    {"turn_id": "turn_1", "blocks": [{"type": "a", "meta": 7}], "indexes": ["x"]},
    {"turn_id": "turn_1", "blocks": {"type": "a"}, "indexes": 7, "calls": [{"tool_call_id": "a b"}, 7], "files": 7},
    {"turn_id": "turn_1", "files": [7, {"physical_path": "../x"}, {"physical_path": "turn_1/files/a", "versions": 7}]},
    {"turn_id": "turn_1", "calls": [{"tool_call_id": "a", "tool_id": "x", "uses": [{"how": "dreamt", "nodes": 7}]}]},
    {
        "turn_id": "turn_1",
        "calls": [{"tool_call_id": "a", "tool_id": "x", "uses": [{"how": "declared", "nodes": [7]}]}],
    },
    {"turn_id": "turn_1", "made_of": [{"path": "../x", "calls": [""]}, {"path": "ar:turn_1.a", "uses": 7}]},
    {"turn_id": "turn_1", "files": [{"physical_path": "turn_1/files/a", "versions": [7, {"ts": "x"}, {"ts": -1}]}]},
)


@pytest.mark.parametrize("log", MALFORMED)
def test_what_cannot_be_taken_in_is_left_out_and_told(log: object) -> None:
    resuming = Resuming(State(), IDENTITY, 2)
    other = Story()
    other.apply(*resuming.take(log))
    rest = resuming.finish(7, [])
    other.apply(*rest)
    assert len(other.bodies) == 2
    assert len(incomplete(rest)) == 1


json = st.recursive(
    st.none() | st.booleans() | st.integers(-1, 9) | st.text(max_size=3) | st.sampled_from(["turn_1", "a", *FILES]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(sorted(
        {"turn_id", "blocks", "indexes", "type", "meta", "hidden", "ts", "files", "versions", "physical_path", "path",
         "sha256", "hosted_uri", "rn", "key", "hosted_at", "before", "calls", "tool_call_id", "tool_id", "status",
         "made_of", "uses", "how", "nodes", "watched"}
    )), inner, max_size=6),
    max_leaves=25,
)  # fmt: skip


@settings(deadline=None, max_examples=300)
@given(st.lists(json, max_size=3), json, json)
def test_nothing_that_was_saved_can_make_it_raise(logs: list[Any], pool: Any, timeline: Any) -> None:
    resuming = Resuming(State(), IDENTITY, 3)
    other = Story()
    for log in logs:
        turn = {**log, "turn_id": "turn_1"} if isinstance(log, dict) else log
        other.apply(*resuming.take(turn))
    other.apply(*resuming.finish(pool, timeline))
    assert len(other.bodies) == 3


def traced(story: Story, path: str) -> tuple[list[str], bool]:
    trace = Trace(story.state, "up", lambda _: True)
    list(trace.follow([path], 5))
    return [edge.source for edge in trace.edges], trace.complete


def made_with_care() -> Story:
    """All that was used is known: by a call with a channel of its own, and by a record."""
    story = Story()
    story.begin("turn_1")
    story.see(FILES[0], "one")
    story.call("tc_1", "turn_1", watched=True)
    story.use("tc_1", logical(FILES[0]), "observed")
    story.see(FILES[1], "two", "tc_1")
    story.end_call("tc_1")
    story.record("r", "", logical(FILES[0]))
    story.end("turn_1")
    return story


RECORD = "ar:turn_1.context.artifact.r"


@pytest.mark.parametrize("path", [logical(FILES[1]), RECORD])
def test_lineage_is_known_by_whoever_takes_over(path: str) -> None:
    story = made_with_care()
    assert traced(story, path) == traced(take_over(story), path) == ([logical(FILES[0])], True)


@pytest.mark.parametrize("path", [logical(FILES[1]), RECORD])
def test_what_was_saved_without_its_uses_is_not_said_to_be_all(path: str) -> None:
    log = made_with_care().log("turn_1")
    del log["made_of"]
    for call in log["calls"]:
        del call["watched"], call["uses"]
    other = Story()
    other.apply(*Resuming(State(), IDENTITY, 9).take(log))
    assert traced(other, path) == ([], False)


def test_a_call_whose_uses_are_damaged_was_not_watched() -> None:
    log = made_with_care().log("turn_1")
    log["calls"][0]["uses"][0]["nodes"].append("no path")
    resuming, other = Resuming(State(), IDENTITY, 9), Story()
    other.apply(*resuming.take(log))
    assert resuming.left_out == 1
    assert traced(other, logical(FILES[1])) == ([logical(FILES[0])], False)


def test_no_more_uses_are_taken_in_than_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    log = made_with_care().log("turn_1")
    nodes = [f"fi:turn_1.files/{number}" for number in range(9)]
    log["calls"][0]["uses"] = [{"how": "observed", "nodes": nodes[:6]}, {"how": "declared", "nodes": nodes[6:]}]
    log["calls"] *= 2
    monkeypatch.setattr(limits, "USES_PER_CALL", 7)
    other = Story()
    other.apply(*Resuming(State(), IDENTITY, 9).take(log))
    assert list(other.state.uses.of["tc_1"]) == nodes[:7]


def test_a_turn_is_never_open_while_it_is_taken_in() -> None:
    story = two_turns()
    resuming = Resuming(State(), IDENTITY, len(story.bodies))
    other = Story()
    for log in story.logs():
        for entry in resuming.take(log):
            other.apply(entry)
            if isinstance(entry, TurnEnded | BlockTold):
                assert other.state.turn_id == ""


def test_how_far_something_is_known_survives_its_spelling() -> None:
    reach = Reach(3, 5, 7)
    assert Reach.of(reach.fact()) == reach
    assert Reach.of(None) == Reach.of({"change": "x", "next_block": -1}) == Reach()
    assert reach.and_also(Reach(9, 1, 1)) == Reach(9, 5, 7)
