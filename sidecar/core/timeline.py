"""Append-only blocks and the index over them: by path, by turn, by tool call.

Only heads live here. A block's JSON stays in the journal under the revision in `seqs`, so memory does not follow what
the blocks hold. Looking up a path costs the same with a thousand blocks or a million.
"""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from sys import intern
from typing import Any

from sidecar.core.blocks import CALL, FLAGS, HIDDEN, MIME, PART, PATH, SHOWN, SUMMARY, TURN, TYPE
from sidecar.core.heads import Heads

Sees = Callable[[int], bool]
"""Whether the block of this number may be known."""


class Timeline:
    """Blocks in the order they were told. A block's number is its place in `heads`."""

    __slots__ = (
        "_by_path", "_by_turn", "abouts", "heads", "kept_from", "seqs", "summary", "tools", "veilings", "veils",
    )  # fmt: skip

    def __init__(self) -> None:
        self.heads = Heads()
        self.seqs = array("q")
        self.tools: dict[str, str] = {}  # the call map: tool_call_id -> tool_id
        # Artifacts that a block at another path tells of: whoever may not see one of them does not see the block.
        self.abouts: dict[int, tuple[str, ...]] = {}
        # Blocks hidden since they were told, with what stands in their place, or shown again since (None).
        self.veils: dict[int, str | None] = {}
        self.veilings = array("q")  # the number of a block for every time that it was hidden or shown, in order
        self.summary: int | None = None  # the latest summary: the agent sees it and what follows its cut
        self.kept_from = 0  # the first block that the agent still sees as it is
        self._by_path: dict[str, int | array[int]] = {}
        self._by_turn: dict[str, array[int]] = {}

    def __len__(self) -> int:
        return len(self.heads)

    def add(self, seq: int, stored: Sequence[Any]) -> int:
        """Take in one stored head; answers the block's number."""
        self.extend((seq,), (stored,))
        return len(self.heads) - 1

    def extend(self, seqs: Sequence[int], stored: Sequence[Sequence[Any]]) -> dict[str, int]:
        """Take in heads as the journal stores them; answers the turns of them, each with its last revision.

        A start spends its time here, hence column by column.
        """
        first = number = len(self.heads)
        columns = list(zip(*stored, strict=False))  # as far as all go: the last element is not in every one
        self.seqs.extend(seqs)
        turns: dict[str, int] = {}
        for turn, count in self.heads.extend(columns):
            end = number + count
            self._by_turn.setdefault(turn, array("I")).extend(range(number, end))
            turns[turn] = self.seqs[end - 1]
            number = end
        for number, one in enumerate(stored, first):
            if len(one) > PART:
                self._note(number, one[PATH], one[PART])
        self.tools.pop("", None)
        know = self._by_path.setdefault
        for number, path in enumerate(self.heads.paths[first:], first):
            if know(path, number) != number:
                self._tell_again(path, number)
        self._by_path.pop("", None)
        if SUMMARY in columns[TYPE]:
            for number, one in enumerate(stored, first):
                if one[TYPE] == SUMMARY and not one[FLAGS] & SHOWN:
                    self._summarise(number, one[PART].get("cut") if len(one) > PART else None)
        return turns

    def _note(self, number: int, path: str, part: Mapping[str, Any]) -> None:
        """What a block says of its call, or of artifacts at its own path or others."""
        if "tool" in part:
            self.tools[self.heads.calls[number]] = intern(part["tool"])
        if "about" in part:
            self.abouts[number] = tuple(part["about"])
        elif "at" in part:
            logical = intern(part["at"])  # one text, here and wherever the artifact is known
            if logical == path:
                self.heads.paths[number] = logical
            else:
                self.abouts[number] = (logical,)

    def _tell_again(self, path: str, number: int) -> None:
        known = self._by_path[path]
        if isinstance(known, int):
            self._by_path[path] = array("I", (known, number))
            known = (known,)
        else:
            known.append(number)
        self.heads.paths[number] = self.heads.paths[known[0]]  # one text for all of them

    def at(self, path: str) -> Sequence[int]:
        """The blocks at this canonical path, oldest first."""
        known = self._by_path.get(path)
        if known is None:
            return ()
        return (known,) if isinstance(known, int) else known

    def of_turn(self, turn_id: str) -> Sequence[int]:
        return self._by_turn.get(turn_id, ())

    def knows(self, turn_id: str) -> bool:
        return turn_id in self._by_turn

    def _summarise(self, number: int, cut: int | None) -> None:
        """A summary was told. One that does not say where the kept part begins stands for all that was before it."""
        self.summary = number
        self.kept_from = cut if cut is not None and cut <= number else number + 1

    @property
    def turns(self) -> tuple[str, ...]:
        """Every turn a block named, in order of its first block."""
        return tuple(self._by_turn)

    def veil(self, numbers: Iterable[int], replacement: str | None) -> None:
        """Hide these blocks from the agent behind a replacement, or with None show them again."""
        for number in numbers:
            self.veils[number] = replacement
            self.veilings.append(number)
            flags = self.heads[number][FLAGS]
            self.heads.mark(number, flags & ~HIDDEN if replacement is None else flags | HIDDEN)

    def since_revision(self, revision: int) -> Iterator[tuple[int, int]]:
        """`(revision, number)` of every block told after that revision."""
        for number in range(bisect_right(self.seqs, revision), len(self.seqs)):
            yield self.seqs[number], number

    def hidden(self, path: str) -> bool:
        """Whether the newest block at the path is hidden from the agent."""
        numbers = self.at(path)
        return bool(numbers) and bool(self.heads[numbers[-1]][FLAGS] & HIDDEN)

    def visible(self, path: str) -> tuple[int, ...]:
        """The blocks at the path that the agent sees."""
        return tuple(number for number in self.at(path) if not self.heads[number][FLAGS] & HIDDEN)

    def in_view(self, path: str) -> bool:
        """Whether the agent sees the newest block at the path: it is neither hidden nor left to a summary."""
        numbers = self.at(path)
        if not numbers or self.heads[numbers[-1]][FLAGS] & HIDDEN:
            return False
        return numbers[-1] >= self.kept_from or numbers[-1] == self.summary

    def told(self, path: str, sees: Sees = lambda _: True) -> dict[str, Any] | None:
        """What is known of the blocks at a path that is no file: the newest that `sees` gives the answer."""
        numbers = self._told_at(path, sees)
        if not numbers:
            return None
        head = self.heads[numbers[-1]]
        return {
            "artifact_path": head[PATH],
            "turn_id": head[TURN],
            "kind": "file" if head[TYPE] == "react.tool.code" else "display",
            "mime": head[MIME],
            "visibility": "external",
            "tool_call_id": head[CALL] or None,
            "tool_id": self.tools.get(head[CALL]),
            "edited": len(numbers) > 1,
            "version": len(numbers),
            "ts": head[2],
        }

    def versions(self, path: str, sees: Sees = lambda _: True) -> list[dict[str, Any]]:
        """Every block told at a path that is no file, oldest first, as versions. `ts` is in seconds."""
        rows: list[dict[str, Any]] = []
        for number in self._told_at(path, sees):
            head = self.heads[number]
            row: dict[str, Any] = {"version": len(rows) + 1, "origin": "told", "edited": bool(rows), "ts": head[2]}
            rows.append(row | ({"tool_call_id": head[CALL]} if head[CALL] else {}))
        return rows

    def _told_at(self, path: str, sees: Sees) -> list[int]:
        return [number for number in self.at(path) if not self.heads[number][FLAGS] & SHOWN and sees(number)]
