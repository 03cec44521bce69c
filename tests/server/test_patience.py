"""Waiting for a client, by a clock that only the test moves."""

from __future__ import annotations

import asyncio
import heapq
import socket
from collections.abc import Callable
from typing import Any, cast

import pytest

from sidecar.server.patience import FrameDeadline, Glances


class Handle:
    def __init__(self, at: float, call: Callable[[], None]) -> None:
        self.at, self.call, self.cancelled = at, call, False

    def cancel(self) -> None:
        self.cancelled = True

    def __lt__(self, other: Handle) -> bool:
        return self.at < other.at


class Clock:
    """The part of an event loop that tells the time and calls later."""

    def __init__(self) -> None:
        self.now = 100.0
        self.handles: list[Handle] = []

    def time(self) -> float:
        return self.now

    def call_later(self, delay: float, call: Callable[[], None]) -> Handle:
        handle = Handle(self.now + delay, call)
        heapq.heappush(self.handles, handle)
        return handle

    def pass_by(self, seconds: float) -> None:
        end = self.now + seconds
        while self.handles and self.handles[0].at <= end:
            handle = heapq.heappop(self.handles)
            self.now = max(self.now, handle.at)
            if not handle.cancelled:
                handle.call()
        self.now = end

    def stand_still(self, seconds: float) -> None:
        """What became due meanwhile is called once, later, by the next `pass_by`."""
        self.now += seconds


class Watched:
    """A deadline of ten seconds, and when it was missed."""

    def __init__(self) -> None:
        self.clock = Clock()
        self.late: list[float] = []
        self.deadline = FrameDeadline(
            cast(Any, self.clock), 10.0, lambda: self.late.append(round(self.clock.now - 100, 6)), step=1000
        )


def test_a_frame_that_never_ends_is_late_after_the_deadline() -> None:
    watched = Watched()
    watched.deadline.begin()
    watched.clock.pass_by(9.9)
    assert watched.late == []
    watched.clock.pass_by(5)
    assert watched.late == [10.0]


def test_a_frame_that_drips_is_as_late() -> None:
    watched = Watched()
    for _ in range(30):
        watched.deadline.more(1)
        watched.clock.pass_by(1)
    assert watched.late[0] == 10.0


def test_a_long_frame_has_the_time_for_each_step() -> None:
    watched = Watched()
    for _ in range(30):
        watched.deadline.more(600)
        watched.clock.pass_by(4.9)
    assert watched.late == []
    watched.clock.pass_by(10)
    assert len(watched.late) == 1


@pytest.mark.rule("faults.only-a-clients-own-delay-counts")
def test_what_the_daemon_itself_stood_still_for_does_not_count() -> None:
    watched = Watched()
    watched.deadline.begin()
    for _ in range(4):
        watched.clock.pass_by(1)
        watched.clock.stand_still(100)
    assert watched.late == []
    watched.clock.pass_by(10)
    assert len(watched.late) == 1


def test_an_idle_stream_is_never_late() -> None:
    watched = Watched()
    watched.deadline.begin()
    watched.deadline.end()
    watched.clock.pass_by(1000)
    assert watched.late == []


def test_the_deadline_is_each_frames_own() -> None:
    watched = Watched()
    for _ in range(20):
        watched.deadline.begin()
        watched.clock.pass_by(9)
    assert watched.late == []
    watched.clock.pass_by(2)
    assert watched.late == [20 * 9 + 1.0]


def test_a_second_frame_after_a_quiet_while_has_its_whole_time() -> None:
    watched = Watched()
    watched.deadline.begin()
    watched.deadline.end()
    watched.clock.pass_by(9)
    watched.deadline.more(1)
    watched.clock.pass_by(9.9)
    assert watched.late == []
    watched.clock.pass_by(0.2)
    assert watched.late == [19.0]


def test_many_frames_need_one_timer() -> None:
    watched = Watched()
    for _ in range(100):
        watched.deadline.begin()
        watched.deadline.end()
    assert len(watched.clock.handles) == 1


def test_a_closed_deadline_is_silent() -> None:
    watched = Watched()
    watched.deadline.begin()
    watched.deadline.close()
    watched.clock.pass_by(100)
    assert watched.late == []


class Line:
    """A transport, as far as one can look at it."""

    def __init__(self, sock: socket.socket) -> None:
        self.sock = sock

    def get_extra_info(self, name: str) -> socket.socket:
        assert name == "socket"
        return self.sock


class Watchman:
    def __init__(self) -> None:
        self.clock = Clock()
        self.here, self.there = socket.socketpair()
        self.needed = True
        self.gone = 0
        self.glances = Glances(
            cast(asyncio.AbstractEventLoop, self.clock), 1.0, needed=lambda: self.needed, gone=self._gone
        )
        self.glances.open(cast(asyncio.Transport, Line(self.here)))

    def _gone(self) -> None:
        self.gone += 1

    def close(self) -> None:
        self.here.close()
        self.there.close()


@pytest.fixture
def watchman() -> Any:
    made = Watchman()
    yield made
    made.close()


def test_a_client_that_only_stopped_sending_is_still_there(watchman: Watchman) -> None:
    watchman.there.sendall(b"unread")
    watchman.there.shutdown(socket.SHUT_WR)
    watchman.glances.begin()
    watchman.clock.pass_by(10)
    assert (watchman.glances.see_gone(), watchman.gone) == (False, 0)


def test_a_client_that_has_gone_is_noticed_at_the_next_glance(watchman: Watchman) -> None:
    watchman.glances.begin()
    watchman.clock.pass_by(3)
    watchman.there.close()
    watchman.clock.pass_by(1.5)
    assert watchman.gone == 1


def test_glances_end_when_they_are_not_needed(watchman: Watchman) -> None:
    watchman.glances.begin()
    watchman.needed = False
    watchman.clock.pass_by(1.5)
    watchman.there.close()
    watchman.clock.pass_by(10)
    assert (watchman.gone, watchman.clock.handles) == (0, [])


def test_closed_glances_see_nobody(watchman: Watchman) -> None:
    watchman.glances.begin()
    watchman.glances.close()
    watchman.there.close()
    watchman.clock.pass_by(10)
    assert (watchman.glances.see_gone(), watchman.gone) == (True, 0)
