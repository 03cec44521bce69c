"""The file of the SQLite index: how it is made, shared and refused, and what its failures are called."""

from __future__ import annotations

import errno
import os
import sqlite3
import subprocess
import sys
from pathlib import Path

import apsw
import pytest

from sidecar.core.errors import StoreUnavailable
from sidecar.stores.sqlite_file import SqliteFile, faults, transaction
from tests.tidy.tree import PROJECT


def fault_of(file: SqliteFile) -> str:
    with pytest.raises(StoreUnavailable) as refusal:
        file.migrate()
    assert refusal.value.about == "index"
    assert refusal.value.hint
    return refusal.value.fault


def test_the_file_and_its_folder_are_ours_alone(tmp_path: Path) -> None:
    path = tmp_path / "a" / "b" / "index.db"
    file = SqliteFile(str(path))
    file.migrate()
    connection = file.connect()
    connection.execute("CREATE TABLE more (x)")
    modes = {found.name: found.stat().st_mode & 0o777 for found in [*path.parent.iterdir(), path.parent]}
    assert modes == {"b": 0o700, "index.db": 0o600, "index.db-wal": 0o600, "index.db-shm": 0o600}
    connection.close()


def test_a_commit_is_on_the_disk_when_it_returns(tmp_path: Path) -> None:
    connection = SqliteFile(str(tmp_path / "index.db")).connect()
    asked = ("journal_mode", "synchronous", "secure_delete")
    assert [connection.execute(f"PRAGMA {name}").fetchall()[0][0] for name in asked] == ["wal", 2, 1]
    connection.close()


def test_a_transaction_that_raises_changes_nothing(tmp_path: Path) -> None:
    connection = SqliteFile(str(tmp_path / "index.db")).connect()
    with pytest.raises(apsw.SQLError), transaction(connection, "BEGIN IMMEDIATE"):
        connection.execute("CREATE TABLE t (x); CREATE TABLE t (x)")
    assert connection.execute("SELECT count(*) FROM sqlite_schema").fetchall() == [(0,)]
    connection.close()


@pytest.mark.parametrize("content", [b"no database at all" * 100, b"SQLite format 3\0" + b"\xff" * 5000])
def test_a_file_that_is_no_database_is_left_as_it_is(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "index.db"
    path.write_bytes(content)
    assert fault_of(SqliteFile(str(path))) == "wrong_bytes"
    assert (path.read_bytes(), os.listdir(tmp_path)) == (content, ["index.db"])


def test_a_database_of_something_else_is_left_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "index.db"
    other = sqlite3.connect(path)
    other.execute("CREATE TABLE journal (seq)")
    other.commit()
    other.close()
    content = path.read_bytes()
    assert fault_of(SqliteFile(str(path))) == "wrong_bytes"
    assert path.read_bytes() == content


def test_a_newer_schema_is_refused_and_left_as_it_is(tmp_path: Path) -> None:
    file = SqliteFile(str(tmp_path / "index.db"))
    file.migrate()
    connection = file.connect()
    connection.execute("INSERT INTO conv_schema VALUES (99, '0099_later', 'then')")
    with pytest.raises(StoreUnavailable, match="schema 99"):
        file.migrate()
    with pytest.raises(StoreUnavailable, match="schema 99"):
        file.states()
    connection.close()


def test_a_folder_is_no_file(tmp_path: Path) -> None:
    assert fault_of(SqliteFile(str(tmp_path))) == "unreachable"


def test_below_a_file_there_is_no_folder(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    assert fault_of(SqliteFile(str(tmp_path / "file" / "index.db"))) == "unreachable"


def test_a_file_that_another_keeps_locked_is_not_waited_for_forever(tmp_path: Path) -> None:
    file = SqliteFile(str(tmp_path / "index.db"), busy_seconds=0.05)
    other = file.connect()
    other.execute("BEGIN IMMEDIATE")
    assert fault_of(file) == "timed_out"
    other.execute("ROLLBACK")
    assert file.migrate()
    other.close()


def test_damage_is_told(tmp_path: Path) -> None:
    file = SqliteFile(str(tmp_path / "index.db"))
    file.migrate()
    with open(file.path, "r+b") as stream:
        stream.seek(4096)
        stream.write(os.urandom(20 * 4096))
    assert fault_of(file) == "wrong_bytes"


@pytest.mark.parametrize(
    ("error", "fault"),
    [
        (apsw.FullError(), "disk_full"),
        (apsw.BusyError(), "timed_out"),
        (apsw.ReadOnlyError(), "denied"),
        (apsw.IOError(), "server_error"),
        (apsw.CorruptError(), "wrong_bytes"),
        (apsw.CantOpenError(), "unreachable"),
        (apsw.SQLError(), "server_error"),
        (OSError(errno.EACCES, ""), "denied"),
        (OSError(errno.EROFS, ""), "denied"),
        (OSError(errno.ENOSPC, ""), "disk_full"),
        (OSError(errno.ENOTDIR, ""), "unreachable"),
    ],
    ids=repr,
)
def test_each_failure_has_its_name(error: Exception, fault: str) -> None:
    with pytest.raises(StoreUnavailable) as refusal, faults():
        raise error
    assert (refusal.value.fault, refusal.value.__cause__) == (fault, None)


READ_ONLY = """
import subprocess, sys
from sidecar.core.errors import StoreUnavailable
from sidecar.stores.indexes import open_index
from sidecar.core.index_rows import Commit
from tests.stores.index_contract import SCOPE
folder = sys.argv[1]
index = open_index(folder + "/index.db")
index.commit(SCOPE, Commit())
index.close()
subprocess.run(["mount", "--bind", folder, folder], check=True)
subprocess.run(["mount", "-o", "remount,ro,bind", folder], check=True)
try:
    open_index(folder + "/index.db").commit(SCOPE, Commit())
except StoreUnavailable as refusal:
    print(refusal.fault)
"""

FULL_DISK = """
import os, subprocess, sys
from sidecar.core.errors import StoreUnavailable
from sidecar.stores.indexes import open_index
from tests.stores.index_contract import EVERYTHING, SCOPE, put, row
folder = sys.argv[1]
subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1500k", "tmpfs", folder], check=True)
index = open_index(folder + "/index.db")
index.open()
with open(folder + "/filler", "wb") as filler:
    filler.write(b"x" * 300_000)
def commit(n):
    try:
        return put(index, row(f"m{n}", text=f"{n} " * 3000)) == n
    except StoreUnavailable as refusal:
        assert refusal.fault == "disk_full", refusal
        return False
full = next(n for n in range(1, 1000) if not commit(n))
assert not commit(full)
assert len(index.rows(SCOPE, EVERYTHING)) == full - 1
os.unlink(folder + "/filler")
assert commit(full)
assert index.standing(SCOPE).change == full
index.close()
print(full)
"""


def in_a_namespace(program: str, folder: Path) -> str:
    """What a program prints that may mount things."""
    if subprocess.run(["unshare", "-m", "true"], capture_output=True, check=False).returncode:
        pytest.skip("a mount namespace is not permitted here")
    command = ["unshare", "-m", sys.executable, "-c", program, str(folder)]
    done = subprocess.run(command, cwd=PROJECT, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_a_disk_that_only_reads_denies(tmp_path: Path) -> None:
    assert in_a_namespace(READ_ONLY, tmp_path) == "denied"


def test_a_full_disk_refuses_a_change_whole_and_the_next_one_is_tried_again(tmp_path: Path) -> None:
    assert int(in_a_namespace(FULL_DISK, tmp_path)) > 3
