"""A daemon without its sockets, in a process that is meant to be killed: journal, stores, looks and handlers are real.

It says first what it found when it woke, then works on several things at once and says what was acknowledged, message
by message, until it dies.
"""

from __future__ import annotations

import asyncio
import base64
import hashlib
import itertools
import os
import random
from collections.abc import Callable
from multiprocessing.connection import Connection
from pathlib import Path
from time import monotonic
from typing import Any

import orjson

from sidecar.stores.journal import Journal
from tests.faults import disk_shim
from tests.faults.promises import hosted_is_there, saved_is_there, store_of
from tests.server.inside import Inside, awake

Said = dict[str, Any]
TURN = "turn_1"


def live(folder: str, seed: int, pipe: Connection, kind: str = "works") -> None:
    """Live until killed. The target of a process; what is sent has left our hands."""
    asyncio.run(_live(Path(folder), seed, lambda said: pipe.send_bytes(orjson.dumps(said)), kind))


def fall(folder: str, seed: int, pipe: Connection, fault: str, nth: int) -> None:
    """Live under the shim on a disk whose `nth` change fails; says how it ended, unless it dies of it."""
    disk_shim.fail_at(Path(folder), fault, nth)

    def say(said: Said) -> None:
        pipe.send_bytes(orjson.dumps({**said, "changes": disk_shim.changes_so_far()}))

    try:
        asyncio.run(_live(Path(folder), seed, say, "turns"))
    except BaseException as end:  # noqa: BLE001 - whoever asked was told, and so is the test
        say({"ended_with": repr(end)[:300]})
    os._exit(70)


def found(folder: str, _seed: int, pipe: Connection, fault: str, nth: int) -> None:
    """Make a journal under the shim on a disk whose `nth` change fails, and say how it ended."""
    disk_shim.fail_at(Path(folder), fault, nth)
    end = ""
    try:
        Journal.open(folder).close()
    except Exception as fault_met:  # noqa: BLE001 - it is the answer
        end = type(fault_met).__name__
    pipe.send_bytes(orjson.dumps({"end": end, "changes": disk_shim.changes_so_far()}))
    os._exit(0)


async def _live(folder: Path, seed: int, say: Callable[[Said], None], kind: str) -> None:
    store, began = store_of(folder) if kind == "turns" else None, monotonic()
    async with awake(folder, store=store) as inside:
        await inside.ask("workspace/status")
        seconds = monotonic() - began
        if store is not None:
            hosted_is_there(inside, store)
            await saved_is_there(inside)
        say({"woke": await everything(inside), "seconds": seconds})
        mortal = Mortal(inside, seed, say)
        await (mortal.work() if store is None else mortal.turns())


async def everything(inside: Inside) -> Said:
    """The inventory, and what people think of each turn."""
    rows = await inside.assembly.feedback.reactions(inside.workspace.timeline.turns)
    return {**inventory(inside), "rated": [[row.turn_id, orjson.loads(row.text)["text"]] for row in rows]}


def inventory(inside: Inside) -> Said:
    """Everything there is, as a client could learn it."""
    workspace = inside.workspace
    bodies = workspace.bodies(range(len(workspace.timeline)))
    return {
        "revision": workspace.revision,
        "blocks": [orjson.loads(body).get("text", "") for body in bodies],
        "rows": {str(row["sid"]): _key_of(row) for row in workspace.pool.all_rows()},
        "files": {
            artifact.path.physical: {
                "sha256s": [version.sha256 for version in artifact.versions],
                "sid": artifact.sid,
                "visibility": artifact.visibility,
            }
            for artifact in workspace.artifacts
        },
        "turn": workspace.durable_turn_id,
        "open_calls": [call.tool_call_id for call in workspace.open_calls],
    }


def _key_of(row: Said) -> str:
    return str(row.get("url") or row.get("artifact_path") or f"erased {row['sid']}")


