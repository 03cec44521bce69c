"""Doors whose daemon dies under them: only what was under way fails, nothing acknowledged is lost, and it goes on.

The I/O error on commit is a real one: a file that may not grow (RLIMIT_FSIZE) answers a write with neither "full" nor
anything else that SQLite could roll back from.
"""

from __future__ import annotations

import asyncio
import os
import random
import resource
import signal
import socket
import struct
import subprocess
import sys
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.daemon_process import PROJECT, START_CEILING, Workspace, environment, eventually
from tests.faults.chance import a_seed
from tests.faults.ledger import Ledger
from tests.faults.whole_deaths import inventory
from tests.rpc_client import AsyncClient, Client, RpcError

DEATHS = 30
UNDER_WAY = 6
CREDENTIALS = struct.Struct("iII")
PASSING = {"shutting_down", "journal_unavailable"}

Params = dict[str, Any]


# Doors


def start(workspace: Workspace, role: str) -> tuple[socket.socket, subprocess.Popen[bytes]]:
    """A door as a process, and the other end of its stdin and stdout."""
    command = [sys.executable, "-m", "sidecar", "connect", *workspace.arguments, *workspace.options, "--role", role]
    ours, theirs = socket.socketpair()
    with theirs:
        return ours, subprocess.Popen(command, cwd=PROJECT, env=environment(), stdin=theirs, stdout=theirs)


class Door(AsyncClient):
    """A client at a door of its own. `close` fails when an answer came twice or was not read."""

    process: subprocess.Popen[bytes]
    refused = 0

    @classmethod
    async def open(cls, workspace: Workspace, role: str, **options: Any) -> Door:
        ours, process = start(workspace, role)
        door = cls(*await asyncio.open_unix_connection(sock=ours), ceiling=START_CEILING)
        door.process = process
        await door.initialize(**options)
        return door

    async def drop(self) -> None:
        await super().drop()
        try:
            await asyncio.to_thread(self.process.wait, START_CEILING)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            raise

    async def surely(self, method: str, params: Params) -> Any:
        """Ask until it is answered. The request_id makes that safe."""
        while True:
            try:
                return await self.call(method, params)
            except RpcError as error:
                assert error.kind in PASSING, error  # noqa: PT017 - these may come, others may not
                self.refused += 1


@asynccontextmanager
async def doors(workspace: Workspace, *roles: str) -> AsyncIterator[list[Door]]:
    """A door of each role; they are closed in order after what went well, and dropped after what did not."""
    opened = [await Door.open(workspace, role) for role in roles]
    try:
        yield opened
        for door in opened:
            await door.close()
    finally:
        for door in opened:
            await door.drop()


def daemon_of(workspace: Workspace) -> int:
    """The process id of whoever listens, 0 when nobody does."""
    with socket.socket(socket.AF_UNIX) as link:
        if link.connect_ex(str(workspace.socket("runtime"))) != 0:
            return 0
        pid: int = CREDENTIALS.unpack(link.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, CREDENTIALS.size))[0]
        return pid


def end_daemon(workspace: Workspace) -> None:
    """SIGTERM to the daemon that a door has started, until its sockets are gone."""
    pid = daemon_of(workspace)
    if pid:
        os.kill(pid, signal.SIGTERM)
        eventually(lambda: not workspace.answers(), ceiling=20)


@pytest.fixture
def place(make_workspace: Callable[..., Workspace]) -> Any:
    """A workspace whose daemons are started by doors, and the last of them ended."""
    made = make_workspace()
    yield made
    end_daemon(made)


def check_everything(workspace: Workspace, ledger: Ledger) -> Counter[str]:
    """Compare what is there with what was acknowledged; how often each text stands in the timeline."""
    client: Client = workspace.connect("runtime")
    found = inventory(client)
    ledger.check(found)
    return Counter(found["blocks"])


# An I/O error on commit


async def append(door: Door, name: str, ledger: Ledger, over: asyncio.Event) -> list[str]:
    """Append until told to stop, each block for as long as it takes; all that was acknowledged."""
    told: list[str] = []
    while not over.is_set():
        text = f"{name}:{len(told)}:0:1"
        block = {"type": "react.note", "turn_id": "turn_1", "text": text, "meta": {"ballast": "x" * 2000}}
        answer = await door.surely("timeline/append", {"blocks": [block], "request_id": f"r-{text}"})
        ledger.note({"blocks": [[answer["blocks"][0]["index"], text]], "revision": answer["revision"]})
        told.append(text)
    return told


async def merge(door: Door, name: str, ledger: Ledger, over: asyncio.Event) -> list[str]:
    serial = 0
    while not over.is_set():
        url = f"https://e.org/{name}:{serial}:0:1"
        answer = await door.surely("sources/merge", {"rows": [{"url": url}], "request_id": f"r-{name}-{serial}"})
        ledger.note({"rows": {str(row["sid"]): row["url"] for row in answer["rows"]}})
        serial += 1
    return []


