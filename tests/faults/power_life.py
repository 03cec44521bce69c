"""The life of a daemon whose disk is written down, and what was acknowledged at which moment of it."""

from __future__ import annotations

import asyncio
import hashlib
import random
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from time import monotonic_ns
from typing import Any

from tests.daemon_process import Workspace
from tests.faults.confined import ConfinedWorkspace
from tests.faults.disk_shim import Change, recording
from tests.faults.ledger import Ledger, Said
from tests.faults.lost_power import Disk
from tests.faults.whole_deaths import append, merge
from tests.rpc_client import AsyncClient

PATIENCE = 60.0
BIG = "x" * 60_000  # some of these, and the log is folded into the database on the way


@dataclass(frozen=True, slots=True)
class Written:
    """A file that a program wrote: complete, and on the disk, at this moment."""

    at: int
    path: str
    data: bytes
    nodes: dict[str, int]


class Timed(Ledger):
    """A ledger that also remembers when it heard of something, in ns of CLOCK_MONOTONIC."""

    def __init__(self) -> None:
        super().__init__()
        self.said: list[tuple[int, Said]] = []

    def note(self, said: Said) -> None:
        super().note(said)
        self.said.append((monotonic_ns(), said))

    def until(self, at: int) -> list[Said]:
        """What had been acknowledged before that moment."""
        return [said for when, said in self.said if when < at]


class _Over(Exception):  # noqa: N818 - it has worked enough
    pass


class _Mortal:
    """A client that rests a little after each answer, so that turns are not outnumbered, and stops when it is over."""

    def __init__(self, client: AsyncClient, chance: random.Random, is_over: Callable[[], bool]) -> None:
        self._client = client
        self._chance = chance
        self._is_over = is_over
        self.rest = 0.2

    async def call(self, method: str, params: Said | None = None) -> Any:
        if self._is_over():
            raise _Over
        answer = await self._client.call(method, params)
        await asyncio.sleep(self._chance.random() * self.rest)
        return answer


class RecordedWorkspace(ConfinedWorkspace):
    """Its daemon's every change below `disk` is in `changes`, and what the test writes into OUT_DIR is in `written`.

    `inner` is the folder of `disk` that it has for itself, empty for all of it.
    """

    def __init__(self, disk: Path, inner: str = "", **arguments: Any) -> None:
        self.disk = disk
        self.inner = f"{inner}/" if inner else ""
        self.changes = disk.with_name(f"{disk.name}{inner}.changes")
        within = recording(disk, self.changes)
        super().__init__(disk / inner, namespace=within, before='exec "$@"', **arguments)
        self.log = disk.with_name(f"{disk.name}{inner}.log")  # nobody promises that it survives
        self.written: list[Written] = []

    def write(self, path: str, content: str | bytes = "") -> Path:
        target = super().write(path, content)
        data = content.encode() if isinstance(content, str) else content
        inside = f"{self.inner}out/{path}"
        above = ["/".join(inside.split("/")[:depth]) for depth in range(1, inside.count("/") + 1)]
        nodes = {one: (self.disk / one).stat().st_ino for one in (*above, inside)}
        self.written.append(Written(monotonic_ns(), inside, data, nodes))
        return target

    def forget(self) -> None:
        """What is written down so far is how it begins."""
        self.changes.unlink(missing_ok=True)
        self.written.clear()


@dataclass(slots=True)
class Owed:
    """What one workspace has acknowledged, and the states that its files were ever meant to have, by hash."""

    ledger: Timed = field(default_factory=Timed)
    whole: set[str] = field(default_factory=set[str])


@dataclass(frozen=True, slots=True)
class Recording:
    """Everything that happened, in order, and what is owed to each of the workspaces on that disk, by its folder."""

    place: Path  # where images must stand, for a workspace knows where its index and its store are
    before: Disk
    changes: list[Change]
    written: list[Written]
    owed: dict[str, Owed]
    places: dict[str, str] = field(default_factory=dict[str, str])  # where each state folder was, as it knows it itself
    shared: str = ""  # the folder of the index and the store that they share
    may_be_damaged: bool = False
    secret: bytes = b""  # words that were erased once `{"erased": turn}` is acknowledged


