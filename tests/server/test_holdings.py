"""What the clients of one role hold together: who holds the most has to go, and only for clients of its role."""

from __future__ import annotations

import asyncio
import gc
import random
import weakref
from dataclasses import replace

import pytest

from sidecar.core import limits
from sidecar.core.errors import TooLarge
from sidecar.server.caller import Caller, Client
from sidecar.server.framing import FrameReader
from sidecar.server.holdings import Holdings
from sidecar.server.routes import Handler
from sidecar.server.service import Service
from tests.rpc_client import frame
from tests.server.joined import Remote, Text, Workbench, join, service, until

pytestmark = pytest.mark.rule("faults.a-crowd-of-clients-is-bounded")


class Holder:
    def __init__(self, program: int = 1) -> None:
        self.program = program
        self.gave_way = 0

    def give_way(self) -> None:
        self.gave_way += 1


def test_the_limit_is_that_of_the_house() -> None:
    assert Holdings().most == limits.HELD_BYTES


def test_who_holds_the_most_gives_way_and_nobody_else() -> None:
    holdings, holders = Holdings(100), [Holder() for _ in range(4)]
    for holder, held in zip(holders, (30, 50, 20, 1), strict=True):
        holdings.note("exec", holder, held)
    assert ([one.gave_way for one in holders], holdings.held("exec")) == ([0, 1, 0, 0], 51)


def test_as_many_give_way_as_need_to() -> None:
    holdings, holders = Holdings(100), [Holder() for _ in range(3)]
    for holder, held in zip(holders, (60, 40, 300), strict=True):
        holdings.note("exec", holder, held)
    assert ([one.gave_way for one in holders], holdings.held("exec")) == ([0, 0, 1], 100)
    holdings.note("exec", holders[1], 200)
    assert ([one.gave_way for one in holders], holdings.held("exec")) == ([0, 1, 1], 60)


def test_a_crowd_of_one_program_costs_another_one_nothing() -> None:
    holdings, honest, crowd = Holdings(100), Holder(1), [Holder(2) for _ in range(20)]
    holdings.note("exec", honest, 30)
    for holder in crowd:
        holdings.note("exec", holder, 5)
    holdings.note("exec", crowd[15], 6)
    assert (honest.gave_way, sum(one.gave_way for one in crowd), crowd[15].gave_way) == (0, 7, 1)


def test_it_is_told_once_when_most_of_what_was_much_is_gone() -> None:
    told: list[int] = []
    holdings, holder = Holdings(160, relieved=lambda: told.append(holdings.held("exec"))), Holder()
    for held in (40, 0, 41, 11, 41, 10, 0, 30, 0):
        holdings.note("exec", holder, held)
    assert told == [10]


def test_roles_are_counted_apart() -> None:
    holdings, program, editor = Holdings(100), Holder(), Holder()
    holdings.note("exec", program, 90)
    holdings.note("editor", editor, 90)
    assert (program.gave_way, editor.gave_way) == (0, 0)


def test_what_is_let_go_counts_no_more() -> None:
    holdings, one, other = Holdings(100), Holder(), Holder()
    for _ in range(10):
        holdings.note("exec", one, 60)
        holdings.note("exec", one, 0)
        holdings.note("exec", other, 90)
        holdings.note("exec", other, 10)
        holdings.note("exec", other, 0)
    assert (one.gave_way, other.gave_way, holdings.held("exec")) == (0, 0, 0)


# Connections


TEXT = "x" * 1_000_000
MESSAGE = frame({"jsonrpc": "2.0", "id": 1, "method": "test/echo", "params": {"text": TEXT}})
HALF = 600_000


def bounded(most: int, handlers: dict[str, Handler] | None = None, *, bench: Workbench | None = None) -> Service:
    made = service(bench or Workbench(), handlers=handlers, soft_bytes=50_000)
    return replace(made, holdings=Holdings(most))


async def hoarder(made: Service, *, role: str = "exec", size: int = HALF) -> Remote:
    """A client that has sent so much of a message, and not its end."""
    remote = await join(made, role=role)
    await remote.initialize()
    remote.send_bytes(MESSAGE[:size])
    await until(lambda: remote.connection._leaving or remote.connection._frames.held > size - 100)
    return remote


async def is_behind(remote: Remote) -> None:
    await until(lambda: remote.connection._outbox.behind)


