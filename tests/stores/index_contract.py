"""What the tests of the index share: rows at hand, and programs that use one index at once.

`python -m tests.stores.index_contract LOCATION WHAT NUMBER WHO` is such a program: it says `ready`, waits for a line on
its stdin, does WHAT so many times and prints what came of it as JSON.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from typing import Any

from sidecar.core.conversation_kinds import REACTION
from sidecar.core.index_rows import Commit, Filters, IndexRow, RowChanged, Scope, Written
from sidecar.ports import Index
from sidecar.stores.indexes import open_index
from tests.tidy.tree import PROJECT

SCOPE = Scope("tenant", "project", "user", "conversation")
OTHER = SCOPE._replace(conversation_id="another")
NOON = 1_700_000_000.0
EVERYTHING = Filters()


def row(name: str = "m1", **fields: Any) -> IndexRow:
    """A row with this id; whatever is not said is the same for all."""
    usual: dict[str, Any] = {"kind": "turn.log", "turn_id": "turn_1", "ts": NOON, "text": "", "tags": ()}
    return IndexRow(message_id=name, **{**usual, **fields})


def reaction(name: str, *, turn: str = "turn_1", origin: str = "machine", ts: float = NOON, **fields: Any) -> IndexRow:
    return row(name, kind=REACTION, turn_id=turn, origin=origin, ts=ts, **fields)


def put(index: Index, *rows: IndexRow, scope: Scope = SCOPE, **more: Any) -> int:
    return index.commit(scope, Commit(rows=[Written(one) for one in rows], **more))


def put_vectors(index: Index, vectors: dict[str, Sequence[float]], scope: Scope = SCOPE) -> int:
    return index.commit(scope, Commit(rows=[Written(row(name), vector) for name, vector in vectors.items()]))


def names(found: Sequence[Any]) -> list[str]:
    """The ids of rows, or of scored rows."""
    return [one.message_id if isinstance(one, IndexRow) else one.row.message_id for one in found]


class Together:
    """Several programs at one index, started at once."""

    def __init__(self, location: str, what: str, *, programs: int = 4, number: int = 10) -> None:
        command = [sys.executable, "-m", "tests.stores.index_contract", location, what, str(number)]
        self._programs = [
            subprocess.Popen(
                [*command, str(who)], cwd=PROJECT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
            )
            for who in range(programs)
        ]
        try:
            for program in self._programs:
                assert program.stdout is not None
                assert program.stdout.readline() == "ready\n"
        except BaseException:
            self.stop()
            raise

    def go(self) -> None:
        for program in self._programs:
            assert program.stdin is not None
            program.stdin.write("go\n")
            program.stdin.flush()

    def answers(self) -> list[Any]:
        """What each has printed. Fails when one did not end well."""
        try:
            said = [program.communicate(timeout=90)[0] for program in self._programs]
        finally:
            self.stop()
        assert [program.returncode for program in self._programs] == [0] * len(self._programs)
        return [json.loads(one) for one in said]

    def stop(self) -> None:
        for program in self._programs:
            program.kill()
            program.wait()


def run_together(location: str, what: str, *, programs: int = 4, number: int = 10) -> list[Any]:
    together = Together(location, what, programs=programs, number=number)
    together.go()
    return together.answers()


def increment(index: Index, name: str) -> None:
    """Count up the number that a row says, however many others do the same."""
    while True:
        before = index.row(SCOPE, name)
        count = int(before.text) + 1 if before else 1
        try:
            expected = before.change if before else 0
            index.commit(SCOPE, Commit(rows=[Written(row(name, text=str(count)), expected=expected)]))
            return
        except RowChanged:
            continue


def do(index: Index, what: str, number: int, who: str) -> Any:
    """What a program does, and what it answers."""
    match what:
        case "open":
            index.open()
            return index.standing(SCOPE).change
        case "commit":
            return [put(index, row(f"{who}-{n}")) for n in range(number)]
        case "react":
            return [index.react(SCOPE, reaction(f"{who}-{n}"), alone=False)[0] for n in range(number)]
        case "react alone":
            return [
                names(index.react(SCOPE, reaction(f"{who}-{n}", origin="user"), alone=True)[1]) for n in range(number)
            ]
        case "increment":
            return [increment(index, "counter") for _ in range(number)]
        case "wait":
            return index.changed(SCOPE, number, seconds=60)
        case "claim":
            return index.claim(SCOPE, who, who, seconds=60).holder
        case "vector":
            return put_vectors(index, {who: [1.0, 2.0, 3.0]})
        case _:
            raise AssertionError(what)


if __name__ == "__main__":
    _, location, what, number, who = sys.argv
    index = open_index(location)
    if what != "open":
        index.open()
    print("ready", flush=True)
    sys.stdin.readline()
    print(json.dumps(do(index, what, int(number), who)))
    index.close()
