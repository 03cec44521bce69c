"""Work that goes on while a store and an index are away, and what is owed when they are back."""

from __future__ import annotations

import hashlib
import random
import threading
from dataclasses import dataclass, field
from time import monotonic
from typing import Any

from tests.daemon_process import Workspace, eventually
from tests.rpc_client import Client, RpcError

PATIENCE = 60.0
AT_MOST = 25.0  # seconds that any answer may take: a reaction waits ten for the store, and ten for the index
BACK = 180.0  # seconds until all that was owed is worked off: the last rest is thirty
PARTS = {"turn.log", "chat:user", "chat:assistant"}
ASKED: dict[str, tuple[tuple[str, dict[str, Any]], ...]] = {
    "exec": (("workspace/sync", {}), ("artifact/resolve", {"paths": ["fi:turn_0.files/0.txt"]})),
    "renderer": (("sources/list", {}), ("citations/replace", {"text": "see [[S:1]]"})),
    "editor": (("artifact/list", {}), ("timeline/blocks", {"limit": 20}), ("workspace/status", {})),
}


@dataclass(slots=True)
class Owed:
    """What was acknowledged while the world was away. `slowest` is of any answer, in seconds, and its method."""

    turns: list[str] = field(default_factory=list[str])
    files: dict[str, str] = field(default_factory=dict[str, str])
    rated: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])
    refused: list[str] = field(default_factory=list[str])  # of what cannot be known without an index
    answers: int = 0
    slowest: tuple[float, str] = (0.0, "")

    def answered(self, seconds: float, method: str) -> None:
        self.answers += 1
        self.slowest = max(self.slowest, (seconds, method))


class Work:
    """A runtime that has turn after turn, and three others that ask all the time. Use it as a context."""

    def __init__(self, workspace: Workspace, seed: int) -> None:
        self._workspace = workspace
        self._chance = random.Random(seed)
        self._clients = {role: workspace.connect(role, ceiling=PATIENCE) for role in ("runtime", *ASKED)}
        self._over = threading.Event()
        self._failures: list[BaseException] = []
        self._threads = [threading.Thread(target=self._ask, args=(role,)) for role in ASKED]
        self.owed = Owed()

    @property
    def runtime(self) -> Client:
        return self._clients["runtime"]

    def __enter__(self) -> Work:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        for thread in self._threads:
            thread.join()
        if self._failures:
            raise self._failures[0]

    def turns(self, *, seconds: float, a_second: float = 2.0) -> None:
        """Turn after turn for so long."""
        until = monotonic() + seconds
        while (began := monotonic()) < until or not self.owed.turns:
            self.turn()
            self._over.wait(max(0.0, 1 / a_second - (monotonic() - began)))

    def turn(self) -> None:
        """A turn whose files, log and reaction are owed from now on."""
        turn = f"turn_{len(self.owed.turns)}"
        call = f"tc_{turn}"
        self._call("turn/begin", {"turn_id": turn, "prompt": f"what of {turn}?"})
        self._call("call/begin", {"tool_call_id": call, "tool_id": "exec", "params": {}})
        for at in range(2):
            content = self._chance.randbytes(self._chance.randrange(1, 40_000)).hex()
            path = f"{turn}/files/{at}.txt"
            self._workspace.write(path, content)
            self.owed.files[path] = hashlib.sha256(content.encode()).hexdigest()
        self._call("call/end", {"tool_call_id": call})
        self._call("artifact/write", {"path": f"{turn}/files/w.md", "kind": "file", "content": f"# {turn}\n"})
        self.owed.files[f"{turn}/files/w.md"] = hashlib.sha256(f"# {turn}\n".encode()).hexdigest()
        self._call("sources/merge", {"rows": [{"url": f"https://e.org/{turn}"}]})
        self._call("turn/end", {"turn_id": turn, "completion": {"text": f"this of {turn}"}})
        self.owed.turns.append(turn)
        try:
            self._call("turn/feedback", {"turn_id": turn, "reaction": "ok", "text": f"so {turn}", "origin": "machine"})
            self.owed.rated.append((turn, f"so {turn}"))
        except RpcError as refusal:
            if refusal.kind != "store_unavailable":
                raise
            self.owed.refused.append(turn)

    def is_settled(self) -> bool:
        """Whether nothing waits any more."""
        status = self.runtime.call("workspace/status")
        kept, store = status["conversation_store"], status["store"]
        works = (store["state"], kept["state"], kept["lease"]) == ("ok", "ok", "writer")
        return works and not store.get("waiting") and not kept.get("unsaved")

    def settles(self) -> float:
        """Wait until everything is worked off without anybody doing anything; seconds."""
        began = monotonic()
        eventually(self.is_settled, ceiling=BACK)
        return monotonic() - began

    def _call(self, method: str, params: dict[str, Any]) -> Any:
        began = monotonic()
        try:
            return self.runtime.call(method, params)
        finally:
            self.owed.answered(monotonic() - began, method)

    def _ask(self, role: str) -> None:
        client = self._clients[role]
        try:
            while not self._over.is_set():
                for method, params in ASKED[role]:
                    began = monotonic()
                    client.call(method, params)
                    self.owed.answered(monotonic() - began, method)
                self._over.wait(0.05)
        except BaseException as failure:  # noqa: BLE001 - told by whoever waits for us
            self._failures.append(failure)


def all_is_there(work: Work, body: Any) -> None:
    """Every file is hosted whole, as `body(key)` finds it with other eyes; every turn and reaction is in the index."""
    runtime, owed = work.runtime, work.owed
    for at in range(0, len(paths := [*owed.files]), 200):
        for result in runtime.call("artifact/resolve", {"paths": paths[at : at + 200]})["results"]:
            artifact = result["artifact"]
            path = artifact["physical_path"]
            assert "key" in artifact, f"{path} is not hosted"
            assert hashlib.sha256(body(artifact["key"])).hexdigest() == owed.files[path], f"{path} is hosted otherwise"
    for turn in owed.turns:
        asked = {"turn_ids": [turn], "limit": 100, "with_payload": True}
        items = runtime.call("conversation/recent", asked)["items"]
        assert {item["kind"] for item in items} >= PARTS, f"{turn} is not saved whole"
        assert [item["kind"] for item in items if item["kind"] == "turn.log" and "payload" not in item] == []
        thoughts = {(turn, item["payload"]["text"]) for item in items if item["kind"] == "turn.log.reaction"}
        assert thoughts >= {one for one in owed.rated if one[0] == turn}, f"a reaction to {turn} is lost"