async def is_leaving(remote: Remote) -> None:
    await until(lambda: remote.connection._leaving)


async def is_served(remote: Remote) -> bool:
    return (await remote.call(99, "test/echo", {"text": "well"}))["result"]["text"] == "well"


async def test_half_messages_of_many_clients_are_bounded_and_who_sent_the_most_is_told() -> None:
    made = bounded(1_500_000)
    one, editor = await hoarder(made), await hoarder(made, role="editor", size=900_000)
    greedy, other = await hoarder(made, size=700_000), await hoarder(made)
    (told,) = await greedy.closed()
    assert (told["id"], "hold more than 1500000 bytes" in told["error"]["message"]) == (None, True)
    for remote, had in ((one, HALF), (other, HALF), (editor, 900_000)):
        remote.send_bytes(MESSAGE[had:])
        assert (await remote.answer())["result"]["text"] == TEXT
        await remote.drop()
    assert (made.holdings.held("exec"), made.holdings.held("editor")) == (0, 0)


async def test_answers_that_nobody_reads_are_bounded_over_all_clients() -> None:
    made = bounded(10_000_000, {"test/long": lambda caller, params: TEXT + TEXT})
    mutes = [await join(made) for _ in range(10)]
    other = await join(made)
    await other.initialize()
    for mute in mutes:
        await mute.initialize()
        mute.reader._transport.pause_reading()  # type: ignore[attr-defined]
        mute.ask(1, "test/long")
        assert await is_served(other)
    cut_off = [mute for mute in mutes if mute.connection.gone.is_set()]
    assert 5 <= len(cut_off) <= 7
    assert 0 < made.holdings.held("exec") <= 10_000_000
    for mute in mutes:
        await mute.drop()
    assert made.holdings.held("exec") == 0
    assert await is_served(other)
    await other.drop()


async def test_finished_answers_that_wait_for_room_are_counted() -> None:
    gate = asyncio.Event()
    begun = 0

    async def long(caller: Caller, params: Text) -> object:
        nonlocal begun
        begun += 1
        await gate.wait()
        return TEXT + TEXT

    made = service(Workbench(), handlers={"test/long": long}, bulky={"test/long"}, soft_bytes=50_000)
    remote = await join(made)
    await remote.initialize()
    remote.reader._transport.pause_reading()  # type: ignore[attr-defined]
    for number in range(4):
        remote.ask(number, "test/long")
    await until(lambda: begun == 4)
    gate.set()
    await until(lambda: made.holdings.held("exec") > 7_500_000)
    remote.reader._transport.resume_reading()  # type: ignore[attr-defined]
    assert {(await remote.answer())["id"] for _ in range(4)} == {0, 1, 2, 3}
    await until(lambda: made.holdings.held("exec") == 0)
    await remote.drop()


