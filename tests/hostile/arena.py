"""Where the attacks take place: a real daemon with secrets around it, an honest client beside, and what must hold."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

import psutil

from tests.daemon_process import Workspace, eventually
from tests.hostile.guard import Guard, Leak, Wrong
from tests.hostile.pulse import Pulse
from tests.hostile.talker import Asked, Door, Message, Talker, descriptors, forget_peak, memory
from tests.rpc_client import frame

HONEST, TEXT = "turn_0/files/honest.txt", "honest words"
HIDDEN, HIDDEN_PATH = "HIDDENfrompeople0123456789abcd", "turn_0/files/hidden.txt"
Check = Callable[[bytes], None]


class Arena:
    """One daemon for all attacks of a kind, and all that is known of it.

    `quick` asks attacks for a size that takes a moment; `turn` is a turn that an attack may do with as it likes.
    """

    def __init__(self, folder: Path, chance: Random, *, quick: bool, door: bool = False) -> None:
        self.quick = quick
        self.door = door
        self.folder = folder
        self.guard = Guard(folder, chance)
        settings = {"store": str(folder / "hosted"), "persist_executions": "true"}
        self.workspace = Workspace(folder / "arena", settings=settings).start()
        self.out = self.workspace.out_dir
        self.pid = self._pid()
        self.number = 0  # of the attack that is under way
        self.asked = self.events = self.leaks = 0
        self._talkers: list[Talker] = []
        self._turns = 0
        self._read_of_log = 0
        self._host_something()
        self.names = self._names_around()
        self.begin()
        self.must_be_well()
        self.descriptors = descriptors(self.pid)
        self.pulse = Pulse(self.workspace, HONEST, TEXT)

    def _pid(self) -> int:
        assert self.workspace.daemon is not None
        return self.workspace.daemon.pid

    def _host_something(self) -> None:
        """An honest file, hosted; another one that editors must not see; what hosting says of them is for few."""
        self.workspace.write(HONEST, TEXT)
        with self.visitor("runtime") as runtime:
            write = {"path": HIDDEN_PATH, "kind": "file", "content": HIDDEN * 3, "visibility": "internal"}
            end = {"turn_id": "turn_0", "completion": {"text": "done"}}
            begin: Asked = ("turn/begin", {"turn_id": "turn_0"})
            for asked in (begin, ("workspace/sync", {}), ("artifact/write", write), ("turn/end", end)):
                must_be_answered(runtime.ask([asked])[0])

            def hosted() -> Message:
                answer = runtime.ask([("artifact/resolve", {"paths": [HONEST]})])[0]
                artifact: Message = answer["result"]["results"][0]["artifact"]
                return artifact if artifact.get("hosted_uri") else {}

            artifact = eventually(hosted, ceiling=60)
        self.hosting = [artifact["hosted_uri"].encode(), artifact["key"].encode(), artifact["rn"].encode()]

    # Clients

    def check(self, role: str) -> Check:
        """What is looked for in everything that this role is told."""
        needles = [*self.guard.needles]
        needles += {"exec": self.hosting, "renderer": self.hosting[:2], "editor": self.hosting[:2]}.get(role, [])
        needles += [HIDDEN.encode()] if role == "editor" else []
        return partial(self._look, needles)

    def _look(self, needles: list[bytes], said: bytes) -> None:
        try:
            self.guard.must_not_hold(said, needles)
        except Leak:
            self.leaks += 1
            raise

    def dial(self, role: str) -> Talker:
        """A connection that has not said hello; it is closed after the attack."""
        make = Door.open if self.door else Talker.dial
        self._talkers.append(make(self.workspace, role, self.check(role)))
        return self._talkers[-1]

    def talker(self, role: str, **options: Any) -> Talker:
        return self.dial(role).greet(**options)

    def tell(self, talker: Talker, method: str, params: object) -> None:
        """A notification."""
        talker.send(frame({"jsonrpc": "2.0", "method": method, "params": params}))

    @contextmanager
    def visitor(self, role: str) -> Iterator[Talker]:
        """A client that comes and goes."""
        talker = Talker.dial(self.workspace, role, self.check(role) if hasattr(self, "hosting") else lambda _: None)
        try:
            yield talker.greet()
        finally:
            talker.close()

    def begin(self) -> str:
        """A fresh turn with an open call, `tc_<turn>`; a former one is abandoned."""
        self._turns += 1
        turn = f"h_{self._turns}"
        with self.visitor("runtime") as runtime:
            call = {"tool_call_id": f"tc_{turn}", "tool_id": "exec", "params": {}}
            for asked in (("turn/begin", {"turn_id": turn}), ("call/begin", call)):
                must_be_answered(runtime.ask([asked])[0])
        self.turn = turn
        return turn

    def tidy(self) -> None:
        """After an attack: its clients hang up and its files are gone."""
        for talker in self._talkers:
            self.asked, self.events = self.asked + talker.asked, self.events + talker.events
            talker.close()
        self._talkers.clear()
        for entry in self.out.iterdir():
            if entry.name not in ("turn_0", "timeline.json"):
                forget(entry)
        for entry in (self.out / "turn_0/files").iterdir():
            if entry.name not in ("honest.txt", "hidden.txt"):
                forget(entry)

    # What must hold

    @property
    def is_alive(self) -> bool:
        return self.workspace.daemon is not None and self.workspace.daemon.poll() is None

    def must_be_well(self) -> None:
        """The daemon lives, answers rightly, wrote no traceback; nothing around it has changed."""
        if not self.is_alive:
            raise Wrong(f"the daemon ended\n{self.workspace.tail()}")
        with self.visitor("exec") as honest:
            resolved, fetched = honest.ask(
                [("artifact/resolve", {"paths": [HONEST]}), ("artifact/fetch", {"path": HONEST})]
            )
        if not resolved["result"]["results"][0]["found"] or fetched["result"]["ret"]["text"] != TEXT:
            raise Wrong(f"an honest client is answered {resolved} {fetched}")
        self.guard.must_be_untouched()
        if more := self._names_around() - self.names:
            raise Wrong(f"made beside OUT_DIR: {sorted(more)[:5]}")
        self._no_incident()

    def _no_incident(self) -> None:
        with self.workspace.log.open("rb") as log:
            log.seek(self._read_of_log)
            new = log.read()
        self._read_of_log += len(new)
        for sign in (b"Traceback (most recent call last)", b"incident="):
            if sign in new:
                raise Wrong(f"in the daemon's log:\n{new[new.index(sign) :][:3000].decode('utf-8', 'replace')}")

    def _names_around(self) -> set[str]:
        return {str(path) for top in (self.folder, self.folder / "arena") for path in top.iterdir()}

    def must_have_let_go(self) -> None:
        """After all attacks of a kind: as many descriptors as before, and no process that it started."""
        self.pulse.end()
        for talker in self._talkers:
            talker.close()
        process = psutil.Process(self.pid)
        with suppress(AssertionError):
            eventually(lambda: descriptors(self.pid) < self.descriptors, ceiling=30)
        if (left := descriptors(self.pid)) >= self.descriptors + 1:
            raise Wrong(f"{left} descriptors are open, {self.descriptors} before")
        if children := process.children(recursive=True):
            raise Wrong(f"processes of the daemon are left: {children}")

    def peak(self) -> int:
        return memory(self.pid)

    def forget_peak(self) -> None:
        forget_peak(self.pid)

    def resident(self) -> int:
        return memory(self.pid, "VmRSS")

    def end(self) -> None:
        self.pulse.end()
        self.workspace.clean_up(failed=True)


def forget(entry: Path) -> None:
    """Take it away, whatever it is; a tree may be deeper than any path is long."""
    with suppress(FileNotFoundError):
        if entry.is_dir() and not entry.is_symlink():
            subprocess.run(["rm", "-rf", "--", str(entry)], check=True)
        else:
            entry.unlink()


def must_be_answered(answer: Message) -> None:
    if "error" in answer:
        raise Wrong(f"the arena could not be prepared: {answer}")
