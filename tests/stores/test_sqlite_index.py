"""The index in a SQLite file: what becomes of the file under it."""

from __future__ import annotations

import os
import signal
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from sidecar.core.errors import StoreUnavailable
from sidecar.stores.sqlite_file import SqliteFile
from sidecar.stores.sqlite_index import SqliteIndex
from tests.stores.index_contract import EVERYTHING, SCOPE, Together, names, put, row


def test_a_file_that_was_removed_is_made_again(tmp_path: Path) -> None:
    index = SqliteIndex(str(tmp_path / "index.db"))
    put(index, row("m1"))
    for name in os.listdir(tmp_path):
        os.unlink(tmp_path / name)
    assert (put(index, row("m2")), names(index.rows(SCOPE, EVERYTHING))) == (1, ["m2"])
    index.close()
    again = SqliteIndex(str(tmp_path / "index.db"))
    assert names(again.rows(SCOPE, EVERYTHING)) == ["m2"]
    again.close()


def test_a_file_that_another_locks_is_told_and_then_works(tmp_path: Path) -> None:
    index = SqliteIndex(str(tmp_path / "index.db"), busy_seconds=0.05)
    put(index, row("m1"))
    other = SqliteFile(str(tmp_path / "index.db")).connect()
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(StoreUnavailable) as refusal:
        put(index, row("m2"))
    assert refusal.value.fault == "timed_out"
    assert names(index.rows(SCOPE, EVERYTHING)) == ["m1"]
    other.execute("ROLLBACK")
    assert put(index, row("m2")) == 2
    other.close()
    index.close()


def test_readers_do_not_wait_for_writers(tmp_path: Path) -> None:
    index = SqliteIndex(str(tmp_path / "index.db"), busy_seconds=0.0)
    put(index, row("m1"))
    other = SqliteFile(str(tmp_path / "index.db")).connect()
    other.execute("BEGIN IMMEDIATE")
    with ThreadPoolExecutor(4) as threads:
        found = list(threads.map(lambda _: names(index.rows(SCOPE, EVERYTHING)), range(20)))
    assert found == [["m1"]] * 20
    other.close()
    index.close()


def test_whoever_is_killed_while_writing_leaves_whole_changes(tmp_path: Path) -> None:
    location = str(tmp_path / "index.db")
    index = SqliteIndex(location)
    index.open()
    together = Together(location, "commit", programs=2, number=100_000)
    together.go()
    assert index.changed(SCOPE, 50, seconds=60)
    for program in together._programs:
        os.kill(program.pid, signal.SIGKILL)
    together.stop()
    change = index.standing(SCOPE).change
    assert sorted(one.change for one in index.rows(SCOPE, EVERYTHING)) == list(range(1, change + 1))
    assert put(index, row("after")) == change + 1
    index.close()
