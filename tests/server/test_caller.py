"""What a handler sees of its client, and how it tells of progress."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from sidecar.server.caller import UNHEARD, Caller, Client
from sidecar.server.peer import Peer
from tests.server.joined import Text, Workbench, join, service, until


class Heard:
    """A way to a client that notes what it was sent, and drops what may be dropped when told to."""

    def __init__(self) -> None:
        self.said: list[dict[str, Any]] = []
        self.far_behind = False

    def post(self, method: str, params: bytes) -> None:
        assert method == "$/progress"
        self.said.append(json.loads(params))

    def notify(self, method: str, params: bytes) -> bool:
        if not self.far_behind:
            self.post(method, params)
        return not self.far_behind

    def kinds(self) -> list[str]:
        return [told["value"]["kind"] for told in self.said]


def call(heard: Heard, *, token: str | int | None = "t") -> Caller:
    caller = Caller(Client(3, "exec", Peer(10, 20)), 1, "test/echo", size=0, post=heard)
    caller.token = token
    return caller


def test_a_caller_shows_its_client() -> None:
    caller = call(Heard())
    caller.client.labels["turn_id"] = "turn_1"
    caller.streams["s"] = 1
    caller.synced = 9
    assert (caller.id, caller.role, caller.peer, caller.labels) == (3, "exec", Peer(10, 20), {"turn_id": "turn_1"})
    assert (caller.client.streams, caller.client.synced) == ({"s": 1}, 9)


async def test_progress_begins_reports_and_ends_under_its_token() -> None:
    heard = Heard()
    progress = call(heard, token=7).progress("Looking")
    progress.report("half", 50)
    progress.end("done")
    assert heard.said == [
        {"token": 7, "value": {"kind": "begin", "title": "Looking", "cancellable": True}},
        {"token": 7, "value": {"kind": "report", "message": "half", "percentage": 50}},
        {"token": 7, "value": {"kind": "end", "message": "done"}},
    ]


async def test_without_a_token_nobody_hears_of_progress() -> None:
    heard = Heard()
    caller = call(heard, token=None)
    progress = caller.progress("Looking")
    progress.report("half", 50)
    progress.end()
    caller.finish()
    assert (progress, heard.said) == (UNHEARD, [])


async def test_reports_come_at_most_ten_times_a_second() -> None:
    heard = Heard()
    progress = call(heard).progress("Looking")
    for percentage in range(1000):
        progress.report(percentage=percentage)
    assert len(heard.said) == 2


async def test_reports_to_a_client_that_is_behind_are_left_out_and_the_end_is_not() -> None:
    heard = Heard()
    progress = call(heard).progress("Looking")
    heard.far_behind = True
    progress.report("half")
    progress.end()
    assert heard.kinds() == ["begin", "end"]


async def test_progress_ends_once_and_says_nothing_afterwards() -> None:
    heard = Heard()
    caller = call(heard)
    progress = caller.progress("Looking")
    progress.end()
    progress.report("more")
    caller.finish()
    assert heard.kinds() == ["begin", "end"]


async def test_a_request_has_one_progress() -> None:
    heard = Heard()
    caller = call(heard)
    assert caller.progress("Looking") is caller.progress("Hashing")
    assert heard.kinds() == ["begin"]


async def test_percentages_stay_between_0_and_100() -> None:
    heard = Heard()
    call(heard).progress("Looking").report(percentage=250)
    assert heard.said[1]["value"]["percentage"] == 100


async def test_threads_may_report() -> None:
    heard = Heard()
    progress = call(heard).progress("Looking")
    await asyncio.to_thread(progress.report, "from a thread")
    await asyncio.to_thread(progress.end)
    await until(lambda: len(heard.said) == 3)
    assert heard.kinds() == ["begin", "report", "end"]


@pytest.mark.rule("wire.long-work-reports-progress")
async def test_over_the_wire_progress_ends_before_the_answer_even_when_it_was_forgotten() -> None:
    async def forgetful(caller: Caller, params: Text) -> object:
        caller.progress("Looking").report("half", 50)
        return 1

    remote = await join(service(Workbench(), handlers={"test/forgetful": forgetful}))
    await remote.initialize()
    remote.ask(1, "test/forgetful", {"workDoneToken": "t"})
    said = [await remote.receive() for _ in range(4)]
    assert [message.get("method", "answer") for message in said] == ["$/progress"] * 3 + ["answer"]
    assert [message["params"]["value"]["kind"] for message in said[:3]] == ["begin", "report", "end"]
    await remote.drop()


async def test_a_request_can_be_cancelled_by_its_progress() -> None:
    bench = Workbench()

    async def long(caller: Caller, params: Text) -> object:
        caller.progress("Looking")
        return await bench.wait(caller, params)

    remote = await join(service(bench, handlers={"test/long": long}))
    await remote.initialize()
    remote.ask(1, "test/long", {"workDoneToken": "t"})
    await until(bench.entered.is_set)
    remote.tell("window/workDoneProgress/cancel", {"token": "t"})
    assert (await remote.answer())["error"]["code"] == -32800
    assert [message["params"]["value"]["kind"] for message in remote.notifications] == ["begin", "end"]
    await remote.drop()
