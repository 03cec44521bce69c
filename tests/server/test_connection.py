"""One client and its bytes: what it sends, and how it fails to read, harms nobody else."""

from __future__ import annotations

import asyncio
import json
import random
import socket
import threading
import time
from collections.abc import Callable
from typing import Any

import pytest

from sidecar.hands import Hands
from sidecar.server.caller import Caller
from sidecar.server.connection import Connection
from sidecar.server.peer import Peer
from tests.server.joined import CEILING, Remote, Text, Workbench, framed, join, service, until

INIT = {"jsonrpc": "2.0", "id": "init", "method": "initialize", "params": {"capabilities": {}}}


async def ready(bench: Workbench, **arguments: Any) -> Remote:
    remote = await join(service(bench, **arguments))
    await remote.initialize()
    return remote


async def round_trip(remote: Remote) -> None:
    assert "result" in await remote.call("ping", "test/echo")


def echo(number: object, text: str = "") -> bytes:
    return framed({"jsonrpc": "2.0", "id": number, "method": "test/echo", "params": {"text": text}})


# Framing faults, as a client sees them: one -32600 without an id, then the end. Others go on.

LIES = [
    ("no Content-Length", b"Content-Type: x\r\n\r\n{}"),
    ("a length beyond the limit", b"Content-Length: 8000000000\r\n\r\n"),
    ("a length of 23 digits", b"Content-Length: 99999999999999999999999\r\n\r\n"),
    ("a length of 5,000 digits", b"Content-Length: " + b"9" * 5000 + b"\r\n\r\n"),
    ("a negative length", b"Content-Length: -5\r\n\r\n"),
    ("5 MB of header", b"x" * 5_000_000),
    ("a header of many lines", b"A: b\r\n" * 2000),
    ("something else than the protocol", b"GET / HTTP/1.1\r\nHost: a\r\n\r\n"),
    ("a length that is too small", b"Content-Length: 5\r\n\r\n" + json.dumps(INIT).encode() + echo(1)),
]


@pytest.mark.rule("faults.a-lying-length-ends-that-client-only")
@pytest.mark.parametrize("lie", [row[1] for row in LIES], ids=[row[0] for row in LIES])
async def test_a_framing_fault_is_told_and_ends_its_own_connection(lie: bytes) -> None:
    made = service(Workbench())
    liar, honest = await join(made), await join(made)
    await honest.initialize()
    liar.send_bytes(lie)
    said = await liar.closed()
    assert said[-1]["id"] is None
    assert said[-1]["error"]["code"] == -32600
    assert "result" in await honest.call(1, "test/echo")
    await honest.drop()


async def test_a_client_that_is_still_sending_hears_what_was_wrong() -> None:
    ours, theirs = socket.socketpair()
    connection = Connection(service(Workbench()), "exec", Peer(1, 0))
    await asyncio.get_running_loop().connect_accepted_socket(lambda: connection, ours)
    await asyncio.to_thread(theirs.sendall, b"x" * 5_000_000)
    assert b"-32600" in theirs.recv(65536)
    theirs.close()
    await until(connection.gone.is_set)


async def test_requests_before_a_framing_fault_are_answered() -> None:
    remote = await ready(Workbench())
    remote.send_bytes(echo(1) + echo(2) + b"nonsense\r\n")
    assert [message["id"] for message in await remote.closed()] == [1, 2, None]


@pytest.mark.parametrize(
    "head", [b"content-length: %d\r\n\r\n", b"Content-Length:%d\n\n", b"CONTENT-LENGTH: %d\r\nX-Other: 1\r\n\r\n"]
)
async def test_every_client_that_spells_its_headers_otherwise_is_served(head: bytes) -> None:
    remote = await ready(Workbench())
    for number in (1, 2):
        body = echo(number).partition(b"\r\n\r\n")[2]
        remote.send_bytes(head % len(body) + body)
        assert (await remote.answer())["id"] == number
    await remote.drop()


async def test_a_stream_cut_anywhere_gives_the_same_answers() -> None:
    chance = random.Random(7)
    remote = await ready(Workbench())
    stream = b"".join(echo(number, "ü" * number) for number in range(40))
    while stream:
        size = chance.randint(1, 90)
        remote.send_bytes(stream[:size])
        stream = stream[size:]
        await asyncio.sleep(0)
    assert [(await remote.answer())["result"]["text"] for _ in range(40)] == ["ü" * number for number in range(40)]
    await remote.drop()


