"""What all workers of a soak share: the daemon, the clock by which they work, and one way to ask."""

from __future__ import annotations

import asyncio
import sys
from collections import deque
from collections.abc import AsyncIterator, Collection
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from random import Random
from time import monotonic
from typing import Any

from tests.daemon_process import PROJECT, Workspace, environment
from tests.rpc_client import AsyncClient, RpcError
from tests.soak.accounts import Accounts, Ledger

CEILING = 120.0  # seconds for one answer; what takes longer is unexpected
TURNS_ON_DISK = 6
PROBE = "probe.md"


@dataclass
class World:
    """One soak. `turn` is the open turn, `recent` those whose files are in OUT_DIR, `absent` files deleted from it."""

    workspace: Workspace
    chance: Random
    rate: float
    accounts: Accounts = field(default_factory=Accounts)
    ledger: Ledger = field(default_factory=Ledger)
    over: asyncio.Event = field(default_factory=asyncio.Event)
    began: float = field(default_factory=monotonic)
    turn: str | None = None
    recent: deque[str] = field(default_factory=deque[str])
    absent: deque[str] = field(default_factory=lambda: deque[str](maxlen=200))
    paths: deque[str] = field(default_factory=lambda: deque[str](maxlen=500))

    async def beat(self, seconds: float) -> bool:
        """Wait for the next step of a worker that makes one each so many seconds; False when the soak is over."""
        pause = seconds / self.rate * self.chance.uniform(0.8, 1.2)
        try:
            await asyncio.wait_for(self.over.wait(), pause)
        except TimeoutError:
            return True
        return False

    async def ask(
        self, client: AsyncClient, method: str, params: dict[str, Any] | None = None, *, may: Collection[str] = ()
    ) -> Any:
        """The result; None when it was refused, which is unexpected unless for one of the kinds that it `may`."""
        try:
            result = await client.call(method, params)
        except RpcError as refusal:
            if refusal.kind not in may:
                self.accounts.surprised(method, refusal)
            else:
                self.accounts.refused(method, refusal.kind or "")
            return None
        self.accounts.counts[method] += 1
        return result

    def some_paths(self, number: int) -> list[str]:
        """Logical paths that lead somewhere."""
        return self.chance.sample(self.paths, min(number, len(self.paths))) or [f"fi:{PROBE}"]

    @asynccontextmanager
    async def client(self, role: str, **options: Any) -> AsyncIterator[AsyncClient]:
        """A connection to the role's socket, ended in order."""
        client = await AsyncClient.to(str(self.workspace.socket(role)))
        client.ceiling = CEILING
        try:
            await client.initialize(**options)
            yield client
            await client.call("shutdown")  # and events may come until the very end, unread
            client.notify("exit")
        finally:
            await client.drop()

    @asynccontextmanager
    async def door(self, role: str, **options: Any) -> AsyncIterator[tuple[AsyncClient, asyncio.subprocess.Process]]:
        """A connection by way of `artifact-sidecar connect`, and the door's process."""
        process = await self.program("connect", "--role", role)
        assert process.stdout is not None
        assert process.stdin is not None
        client = AsyncClient(process.stdout, process.stdin, ceiling=CEILING)
        try:
            await client.initialize(**options)
            yield client, process
        finally:
            with suppress(AttributeError):  # asyncio's pipes forget their loop when the program ended first
                await client.drop()
            if process.returncode is None:
                process.terminate()
            await process.wait()

    async def program(self, command: str, *words: str) -> asyncio.subprocess.Process:
        """One of our commands on this workspace, joined by pipes."""
        return await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "sidecar", command, *words, *self.workspace.arguments),
            cwd=PROJECT,
            env=environment(),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
            limit=1 << 26,
        )
