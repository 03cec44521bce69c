"""A turn log says all that a turn left, so that whoever reads it ends where the turn ended."""

from __future__ import annotations

from typing import Any

import orjson
import pytest

from sidecar.core.blocks import Defaults, tell
from sidecar.core.entries import BlockTold, CallBegun, Entry, FileSeen, Hosted, Used
from sidecar.core.happened import Happened, Turn
from sidecar.core.inventory import FileFact, StatKey
from sidecar.core.state import State
from sidecar.core.turn_log import Told, ToldUses, files_of, row_text, tokens_of, turn_log
from sidecar.pieces import members

PATH = "turn_1/files/a.txt"
LOGICAL = "fi:turn_1.files/a.txt"
ONE, TWO = "1" * 64, "2" * 64
TURN = Turn("turn_1", "p", 10.0, True, 20.5, "completed")


def block(**said: Any) -> BlockTold:
    return BlockTold(tell({"type": "note", **said}, Defaults("turn_1", 1.0)))


def seen(sha256: str, *, call: str = "", visibility: Any = "external", size: int = 3) -> FileSeen:
    fact = FileFact(PATH, StatKey(1, int(sha256[0]), size, 4, 5), sha256, "text/plain", kept=True)
    return FileSeen(fact, 1.5, call, visibility)


def folded(*entries: Entry) -> State:
    state = State()
    for seq, entry in enumerate(entries, start=1):
        state.apply(seq, entry, Happened())
    return state


def log_of(state: State, *, truncated: bool = False, **more: Any) -> dict[str, Any]:
    numbers = list(state.timeline.of_turn("turn_1"))
    told = Told(
        bodies=[b'{"n":%d}' % number for number in numbers],
        numbers=numbers,
        tokens=12,
        sources_used=[1, 3],
        truncated=truncated,
    )
    heads, tools = state.timeline.heads, state.timeline.tools
    used = ToldUses(state.calls.durable, state.uses)
    turn = more.pop("turn", TURN)
    payload = turn_log(turn, told, heads=heads, tools=tools, files=state.artifacts, used=used, **more)
    return orjson.loads(b"".join(members(payload)))


def test_the_log_has_its_fixed_members() -> None:
    call = {"type": "react.tool.call", "text": '{"tool_id":"exec","tool_call_id":"tc_1"}'}
    state = folded(block(), block(**call), block(**call))
    executed = {"exec_id": "exec_tc_1", "tool_call_id": "tc_1", "out": {}, "pkg": {}}
    assert log_of(state, executions=[executed]) == {
        "version": 1,
        "turn_id": "turn_1",
        "ts": "1970-01-01T00:00:10Z",
        "end_ts": "1970-01-01T00:00:20.500Z",
        "status": "completed",
        "params": "p",
        "blocks": [{"n": 0}, {"n": 1}, {"n": 2}],
        "indexes": [0, 1, 2],
        "sources_used": [1, 3],
        "blocks_count": 3,
        "tokens": 12,
        "calls": [{"tool_call_id": "tc_1", "tool_id": "exec"}],
        "files": [],
        "executions": [executed],
        "turn_log": {"feedbacks": [], "entries": []},
    }


def test_the_row_says_the_compact_json_of_the_seed() -> None:
    assert orjson.loads(row_text(log_of(folded(block())))) == {
        "turn_id": "turn_1",
        "ts": "1970-01-01T00:00:10Z",
        "end_ts": "1970-01-01T00:00:20.500Z",
        "sources_used": [1, 3],
        "blocks_count": 1,
        "tokens": 12,
    }


def test_a_turn_that_nobody_began_began_with_its_first_block_and_has_no_status() -> None:
    log = log_of(folded(block()), turn=Turn("turn_1", ""))
    assert (log["ts"], log["end_ts"], log["status"]) == ("1970-01-01T00:00:01Z", None, "")


def test_a_log_that_could_not_hold_every_block_says_so() -> None:
    assert log_of(folded(block()), truncated=True)["truncated"] is True


def test_every_state_that_was_seen_is_told_with_the_block_that_came_next() -> None:
    content = block(path=LOGICAL, text="abc", meta={"tool_call_id": "tc_1"})
    state = folded(
        block(),
        seen(ONE, call="tc_0"),
        Hosted(PATH, ONE, "file:///s/k", "ef:r", "k"),
        content,
        seen(TWO, visibility="internal", size=9),
    )
    (file,) = files_of(state.artifacts)
    assert file["physical_path"] == PATH
    assert file["visibility"] == "internal"
    common = {"ts": 1.5, "mime": "text/plain", "told": False}
    assert file["versions"] == [
        {
            **common,
            "before": 1,
            "call": "tc_0",
            "sha256": ONE,
            "size_bytes": 3,
            "hosted_uri": "file:///s/k",
            "rn": "ef:r",
            "key": "k",
            "hosted_at": 1,
        },
        {**common, "before": 2, "call": "", "sha256": TWO, "size_bytes": 9},
    ]


def test_what_was_only_told_is_no_file_of_the_log() -> None:
    assert files_of(folded(block(path=LOGICAL, text="abc")).artifacts) == []


def test_a_call_without_a_tool_is_no_call_of_the_log() -> None:
    state = folded(block(meta={"tool_call_id": "tc_9"}))
    assert log_of(state)["calls"] == []


OUT, NOTE = "fi:turn_1.files/out", "ar:turn_1.context.artifact.n"
CALLED = {"type": "react.tool.call", "text": '{"tool_id":"exec","tool_call_id":"tc_1"}'}


def with_uses() -> State:
    return folded(
        CallBegun("tc_1", "turn_1", "exec", 1.0, watched=True),
        block(**CALLED),
        Used("tc_1", (LOGICAL, "so:sources_pool[1]"), "declared"),
        Used("tc_1", (OUT,), "observed"),
        Used("tc_1", (LOGICAL,), "observed"),
        block(type="context.artifact", path=NOTE),
        Used("", (), "declared", NOTE),
        Used("tc_9", (OUT,), "declared", "ar:turn_2.context.artifact.other"),
    )


def test_a_log_says_what_its_calls_and_its_records_used_in_order() -> None:
    log = log_of(with_uses())
    assert log["calls"] == [
        {
            "tool_call_id": "tc_1",
            "tool_id": "exec",
            "watched": True,
            "uses": [
                {"how": "observed", "nodes": [LOGICAL]},
                {"how": "declared", "nodes": ["so:sources_pool[1]"]},
                {"how": "observed", "nodes": [OUT]},
            ],
        }
    ]
    assert log["made_of"] == [{"path": NOTE, "calls": [""], "uses": []}]


def test_a_call_whose_uses_do_not_fit_is_told_as_one_that_was_not_watched(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sidecar.core.turn_log.USES_BYTES", len(LOGICAL))
    log = log_of(with_uses())
    assert log["calls"] == [{"tool_call_id": "tc_1", "tool_id": "exec"}]
    assert "made_of" not in log


@pytest.mark.parametrize(
    ("said", "tokens"),
    [({"text": "abcde"}, 2), ({"base64": "AAAAAAAA"}, 1), ({"text": "abcd", "base64": "AAAAAAAA"}, 2), ({}, 0)],
)
def test_a_block_counts_as_its_text_and_its_bytes(said: dict[str, Any], tokens: int) -> None:
    assert tokens_of(said) == tokens
