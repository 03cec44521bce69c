"""An honest client in a process of its own: 200 questions a second, steadily, each answer timed and checked.

`python -m tests.hostile.pulse SOCKET PATH TEXT` writes for each answer when it was asked and how long it took (two
doubles, the second one negative when the answer was wrong) until its stdin ends.
"""

from __future__ import annotations

import json
import select
import socket
import struct
import subprocess
import sys
import threading
from statistics import quantiles
from time import monotonic
from typing import Any, NamedTuple

from tests.daemon_process import PROJECT, Workspace, environment
from tests.hostile.guard import Wrong
from tests.rpc_client import frame, initialize_params, unframe

RATE = 200
ANSWER = struct.Struct("dd")
PATIENCE = 120.0


class Calm(NamedTuple):
    """How an honest client was served: seconds, of so many answers."""

    answers: int
    p99: float
    longest: float
    wrong: int


def ask_on(link: socket.socket, path: str, text: str) -> None:
    link.setblocking(False)
    hello = {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": initialize_params({})}
    waiting, buffer, out, began = {0: monotonic()}, bytearray(), bytearray(frame(hello)), monotonic()
    sent = 0
    while True:
        due = began + sent / RATE
        readable, _, _ = select.select([link, 0], [link] if out else [], [], max(0.0, due - monotonic()))
        if 0 in readable:
            return
        if monotonic() >= due:
            sent += 1
            method = "artifact/read" if sent % 2 else "artifact/resolve"
            out += frame({"jsonrpc": "2.0", "id": sent, "method": method, "params": {"paths": [path]}})
            waiting[sent] = monotonic()
        if out:
            try:
                del out[: link.send(out)]
            except BlockingIOError:
                pass
        if link in readable:
            if not (chunk := link.recv(1 << 20)):
                return
            buffer += chunk
            while (message := unframe(buffer)) is not None:
                took = monotonic() - (asked := waiting.pop(message["id"]))
                right = message["id"] == 0 or is_right(message, text)
                sys.stdout.buffer.write(ANSWER.pack(asked, took if right else -took))
            sys.stdout.buffer.flush()


def is_right(message: dict[str, Any], text: str) -> bool:
    result = message.get("result") or {}
    if "results" in result:
        return bool(result["results"][0]["found"])
    return any(block.get("text") == text for block in result.get("blocks", ()))


class Pulse:
    """The process, seen from those who attack."""

    def __init__(self, workspace: Workspace, path: str, text: str) -> None:
        words = [sys.executable, "-m", "tests.hostile.pulse", str(workspace.socket("exec")), path, json.dumps(text)]
        self._process = subprocess.Popen(
            words, cwd=PROJECT, env=environment(), stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        self._answers: list[tuple[float, float]] = []
        self._more = threading.Condition()
        self._over = False
        threading.Thread(target=self._listen, daemon=True).start()

    def _listen(self) -> None:
        assert self._process.stdout is not None
        while len(record := self._process.stdout.read(ANSWER.size)) == ANSWER.size:
            with self._more:
                self._answers.append(ANSWER.unpack(record))
                self._more.notify_all()
        with self._more:
            self._over = True
            self._more.notify_all()

    def within(self, since: float, until: float) -> Calm:
        """How it was served in that time, once the last of those questions is answered."""
        with self._more:

            def known() -> bool:
                return self._over or bool(self._answers and self._answers[-1][0] > until)

            if not self._more.wait_for(known, PATIENCE) or self._over:
                raise Wrong(f"an honest client was not answered within {PATIENCE} s, or cut off")
            took = [seconds for asked, seconds in self._answers if since <= asked <= until]
        times = sorted(abs(seconds) for seconds in took)
        if len(times) < 2:
            times = [*times, *times, 0.0, 0.0][:2]
        return Calm(len(took), quantiles(times, n=100)[98], times[-1], sum(seconds < 0 for seconds in took))

    def calm_for(self, answers: int) -> Calm:
        """How it is served while nothing else happens, for so many answers."""
        began = monotonic()
        with self._more:
            there = len(self._answers) + answers
            self._more.wait_for(lambda: self._over or len(self._answers) >= there, PATIENCE)
        return self.within(began, monotonic() - 0.05)

    def end(self) -> None:
        self._process.communicate()


if __name__ == "__main__":
    stream = socket.socket(socket.AF_UNIX)
    stream.connect(sys.argv[1])
    ask_on(stream, sys.argv[2], json.loads(sys.argv[3]))