class Mortal:
    """Works on several things at once, each with chances of its own, and says what was acknowledged."""

    def __init__(self, inside: Inside, seed: int, say: Callable[[Said], None]) -> None:
        self._inside = inside
        self._seed = seed
        self._say = say
        self._ask = inside.ask

    async def work(self) -> None:
        await self._ask("turn/begin", {"turn_id": TURN})
        chance = random.Random(self._seed)
        works = (self._append, self._append, self._merge, self._merge, self._make_files, self._call)
        views, keeper = self._inside.assembly.views, self._inside.assembly.keeper
        await asyncio.gather(
            *(work(f"{self._seed}-{at}", random.Random(chance.random())) for at, work in enumerate(works)),
            views.run(),
            keeper.run(),
        )

    async def turns(self) -> None:
        """Everything that a turn does to a disk: its files, its hosting, the index, its end, and what comes after."""
        chance = random.Random(self._seed)
        services, assembly = self._inside.assembly.services, self._inside.assembly
        background = (assembly.views, assembly.keeper, services.saver, assembly.feedback, services.lease)
        works = (self._append, self._merge, self._turns)
        if turn := self._inside.workspace.durable_turn_id:
            await self._ask("turn/end", {"turn_id": turn})  # of the life before
        await asyncio.gather(
            *(work(f"{self._seed}-{at}", random.Random(chance.random())) for at, work in enumerate(works)),
            *(one.run() for one in background),
        )

    async def _turns(self, name: str, chance: random.Random) -> None:
        for serial in itertools.count():
            turn = f"t{name}-{serial}"
            await self._ask("turn/begin", {"turn_id": turn, "prompt": f"number {serial}"})
            call = f"tc_{name}_{serial}"
            await self._ask("call/begin", {"tool_call_id": call, "tool_id": "exec", "params": {}})
            path = f"{turn}/files/made.txt"
            await self._file(path, f"made by {name}:{serial}")
            await self._ask("call/end", {"tool_call_id": call, "expect": [{"path": path, "visibility": "external"}]})
            self._say({"ended": call, "path": path, "visibility": "external"})
            notes = f"{turn}/files/notes.md"
            content = f"# Notes {serial}\n" + "line\n" * chance.randrange(300)
            wrote = await self._ask("artifact/write", {"path": notes, "kind": "file", "content": content})
            self._say_file(wrote["artifact"])
            patch = f"@@ -1 +1 @@\n-# Notes {serial}\n+# Better notes {serial}\n"
            self._say_file((await self._ask("artifact/patch", {"path": notes, "patch": patch}))["artifact"])
            await self._ask("turn/end", {"turn_id": turn, "completion": {"text": "done"}})
            self._say({"turn": turn})
            thought = f"well done, {name}"
            asked = {"turn_id": turn, "reaction": "ok", "text": thought, "origin": chance.choice(("user", "machine"))}
            await self._ask("turn/feedback", asked)
            self._say({"rated": turn, "text": thought})

    def _say_file(self, artifact: Said) -> None:
        self._say({"file": artifact["physical_path"], "sha256": artifact["sha256"], "sid": artifact.get("sid")})

    async def _append(self, name: str, chance: random.Random) -> None:
        """Blocks in groups of one to four; each says which one of how many it is."""
        for serial in itertools.count():
            size = chance.randrange(1, 5)
            texts = [f"{name}:{serial}:{part}:{size}" for part in range(size)]
            blocks = [{"type": "react.note", "turn_id": TURN, "text": text} for text in texts]
            answer = await self._ask("timeline/append", {"blocks": blocks})
            told = [[block["index"], text] for block, text in zip(answer["blocks"], texts, strict=True)]
            self._say({"blocks": told, "revision": answer["revision"]})

    async def _merge(self, name: str, chance: random.Random) -> None:
        """Fresh rows in groups, now and then with a number proposed."""
        for serial in itertools.count():
            size = chance.randrange(1, 5)
            role = chance.choice(("runtime", "renderer"))
            rows: list[Said] = [{"url": f"https://e.org/{name}:{serial}:{part}:{size}"} for part in range(size)]
            if role == "runtime" and chance.random() < 0.3:
                rows[0]["sid"] = self._inside.workspace.pool.highest + chance.randrange(1, 9)
            answer = await self._ask("sources/merge", {"rows": rows}, role=role)
            self._say({"rows": {str(row["sid"]): row["url"] for row in answer["rows"]}})

    async def _make_files(self, name: str, chance: random.Random) -> None:
        """Files old and new outside every call: a sync acknowledges them."""
        for serial in itertools.count():
            path = f"turn_2/files/{name}_{chance.randrange(5)}.txt"
            await self._file(path, f"{name}:{serial}")

    async def _file(self, path: str, content: str) -> None:
        await asyncio.to_thread(self._inside.write, path, content)
        await self._ask("workspace/sync", role="exec")
        (result,) = (await self._ask("artifact/resolve", {"paths": [path]}, role="exec"))["results"]
        sha256 = hashlib.sha256(content.encode()).hexdigest()
        assert result["artifact"]["sha256"] == sha256, "the sync let it through"
        self._say({"file": path, "sha256": sha256, "sid": result["artifact"].get("sid")})

    async def _call(self, name: str, chance: random.Random) -> None:
        """Calls that make files, some of them internal."""
        for serial in itertools.count():
            call = f"tc_{name}_{serial}"
            await self._ask("call/begin", {"tool_call_id": call, "tool_id": "exec", "params": {}})
            self._say({"begun": call})
            path = f"{TURN}/files/{name}_{serial}.txt"
            content = base64.b64encode(chance.randbytes(30)).decode()
            await self._file(path, content)
            visibility = chance.choice(("external", "internal"))
            expect = [{"path": path, "visibility": visibility}]
            await self._ask("call/end", {"tool_call_id": call, "expect": expect})
            self._say({"ended": call, "path": path, "visibility": visibility})
