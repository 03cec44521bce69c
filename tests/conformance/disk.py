"""What another process than the server does to a folder, and what it finds there."""

from __future__ import annotations

import base64
import os
import shutil
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import IO, Any


class Disk:
    """OUT_DIR in the hands of a case. `take` does one deed or makes one observation."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self._open: dict[str, IO[bytes]] = {}
        self._deeds: dict[str, Callable[[Any], None]] = {
            "write": self.write,
            "write_base64": self.write_base64,
            "open": self._hold_open,
            "close": self._close,
            "delete": self._delete,
            "mkdir": self._make_folders,
            "link": self.link,
            "fifo": self._make_pipes,
            "rename": self._rename,
        }

    def take(self, name: str, argument: Any) -> list[str]:
        """Do what the step says; what is not on disk as it must be."""
        if name == "on_disk":
            return [fault for path, content in argument.items() for fault in self._compare(path, content)]
        self._deeds[name](argument)
        return []

    def write(self, files: dict[str, str]) -> None:
        for path, text in files.items():
            self._at(path).write_bytes(text.encode())

    def write_base64(self, files: dict[str, str]) -> None:
        for path, text in files.items():
            self._at(path).write_bytes(base64.b64decode(text))

    def link(self, links: dict[str, str]) -> None:
        for path, target in links.items():
            self._at(path).symlink_to(target)

    def let_go(self) -> None:
        """Close everything that is held open."""
        self._close(list(self._open))

    def _at(self, path: str) -> Path:
        (self.root / path).parent.mkdir(parents=True, exist_ok=True)
        return self.root / path

    def _hold_open(self, files: dict[str, str]) -> None:
        for path, text in files.items():
            file = self._open[path] = self._at(path).open("wb")
            file.write(text.encode())
            file.flush()

    def _close(self, paths: Iterable[str]) -> None:
        for path in paths:
            self._open.pop(path).close()

    def _delete(self, paths: Iterable[str]) -> None:
        for path in paths:
            target = self.root / path
            if target.is_dir() and not target.is_symlink():
                shutil.rmtree(target)
            else:
                target.unlink()

    def _make_folders(self, paths: Iterable[str]) -> None:
        for path in paths:
            self._at(path).mkdir(exist_ok=True)

    def _make_pipes(self, paths: Iterable[str]) -> None:
        for path in paths:
            os.mkfifo(self._at(path))

    def _rename(self, moves: dict[str, str]) -> None:
        for old, new in moves.items():
            (self.root / old).rename(self._at(new))

    def _compare(self, name: str, content: str | dict[str, str]) -> Iterable[str]:
        path = self.root / name
        there = path.is_symlink() or path.exists()
        if content == "$absent":
            return [f"{name} is on disk"] if there else []
        if not there:
            return [f"{name} is not on disk"]
        wanted = base64.b64decode(content["base64"]) if isinstance(content, dict) else content.encode()
        actual = path.read_bytes()
        return [] if actual == wanted else [f"{name} holds {actual[:200]!r}, but must hold {wanted[:200]!r}"]
