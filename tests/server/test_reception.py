"""Taking clients in: who may come, how many, and over which way."""

from __future__ import annotations

import asyncio
import errno
import json
import os
import socket
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from sidecar.server import bridge, listening, reception
from sidecar.server.connection import Connection
from sidecar.server.listening import Stdio
from sidecar.server.peer import Peer
from sidecar.server.reception import Reception, StdioClient
from tests.server.joined import CEILING, Remote, Workbench, framed, join, service, until

INIT = {"jsonrpc": "2.0", "id": "init", "method": "initialize", "params": {"capabilities": {}}}


class House:
    """A folder with a bound socket per role, and everybody who was let in."""

    def __init__(self, folder: str, bench: Workbench) -> None:
        self.folder = folder
        self.let_in: list[Connection] = []
        self.made = service(bench)

    def make(self, role: str, peer: Peer) -> Connection:
        self.let_in.append(Connection(self.made, role, peer))
        return self.let_in[-1]

    async def visit(self, role: str = "exec") -> Remote:
        path = f"{self.folder}/{role}/s.sock"
        return Remote(*await asyncio.open_unix_connection(path), None)  # type: ignore[arg-type]


@asynccontextmanager
async def house(tmp_path: Path, **arguments: Any) -> AsyncIterator[House]:
    folder = str(tmp_path / "sockets")
    lock = listening.take_lock(folder)
    sockets = listening.bind(folder, bridge.ROLES)
    opened = House(folder, Workbench())
    door = Reception(sockets, opened.make, **{"uid": os.geteuid(), **arguments})
    door.start()
    yield opened
    door.stop()
    for connection in opened.let_in:
        await connection.retire(within=0)
    listening.unbind(folder, sockets)
    os.close(lock)


@pytest.mark.rule("roles.come-from-the-socket")
async def test_the_role_is_the_socket_a_client_came_by(tmp_path: Path) -> None:
    async with house(tmp_path) as opened:
        for role in bridge.ROLES:
            remote = await opened.visit(role)
            await remote.initialize()
            assert (await remote.call(1, "test/echo"))["result"]["role"] == role
            assert opened.let_in[-1].client.peer == (os.getpid(), os.geteuid())


@pytest.mark.rule("roles.a-stranger-uid-is-turned-away")
async def test_a_stranger_is_told_why_and_let_out_again(tmp_path: Path) -> None:
    async with house(tmp_path, uid=os.geteuid() + 1) as opened:
        remote = await opened.visit()
        [said] = await remote.closed()
        assert (said["id"], said["error"]["code"], said["error"]["data"]["kind"]) == (None, -32803, "not_permitted")
        assert opened.let_in == []


@pytest.mark.rule("roles.a-stranger-uid-is-turned-away")
async def test_another_uid_comes_in_by_the_role_that_is_open_to_it_and_no_other(tmp_path: Path) -> None:
    allowed: Mapping[str, frozenset[int]] = {"exec": frozenset({os.geteuid()})}
    async with house(tmp_path, uid=os.geteuid() + 1, allowed=allowed) as opened:
        assert (await (await opened.visit("exec")).initialize())["serverInfo"]
        assert len(await (await opened.visit("runtime")).closed()) == 1


async def test_a_uid_has_only_so_many_connections_at_once(tmp_path: Path) -> None:
    async with house(tmp_path, per_uid=3) as opened:
        inside = [await opened.visit() for _ in range(3)]
        for remote in inside:
            await remote.initialize()
        [said] = await (await opened.visit("runtime")).closed()
        assert said["error"]["data"]["kind"] == "too_large"
        inside[0].writer.close()
        await until(opened.let_in[0].gone.is_set)
        assert (await (await opened.visit()).initialize())["serverInfo"]


async def test_clients_who_came_before_the_daemon_was_ready_are_served(tmp_path: Path) -> None:
    folder = str(tmp_path / "sockets")
    lock = listening.take_lock(folder)
    sockets = listening.bind(folder, ["exec"])
    early = [bridge.dial(folder, "exec") for _ in range(40)]
    for sock in early:
        sock.sendall(framed(INIT))
    opened = House(folder, Workbench())
    door = Reception(sockets, opened.make, uid=os.geteuid())
    door.start()
    for sock in early:
        assert b'"id":"init"' in await asyncio.to_thread(sock.recv, 65536)
        sock.close()
    await until(lambda: all(connection.gone.is_set() for connection in opened.let_in))
    door.stop()
    listening.unbind(folder, sockets)
    os.close(lock)


async def test_running_out_of_descriptors_is_a_pause_and_not_an_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Short:
        """A listening socket of a process without free descriptors."""

        def __init__(self, real: socket.socket) -> None:
            self.real, self.failures = real, 3

        def fileno(self) -> int:
            return self.real.fileno()

        def accept(self) -> tuple[socket.socket, Any]:
            if self.failures:
                self.failures -= 1
                raise OSError(errno.EMFILE, "too many open files")
            return self.real.accept()

    monkeypatch.setattr(reception, "RECOVERY_SECONDS", 0.01)
    folder = str(tmp_path / "sockets")
    lock = listening.take_lock(folder)
    sockets = listening.bind(folder, ["exec"])
    opened = House(folder, Workbench())
    short = Short(sockets["exec"])
    door = Reception({"exec": short}, opened.make, uid=os.geteuid())  # type: ignore[dict-item]
    door.start()
    remote = await opened.visit()
    assert (await remote.initialize())["serverInfo"]
    assert short.failures == 0
    door.stop()
    await opened.let_in[0].retire(within=0)
    listening.unbind(folder, sockets)
    os.close(lock)