# Slow senders


async def test_a_frame_that_does_not_end_in_time_ends_the_connection() -> None:
    remote = await ready(Workbench(), frame_seconds=0.05)
    remote.send_bytes(b"Content-Length: 100\r\n\r\n{")
    said = await remote.closed()
    assert "longer than" in said[0]["error"]["message"]


@pytest.mark.rule("faults.only-a-clients-own-delay-counts")
async def test_a_daemon_that_stands_still_in_the_middle_of_a_frame_still_takes_it() -> None:
    remote = await ready(Workbench(), frame_seconds=0.2)
    whole = echo(1, "x" * 1_000_000)
    remote.send_bytes(whole[:10])
    await until(lambda: remote.connection._frames.midway)
    time.sleep(0.5)  # noqa: ASYNC251 - the daemon's own thread
    remote.send_bytes(whole[10:])
    assert (await remote.answer())["result"]["text"] == "x" * 1_000_000
    await remote.drop()


class Told:
    """A deadline that only notes what it is told."""

    def __init__(self) -> None:
        self.words: list[str] = []

    def __getattr__(self, word: str) -> Callable[..., None]:
        return lambda *_: self.words.append(word)


async def test_the_deadline_counts_from_the_first_byte_of_each_frame() -> None:
    remote = await ready(Workbench())
    remote.connection._deadline = told = Told()  # type: ignore[assignment]
    one, two = echo(1), echo(2)
    for piece in (one[:10], one[10:20], one[20:] + two[:10], two[10:]):
        remote.connection.data_received(piece)
    assert told.words == ["more", "more", "begin", "end"]
    assert [(await remote.answer())["id"], (await remote.answer())["id"]] == [1, 2]
    remote.connection._read(False)
    remote.connection.data_received(one[:10])
    remote.connection._read(True)
    assert told.words[4:] == ["end", "more", "begin"]  # the pause was ours, and is not counted
    await remote.drop()


# Clients that do not read


@pytest.mark.rule("faults.a-slow-reader-is-bounded")
async def test_a_client_that_does_not_read_is_not_read_either() -> None:
    made = service(Workbench(), soft_bytes=50_000)
    mute, other = await join(made), await join(made)
    await mute.initialize()
    await other.initialize()
    mute.reader._transport.pause_reading()  # type: ignore[attr-defined]
    served = mute.connection.client

    async def flood() -> None:
        for number in range(200):
            mute.writer.write(echo(number, "x" * 100_000))
            await mute.writer.drain()

    flooding = asyncio.create_task(flood())
    await until(lambda: mute.connection.queued > 50_000)
    for _ in range(20):
        await round_trip(other)
    assert mute.connection.queued < 50_000 + 256 * 1024 + 100_100
    assert (mute.connection._reading, mute.connection._work_is_near) == (False, False)
    assert served in [guest.client for guest in _guests(made)]
    mute.reader._transport.resume_reading()  # type: ignore[attr-defined]
    assert [(await mute.answer())["id"] for _ in range(200)] == list(range(200))
    await flooding
    await mute.drop()
    await other.drop()


async def test_small_questions_with_large_answers_are_held_back_in_the_middle_of_a_batch() -> None:
    handlers = {"test/large": lambda caller, params: "x" * 100_000}
    remote = await ready(Workbench(), handlers=handlers, soft_bytes=50_000, seconds_at_once=60)
    remote.reader._transport.pause_reading()  # type: ignore[attr-defined]
    for number in range(60):
        remote.ask(number, "test/large")
    await until(lambda: remote.connection.queued)
    assert remote.connection.queued < 50_000 + 256 * 1024 + 100_100
    remote.reader._transport.resume_reading()  # type: ignore[attr-defined]
    assert [(await remote.answer())["id"] for _ in range(60)] == list(range(60))
    await remote.drop()


def _guests(made: Any) -> list[Any]:
    return made.joined.__self__


