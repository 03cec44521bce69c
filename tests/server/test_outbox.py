"""The way out to one client: one write for a batch, and bounded memory when it does not read."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, cast

import pytest

from sidecar.server.outbox import FLUSH_BYTES, LARGE_BYTES, PART_BYTES, TURN_BYTES, Outbox, nobody


class Pipe:
    """A transport whose other end reads only when told to."""

    def __init__(self, outbox: Outbox) -> None:
        self.outbox = outbox
        self.writes: list[bytes] = []
        self.unread = 0
        self.high = self.low = 0
        self.aborted = False
        self.reads = True

    def set_write_buffer_limits(self, *, high: int, low: int) -> None:
        self.high, self.low = high, low

    def get_write_buffer_size(self) -> int:
        return self.unread

    def write(self, chunk: bytes | memoryview) -> None:
        self.writes.append(bytes(chunk))
        if not self.reads:
            self.unread += len(chunk)
            if self.unread > self.high:
                self.outbox.choked = True

    def read_all(self) -> None:
        self.unread = 0
        self.outbox.choked = False

    def abort(self) -> None:
        self.aborted = True


def make(*, soft: int = 1000, hard: int = 5000, caught_up: Callable[[], None] = nobody) -> tuple[Outbox, Pipe]:
    outbox = Outbox(
        asyncio.get_running_loop(), soft=soft, hard=hard, left_unread=lambda: pipe.abort(), caught_up=caught_up
    )
    pipe = Pipe(outbox)
    outbox.open(cast(Any, pipe))
    return outbox, pipe


async def test_a_batch_leaves_in_one_write() -> None:
    outbox, pipe = make()
    outbox.hold()
    for number in range(5):
        outbox.put(b"h", b"%d" % number)
    assert pipe.writes == []
    outbox.flush()
    assert pipe.writes == [b"h0h1h2h3h4"]


async def test_what_is_put_outside_a_batch_leaves_at_the_next_turn_in_one_write() -> None:
    outbox, pipe = make()
    outbox.put(b"a")
    outbox.put(b"b")
    assert (pipe.writes, outbox.queued) == ([], 2)
    await asyncio.sleep(0)
    assert (pipe.writes, outbox.queued) == ([b"ab"], 0)


async def test_a_batch_that_grows_large_does_not_wait_for_its_end() -> None:
    outbox, pipe = make(soft=10**9, hard=10**9)
    outbox.hold()
    for _ in range(100):
        outbox.put(b"x" * (FLUSH_BYTES // 10))
    assert len(pipe.writes) >= 5
    assert outbox.queued <= 2 * FLUSH_BYTES


async def test_large_chunks_are_handed_over_by_themselves_and_in_order() -> None:
    outbox, pipe = make(soft=10**9, hard=10**9)
    large = b"L" * LARGE_BYTES
    outbox.hold()
    outbox.put(b"a", b"b", large, b"c")
    outbox.put(b"d")
    outbox.flush()
    assert pipe.writes == [b"ab", large, b"cd"]


async def test_events_are_dropped_and_counted_only_while_the_client_is_behind() -> None:
    outbox, pipe = make()
    pipe.reads = False
    offered = []
    for _ in range(10):
        offered.append(outbox.offer(b"e" * 300))
        outbox.flush()
    assert offered == [True] * 4 + [False] * 6
    assert outbox.dropped == 6
    pipe.read_all()
    assert outbox.offer(b"e") is True


async def test_answers_are_kept_until_the_hard_limit_and_then_the_client_is_cut_off() -> None:
    outbox, pipe = make(soft=1000, hard=5000)
    pipe.reads = False
    for _ in range(8):
        outbox.put(b"a" * 1000)
        outbox.flush()
    assert (pipe.aborted, outbox.queued) == (False, 8000)
    outbox.put(b"a")
    assert (pipe.aborted, outbox.queued) == (True, 0)


@pytest.mark.rule("answers.long-ones-come-in-turn")
async def test_one_answer_larger_than_the_hard_limit_does_not_cost_a_client_those_behind_it() -> None:
    outbox, pipe = make(soft=1000, hard=5000)
    pipe.reads = False
    outbox.put(b"l" * 100_000)
    for _ in range(5):
        outbox.put(b"a" * 1000)
        outbox.flush()
    assert (pipe.aborted, outbox.queued) == (False, 105_000)
    pipe.reads = True
    pipe.read_all()
    outbox.resume()
    assert b"".join(pipe.writes) == b"l" * 100_000 + b"a" * 5000


@pytest.mark.rule("faults.a-slow-reader-is-bounded")
async def test_who_reads_a_little_now_and_then_is_bounded_as_well() -> None:
    outbox, pipe = make(soft=1000, hard=5000)
    pipe.reads = False
    outbox.put(b"l" * 10 * PART_BYTES)
    for _ in range(7):
        outbox.put(b"a" * 1000)
        pipe.read_all()
        outbox.resume()  # a part of the long one, and it is behind as before
    assert pipe.aborted


async def test_one_answer_larger_than_the_hard_limit_reaches_a_client_that_reads() -> None:
    outbox, pipe = make(soft=1000, hard=5000)
    outbox.put(b"a" * 100_000)
    outbox.flush()
    assert (pipe.aborted, len(pipe.writes[0])) == (False, 100_000)


async def test_a_long_answer_leaves_in_parts_as_fast_as_the_client_reads() -> None:
    outbox, pipe = make(soft=PART_BYTES, hard=10**9)
    pipe.reads = False
    body = bytes(at % 251 for at in range(6 * PART_BYTES + 1))
    outbox.put(b"head", body, b"}")
    outbox.flush()
    assert (len(pipe.writes), pipe.unread) == (2, PART_BYTES + 4)
    outbox.put(b"the next one")
    while outbox.queued:
        pipe.read_all()
        outbox.resume()
    assert b"".join(pipe.writes) == b"head" + body + b"}the next one"
    assert max(map(len, pipe.writes)) <= PART_BYTES


@pytest.mark.rule("answers.a-long-one-leaves-in-turns")
async def test_a_long_answer_to_a_client_that_reads_at_once_leaves_others_their_turns() -> None:
    outbox, pipe = make(soft=PART_BYTES, hard=10**9)
    outbox.put(*[b"a" * 1000] * 10_000)
    outbox.flush()
    turns = 0
    while outbox.queued:
        handed_over = sum(map(len, pipe.writes))
        await asyncio.sleep(0)
        assert sum(map(len, pipe.writes)) - handed_over <= TURN_BYTES + PART_BYTES
        turns += 1
    assert turns >= 10_000_000 // (TURN_BYTES + PART_BYTES)
    assert sum(map(len, pipe.writes)) == 10_000_000


async def handed_over(outbox: Outbox) -> None:
    while outbox.queued:  # noqa: ASYNC110 - what is waited for has no event
        await asyncio.sleep(0)


async def test_what_is_put_in_the_meantime_comes_behind_it_and_hurries_nothing() -> None:
    outbox, pipe = make(soft=PART_BYTES, hard=10**9)
    outbox.put(b"a" * 10 * PART_BYTES)
    outbox.flush()
    before = len(pipe.writes)
    outbox.put(b"b" * FLUSH_BYTES, b"c")
    outbox.flush()
    outbox.resume()
    assert len(pipe.writes) == before
    assert outbox.offer(b"event") is True
    await handed_over(outbox)
    assert b"".join(pipe.writes) == b"a" * 10 * PART_BYTES + b"b" * FLUSH_BYTES + b"cevent"


@pytest.mark.parametrize("size", [2000, 10 * PART_BYTES])
async def test_who_waits_for_room_goes_on_once_what_was_queued_is_on_its_way(size: int) -> None:
    outbox, pipe = make(soft=1000, hard=10**9)
    outbox.put(b"a" * size)
    assert outbox.behind
    waiting = asyncio.create_task(outbox.room())
    while outbox.behind:
        assert not waiting.done()
        await asyncio.sleep(0)
    await asyncio.wait_for(waiting, 5)
    assert pipe.aborted is False


@pytest.mark.parametrize("size", [2000, 10 * PART_BYTES])
async def test_who_was_behind_is_told_once_when_it_is_no_longer(size: int) -> None:
    told: list[bool] = []
    outbox, _ = make(soft=1000, hard=10**9, caught_up=lambda: told.append(outbox.behind))
    outbox.put(b"a")
    await asyncio.sleep(0)
    assert told == []
    outbox.put(b"a" * size)
    await handed_over(outbox)
    await asyncio.sleep(0)
    assert told == [False]


async def test_at_the_end_everything_is_handed_over() -> None:
    outbox, pipe = make(soft=1, hard=10**9)
    pipe.reads = False
    for _ in range(3):
        outbox.put(b"a" * 100)
        outbox.flush()
    assert len(pipe.writes) == 1
    outbox.finish()
    assert b"".join(pipe.writes) == b"a" * 300


async def test_a_closed_outbox_takes_and_sends_nothing() -> None:
    outbox, pipe = make()
    outbox.put(b"a")
    outbox.close()
    outbox.put(b"b")
    await asyncio.sleep(0)
    assert (pipe.writes, outbox.queued) == ([], 0)
