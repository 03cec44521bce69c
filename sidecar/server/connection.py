"""One client and its bytes: read, take apart, dispatch, answer, and never more than a fair share of the loop.

A batch of messages is handled at once and leaves in one write. A client that sends faster than it can be served, has
too much under way, or does not read its answers is not read any further until that has changed; nobody else notices.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Iterable
from functools import partial
from time import perf_counter

import orjson

from protocol.notices import NOTICES
from sidecar.hands import ASKER
from sidecar.server.asking import Questions
from sidecar.server.caller import Client
from sidecar.server.dispatch import Dispatch
from sidecar.server.failures import invalid_request
from sidecar.server.framing import FrameReader, FramingFault
from sidecar.server.outbox import Outbox
from sidecar.server.parsing import TooManyValues
from sidecar.server.patience import FrameDeadline, Glances
from sidecar.server.peer import Peer
from sidecar.server.service import Service

log = logging.getLogger("sidecar.connection")


class Connection(asyncio.Protocol):
    """One client, from connecting to the end of its transport. `gone` is set when both are over."""

    def __init__(self, service: Service, role: str, peer: Peer) -> None:
        self.client = Client(next(service.numbers), role, peer)
        self.questions = Questions()
        self.gone = asyncio.Event()
        self._service = service
        self._bounds = bounds = service.bounds
        self._loop = asyncio.get_running_loop()
        self._frames = FrameReader(header_bytes=bounds.header_bytes, body_bytes=bounds.message_bytes)
        self._outbox = Outbox(
            self._loop,
            soft=bounds.soft_bytes,
            hard=bounds.hard_bytes,
            caught_up=self._work_after_waiting,
            left_unread=partial(self._cut_off, "it left too much unread"),
        )
        self._dispatch = Dispatch(service, self.client, self)
        self._tap = service.tap
        self._inbox: deque[bytes] = deque()
        self._transport: asyncio.Transport | None = None
        self._work_is_near = False
        self._blocked = False  # the first message of the inbox waits until something under way has ended
        self._reading = True
        self._fault = ""  # what was wrong with the stream; after it nothing more is read
        self._ended = False  # the client sends nothing more, and still reads
        self._leaving = False
        self._held = 0  # bytes, as they are counted among those of all clients of this role; 0 for little
        self._gave_way = False
        self._deadline = FrameDeadline(
            self._loop, bounds.frame_seconds, self._frame_is_late, step=bounds.frame_step_bytes
        )
        self._glances = Glances(
            self._loop, bounds.glance_seconds, needed=self._unread_work, gone=partial(self._cut_off, "nobody is there")
        )
        self._linger: asyncio.TimerHandle | None = None

    # What the transport calls.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        if self._leaving:  # the daemon ended while the client came in
            transport.abort()
        self._outbox.open(transport)
        self._glances.open(transport)
        self.client.synced = self._service.revision()
        log.info("client=%d role=%s pid=%d connected", self.client.id, self.client.role, self.client.peer.pid)
        self._service.joined(self)

    def data_received(self, data: bytes) -> None:
        if self._leaving:
            return
        bodies: Iterable[bytes]
        try:
            bodies = self._frames.feed(data)
        except FramingFault as fault:
            bodies, self._fault = fault.bodies, fault.sentence
        if self._tap is not None:
            for body in bodies:
                self._tap(self.client, "in", body)
        self._inbox.extend(bodies)
        if self._frames.midway:
            self._time_frame(begun_anew=bool(bodies), size=len(data))
            self._note_held()
        else:
            self._deadline.end()
        if not self._work_is_near:
            self._work()

    def eof_received(self) -> bool:
        """A client that only closed its way out still gets its answers; one that is gone needs none."""
        self._ended = True
        if self._leaving or self._glances.see_gone():
            return False
        self._settle()
        return True

    def pause_writing(self) -> None:
        self._outbox.choked = True

    def resume_writing(self) -> None:
        self._outbox.resume()
        if self._held:
            self._note_held()

    def connection_lost(self, exc: Exception | None) -> None:
        self._transport = None
        self._leaving = True
        self._let_go()
        self._note_held()
        for part in (self._outbox, self._deadline, self._glances, self.questions):
            part.close()
        if self._linger is not None:
            self._linger.cancel()
        for farewell in self.client.farewells:
            try:
                farewell()
            except Exception:
                log.exception("client=%d a farewell failed", self.client.id)
        self.client.farewells.clear()
        self._service.log.flush()
        log.info("client=%d role=%s gone%s", self.client.id, self.client.role, f": {exc}" if exc is not None else "")
        self._service.left(self)
        self.gone.set()

    # What the rest of the daemon calls.

    @property
    def working(self) -> bool:
        """Whether a request of this client is under way."""
        return bool(self._dispatch.running) or bool(self._inbox)

    @property
    def program(self) -> int:
        """The process at the other end."""
        return self.client.peer.pid

    @property
    def queued(self) -> int:
        """Bytes the client has not read yet."""
        return self._outbox.queued

    def send(self, *chunks: bytes) -> None:
        """Send one message, whatever waits already."""
        size = len(chunks[0]) if len(chunks) == 1 else sum(map(len, chunks))
        self._outbox.put(b"Content-Length: %d\r\n\r\n" % size, *chunks)
        if self._tap is not None:
            self._tap(self.client, "out", b"".join(chunks))

    async def room(self) -> None:
        """Wait until the client has read most of what it was sent."""
        if self._outbox.behind:
            self._note_held()
            await self._outbox.room()

    def post(self, method: str, params: bytes) -> None:
        """Send a notification, whatever waits already."""
        self.send(_notification(method, params))

    def notify(self, method: str, params: bytes) -> bool:
        """Send an event, or leave it out when the client is far behind; it is told so once it has caught up."""
        body = _notification(method, params)
        sent = self._outbox.offer(b"Content-Length: %d\r\n\r\n" % len(body), body)
        if sent and self._tap is not None:
            self._tap(self.client, "out", body)
        return sent

    async def retire(self, *, within: float) -> None:
        """Refuse new requests, let those under way end, give up the rest after `within` seconds, and close."""
        self._dispatch.retire()
        tasks = {caller.task for caller in self._dispatch.running.values() if caller.task is not None}
        if tasks:
            _, late = await asyncio.wait(tasks, timeout=within)
            if late:
                self._dispatch.hurry()
                await asyncio.wait(late, timeout=within)
        self._close()
        if self._transport is not None:
            await self.gone.wait()

    # What the dispatch calls.

    def finished(self) -> None:
        """Something under way has ended, so there may be room for another."""
        if self._held or self._outbox.behind or self.client.kept:
            self._note_held()
        if (self._blocked and not self._dispatch.full) or self._ended:
            self._blocked = False
            self._work_soon()

    def give_way(self) -> None:
        """The clients of this role hold too much together, and this one the most."""
        self._gave_way = True
        if self._leaving or self._outbox.behind:
            self._cut_off("too much is held for clients of its role, and for it the most")
        else:
            most = self._service.holdings.most
            self._give_up(f"clients of this role made the daemon hold more than {most} bytes, and this one the most")

    def leave(self) -> None:
        """The client said `exit`: the session ends, and the daemon does not."""
        self._close()

    def _work_after_waiting(self) -> None:
        if self._held:
            self._note_held()
        self._tell_of_dropped_events()
        self._work_soon()

    def _work_soon(self) -> None:
        if not self._work_is_near and self._transport is not None:
            self._work_is_near = True
            self._loop.call_soon(self._work)

    def _work(self) -> None:
        """Handle what has arrived, but not so much at once that another client would notice."""
        self._work_is_near = False
        ASKER.set(self.client.id)  # for all that begins here
        inbox, outbox, dispatch = self._inbox, self._outbox, self._dispatch
        outbox.hold()
        until = perf_counter() + self._bounds.seconds_at_once
        try:
            for _ in range(self._bounds.messages_at_once):
                if not inbox or outbox.behind or self._blocked:
                    break
                body = inbox.popleft()
                if not dispatch.take(body):
                    inbox.appendleft(body)
                    self._blocked = True
                if inbox and perf_counter() > until:
                    break
        except TooManyValues as many:
            self._fault = str(many)
            inbox.clear()
        except Exception:
            # The dispatch answers for all that handlers do, so this is a fault of ours; it costs this client only.
            log.exception("client=%d cut off", self.client.id)
            self._cut_off("a fault of the daemon")
        outbox.flush()
        self._settle()

    def _settle(self) -> None:
        """After each batch: read on, or wait, or end."""
        if self._transport is None or self._leaving:
            return
        waiting, stuck = bool(self._inbox), self._blocked or self._outbox.behind
        is_much = self._dispatch.bytes + self.client.kept > self._bounds.soft_bytes
        if self._reading and not (waiting or stuck or is_much or self._fault or self._ended):
            return  # as nearly always
        self._note_held()
        if self._leaving:
            return
        if waiting and not stuck:
            self._work_soon()
        elif self._fault and not waiting:
            self._give_up(self._fault)
            return
        elif self._ended and not waiting and not self._dispatch.running:
            self._leaving = True
            self._outbox.finish()
            self._transport.close()  # after what is queued was read, however long that takes
            return
        self._read(not waiting and not stuck and not self._fault and not self._ended)

    def _note_held(self) -> None:
        """Have it counted what is held for this client, while that is much, until its transport is gone."""
        if self._gave_way:
            return
        held = 0
        if self._transport is not None:
            waiting = len(self._inbox[0]) if self._inbox else 0  # what is large is the first of them
            unread = self._outbox.queued or self._transport.get_write_buffer_size()  # of a closed one
            held = self._frames.held + waiting + self._dispatch.bytes + self.client.kept + unread
            if held < self._bounds.soft_bytes:
                held = 0
        if held != self._held:
            self._held = held
            self._service.holdings.note(self.client.role, self, held)

    def _let_go(self) -> None:
        """Of what the client has sent. This object may live on for a while, as a part of a cycle."""
        self._inbox.clear()
        self._frames.forget()
        self._dispatch.close()
        self.client.let_go()

    def _read(self, wanted: bool) -> None:
        if self._transport is None:
            return
        if wanted and not self._reading:
            self._reading = True
            self._time_frame(begun_anew=True)  # the pause was ours
            self._transport.resume_reading()
        elif self._reading and not wanted:
            self._reading = False
            self._deadline.end()
            if not self._ended:
                self._transport.pause_reading()
        if self._unread_work():
            self._glances.begin()

    def _unread_work(self) -> bool:
        return not self._reading and self._dispatch.busy

    def _time_frame(self, *, begun_anew: bool, size: int = 0) -> None:
        if not self._frames.midway:
            self._deadline.end()
        elif begun_anew:
            self._deadline.begin()
        else:
            self._deadline.more(size)

    def _frame_is_late(self) -> None:
        self._give_up(f"a message took longer than {self._bounds.frame_seconds:g} seconds to arrive")

    def _give_up(self, sentence: str) -> None:
        """Say what is wrong and end. What the client still sends is read and dropped, so that it gets to hear it."""
        log.warning("client=%d role=%s given up: %s", self.client.id, self.client.role, sentence)
        error = invalid_request(sentence).error()
        self.send(orjson.dumps({"jsonrpc": "2.0", "id": None, "error": error}))
        self._part()
        if self._transport is not None and not self._ended:
            self._transport.write_eof()
            self._transport.resume_reading()
        elif self._transport is not None:
            self._transport.close()

    def _close(self) -> None:
        """Send what is queued and close."""
        self._part()
        if self._transport is not None:
            self._transport.close()

    def _part(self) -> None:
        """Take and give no more. A client that does not let go is cut off after a while."""
        self._leaving = True
        self._let_go()
        self._deadline.close()
        self._outbox.finish()
        self._outbox.close()
        self._note_held()
        if self._transport is not None:
            self._linger = self._loop.call_later(self._bounds.linger_seconds, self._cut_off, "it does not let go")

    def _cut_off(self, why: str) -> None:
        """End without a word to the client, which would not read it; the log is told."""
        if self._transport is not None:
            log.info("client=%d role=%s cut off: %s", self.client.id, self.client.role, why)
            self._transport.abort()

    def _tell_of_dropped_events(self) -> None:
        """Once for all that were dropped, so that the client asks `workspace/changes` for them."""
        if (count := self._outbox.dropped) == 0:
            return
        self._outbox.dropped = 0
        notice = {"code": "events_dropped", "message": NOTICES["events_dropped"].sentence, "count": count}
        payload = {"notice": notice, "revision": self._service.revision()}
        self.post("notice/posted", orjson.dumps(payload))


def _notification(method: str, params: bytes) -> bytes:
    return b'{"jsonrpc":"2.0","method":"%b","params":%b}' % (method.encode(), params)