@pytest.mark.rule("faults.a-slow-reader-is-bounded")
async def test_a_client_that_leaves_too_much_unread_is_cut_off_and_others_are_not() -> None:
    bench = Workbench()

    async def heavy(caller: Caller, params: Text) -> object:
        await bench.gate.wait()
        return "x" * 100_000

    made = service(bench, handlers={"test/heavy": heavy}, soft_bytes=50_000, hard_bytes=1_000_000)
    mute, other = await join(made), await join(made)
    await mute.initialize()
    await other.initialize()
    mute.reader._transport.pause_reading()  # type: ignore[attr-defined]
    for number in range(100):
        mute.ask(number, "test/heavy")
    await until(lambda: len(mute.connection._dispatch.running) == 100)
    bench.gate.set()
    async with asyncio.timeout(CEILING):
        await mute.connection.gone.wait()
    await round_trip(other)
    await other.drop()


@pytest.mark.rule("answers.long-ones-come-in-turn")
async def test_a_client_that_reads_gets_all_that_it_asked_for_at_once_however_much_it_is() -> None:
    made_now = most = 0

    async def long(caller: Caller, params: Text) -> object:
        nonlocal made_now, most
        made_now += 1
        most = max(most, made_now)
        await asyncio.sleep(0)
        made_now -= 1
        return "x" * 400_000

    bounds = {"soft_bytes": 50_000, "hard_bytes": 500_000, "bulky_at_once": 3}
    remote = await join(service(Workbench(), handlers={"test/long": long}, bulky={"test/long"}, **bounds))
    await remote.initialize()
    for number in range(20):
        remote.ask(number, "test/long")
    assert [(await remote.answer())["result"] == "x" * 400_000 for _ in range(20)] == [True] * 20
    assert most <= 3
    await remote.drop()


@pytest.mark.rule("answers.long-ones-come-in-turn")
async def test_what_ends_while_a_very_long_answer_is_unread_comes_behind_it() -> None:
    handlers = {"test/long": lambda caller, params: "x" * 2_000_000}
    bench = Workbench()
    remote = await join(service(bench, handlers=handlers, soft_bytes=50_000, hard_bytes=500_000))
    await remote.initialize()
    remote.reader._transport.pause_reading()  # type: ignore[attr-defined]
    for number in range(20):
        remote.ask(number, "test/wait")
    await until(lambda: len(remote.connection._dispatch.running) == 20)
    remote.ask(20, "test/long")
    await until(lambda: remote.connection._outbox.choked)
    bench.gate.set()
    await until(lambda: not remote.connection._dispatch.running)
    remote.reader._transport.resume_reading()  # type: ignore[attr-defined]
    assert [(await remote.answer())["id"] for _ in range(21)] == [20, *range(20)]
    await remote.drop()


@pytest.mark.rule("answers.long-ones-come-in-turn")
async def test_a_long_answer_that_waits_its_turn_is_held_in_no_way_out_and_can_be_cancelled() -> None:
    begun = 0

    async def long(caller: Caller, params: Text) -> object:
        nonlocal begun
        begun += 1
        return "x" * 2_000_000

    bounds = {"soft_bytes": 50_000, "hard_bytes": 2_500_000, "bulky_at_once": 2}
    made = service(Workbench(), handlers={"test/long": long}, bulky={"test/long"}, **bounds)
    mute, other = await join(made), await join(made)
    await mute.initialize()
    await other.initialize()
    mute.reader._transport.pause_reading()  # type: ignore[attr-defined]
    for number in range(50):
        mute.ask(number, "test/long")
    await until(lambda: mute.connection._outbox.choked)
    for _ in range(10):
        await round_trip(other)
    assert (begun <= 3, mute.connection.queued <= 2_100_000) == (True, True)
    for number in range(40, 50):
        mute.connection._dispatch.take(b'{"jsonrpc":"2.0","method":"$/cancelRequest","params":{"id":%d}}' % number)
    mute.reader._transport.resume_reading()  # type: ignore[attr-defined]
    answers = [await mute.answer() for _ in range(50)]
    assert sorted(one["id"] for one in answers if "result" in one) == list(range(40))
    assert {one["error"]["code"] for one in answers if "error" in one} == {-32800}
    await mute.drop()
    await other.drop()


