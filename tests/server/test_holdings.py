"""What the clients of one role hold together: who holds the most has to go, and only for clients of its role."""

from __future__ import annotations

from dataclasses import replace

import pytest

from sidecar.core import limits
from sidecar.server.holdings import Holdings
from sidecar.server.routes import Handler
from sidecar.server.service import Service
from tests.rpc_client import frame
from tests.server.joined import Remote, Workbench, join, service, until

pytestmark = pytest.mark.rule("faults.a-crowd-of-clients-is-bounded")


class Holder:
    def __init__(self) -> None:
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