# Over stdio


class Ends:
    """Two pipes, as a parent process makes them, and the client over them."""

    def __init__(self) -> None:
        self.source, self.to_us = os.pipe()
        self.from_us, self.sink = os.pipe()
        self.bench = Workbench()
        self.made = service(self.bench)

    async def join(self) -> StdioClient:
        def make(role: str, peer: Peer) -> Connection:
            return Connection(self.made, role, peer)

        return await StdioClient.join(make, "runtime", Stdio(self.source, self.sink))

    async def read(self, size: int = 65536) -> bytes:
        return await asyncio.to_thread(os.read, self.from_us, size)

    def close(self) -> None:
        for descriptor in (self.source, self.to_us, self.from_us, self.sink):
            try:
                os.close(descriptor)
            except OSError:
                pass  # the test closed it


@pytest.fixture
def ends() -> Any:
    made = Ends()
    yield made
    made.close()


@pytest.mark.rule("cli.serve-stdio-is-a-connection")
async def test_a_client_over_stdio_is_served_like_any_other(ends: Ends) -> None:
    client = await ends.join()
    os.write(ends.to_us, framed(INIT) + framed({"jsonrpc": "2.0", "id": 1, "method": "test/echo"}))
    said = b""
    while b'"id":1' not in said:
        said += await ends.read()
    assert b'"role":"runtime"' in said
    assert client.connection.client.peer.pid == os.getppid()
    os.close(ends.to_us)
    await asyncio.wait_for(client.done.wait(), CEILING)


async def test_what_was_asked_before_stdin_ended_is_answered_before_the_end(ends: Ends) -> None:
    client = await ends.join()
    os.write(ends.to_us, framed(INIT) + framed({"jsonrpc": "2.0", "id": 1, "method": "test/wait"}))
    os.close(ends.to_us)
    await until(ends.bench.entered.is_set)
    ends.bench.gate.set()
    await asyncio.wait_for(client.done.wait(), CEILING)
    assert b'"id":1' in await ends.read()


async def test_a_reader_that_leaves_ends_the_connection(ends: Ends) -> None:
    client = await ends.join()
    os.write(ends.to_us, framed(INIT) + framed({"jsonrpc": "2.0", "id": 1, "method": "test/wait"}))
    await until(ends.bench.entered.is_set)
    os.close(ends.from_us)
    os.write(ends.to_us, framed({"jsonrpc": "2.0", "id": 2, "method": "test/echo"}))
    await asyncio.wait_for(client.done.wait(), CEILING)
    await until(lambda: ends.bench.cancelled == 1)


async def test_a_reader_that_does_not_read_holds_up_nobody_else(ends: Ends) -> None:
    client = await ends.join()
    echo = framed({"jsonrpc": "2.0", "id": 1, "method": "test/echo", "params": {"text": "x" * 30_000}})
    writing = asyncio.create_task(asyncio.to_thread(_write_all, ends.to_us, framed(INIT) + 200 * echo))
    await until(lambda: client.connection.queued > 1_000_000)
    other = await join(ends.made)
    await other.initialize()
    assert "result" in await other.call(1, "test/echo")
    await other.drop()
    os.close(ends.from_us)
    await asyncio.wait_for(client.done.wait(), CEILING)
    os.close(ends.source)
    await writing


def _write_all(descriptor: int, data: bytes) -> None:
    try:
        while data:
            data = data[os.write(descriptor, data) :]
    except BrokenPipeError:
        pass  # that is how it is to end


async def test_stdin_may_be_a_file(tmp_path: Path, ends: Ends) -> None:
    path = tmp_path / "frames"
    path.write_bytes(framed(INIT) + framed({"jsonrpc": "2.0", "id": 1, "method": "test/echo"}))
    os.dup2(os.open(path, os.O_RDONLY), ends.source)
    client = await ends.join()
    await asyncio.wait_for(client.done.wait(), CEILING)
    bodies = (await ends.read()).split(b"\r\n\r\n")[1:]
    assert len(bodies) == 2
    assert json.loads(bodies[1])["id"] == 1


async def test_a_crowd_that_is_refused_is_told_of_in_few_lines(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reception, "REFUSALS_SECONDS", 3600.0)
    caplog.set_level("WARNING", "sidecar.connection")
    async with house(tmp_path, per_uid=0) as opened:
        for _ in range(30):
            (said,) = await (await opened.visit()).closed()
            assert said["error"]["data"]["kind"] == "too_large"
    told = [record.getMessage() for record in caplog.records]
    assert len(told) == 2
    assert "refused: " in told[0]
    assert told[1] == "29 more were refused"