async def test_events_to_a_client_that_is_behind_are_dropped_and_it_is_told_once() -> None:
    remote = await ready(Workbench(), soft_bytes=50_000)
    remote.reader._transport.pause_reading()  # type: ignore[attr-defined]
    payload = json.dumps({"rows": "x" * 1000}).encode()
    sent = sum(remote.connection.notify("sources/added", payload) for _ in range(5000))
    while remote.connection.notify("sources/added", payload):
        sent += 1
        await asyncio.sleep(0)
    assert remote.connection.queued < 50_000 + 300 * 1024
    dropped = remote.connection._outbox.dropped
    remote.reader._transport.resume_reading()  # type: ignore[attr-defined]
    seen = [await remote.receive() for _ in range(sent)]
    notice = await remote.receive()
    assert {message["method"] for message in seen} == {"sources/added"}
    assert notice["method"] == "notice/posted"
    assert notice["params"]["notice"]["code"] == "events_dropped"
    assert notice["params"]["notice"]["count"] == dropped
    assert notice["params"]["revision"] == 7
    assert "result" in await remote.call(1, "test/echo")
    assert remote.notifications == []
    await remote.drop()


# Floods


@pytest.mark.rule("faults.a-flood-is-bounded")
async def test_a_flood_of_requests_starves_nobody() -> None:
    bench = Workbench()
    made = service(bench)
    loud, quiet = await join(made), await join(made)
    await loud.initialize()
    await quiet.initialize()
    count = 20_000
    loud.send_bytes(b"".join(echo(number) for number in range(count)))
    answered = asyncio.create_task(_count_answers(loud, count))
    most = 0
    while not answered.done():
        before = len(bench.callers)
        await round_trip(quiet)
        most = max(most, len(bench.callers) - before)
    assert await answered == count
    assert most < 10 * 64  # of the flood's requests went before one of the quiet client's
    await loud.drop()
    await quiet.drop()


async def _count_answers(remote: Remote, count: int) -> int:
    for number in range(count):
        assert (await remote.answer())["id"] == number
    return count


async def test_a_flood_is_taken_in_small_turns() -> None:
    turns: list[int] = []

    def count(caller: Caller, params: Text) -> object:
        turns[-1] += 1
        return 0

    remote = await ready(Workbench(), handlers={"test/count": count}, messages_at_once=16, seconds_at_once=60)
    take_turn = remote.connection._work

    def counted() -> None:
        turns.append(0)
        take_turn()

    remote.connection._work = counted  # type: ignore[method-assign]
    for number in range(200):
        remote.ask(number, "test/count")
    await _count_answers(remote, 200)
    assert max(turns) == 16
    await remote.drop()


@pytest.mark.rule("faults.who-asks-for-little-is-served-soon")
async def test_who_asks_the_threads_for_little_waits_for_no_flood_of_others() -> None:
    hands, gate, served = Hands(), threading.Event(), list[str]()

    def work(text: str) -> None:
        gate.wait(CEILING)
        served.append(text)

    async def slow(_: Caller, params: Text) -> None:
        await hands.off_loop(work, params.text)

    made = service(Workbench(), handlers={"test/slow": slow})
    greedy, honest = await join(made), await join(made)
    for remote in (greedy, honest):
        await remote.initialize()
    for number in range(100):
        greedy.ask(number, "test/slow", {"text": "flood"})
    await greedy.call("last", "test/echo")
    honest.ask(1, "test/slow", {"text": "honest"})
    await honest.call("last", "test/echo")
    gate.set()
    assert (await honest.answer())["id"] == 1
    for _ in range(100):
        await greedy.answer()
    hands.let_go()
    assert served.index("honest") <= 4


async def test_a_flood_of_notifications_becomes_no_tasks() -> None:
    remote = await ready(Workbench())
    before = len(asyncio.all_tasks())
    for _ in range(5000):
        remote.tell("test/wait", {"text": "a"})
    assert "result" in await remote.call(1, "test/echo")
    assert len(asyncio.all_tasks()) == before
    await remote.drop()


