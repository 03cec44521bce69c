"""What was acknowledged before a death, and whether all of it is there afterwards."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from typing import Any

Said = dict[str, Any]
_GROUPED = re.compile(r"[^:]+:\d+:\d+:\d+")  # name:serial:part:size, see `check_groups`


class Ledger:
    """Takes down what a daemon said, through any number of lives. `check` raises AssertionError, with what is wrong."""

    def __init__(self) -> None:
        self.acknowledged = 0
        self.kinds: Counter[str] = Counter()
        self.recoveries: list[float] = []  # seconds from each awakening to its first answer
        self._rated: set[tuple[str, str]] = set()
        self._blocks: dict[int, str] = {}
        self._keys: dict[int, str] = {}  # every number that was ever given or seen, and what it stood for
        self._files: dict[str, list[str]] = {}
        self._sids: dict[str, int] = {}
        self._visibility: dict[str, str] = {}
        self._revision = 0
        self._ended: set[str] = set()
        self._over: set[str] = set()

    def note(self, said: Said) -> None:
        """An acknowledgement, as it came."""
        self.acknowledged += 1
        match said:
            case {"blocks": told, "revision": revision}:
                self.kinds["groups of blocks"] += 1
                self._blocks.update(dict(told))
                self._revision = max(self._revision, revision)
            case {"rows": rows}:
                self.kinds["groups of sources"] += 1
                self._number({int(sid): key for sid, key in rows.items()})
            case {"file": path, "sha256": sha256, "sid": sid}:
                self.kinds["files made, written and patched"] += 1
                self._files.setdefault(path, []).append(sha256)
                if sid is not None:
                    self._sids[path] = sid
            case {"turn": turn}:
                self.kinds["turns ended, hosted and saved"] += 1
                self._over.add(turn)
            case {"rated": turn, "text": text}:
                self.kinds["reactions"] += 1
                self._rated.add((turn, text))
            case {"ended": call, "path": path, "visibility": visibility}:
                self.kinds["calls"] += 1
                self._ended.add(call)
                self._visibility[path] = visibility
            case _:
                pass

    @property
    def numbers(self) -> set[int]:
        """Every source number that anybody was told."""
        return {*self._keys, *self._sids.values()}

    def wakes(self, said: Said) -> None:
        """The first thing that a life says: what it found, and after how many seconds it had answered."""
        self.recoveries.append(said["seconds"])
        self.check(said["woke"])

    def check(self, woke: Said) -> None:
        """Compare with what was found at the next start."""
        self._check_blocks(woke["blocks"])
        rows = {int(sid): key for sid, key in woke["rows"].items()}
        assert not (lost := self._keys.keys() - rows.keys()), f"numbers lost: {sorted(lost)}"
        self._number(rows)
        assert not (twice := [key for key, count in Counter(rows.values()).items() if count > 1]), f"twice: {twice}"
        check_groups(key.removeprefix("https://e.org/") for key in rows.values() if key.startswith("https:"))
        self._check_files(woke["files"])
        assert woke["revision"] >= self._revision, "the revision went back"
        self._revision = woke["revision"]
        assert not self._ended & {*woke["open_calls"]}, "a call that had ended is open again"
        assert woke.get("turn") not in self._over, "a turn that had ended is open again"
        if "rated" in woke:
            lost_reactions = self._rated - {(turn, text) for turn, text in woke["rated"]}
            assert not lost_reactions, f"reactions lost: {sorted(lost_reactions)}"

    def _number(self, rows: dict[int, str]) -> None:
        for sid, key in rows.items():
            assert self._keys.setdefault(sid, key) == key, f"{sid} was {self._keys[sid]} and is {key}"

    def _check_blocks(self, blocks: list[str]) -> None:
        for index, text in self._blocks.items():
            assert index < len(blocks), f"block {index} is lost: {text}"
            assert blocks[index] == text, f"block {index} was {text} and is {blocks[index]}"
        self._blocks |= {index: text for index, text in enumerate(blocks) if _GROUPED.fullmatch(text)}
        mine = [text for text in blocks if _GROUPED.fullmatch(text)]
        check_groups(mine)
        places: dict[str, list[tuple[int, int]]] = {}
        for text in mine:
            name, serial, part, _ = text.split(":")
            places.setdefault(name, []).append((int(serial), int(part)))
        for name, told in places.items():
            assert told == sorted(told), f"the blocks of {name} changed places"

    def _check_files(self, files: Said) -> None:
        for path, known in self._files.items():
            assert path in files, f"{path} is lost"
            found = files[path]["sha256s"]
            assert [sha256 for sha256 in found if sha256 in known] == known, f"{path}: {known} became {found}"
        for path, sid in self._sids.items():
            assert files[path]["sid"] == sid, f"{path} had the number {sid} and has {files[path]['sid']}"
        for path, visibility in self._visibility.items():
            assert files[path]["visibility"] == visibility, f"{path} was {visibility}: {files[path]}"


def check_groups(texts: Iterable[str]) -> None:
    """`name:serial:part:size`: of every group all parts are there, or none is."""
    sizes: dict[tuple[str, str], int] = {}
    found: Counter[tuple[str, str]] = Counter()
    for text in texts:
        name, serial, _, size = text.split(":")
        found[name, serial] += 1
        sizes[name, serial] = int(size)
    torn = {group: count for group, count in found.items() if count != sizes[group]}
    assert not torn, f"groups that are there in part: {torn}"
