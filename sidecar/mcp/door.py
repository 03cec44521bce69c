"""The way to the daemon for many requests at once: one door (`artifact-sidecar connect`), which outlives daemons.

A request that a dying daemon left unanswered is asked once more; with its `request_id` a change is made only once.
"""

from __future__ import annotations

import asyncio
import itertools
import os
import subprocess
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any
from uuid import uuid4

import orjson

from protocol.methods import REQUESTS
from protocol.version import PROTOCOL_VERSION
from sidecar.server.framing import FrameReader, FramingFault, frame

CHUNK = 1 << 18
ENDING_SECONDS = 5.0
TOPICS = ("artifacts", "notices")

Heard = Callable[[str, dict[str, Any]], None]
Progress = Callable[[dict[str, Any]], None]


class Refused(Exception):  # noqa: N818 - an answer
    """The daemon refused. `kind`, `about` and `hint` are empty for faults of the protocol itself."""

    def __init__(self, error: dict[str, Any]) -> None:
        self.code: int = error.get("code", 0)
        self.message = str(error.get("message", ""))
        self.data: dict[str, Any] = error.get("data") or {}
        self.kind, self.about, self.hint = (str(self.data.get(name, "")) for name in ("kind", "about", "hint"))
        told = [self.message, self.about, self.hint, self.data.get("incident")]
        told += [f"{fault['where']}: {fault['problem']}" for fault in self.data.get("faults", ())]
        super().__init__("; ".join(str(part) for part in told if part))


class NoDaemon(Exception):  # noqa: N818 - said to a person
    """The door ended: no daemon serves the workspace, and none could be started. stderr says why."""


@dataclass(slots=True)
class _Line:
    """One process of the door, and who waits for what over it."""

    process: asyncio.subprocess.Process
    listening: asyncio.Task[None] | None = None
    waiting: dict[int, asyncio.Future[dict[str, Any]]] = field(default_factory=dict)
    progress: dict[int, Progress] = field(default_factory=dict)
    ended: bool = False

    def send(self, message: dict[str, Any]) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(frame(orjson.dumps({"jsonrpc": "2.0", **message})))


class Door:
    """Asks the daemon. Calls go on side by side; cancelling one tells the daemon so."""

    def __init__(self, command: Sequence[str], heard: Heard) -> None:
        """`command` starts the door. `heard` gets the daemon's events, and `door/opened` with what the daemon says
        of itself for each door that is opened: what happened between two of them was told to nobody."""
        self._command = command
        self._heard = heard
        self._line: _Line | None = None
        self._opening = asyncio.Lock()
        self._ids = itertools.count(1)

    async def call(self, method: str, params: dict[str, Any], *, progress: Progress | None = None) -> dict[str, Any]:
        """The answer's result. Raises Refused and NoDaemon."""
        if "request_id" in REQUESTS[method].params.model_fields:
            params = {"request_id": uuid4().hex, **params}
        try:
            return await self._ask(await self._connected(), method, params, progress)
        except Refused as refusal:
            if refusal.kind != "shutting_down":
                raise
        except NoDaemon:
            pass
        return await self._ask(await self._connected(), method, params, progress)

    async def open(self) -> None:
        """Connect, so that events come. Raises Refused and NoDaemon."""
        await self._connected()

    async def close(self) -> None:
        """Hang up; the daemon goes on."""
        line, self._line = self._line, None
        if line is None:
            return
        assert line.process.stdin is not None
        line.process.stdin.close()
        try:
            async with asyncio.timeout(ENDING_SECONDS):
                await line.process.wait()
        except TimeoutError:
            line.process.terminate()
            await line.process.wait()
        if line.listening is not None:
            await asyncio.gather(line.listening, return_exceptions=True)

    async def _connected(self) -> _Line:
        async with self._opening:
            if self._line is None or self._line.ended:
                self._line = await self._dialled()
            return self._line

    async def _dialled(self) -> _Line:
        try:
            # A session of its own: Ctrl-C is for us, and we hang up in order.
            process = await asyncio.create_subprocess_exec(
                *self._command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True
            )
        except OSError as error:
            raise NoDaemon(f"{self._command[0]} cannot be started ({error.strerror})") from None
        line = _Line(process)
        line.listening = asyncio.create_task(self._listen(line))
        try:
            await self._greet(line)
        except BaseException:  # refused or cancelled: nobody would ever hang up this one
            await _abandon(line)
            raise
        return line

    async def _greet(self, line: _Line) -> None:
        options = {"protocol_version": PROTOCOL_VERSION, "events": list(TOPICS)}
        hello = {"processId": os.getpid(), "rootUri": None, "capabilities": {}, "initializationOptions": options}
        answer = await self._ask(line, "initialize", hello, None)
        line.send({"method": "initialized", "params": {}})
        self._heard("door/opened", answer["capabilities"]["experimental"]["artifact_sidecar"])

    async def _ask(self, line: _Line, method: str, params: dict[str, Any], progress: Progress | None) -> dict[str, Any]:
        number = next(self._ids)
        answer = line.waiting[number] = asyncio.get_running_loop().create_future()
        if progress is not None:
            line.progress[number] = progress
            params = {**params, "workDoneToken": number}
        try:
            if line.ended:
                raise NoDaemon(_ENDED)
            line.send({"id": number, "method": method, "params": params})
            message = await answer
        except asyncio.CancelledError:
            if not line.ended:
                line.send({"method": "$/cancelRequest", "params": {"id": number}})
            raise
        finally:
            line.waiting.pop(number, None)
            line.progress.pop(number, None)
        if "error" in message:
            raise Refused(message["error"])
        return message["result"]

    async def _listen(self, line: _Line) -> None:
        frames = FrameReader()
        assert line.process.stdout is not None
        try:
            while came := await line.process.stdout.read(CHUNK):
                for body in frames.feed(came):
                    self._take(line, orjson.loads(body))
        except (OSError, FramingFault, orjson.JSONDecodeError):
            line.process.terminate()
        finally:
            line.ended = True
            for answer in line.waiting.values():
                if not answer.done():
                    answer.set_exception(NoDaemon(_ENDED))
        await line.process.wait()

    def _take(self, line: _Line, message: dict[str, Any]) -> None:
        match message:
            case {"method": "$/progress", "params": {"token": int() as token, "value": value}}:
                if token in line.progress:
                    line.progress[token](value)
            case {"method": str() as method}:
                if "id" not in message and not method.startswith("$/"):
                    self._heard(method, message.get("params") or {})
            case {"id": int() as number}:
                answer = line.waiting.get(number)
                if answer is not None and not answer.done():
                    answer.set_result(message)


async def _abandon(line: _Line) -> None:
    """End a process that was not greeted."""
    assert line.process.stdin is not None
    line.process.stdin.close()
    with suppress(ProcessLookupError):
        line.process.terminate()
    try:
        async with asyncio.timeout(ENDING_SECONDS):
            await line.process.wait()
    except TimeoutError:
        with suppress(ProcessLookupError):
            line.process.kill()
        await line.process.wait()
    if line.listening is not None:
        line.listening.cancel()
        await asyncio.gather(line.listening, return_exceptions=True)


_ENDED = "no daemon serves the workspace; stderr says why"