async def test_a_long_answer_counts_for_as_much_of_it_as_was_not_read() -> None:
    made = bounded(100_000_000, {"test/long": lambda caller, params: TEXT * 8})
    remote = await join(made)
    await remote.initialize()
    remote.ask(1, "test/long")
    await until(lambda: made.holdings.held("exec") > 1_000_000)
    counted = set[int]()
    reading = asyncio.create_task(remote.answer())
    while not reading.done():
        counted.add(made.holdings.held("exec") // 1_000_000)
        await asyncio.sleep(0)
    assert len(counted) > 4
    await remote.drop()


async def test_who_is_given_up_is_counted_until_it_has_gone() -> None:
    async def long(caller: Caller, params: Text) -> object:
        await asyncio.sleep(0)
        return TEXT + TEXT

    made = bounded(3_000_000, {"test/long": long})
    remotes = [await join(made) for _ in range(5)]
    for remote in remotes:
        await remote.initialize()
        remote.reader._transport.pause_reading()  # type: ignore[attr-defined]
        remote.ask(1, "test/long")
        await is_behind(remote)
        remote.send_bytes(b"this is no header\n\n")
        await is_leaving(remote)
    assert sum(remote.connection._transport is not None for remote in remotes) <= 1
    assert made.holdings.held("exec") <= 3_000_000
    for remote in remotes:
        await remote.drop()
    assert made.holdings.held("exec") == 0


async def test_one_that_gives_way_costs_nobody_else_anything() -> None:
    async def long(caller: Caller, params: Text) -> object:
        await asyncio.sleep(0)
        return "x" * int(params.text)

    bench = Workbench()
    made = bounded(3_000_000, {"test/long": long}, bench=bench)
    greedy, other = await join(made), await join(made)
    for remote, size in ((greedy, 2_000_000), (other, 1_900_000)):
        await remote.initialize()
        remote.reader._transport.pause_reading()  # type: ignore[attr-defined]
        remote.ask(1, "test/wait")
        remote.ask(2, "test/long", {"text": str(size)})
        await is_behind(remote)
    await until(greedy.connection.gone.is_set)
    for _ in range(20):
        await asyncio.sleep(0.001)
    assert not other.connection.gone.is_set()
    await other.drop()


async def test_what_a_client_had_sent_is_gone_with_it() -> None:
    """Not when somebody collects cycles: half messages, streams, and answers that were cancelled."""
    made = service(Workbench(), soft_bytes=50_000)
    gc.collect()
    gc.disable()
    try:
        left: list[tuple[FrameReader, Client]] = []
        for _ in range(3):
            remote = await hoarder(made)
            remote.connection.client.streams["s"] = object()
            remote.connection.client.kept = 5
            left.append((remote.connection._frames, remote.connection.client))
            await remote.drop()
        assert [(frames.held, client.streams, client.kept) for frames, client in left] == [(0, {}, 0)] * 3
    finally:
        gc.enable()


async def test_params_of_requests_under_way_are_counted() -> None:
    bench = Workbench()
    made = bounded(1_000_000, bench=bench)
    remote = await join(made)
    await remote.initialize()
    for number in range(3):
        remote.ask(number, "test/wait", {"text": "x" * 300_000})
    await until(lambda: made.holdings.held("exec") >= 900_000)
    bench.gate.set()
    assert sorted([(await remote.answer())["id"] for _ in range(3)]) == [0, 1, 2]
    await until(lambda: made.holdings.held("exec") == 0)
    await remote.drop()


async def test_what_a_request_that_failed_had_in_hand_is_gone_with_it() -> None:
    in_hand: list[weakref.ref[Workbench]] = []

    async def fails(caller: Caller, params: Text) -> object:
        held = Workbench()
        in_hand.append(weakref.ref(held))
        await asyncio.sleep(0)
        raise TooLarge("test/fails", "at most none")

    remote = await join(service(Workbench(), handlers={"test/fails": fails}))
    await remote.initialize()
    gc.collect()
    gc.disable()
    try:
        assert "error" in await remote.call(1, "test/fails")
        assert [one() for one in in_hand] == [None]
    finally:
        gc.enable()
    await remote.drop()


@pytest.mark.rule("answers.long-ones-come-in-turn")
@pytest.mark.parametrize("seed", range(6))
async def test_a_client_of_any_rhythm_gets_all_its_answers(seed: int) -> None:
    """It sends in pieces of any size, long and short, reads now and then, and may close its way out behind the last."""
    chance = random.Random(seed)

    async def sized(caller: Caller, params: Text) -> object:
        await asyncio.sleep(chance.random() * 0.005)
        return "z" * int(params.text)

    bounds = {"soft_bytes": 50_000, "bytes_in_flight": 200_000, "in_flight": 8, "frame_seconds": 1.0}
    handlers = {"test/some": sized, "test/long": sized}
    made = service(Workbench(), handlers=handlers, bulky={"test/long"}, frame_step_bytes=20_000, **bounds)
    remote = await join(made)
    await remote.initialize()
    asked = b"".join(
        frame({
            "jsonrpc": "2.0", "id": number, "method": chance.choice(("test/some", "test/long", "test/echo")),
            "params": {"text": chance.choice(("10", "60000", "1500000")), "path": "p" * chance.choice((0, 1_200_000))},
        })
        for number in range(30)
    )  # fmt: skip

    async def send() -> None:
        at = 0
        while at < len(asked):
            piece = asked[at : at + chance.choice((1000, 40_000, 300_000))]
            at += len(piece)
            remote.writer.write(piece)
            await remote.writer.drain()
            await asyncio.sleep(chance.random() * 0.002)
        if chance.random() < 0.5:
            remote.writer.write_eof()

    sending = asyncio.create_task(send())
    answered = set[int]()
    for _ in range(30):
        answered.add((await remote.answer())["id"])
        await asyncio.sleep(chance.random() * 0.02)
    await sending
    assert answered == set(range(30))
    await remote.drop()
    assert made.holdings.held("exec") == 0
