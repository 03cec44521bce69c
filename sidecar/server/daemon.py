"""The daemon's life: become the only one, listen, wake up, serve, and end in order.

Exit codes are sysexits': 0 asked to end or idle, 65 a journal of a newer version, 69 a system that lacks what the
daemon needs, 70 the journal failed or a bug, 75 another daemon serves this workspace.
"""

from __future__ import annotations

import asyncio
import ctypes
import logging
import math
import os
import re
import signal
import socket
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from sidecar import __version__
from sidecar.server import bridge, listening, retiring
from sidecar.stores import kernel

if TYPE_CHECKING:
    from sidecar.server.assembly import Assembly, Wanted
    from sidecar.server.connection import Connection
    from sidecar.server.peer import Peer
    from sidecar.server.service import Guest, Service, Tap
    from sidecar.server.telling import Telling
    from sidecar.stores.journal import Journal

log = logging.getLogger("sidecar.daemon")

OK, BAD_DATA, UNSUPPORTED, BROKEN = 0, 65, 69, 70
OLDEST_KERNEL = (5, 6)
DRAIN_SECONDS = 5.0
TRIM_SECONDS = 1.0
SWITCH_SECONDS = 0.0001
RETIRE_STEP = 0.05
ENDINGS = (signal.SIGTERM, signal.SIGINT)
HEARD = (*ENDINGS, retiring.SIGNAL)


@dataclass(frozen=True, slots=True)
class Serving:
    """How the daemon is reached and when it ends. `idle_exit` is in seconds, 0 means never."""

    socket_dir: str | None = None
    idle_exit: float = 600.0
    stdio_role: str | None = None
    allowed: Mapping[str, frozenset[int]] = field(default_factory=dict[str, frozenset[int]])
    tap: Tap | None = None
    begun: Callable[[], None] = lambda: None  # called once this is the workspace's one daemon and its state is open


def run(wanted: Wanted, serving: Serving) -> int:
    """Serve a workspace until asked to end. Says why it cannot, on stderr, and answers the exit code."""
    missing = what_is_missing()
    if missing:
        return _say(UNSUPPORTED, missing)
    _hide_memory()
    kernel.hold_little()
    # Until the loop can hear it, a signal to end waits; it would end us without taking the sockets away.
    signal.pthread_sigmask(signal.SIG_BLOCK, HEARD)
    folder = bridge.socket_folder(wanted.out_dir, serving.socket_dir)
    try:
        lock = listening.take_lock(folder)
    except listening.AlreadyServed as answer:
        return _say(bridge.ALREADY_SERVED, str(answer))
    except bridge.Hopeless as hopeless:
        return _say(hopeless.code, str(hopeless))
    retiring.tell_version(folder, __version__)
    # Clients wait in the backlog while the heavy modules are imported.
    sockets = listening.bind(folder, bridge.ROLES, allowed=serving.allowed)
    stdio = listening.claim_stdio() if serving.stdio_role else None
    try:
        return asyncio.run(_Life(wanted, serving, sockets, stdio).live())
    finally:
        listening.unbind(folder, sockets)
        os.close(lock)


def what_is_missing() -> str:
    """Why the daemon cannot run on this system, or the empty text (spec section 13)."""
    if sys.platform != "linux":
        return "the daemon runs on Linux only; the Python client runs anywhere"
    release = os.uname().release
    version = tuple(int(part) for part in re.findall(r"\d+", release)[:2])
    return "" if version >= OLDEST_KERNEL else f"the daemon needs Linux 5.6 or later, this is {release}"


