"""Reactions to turns, from one daemon and from several at once: none is lost, and each log tells of all of them."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from sidecar.core import limits
from sidecar.core.errors import StoreUnavailable
from sidecar.server.methods.turn import SAVING_LEAST
from sidecar.stores.folder_store import FolderStore
from tests.daemon_process import Workspace, eventually
from tests.radosgw import Radosgw
from tests.server.inside import Inside, awake

IDENTITY = {"tenant": "acme", "project": "inn", "user_id": "ann", "conversation_id": "c-rated"}


def talk(workspace: Workspace, turns: int = 1) -> Any:
    """A runtime that has had some turns."""
    runtime = workspace.connect("runtime", ceiling=60)
    for number in range(1, turns + 1):
        runtime.call("turn/begin", {"turn_id": f"turn_{number}", "prompt": "Hello"})
        runtime.call("turn/end", {"turn_id": f"turn_{number}", "completion": {"text": "Hello yourself"}})
    return runtime


def rating(text: str, reaction: str = "ok", origin: str = "user", **more: Any) -> dict[str, Any]:
    return {"turn_id": "turn_1", "reaction": reaction, "text": text, "origin": origin, **more}


def log_of(client: Any, turn: str = "turn_1") -> tuple[dict[str, Any], dict[str, Any]]:
    """The summary in the row of a turn's log, and its payload."""
    asked = {"kinds": ["turn.log"], "turn_ids": [turn], "with_payload": True}
    (item,) = client.call("conversation/recent", asked)["items"]
    assert "payload" in item, item
    return json.loads(item["text"]), item["payload"]


@pytest.mark.rule("store.reactions-are-saved")
def test_a_reaction_is_saved_with_the_shape_of_the_seed(workspace: Workspace) -> None:
    runtime = talk(workspace)
    saved = runtime.call("turn/feedback", rating("too long", "not_ok", ts="2026-02-01T10:00:00Z", confidence=0.5))
    assert saved["saved"]["kind"] == "turn.log.reaction"
    asked = {"kinds": ["turn.log.reaction"], "with_payload": True}
    (item,) = runtime.call("conversation/recent", asked)["items"]
    assert item["message_id"] == saved["saved"]["message_id"]
    assert set(item["tags"]) == {"artifact:turn.log.reaction", "turn:turn_1", "origin:user"}
    shape = {
        "turn_id": "turn_1",
        "text": "too long",
        "confidence": 0.5,
        "ts": "2026-02-01T10:00:00Z",
        "reaction": "not_ok",
        "origin": "user",
    }
    assert json.loads(item["text"]) == item["payload"] == shape


@pytest.mark.rule("store.user-reaction-replaces-machine-accumulates")
def test_a_users_reaction_replaces_the_former_and_machine_ones_accumulate(workspace: Workspace) -> None:
    runtime = talk(workspace)
    for text in ("first", "second"):
        runtime.call("turn/feedback", rating(text))
        runtime.call("turn/feedback", rating(f"machine {text}", "neutral", "machine"))
    (turn,) = runtime.call("conversation/fetch")["turns"]
    assert sorted(one["text"] for one in turn["feedbacks"]) == ["machine first", "machine second", "second"]


@pytest.mark.rule("store.feedback-is-mirrored-into-the-turn-log")
def test_feedback_is_mirrored_into_the_log_and_its_summary(workspace: Workspace) -> None:
    runtime = talk(workspace, turns=2)
    runtime.call("turn/feedback", rating("fine"))
    summary, payload = log_of(runtime)
    assert summary["feedback"]["count"] == 1
    assert summary["feedback"]["last_text"] == "fine"
    assert [one["text"] for one in payload["turn_log"]["feedbacks"]] == ["fine"]
    assert [one["msg"] for one in payload["turn_log"]["entries"]] == ["fine [ok]"]
    summary, payload = log_of(runtime, "turn_2")
    assert "feedback" not in summary


@pytest.mark.rule("store.latest-reaction-per-turn")
def test_the_latest_reaction_is_by_time_and_of_equal_times_the_last_to_arrive(workspace: Workspace) -> None:
    runtime = talk(workspace)
    for text, moment in (("late", 2000), ("early", 1000), ("late too", 2000)):
        runtime.call("turn/feedback", rating(text, origin="machine", ts=moment))
    (latest,) = runtime.call("conversation/reactions")["reactions"]
    assert latest["text"] == "late too"


def test_an_open_turn_can_be_rated_and_its_log_tells_of_it_once_it_is_saved(workspace: Workspace) -> None:
    runtime = workspace.connect("runtime")
    runtime.call("turn/begin", {"turn_id": "turn_1", "prompt": "Hello"})
    runtime.call("turn/feedback", rating("already"))
    runtime.call("turn/end", {"turn_id": "turn_1"})
    summary, payload = log_of(runtime)
    assert summary["feedback"]["count"] == 1
    assert [one["text"] for one in payload["turn_log"]["feedbacks"]] == ["already"]


@pytest.mark.rule("turns.feedback-of-an-unknown-turn-is-refused")
def test_an_unknown_turn_cannot_be_rated(workspace: Workspace) -> None:
    runtime = talk(workspace)
    assert runtime.refused("turn/feedback", {**rating("?"), "turn_id": "turn_9"}).kind == "unknown_turn"


