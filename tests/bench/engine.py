"""The rival of the journal: SQLite alone, with the journal's settings and its rows, in one thread."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from pathlib import Path

Row = tuple[int, str, bytes, bytes, int]
"""seq, kind, head, body and their hash."""


class Engine:
    """One open database. A row is durable when `write` returns."""

    def __init__(self, path: Path) -> None:
        self._connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
        for setting in ("locking_mode=EXCLUSIVE", "journal_mode=WAL", "synchronous=FULL", "cache_size=-16384"):
            self._connection.execute(f"PRAGMA {setting}")
        self._connection.execute(
            "CREATE TABLE journal(seq INTEGER PRIMARY KEY, kind TEXT, head BLOB, body BLOB, h INTEGER)"
        )

    def write(self, rows: Sequence[Row]) -> None:
        """All rows in one transaction."""
        self._connection.execute("BEGIN IMMEDIATE")
        self._connection.executemany("INSERT INTO journal VALUES(?,?,?,?,?)", rows)
        self._connection.execute("COMMIT")

    def close(self) -> None:
        self._connection.close()