async def make_files(door: Door, name: str, ledger: Ledger, over: asyncio.Event, *, out_dir: Path) -> list[str]:
    """Files of a program, which asks for them as soon as they are there."""
    serial = 0
    folder = out_dir / "turn_2" / "files"
    folder.mkdir(parents=True, exist_ok=True)
    while not over.is_set():
        path = f"turn_2/files/{name}_{serial}.txt"
        (out_dir / path).write_text(f"{name}:{serial}", "utf-8")
        await door.surely("workspace/sync", {})
        (result,) = (await door.surely("artifact/resolve", {"paths": [path]}))["results"]
        artifact = result["artifact"]
        ledger.note({"file": path, "sha256": artifact["sha256"], "sid": artifact["sid"]})
        serial += 1
    return []


async def work_through(workspace: Workspace, ledger: Ledger, disaster: Callable[[], None]) -> tuple[list[str], int]:
    """Four doors work, disaster comes, and all go on: what was appended, and how much was refused."""
    async with doors(workspace, "runtime", "runtime", "renderer", "exec") as (one, two, third, program):
        await one.surely("turn/begin", {"turn_id": "turn_1"})
        over = asyncio.Event()
        tasks = [
            asyncio.create_task(append(one, "one", ledger, over)),
            asyncio.create_task(append(two, "two", ledger, over)),
            asyncio.create_task(merge(third, "three", ledger, over)),
            asyncio.create_task(make_files(program, "four", ledger, over, out_dir=workspace.out_dir)),
        ]
        try:
            await acknowledgements(ledger, 60, tasks)
            first = daemon_of(workspace)
            disaster()
            await until(lambda: daemon_of(workspace) not in (0, first), tasks)
            await acknowledgements(ledger, ledger.acknowledged + 100, tasks)
        finally:
            over.set()
        told = [text for texts in await asyncio.gather(*tasks) for text in texts]
        return told, sum(door.refused for door in (one, two, third, program))


async def acknowledgements(ledger: Ledger, enough: int, tasks: list[asyncio.Task[list[str]]]) -> None:
    await until(lambda: ledger.acknowledged >= enough, tasks)


async def until(so: Callable[[], object], tasks: list[asyncio.Task[list[str]]]) -> None:
    """Wait while the tasks work; a task that ends is a failure."""
    async with asyncio.timeout(START_CEILING):
        while not so():
            await asyncio.sleep(0.01)
            assert not (ended := [task for task in tasks if task.done()]), [task.exception() for task in ended]


@pytest.mark.rule("journal.an-io-error-ends-the-daemon")
def test_an_io_error_on_commit_costs_the_doors_only_what_was_under_way(workspace: Workspace) -> None:
    workspace.incidents_expected = 1
    daemon = workspace.daemon
    assert daemon is not None
    ledger = Ledger()

    def break_the_disk() -> None:
        written = (workspace.state_dir / "journal.db-wal").stat().st_size
        _, hard = resource.prlimit(daemon.pid, resource.RLIMIT_FSIZE)
        resource.prlimit(daemon.pid, resource.RLIMIT_FSIZE, (written + 20_000, hard))

    told, refused = asyncio.run(work_through(workspace, ledger, break_the_disk))
    assert daemon.wait(20) == 70
    workspace.daemon = None
    found = check_everything(workspace, ledger)
    end_daemon(workspace)
    assert refused > 0, "nothing was under way"
    assert {text: found[text] for text in told} == dict.fromkeys(told, 1)
    print(f"{ledger.acknowledged} acknowledgements, {refused} refusals")


def test_a_killed_daemon_costs_the_doors_only_what_was_under_way(workspace: Workspace) -> None:
    daemon = workspace.daemon
    assert daemon is not None
    ledger = Ledger()
    told, refused = asyncio.run(work_through(workspace, ledger, daemon.kill))
    assert daemon.wait(20) == -signal.SIGKILL
    workspace.daemon = None
    found = check_everything(workspace, ledger)
    end_daemon(workspace)
    assert refused > 0, "nothing was under way"
    assert {text: found[text] for text in told} == dict.fromkeys(told, 1)


# Many deaths


@pytest.mark.timeout(300)
def test_appends_through_thirty_deaths_are_there_once_each(place: Workspace) -> None:
    seed = a_seed()
    told = asyncio.run(append_through_deaths(place, random.Random(seed)))
    found = Counter(text for text in inventory(place.connect("runtime"))["blocks"] if not text.startswith("[TURN"))
    assert found == Counter(told)
    print(f"{len(told)} blocks")