@pytest.mark.rule("faults.garbage-is-answered-or-ended", "faults.a-dead-client-harms-nobody")
async def test_garbage_of_all_kinds_never_harms_another_client() -> None:
    chance = random.Random(20261)
    made = service(Workbench())
    honest = await join(made)
    await honest.initialize()
    good = framed(INIT) + b"".join(echo(number, "abc") for number in range(5))
    for _ in range(150):
        attacker = await join(made)
        stream = bytearray(good)
        for _ in range(chance.randint(1, 12)):
            at = chance.randrange(len(stream))
            match chance.randrange(3):
                case 0:
                    stream[at] = chance.randrange(256)
                case 1:
                    del stream[at : at + chance.randint(1, 9)]
                case _:
                    stream[at:at] = chance.randbytes(chance.randint(1, 9))
        attacker.send_bytes(bytes(stream))
        attacker.writer.write_eof()
        for message in await attacker.closed():
            assert ("result" in message) != ("error" in message)
    assert len(_guests(made)) == 1
    await round_trip(honest)
    await honest.drop()


# Endings


async def test_a_client_that_only_stops_sending_gets_its_answers() -> None:
    bench = Workbench()
    remote = await join(service(bench))
    remote.send(INIT)
    remote.ask(1, "test/wait")
    remote.ask(2, "test/echo")
    remote.writer.write_eof()
    assert [(await remote.answer())["id"] for _ in range(2)] == ["init", 2]
    bench.gate.set()
    assert [message["id"] for message in await remote.closed()] == [1]


async def test_the_end_of_an_idle_client_ends_its_connection() -> None:
    remote = await ready(Workbench())
    remote.writer.write_eof()
    assert await remote.closed() == []
    await until(remote.connection.gone.is_set)


async def test_half_a_frame_and_then_the_end_gets_no_answer() -> None:
    remote = await ready(Workbench())
    remote.send_bytes(echo(1)[:-3])
    remote.writer.write_eof()
    assert await remote.closed() == []


async def test_a_disconnect_cancels_what_was_under_way() -> None:
    bench = Workbench()
    remote = await ready(bench, glance_seconds=60)
    for number in range(3):
        remote.ask(number, "test/wait")
    await until(lambda: len(bench.callers) == 3)
    await remote.drop()
    await until(lambda: bench.cancelled == 3)
    assert all(caller.cancelled for caller in bench.callers)


async def test_a_client_that_dies_while_it_is_not_read_is_noticed() -> None:
    bench = Workbench()
    remote = await ready(bench, in_flight=2, glance_seconds=0.02)
    for number in range(5):
        remote.ask(number, "test/wait")
    await until(lambda: not remote.connection._reading)
    await remote.drop()
    await until(lambda: bench.cancelled == 2)


async def test_a_client_that_dies_after_it_stopped_sending_is_noticed() -> None:
    bench = Workbench()
    remote = await ready(bench, glance_seconds=0.02)
    remote.ask(1, "test/wait")
    remote.writer.write_eof()
    await until(bench.entered.is_set)
    await remote.drop()
    await until(lambda: bench.cancelled == 1)


@pytest.mark.rule("faults.a-dead-client-harms-nobody")
async def test_any_client_that_disconnects_leaves_the_others_connected() -> None:
    made = service(Workbench())
    remotes = [await join(made) for _ in range(5)]
    for remote in remotes:
        await remote.initialize()
    await remotes[0].drop()
    remotes[1].writer.write_eof()
    await remotes[1].closed()
    for remote in remotes[2:]:
        await round_trip(remote)
        await remote.drop()


async def test_each_client_gets_its_own_answers() -> None:
    made = service(Workbench())
    remotes = [await join(made, role=role) for role in ("runtime", "renderer", "exec", "editor")]
    for remote in remotes:
        await remote.initialize()
        remote.ask(1, "test/echo", {"text": remote.connection.client.role})
    for remote in remotes:
        role = remote.connection.client.role
        assert (await remote.answer())["result"] == {"text": role, "role": role}
        await remote.drop()


async def test_farewells_are_called_once_and_one_that_fails_stops_no_other() -> None:
    bench, called = Workbench(), []
    remote = await ready(bench)
    await remote.call(1, "test/echo")
    bench.callers[0].on_close(lambda: called.append(1) or 1 / 0)
    bench.callers[0].on_close(lambda: called.append(2))
    await remote.drop()
    assert called == [1, 2]
    assert bench.guests == []