def test_a_repeated_request_is_one_reaction(workspace: Workspace) -> None:
    runtime = talk(workspace)
    asked = rating("machine says", origin="machine", request_id="once")
    assert runtime.call("turn/feedback", asked) == runtime.call("turn/feedback", asked)
    assert log_of(runtime)[0]["feedback"]["count"] == 1


@pytest.mark.rule("store.concurrent-feedback-loses-nothing")
@pytest.mark.timeout(240)
@pytest.mark.parametrize("engine", ["sqlite", "postgresql"])
def test_fifty_reactions_from_four_daemons_at_once_are_all_there(
    make_workspace: Callable[..., Workspace],
    tmp_path: Path,
    engine: str,
    request: pytest.FixtureRequest,
) -> None:
    settings = {"store": str(tmp_path / "store"), "index": str(tmp_path / "index.db"), **IDENTITY}
    if engine == "postgresql":
        s3: Radosgw = request.getfixturevalue("s3")
        settings |= {
            "index": request.getfixturevalue("postgres_database"),
            "store": f"s3://{request.getfixturevalue('bucket')}/rated",
            "store_endpoint_url": s3.http,
        }
    writer = make_workspace(settings=settings).start()
    talk(writer)
    daemons = [writer, *(make_workspace(settings=settings).start() for _ in range(3))]
    clients = [daemon.connect("runtime", ceiling=60) for daemon in daemons for _ in range(2)]

    def rate(at: int) -> list[str]:
        texts = [f"machine {number}" for number in range(at, 50, len(clients))]
        for text in texts:
            clients[at].call("turn/feedback", rating(text, origin="machine"))
        return texts

    with ThreadPoolExecutor(len(clients)) as pool:
        given = sorted(text for texts in pool.map(rate, range(len(clients))) for text in texts)
    assert len(given) == 50
    for client in clients[::2]:

        def told(client: Any = client) -> bool:
            summary, payload = log_of(client)
            texts = sorted(one["text"] for one in payload["turn_log"]["feedbacks"])
            return summary["feedback"]["count"] == 50 and texts == given

        eventually(told, ceiling=30)
        (turn,) = client.call("conversation/fetch")["turns"]
        assert sorted(one["text"] for one in turn["feedbacks"]) == given
    for client in clients:
        client.close()


class Held(FolderStore):
    """A store that is held up while it is told to be, as one that hangs."""

    def __init__(self, root: str) -> None:
        super().__init__(root)
        self.puts, self.gets = threading.Event(), threading.Event()
        self.heal()

    def heal(self) -> None:
        self.puts.set()
        self.gets.set()

    def put(self, *args: Any, **named: Any) -> Any:
        self.puts.wait(60)
        return super().put(*args, **named)

    def get(self, *args: Any, **named: Any) -> Any:
        self.gets.wait(60)
        return super().get(*args, **named)


async def rated_turn(inside: Inside) -> None:
    await inside.begin()
    ended = await inside.ask("turn/end", {"turn_id": "turn_1", "completion": {"text": "Hello"}})
    assert ended["saved"]


async def test_a_store_that_hangs_is_not_waited_for_beyond_its_time(tmp_path: Path) -> None:
    store = Held(str(tmp_path / "store"))
    async with awake(tmp_path, store=store) as inside:
        await rated_turn(inside)
        inside.assembly.feedback.patience = 0.05
        store.puts.clear()
        try:
            with pytest.raises(StoreUnavailable, match="nothing was kept") as refused:
                await inside.ask("turn/feedback", rating("lost"))
            assert refused.value.fault == "timed_out"
        finally:
            store.heal()
        assert (await inside.ask("conversation/reactions"))["reactions"] == []


async def test_a_reaction_is_acknowledged_before_a_log_that_cannot_be_read_tells_of_it(tmp_path: Path) -> None:
    store = Held(str(tmp_path / "store"))
    async with awake(tmp_path, store=store) as inside:
        await rated_turn(inside)
        inside.assembly.feedback.patience = 1.0
        store.gets.clear()
        try:
            saved = await inside.ask("turn/feedback", rating("kept"))
            assert saved["saved"]["kind"] == "turn.log.reaction"
            mirroring = {*inside.assembly.feedback._under_way}
        finally:
            store.heal()
        await asyncio.wait(mirroring)
        (log,) = (await inside.ask("conversation/recent", {"kinds": ["turn.log"], "with_payload": True}))["items"]
        assert "kept" in log["text"]


async def test_the_end_of_a_turn_waits_for_hosting_and_saving_together(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store, waits = Held(str(tmp_path / "store")), list[float]()
    async with awake(tmp_path, store=store) as inside:
        await inside.begin()
        inside.write("turn_1/files/a.txt")
        saver, real_end = inside.assembly.saver, inside.assembly.saver.end

        async def end(turn_id: str, *, seconds: float) -> Any:
            waits.append(seconds)
            return await real_end(turn_id, seconds=seconds)

        monkeypatch.setattr(saver, "end", end)
        monkeypatch.setattr(limits, "HOSTING_WAIT", 0.3)
        store.puts.clear()
        try:
            ended = await inside.ask("turn/end", {"turn_id": "turn_1"})
        finally:
            store.heal()
        assert waits == [SAVING_LEAST], "hosting took all the time that there was"
        assert {one["code"] for one in ended["notices"]} == {"hosting_pending", "saving_pending"}