async def work(workspace: RecordedWorkspace, name: str, seed: int, owed: Owed, *, enough: int, turns: int = 2) -> None:
    """Four clients of three roles at work, until there are so many acknowledgements more and so many turns."""
    chance, ledger = random.Random(seed), owed.ledger
    enough += ledger.acknowledged

    def is_over() -> bool:
        ended = sum("turn" in said and said["turn"].startswith(f"t{name}") for _, said in ledger.said)
        return ledger.acknowledged >= enough and ended >= turns

    roles, works = ("runtime", "renderer", "exec", "runtime"), (append, merge, _make_files)
    clients = [await _patient(workspace, role) for role in roles]
    mortals = [_Mortal(client, random.Random(chance.random()), is_over) for client in clients]
    tasks = [
        one(mortal, workspace, f"{name}-{at}", random.Random(chance.random()), ledger)  # type: ignore[operator]
        for at, (one, mortal) in enumerate(zip(works, mortals, strict=False))
    ]
    mortals[-1].rest = 0.0
    async with asyncio.timeout(PATIENCE):
        ends = await asyncio.gather(*tasks, _turns(mortals[-1], workspace, name, chance, owed), return_exceptions=True)
    assert all(isinstance(end, _Over) for end in ends), ends
    for client in clients:
        await client.drop()
    owed.whole |= {hashlib.sha256(one.data).hexdigest() for one in workspace.written}


async def _patient(workspace: Workspace, role: str) -> AsyncClient:
    client = await AsyncClient.to(str(workspace.socket(role)))
    client.ceiling = PATIENCE
    await client.initialize()
    return client


async def _make_files(
    client: _Mortal, workspace: RecordedWorkspace, name: str, chance: random.Random, ledger: Timed
) -> None:
    """Files old and new outside every call, in a folder that was there at the first opening."""
    for serial in range(10_000):
        path, content = (
            f"turn_0/files/{name}_{chance.randrange(4)}.txt",
            f"{name}:{serial}\n" * chance.randrange(1, 600),
        )
        await asyncio.to_thread(workspace.write, path, content)
        await client.call("workspace/sync")
        (result,) = (await client.call("artifact/resolve", {"paths": [path]}))["results"]
        ledger.note({"file": path, "sha256": result["artifact"]["sha256"], "sid": result["artifact"].get("sid")})


async def _turns(client: _Mortal, workspace: RecordedWorkspace, name: str, chance: random.Random, owed: Owed) -> None:
    """Turns with all that they hold: calls, files written and patched, the end that hosts and saves, a reaction."""
    ledger = owed.ledger
    for serial in range(1000):
        turn = f"t{name}-{serial}"
        await client.call("turn/begin", {"turn_id": turn, "prompt": f"number {serial}"})
        call = f"tc_{name}_{serial}"
        await client.call("call/begin", {"tool_call_id": call, "tool_id": "exec", "params": {"code": BIG}})
        made = f"{turn}/files/made.bin"
        await asyncio.to_thread(workspace.write, made, chance.randbytes(chance.randrange(1, 9000)))
        await client.call("call/end", {"tool_call_id": call, "expect": [{"path": made, "visibility": "external"}]})
        ledger.note({"ended": call, "path": made, "visibility": "external"})
        content = f"# Notes {serial}\n" + "line\n" * chance.randrange(2000)
        for text in (content, content.replace("Notes", "Better notes")):
            owed.whole.add(hashlib.sha256(text.encode()).hexdigest())
        wrote = {"path": f"{turn}/files/notes.md", "kind": "file", "content": content, "request_id": f"w{turn}"}
        answer = await client.call("artifact/write", wrote)
        _noted(ledger, answer["artifact"], {"method": "artifact/write", "params": wrote, "answer": answer})
        patch = f"@@ -1 +1 @@\n-# Notes {serial}\n+# Better notes {serial}\n"
        _noted(ledger, (await client.call("artifact/patch", {"path": wrote["path"], "patch": patch}))["artifact"], None)
        await client.call("turn/end", {"turn_id": turn, "completion": {"text": "done"}})
        ledger.note({"turn": turn})
        thought = {"turn_id": turn, "reaction": "ok", "text": f"well done, {name}", "origin": "user"}
        await client.call("turn/feedback", thought)
        ledger.note({"rated": turn, "text": thought["text"]})


def _noted(ledger: Timed, artifact: Said, asked: Said | None) -> None:
    said = {"file": artifact["physical_path"], "sha256": artifact["sha256"], "sid": artifact.get("sid")}
    ledger.note(said)
    if asked is not None:
        ledger.note({"asked": asked})