async def test_threads_that_are_all_busy_hold_up_no_plain_request() -> None:
    bench = Workbench()
    halt = asyncio.Event()

    async def threaded(caller: Caller, params: Text) -> object:
        loop = asyncio.get_running_loop()
        return await asyncio.to_thread(lambda: asyncio.run_coroutine_threadsafe(halt.wait(), loop).result())

    remote = await ready(bench, handlers={"test/threaded": threaded})
    for number in range(40):
        remote.ask(number, "test/threaded")
    await round_trip(remote)
    halt.set()
    assert {(await remote.answer())["id"] for _ in range(40)} == set(range(40))
    await remote.drop()


async def test_a_retiring_connection_ends_its_work_and_refuses_more() -> None:
    bench = Workbench()
    remote = await ready(bench)
    remote.ask(1, "test/wait")
    await until(bench.entered.is_set)
    retiring = asyncio.create_task(remote.connection.retire(within=CEILING))
    refused = await remote.call(2, "test/echo")
    assert refused["error"]["data"]["kind"] == "shutting_down"
    bench.gate.set()
    assert [message["id"] for message in await remote.closed()] == [1]
    await retiring


async def test_a_retiring_connection_gives_up_what_takes_too_long() -> None:
    bench = Workbench()
    remote = await ready(bench)
    remote.ask(1, "test/wait")
    await until(bench.entered.is_set)
    await remote.connection.retire(within=0.02)
    said = await remote.closed()
    assert [message["error"]["data"]["kind"] for message in said] == ["shutting_down"]


async def test_a_client_that_reads_no_goodbye_is_cut_off() -> None:
    remote = await ready(Workbench(), linger_seconds=0.02)
    remote.reader._transport.pause_reading()  # type: ignore[attr-defined]
    for number in range(300):
        remote.send_bytes(echo(number, "x" * 20_000))
    await until(lambda: remote.connection.queued > 100_000)
    remote.connection.leave()
    await until(remote.connection.gone.is_set)


async def test_every_frame_can_be_recorded() -> None:
    bench = Workbench()
    remote = await ready(bench)
    await remote.call(1, "test/echo", {"text": "hello"})
    ways = [(way, json.loads(body).get("id")) for way, body in bench.taps]
    assert ways == [("in", "init"), ("out", "init"), ("in", 1), ("out", 1)]
    await remote.drop()


async def test_a_large_answer_arrives_whole() -> None:
    remote = await ready(Workbench(), handlers={"test/large": lambda caller, params: "x" * 20_000_000})
    remote.ask(0, "test/echo")
    remote.ask(1, "test/large")
    remote.ask(2, "test/echo")
    answers = [await remote.answer() for _ in range(3)]
    assert [answer["id"] for answer in answers] == [0, 1, 2]
    assert answers[1]["result"] == "x" * 20_000_000
    await remote.drop()


async def test_a_fault_of_the_connection_itself_costs_its_client_only(caplog: pytest.LogCaptureFixture) -> None:
    made = service(Workbench())
    remote, other = await join(made), await join(made)
    await other.initialize()
    remote.connection._dispatch.take = lambda body: 1 // 0  # type: ignore[method-assign]
    remote.send(INIT)
    await until(remote.connection.gone.is_set)
    assert "cut off" in caplog.text
    await round_trip(other)
    await other.drop()


async def test_a_connection_needs_no_more_than_a_few_kilobytes() -> None:
    import tracemalloc

    made = service(Workbench())
    await (await ready_of(made)).drop()
    tracemalloc.start()
    before = tracemalloc.get_traced_memory()[0]
    connections = []
    for _ in range(50):
        ours, theirs = socket.socketpair()
        connection = Connection(made, "exec", Peer(1, 0))
        await asyncio.get_running_loop().connect_accepted_socket(lambda c=connection: c, ours)
        theirs.sendall(framed(INIT))
        connections.append((connection, theirs))
    await until(lambda: all(connection._dispatch._lsp for connection, _ in connections))
    each = (tracemalloc.get_traced_memory()[0] - before) / 50
    tracemalloc.stop()
    for connection, theirs in connections:
        theirs.close()
        await connection.gone.wait()
    assert each < 60_000


async def ready_of(made: Any) -> Remote:
    remote = await join(made)
    await remote.initialize()
    return remote
