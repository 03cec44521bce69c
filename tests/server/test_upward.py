"""The upward half of a door: what one daemon did not get whole goes to the next, whole and once."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from sidecar.server.envelopes import frame
from sidecar.server.session import Session
from sidecar.server.upward import Upward
from tests.daemon_process import eventually

HELLO = frame(b'{"jsonrpc":"2.0","id":1,"method":"initialize","params":{}}')


class Ear:
    """A socket that takes so many bytes, and then no more."""

    def __init__(self, most: int = 10**9) -> None:
        self.heard = b""
        self._most = most

    def send(self, data: bytes) -> int:
        taken = bytes(data[: min(1000, self._most - len(self.heard))])
        if not taken:
            raise BrokenPipeError
        self.heard += taken
        return len(taken)

    def settimeout(self, _: object) -> None: ...

    def shutdown(self, how: int) -> None:
        self.heard += b"<end>" if how == 1 else b""

    def close(self) -> None: ...


class Talker:
    """A client at the upward half, which runs in a thread of its own."""

    def __init__(self) -> None:
        source, self._mouth = os.pipe()
        self.said = b""  # by the door itself
        self.known = Session()
        self.upward = Upward(source, self.known, self._hear)
        self._thread = threading.Thread(target=self.upward.carry)
        self._thread.start()

    def _hear(self, data: bytes) -> None:
        self.said += data

    def say(self, *frames: bytes) -> None:
        os.write(self._mouth, b"".join(frames))

    def meet(self, most: int = 10**9) -> Ear:
        ear: Any = Ear(most)
        self.upward.meet(ear, patience=1)
        return ear

    def end(self) -> None:
        os.close(self._mouth)
        self._thread.join(5)
        assert not self._thread.is_alive()

    def under_way(self) -> int:
        """How many requests are refused now."""
        return self.known.flight.fail().count(b"Content-Length")


@pytest.fixture
def talker() -> Iterator[Talker]:
    made = Talker()
    yield made
    if not made.upward.ended:
        made.meet()
        made.end()


def request(number: int, method: str = "a", size: int = 0) -> bytes:
    return frame(b'{"jsonrpc":"2.0","id":%d,"method":"%b","params":"%b"}' % (number, method.encode(), b"x" * size))


def test_what_is_said_before_there_is_a_daemon_waits(talker: Talker) -> None:
    talker.say(request(2), request(3))
    eventually(lambda: talker.upward.waiting)
    assert talker.under_way() == 0
    ear = talker.meet()
    eventually(lambda: ear.heard == request(2) + request(3))
    assert talker.under_way() == 2


def test_what_was_not_taken_whole_goes_to_the_next_and_is_not_under_way(talker: Talker) -> None:
    frames = [request(number, size=300) for number in range(2, 7)]
    first = talker.meet(len(frames[0]) * 2 + 50)
    talker.say(*frames)
    eventually(lambda: talker.upward.waiting)
    assert first.heard == b"".join(frames)[: len(frames[0]) * 2 + 50]
    assert talker.under_way() == 2
    second = talker.meet()
    eventually(lambda: second.heard == b"".join(frames[2:]))
    assert talker.under_way() == 3


def test_only_so_much_is_read_while_there_is_no_daemon(talker: Talker) -> None:
    talker.say(request(2))
    eventually(lambda: talker.upward.waiting)
    talker.say(request(3), request(4))
    assert [number for _, number, _ in talker.upward.unsent] == [2]
    ear = talker.meet()
    eventually(lambda: ear.heard == request(2) + request(3) + request(4))


def test_nothing_follows_a_greeting_before_it_was_answered(talker: Talker) -> None:
    first = talker.meet()
    talker.say(HELLO, request(2))
    eventually(lambda: talker.upward.waiting)
    assert first.heard == HELLO
    second = talker.meet()
    assert second.heard == HELLO
    talker.known.be_greeted(accepted=True)
    talker.upward.open()
    eventually(lambda: second.heard == HELLO + request(2))


def test_an_answer_that_nobody_waits_for_is_left_out(talker: Talker) -> None:
    answer = frame(b'{"jsonrpc":"2.0","id":"s:1","result":{}}')
    talker.meet()
    talker.known.hear([("question", "s:1")])
    ear = talker.meet()
    talker.say(request(2), answer, request(3), answer)
    eventually(lambda: ear.heard == request(2) + request(3) + answer)


def test_half_a_stream_is_refused_by_the_door(talker: Talker) -> None:
    chunk = frame(b'{"jsonrpc":"2.0","id":5,"method":"citations/stream","params":{"stream_id":"s","chunk":"a"}}')
    first = talker.meet()
    talker.say(chunk)
    eventually(lambda: first.heard == chunk)
    second = talker.meet()
    talker.say(chunk, request(2))
    eventually(lambda: second.heard == request(2))
    assert b'"citations/stream"' in talker.said


@pytest.mark.parametrize("last", [b"", b"Content-Length: 10\r\n\r\n{", b"no message at all\n"])
def test_the_end_and_what_came_before_it_are_passed_on(talker: Talker, last: bytes) -> None:
    ear = talker.meet()
    talker.say(request(2), last)
    talker.end()
    assert ear.heard == request(2) + last + b"<end>"


def test_an_end_that_finds_no_daemon_is_told_to_the_next(talker: Talker) -> None:
    talker.end()
    assert talker.meet().heard == b"<end>"