async def append_through_deaths(workspace: Workspace, chance: random.Random) -> list[str]:
    """Some appends are always under way; the daemon is killed now and then; all texts that were acknowledged."""
    told: list[str] = []
    over = asyncio.Event()

    async def stream(door: Door, name: str) -> list[str]:
        serial = 0
        while not over.is_set():
            text = f"{name}-{serial}"
            block = {"type": "react.note", "turn_id": "turn_1", "text": text}
            await door.surely("timeline/append", {"blocks": [block], "request_id": text})
            told.append(text)
            serial += 1
        return []

    async with doors(workspace, "runtime") as (door,):
        await door.surely("turn/begin", {"turn_id": "turn_1"})
        tasks = [asyncio.create_task(stream(door, str(at))) for at in range(UNDER_WAY)]
        try:
            for _ in range(DEATHS):
                enough = len(told) + chance.randrange(40)
                await until(lambda enough=enough: len(told) >= enough, tasks)
                await asyncio.sleep(chance.random() * 0.02)  # the moment of death: anywhere in its work
                await until(lambda: daemon_of(workspace), tasks)
                os.kill(daemon_of(workspace), signal.SIGKILL)
                enough = len(told) + 1
                await until(lambda enough=enough: len(told) >= enough, tasks)
        finally:
            over.set()
        await asyncio.gather(*tasks)
        print(f"{door.refused} refusals")
    return told


# What else a session is


def test_events_flow_after_the_daemon_has_changed_and_what_was_missed_is_announced(place: Workspace) -> None:
    async def watch() -> None:
        async with doors(place, "runtime") as (runtime,):
            editor = await Door.open(place, "editor", events=["sources"])
            try:
                await watch_through_a_death(editor, runtime)
                await editor.close()
            finally:
                await editor.drop()

    async def watch_through_a_death(editor: Door, runtime: Door) -> None:
        await runtime.call("sources/merge", {"rows": [{"url": "https://e.org/1"}]})
        assert [row["sid"] for row in (await editor.event("sources/added"))["rows"]] == [1]
        os.kill(daemon_of(place), signal.SIGKILL)
        missed = await editor.event("notice/posted")
        assert missed["notice"]["code"] == "events_dropped"
        assert missed["revision"] == (await runtime.surely("workspace/status", {}))["revision"]
        await runtime.surely("sources/merge", {"rows": [{"url": "https://e.org/2"}]})
        assert [row["sid"] for row in (await editor.event("sources/added"))["rows"]] == [2]

    asyncio.run(watch())


@pytest.mark.rule("sockets.a-newer-door-retires-an-older-daemon")
def test_a_daemon_that_retires_for_a_newer_one_is_not_even_noticed(place: Workspace) -> None:
    async def work() -> None:
        async with doors(place, "exec") as (door,):
            before = daemon_of(place)
            os.kill(before, signal.SIGUSR1)  # what a newer door sends
            await until(lambda: not place.answers(), [])
            await door.call("workspace/status")  # raises if it is refused
            assert daemon_of(place) not in (0, before)

    asyncio.run(work())


def test_half_a_citation_stream_dies_with_its_daemon_and_is_begun_again(place: Workspace) -> None:
    async def cite() -> None:
        async with doors(place, "runtime") as (door,):
            await door.call("sources/merge", {"rows": [{"url": "https://e.org/", "title": "E"}]})
            half = {"stream_id": "s", "chunk": "see [[S:"}
            assert (await door.call("citations/stream", half))["text"] == "see "
            os.kill(daemon_of(place), signal.SIGKILL)
            await until(lambda: not place.answers(), [])
            with pytest.raises(RpcError) as refused:
                await door.call("citations/stream", {"stream_id": "s", "chunk": "1]]", "flush": True})
            assert refused.value.kind == "shutting_down"
            whole = await door.call("citations/stream", {"stream_id": "s", "chunk": "see [[S:1]]", "flush": True})
            assert whole["text"] == "see [E](https://e.org/)"

    asyncio.run(cite())


def test_a_repeated_request_with_its_id_is_done_once_however_often_its_daemon_dies(place: Workspace) -> None:
    async def repeat() -> None:
        async with doors(place, "runtime") as (door,):
            await door.call("turn/begin", {"turn_id": "turn_1"})
            block = {"type": "react.note", "turn_id": "turn_1", "text": "once"}
            asked = {"blocks": [block], "request_id": "r"}
            answers = []
            for _ in range(3):
                answers.append(await door.surely("timeline/append", asked))
                os.kill(daemon_of(place), signal.SIGKILL)
                await until(lambda: not place.answers(), [])
            assert answers[0] == answers[1] == answers[2]
            blocks = (await door.surely("timeline/blocks", {}))["blocks"]
            assert [told["text"] for told in blocks if told.get("text") == "once"] == ["once"]

    asyncio.run(repeat())


def test_an_end_that_was_asked_for_lasts_until_a_client_has_something_to_say(place: Workspace) -> None:
    async def stop() -> None:
        async with doors(place, "exec", "runtime") as (door, _):
            before = daemon_of(place)
            os.kill(before, signal.SIGTERM)
            await until(lambda: not place.answers(), [])
            with pytest.raises(TimeoutError):  # a daemon that somebody wanted would come up by then
                async with asyncio.timeout(0.5):
                    await until(place.answers, [])
            await door.call("workspace/status")
            assert daemon_of(place) not in (0, before)

    asyncio.run(stop())
