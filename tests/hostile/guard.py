"""What must not come out and what must not change: canaries outside OUT_DIR, and a census of where they stand."""

from __future__ import annotations

import base64
import hashlib
import os
from pathlib import Path
from random import Random
from typing import NamedTuple

from tests.daemon_process import Workspace

ENVIRONMENT = "HOSTILE_CANARY"  # a variable of the daemon's own environment, as /proc/self/environ would show it


class Wrong(AssertionError):  # noqa: N818 - it is what was found, not what failed
    """Something that must hold did not."""


class Seen(NamedTuple):
    """One entry of the census: a file by its content, a folder by its names."""

    mode: int
    mtime_ns: int
    content: str


class Guard:
    """Secrets beside OUT_DIR, in the folder of another workspace and in our environment, by tokens made by chance."""

    def __init__(self, folder: Path, chance: Random) -> None:
        self.outside = folder / "outside"
        self.neighbour = folder / "neighbour"
        tokens = [f"CANARY{chance.getrandbits(96):024x}" for _ in range(3)]  # 30 letters: base64 repeats with them
        outside, next_door, environment = (token.encode() * 40 for token in tokens)
        self._plant(outside)
        self._live_next_door(next_door)
        os.environ[ENVIRONMENT] = environment.decode()
        self.needles = [needle for secret in (outside, next_door, environment) for needle in traces(secret)]
        self.needles += [b"SQLite format 3", base64.b64encode(b"SQLite format 3"), b"root:x:0:0", b"cm9vdDp4OjA6M"]
        self.before = self.census()

    def _plant(self, secret: bytes) -> None:
        (self.outside / "files").mkdir(parents=True)
        for name in ("secret.txt", "secret.png", "a.txt", "page.html", "files/secret.txt", "files/a.txt", ".hidden"):
            (self.outside / name).write_bytes(secret)
        (self.outside / "timeline.json").write_bytes(b'{"blocks":[{"type":"react.note","text":"%b"}]}' % secret)

    def _live_next_door(self, secret: bytes) -> None:
        """Another workspace that had a daemon once: its files, its journal, its kept bytes."""
        with Workspace(self.neighbour) as other:
            other.write("turn_1/files/secret.txt", secret)
            client = other.connect("runtime", ceiling=60)
            client.call("turn/begin", {"turn_id": "turn_1", "prompt": secret.decode()})
            client.call("workspace/sync")

    def aims(self, workspace: Workspace) -> list[str]:
        """Absolute paths that a client would love to read."""
        state = [str(path) for place in (self.neighbour / "state", workspace.state_dir) for path in place.rglob("*")]
        return [
            *(str(path) for path in self.outside.rglob("*")),
            str(self.neighbour / "out/turn_1/files/secret.txt"),
            *state[:40],
            *("/etc/passwd", "/proc/self/environ", "/proc/self/root/etc/passwd", "/dev/zero"),
        ]

    def census(self) -> dict[str, Seen]:
        """Everything at those places as it stands."""
        found: dict[str, Seen] = {}
        for top in (self.outside, self.neighbour):
            for path in (top, *sorted(top.rglob("*"))):
                status = path.lstat()
                content = hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else ""
                found[str(path)] = Seen(status.st_mode, status.st_mtime_ns, content)
        return found

    def must_be_untouched(self) -> None:
        now = self.census()
        if now != self.before:
            changed = {path for path in {*now, *self.before} if now.get(path) != self.before.get(path)}
            raise Wrong(f"changed outside OUT_DIR: {sorted(changed)[:5]}")

    def must_not_hold(self, said: bytes, needles: list[bytes]) -> None:
        for needle in needles:
            if needle in said:
                at = said.index(needle)
                raise Leak(f"bytes from outside came out: {said[max(0, at - 200) : at + 60]!r}")


class Leak(Wrong):
    """Bytes from outside OUT_DIR reached a client."""


def traces(secret: bytes) -> list[bytes]:
    """How a secret that is one token again and again would show: as it is, as base64, by its hash."""
    token = secret[:30]
    return [token, base64.b64encode(token), hashlib.sha256(secret).hexdigest().encode()]
