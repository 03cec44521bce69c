"""A damaged journal is kept for ever, and what is intact in it goes on."""

from __future__ import annotations

from pathlib import Path

import pytest

from sidecar.core.errors import JournalUnavailable
from sidecar.stores.journal_file import PAGE, JournalFile, Row, seal
from sidecar.stores.journal_repair import open_sound, rescue
from sidecar.stores.journal_schema import SCHEMA, Schema


def row(seq: int, body: bytes = b"{}") -> Row:
    return Row(seq, "block", b"{}", body, seal(seq, "block", b"{}", body))


def write(folder: Path, *rows: Row, name: str = "journal.db") -> None:
    folder.mkdir(exist_ok=True)
    file = JournalFile.open(str(folder / name))
    file.write(rows)
    file.close()


def scanned(file: JournalFile) -> list[Row]:
    return [one for rows in file.scan(after=0) for one in rows]


@pytest.mark.parametrize("content", [b"no database at all " * 300, b"SQLite format 3\0" + b"\xff" * 5000, b"short"])
def test_what_is_no_database_is_put_aside(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "journal.db").write_bytes(content)
    file, damage = open_sound(str(tmp_path))
    assert scanned(file) == []
    file.close()
    assert damage is not None
    assert Path(damage.moved_to).read_bytes() == content
    assert Path(damage.moved_to).name.startswith("journal.db.damaged-")


def test_a_sound_journal_is_opened_in_place(tmp_path: Path) -> None:
    write(tmp_path, row(1))
    file, damage = open_sound(str(tmp_path))
    assert damage is None
    assert scanned(file) == [row(1)]
    file.close()
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["journal.db"]


@pytest.mark.parametrize(
    ("at", "changed"),
    [(60, b"\xff\0\0\2"), (18, b"\xff"), (18, b"\xff\0"), (18, b"\1\1"), (18, b"\2\1"), (19, b"\xff")],
    ids=["schema below none", "never to be written", "neither", "no log", "half a log", "not to be read"],
)
def test_a_header_that_would_stop_the_daemon_for_ever_costs_no_row(tmp_path: Path, at: int, changed: bytes) -> None:
    write(tmp_path, row(1), row(2))
    path = tmp_path / "journal.db"
    content = path.read_bytes()
    path.write_bytes(content[:at] + changed + content[at + len(changed) :])
    file, _ = open_sound(str(tmp_path))
    assert scanned(file) == [row(1), row(2)]
    file.write([row(3)])
    file.close()


@pytest.mark.parametrize(
    ("said", "changed"),
    [
        (b"seq INTEGER PRIMARY KEY", b"seq INTEGEQ PRIMARY KEY"),
        (b"kind TEXT", b"kine TEXT"),
        (b"journal(", b"iournal("),
        (b"CREATE TABLE", b"CREATE\xff\xffABLE"),
        (b"first INTEGER", b"first,INTEGER"),
        (b"chapters(", b"chapterz("),
    ],
)
def test_a_schema_that_is_none_of_ours_costs_no_row(tmp_path: Path, said: bytes, changed: bytes) -> None:
    """Found by fuzzing: the daemon could not be started any more, and no row was rescued."""
    write(tmp_path, row(1), row(2))
    path = tmp_path / "journal.db"
    path.write_bytes(path.read_bytes().replace(said, changed, 1))
    file, damage = open_sound(str(tmp_path))
    assert scanned(file) == [row(1), row(2)]
    assert damage is not None
    file.close()


def test_intact_rows_on_both_sides_of_a_broken_page_are_rescued(tmp_path: Path) -> None:
    rows = [row(seq, b"%05d" % seq * 100) for seq in range(1, 501)]
    write(tmp_path, *rows)
    path = tmp_path / "journal.db"
    content = bytearray(path.read_bytes())
    at = content.index(b"00250" * 50) // 4096 * 4096
    content[at : at + 4096] = b"\xff" * 4096
    path.write_bytes(content)
    file, damage = rescue(str(tmp_path), "a broken page")
    kept = scanned(file)
    file.close()
    assert set(kept) < set(rows)
    assert 480 <= len(kept) < 500
    assert kept[0] == rows[0]
    assert kept[-1] == rows[-1]
    assert (damage.rescued, damage.lost) == (len(kept), 500 - len(kept))


def test_rows_behind_many_that_are_there_twice_are_rescued(tmp_path: Path) -> None:
    rows = [row(number) for number in range(1, 6001)]
    write(tmp_path, *rows)
    path = tmp_path / "journal.db"
    content = path.read_bytes()
    half = len(content) // PAGE // 2 * PAGE
    path.write_bytes(content[:half] + content[PAGE:])
    file, damage = rescue(str(tmp_path), "pages that are there twice")
    assert (damage.rescued, damage.lost) == (6000, 0)
    assert scanned(file) == rows
    file.close()


def test_an_exchange_that_was_interrupted_is_finished(tmp_path: Path) -> None:
    write(tmp_path, row(1), row(2))
    write(tmp_path, row(1), name="journal.db.rescued")
    (tmp_path / "journal.db-wal").write_bytes(b"the log of the damaged one")
    file, damage = open_sound(str(tmp_path))
    assert scanned(file) == [row(1)]
    file.close()
    assert damage is None
    names = sorted(entry.name.partition("damaged-")[0] for entry in tmp_path.iterdir())
    assert names == ["journal.db", "journal.db.", "journal.db."]


def test_a_rescue_begins_anew_after_a_crash(tmp_path: Path) -> None:
    write(tmp_path, row(1), row(2))
    write(tmp_path, row(9), name="journal.db.rescuing")
    file, damage = rescue(str(tmp_path), "tried again")
    assert scanned(file) == [row(1), row(2)]
    file.close()
    assert damage.rescued == 2


def test_a_rescue_without_room_changes_nothing(tmp_path: Path) -> None:
    rows = [row(seq, b"x" * 4000) for seq in range(1, 50)]
    write(tmp_path, *rows)
    tight = Schema(SCHEMA.number, (*SCHEMA.create, "PRAGMA max_page_count=8"), {})
    with pytest.raises(JournalUnavailable, match="no room"):
        rescue(str(tmp_path), "on a full disk", schema=tight)
    file, damage = open_sound(str(tmp_path))
    assert damage is None
    assert scanned(file) == rows
    file.close()