class _Life:
    """One run of the daemon, from its journal to its end."""

    def __init__(
        self, wanted: Wanted, serving: Serving, sockets: Mapping[str, socket.socket], stdio: listening.Stdio | None
    ) -> None:
        self._wanted = wanted
        self._serving = serving
        self._sockets = sockets
        self._stdio = stdio
        self._over = asyncio.Event()
        self._code = OK
        self._idle: asyncio.TimerHandle | None = None
        self._connections: set[Connection] = set()
        self._telling: Telling | None = None
        self._drained_at = math.inf  # by the monotonic clock, once the end has begun

    async def live(self) -> int:
        """Open the journal and serve over it; answers the exit code."""
        from sidecar.core.errors import Refusal
        from sidecar.stores.journal import Journal
        from sidecar.stores.journal_file import JournalLocked
        from sidecar.stores.journal_schema import JournalNewer
        from sidecar.stores.lease import ignore_lease_signal

        ignore_lease_signal()
        # Whichever thread has the interpreter, another one that wants it should not wait long: the loop least of all.
        sys.setswitchinterval(SWITCH_SECONDS)
        loop = asyncio.get_running_loop()
        for number in ENDINGS:
            loop.add_signal_handler(number, self._end, OK, f"got {number.name}")
        loop.add_signal_handler(retiring.SIGNAL, self._retire_soon)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, HEARD)

        def journal_failed(fault: Exception) -> None:
            loop.call_soon_threadsafe(self._end, BROKEN, f"the journal failed: {fault}")

        try:
            journal = await asyncio.to_thread(
                Journal.open, self._wanted.state_dir, post=loop.call_soon_threadsafe, on_fatal=journal_failed
            )
        except JournalNewer as newer:
            return _say(BAD_DATA, str(newer))
        except JournalLocked as locked:
            return _say(bridge.ALREADY_SERVED, str(locked))
        except Refusal as refusal:
            return _say(BROKEN, str(refusal))
        try:
            await self._serve(journal)
        except Exception:
            log.exception("the daemon cannot go on")
            self._code = BROKEN
        return self._code

    async def _serve(self, journal: Journal) -> None:
        from sidecar.collecting import Collecting
        from sidecar.server.assembly import Assembly
        from sidecar.stores.objects import open_configured

        try:
            self._serving.begun()
        except OSError as fault:
            log.warning("the store is not remembered for the next daemon: %s", fault)
        where = self._wanted.object_store
        self._assembly = assembly = Assembly(
            self._wanted,
            journal=journal,
            clients=lambda: self._telling.clients(),
            store=open_configured(where) if where is not None else None,
        )
        records = assembly.load()
        Collecting().begin()
        if journal.damage is not None:
            log.error("the journal was damaged: %s", journal.damage)
        service = self._service()
        running = [asyncio.create_task(assembly.looker.run(), name="look")]
        if not await self._opened(assembly):
            await self._stop_halfway(assembly, journal, running)
            return
        running += [asyncio.create_task(work) for work in assembly.tasks()]
        for task in running:
            task.add_done_callback(self._task_ended)
        log.info("serving %s at revision %d, %d records", assembly.outdir.root, assembly.workspace.revision, records)
        await self._receive(service)
        await assembly.close(until=self._drained_at)
        await self._stop(journal, running)

    async def _opened(self, assembly: Assembly) -> bool:
        """Open the workspace; False when the end comes first, as a store that hangs must not hold it up."""
        opening, ending = asyncio.create_task(assembly.open()), asyncio.create_task(self._over.wait())
        await asyncio.wait({opening, ending}, return_when=asyncio.FIRST_COMPLETED)
        ending.cancel()
        if opening.done():
            opening.result()
            return True
        opening.cancel()
        await asyncio.gather(opening, return_exceptions=True)
        return False

    async def _stop_halfway(self, assembly: Assembly, journal: Journal, running: list[asyncio.Task[None]]) -> None:
        """End as if killed, but for the lease: of a workspace that is half open nothing is shown to anybody."""
        assembly.resumer.close()
        await assembly.lease.release()
        assembly.archive.close()
        assembly.workspace.closing = True
        await self._stop(journal, running)

    async def _stop(self, journal: Journal, running: list[asyncio.Task[None]]) -> None:
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)
        await asyncio.to_thread(journal.close)
        log.info("ended with %d", self._code)

    def _service(self) -> Service:
        from protocol.methods import REQUESTS
        from protocol.version import PROTOCOL_VERSION
        from sidecar.server.editor import features
        from sidecar.server.holdings import Holdings
        from sidecar.server.lsp import Editors
        from sidecar.server.methods import BULKY, ORDERED, handlers
        from sidecar.server.routes import routes
        from sidecar.server.service import Service
        from sidecar.server.telling import Telling
        from sidecar.server.wire import encode_in_pieces

        assembly = self._assembly
        self._telling = Telling(assembly.workspace, assembly.services.reader)
        table = routes(handlers(assembly.services), REQUESTS, bulky=BULKY, ordered=ORDERED)
        methods = {role: [name for name, row in table.items() if role in row.asked_by] for role in bridge.ROLES}
        return Service(
            routes=table,
            encode=encode_in_pieces,
            hello=lambda caller: {
                "protocol_version": PROTOCOL_VERSION,
                **assembly.hello(caller, methods[caller.role]),
            },
            revision=lambda: assembly.workspace.revision,
            editors=Editors(features(assembly.services), version=__version__),
            holdings=Holdings(relieved=self._trim_soon),
            joined=self._joined,
            left=self._left,
            tap=self._serving.tap,
        )

    def _trim_soon(self) -> None:
        """Once all of it was let go. What was in pieces stays in the C library's heap otherwise."""
        loop = asyncio.get_running_loop()
        loop.call_later(TRIM_SECONDS, loop.run_in_executor, None, kernel.trim)

    async def _receive(self, service: Service) -> None:
        """Take clients in until the end, then let what is under way finish."""
        from sidecar.server.connection import Connection
        from sidecar.server.reception import Reception, StdioClient

        def make(role: str, peer: Peer) -> Connection:
            connection = Connection(service, role, peer)
            self._connections.add(connection)
            connection.client.farewells.append(lambda: self._connections.discard(connection))
            return connection

        reception = Reception(self._sockets, make, uid=os.geteuid(), allowed=self._serving.allowed)
        reception.start()
        if self._stdio is not None and self._serving.stdio_role is not None:
            client = await StdioClient.join(make, self._serving.stdio_role, self._stdio)
            ending = asyncio.create_task(client.done.wait())
            ending.add_done_callback(lambda _: self._end(OK, "stdio ended"))
        self._note_clients()
        await self._over.wait()
        self._drained_at = time.monotonic() + DRAIN_SECONDS
        reception.stop()
        if self._idle is not None:
            self._idle.cancel()
        await asyncio.gather(*(connection.retire(within=DRAIN_SECONDS) for connection in list(self._connections)))

    def _joined(self, guest: Guest) -> None:
        self._telling.join(guest)
        self._assembly.services.channels.join(guest.client)
        self._note_clients()

    def _left(self, guest: Guest) -> None:
        self._telling.leave(guest)
        self._assembly.services.channels.leave(guest.client)
        self._note_clients()

    def _note_clients(self) -> None:
        """With somebody there the bell hurries; with nobody it relaxes, and after a while the daemon ends."""
        if self._idle is not None:
            self._idle.cancel()
            self._idle = None
        if self._telling.guests:
            self._assembly.bell.hurry()
            return
        self._assembly.bell.relax()
        if self._serving.idle_exit:
            loop = asyncio.get_running_loop()
            self._idle = loop.call_later(self._serving.idle_exit, self._end_when_idle)

    def _end_when_idle(self) -> None:
        self._idle = None
        workspace = self._assembly.workspace
        if workspace.open_calls or workspace.busy or self._assembly.hosting.busy or self._assembly.saver.busy:
            # An open call may still produce files, an upload or a save may still end; look again later.
            self._note_clients()
        else:
            self._end(OK, f"nobody came for {self._serving.idle_exit:g} seconds")

    def _retire_soon(self) -> None:
        """A newer door has come: end as soon as no request, call or change is under way."""
        at_rest = (
            self._telling is not None
            and not self._assembly.workspace.open_calls
            and not self._assembly.workspace.busy
            and not any(connection.working for connection in self._connections)
        )
        if at_rest:
            self._end(OK, "a newer version takes over")
        else:
            asyncio.get_running_loop().call_later(RETIRE_STEP, self._retire_soon)

    def _task_ended(self, task: asyncio.Task[None]) -> None:
        """The daemon's own tasks run until they are cancelled; one that ends otherwise leaves it blind."""
        if not task.cancelled() and (fault := task.exception()) is not None:
            log.error("%s failed", task.get_name(), exc_info=fault)
            self._end(BROKEN, "a part of the daemon failed")

    def _end(self, code: int, reason: str) -> None:
        if not self._over.is_set():
            log.info("ending: %s", reason)
            self._code = code
            self._over.set()


def _hide_memory() -> None:
    """Other processes of our uid may not read our memory or environment (PR_SET_DUMPABLE = 0, spec section 7)."""
    pr_set_dumpable = 4
    ctypes.CDLL(None).prctl(pr_set_dumpable, 0, 0, 0, 0)


def _say(code: int, sentence: str) -> int:
    sys.stderr.write(f"artifact-sidecar: {sentence}\n")
    return code
