"""What to do with a damaged journal: keep it aside for ever, and go on with every row that is still itself.

The rescued rows are written into a new file first; only when that is complete and durable do the two change places. A
crash in between is found by the name of the new file, and the exchange is finished at the next start.
"""

from __future__ import annotations

import logging
import os
from contextlib import closing
from dataclasses import dataclass
from itertools import islice

from sidecar.core.errors import JournalUnavailable
from sidecar.stores.durable import sync_folder
from sidecar.stores.journal_file import DATABASE, JournalFile, NoRoom
from sidecar.stores.journal_pages import intact_rows
from sidecar.stores.journal_schema import SCHEMA, JournalDamaged, Schema, free_name

_log = logging.getLogger(__name__)
_ROWS_AT_ONCE = 1024
_RESCUING = DATABASE + ".rescuing"
_RESCUED = DATABASE + ".rescued"


@dataclass(frozen=True, slots=True)
class Damage:
    """What was found. `moved_to` holds the damaged file; `lost` counts the numbers missing below the last rescued one.

    Rows lost after the last rescued one cannot be counted: nothing says how many there were.
    """

    about: str
    moved_to: str
    rescued: int
    lost: int


def open_sound(folder: str, schema: Schema = SCHEMA) -> tuple[JournalFile, Damage | None]:
    """The journal of `folder`, rescued first if it cannot even be opened. The caller owns the lock."""
    path = os.path.join(folder, DATABASE)
    if os.path.lexists(os.path.join(folder, _RESCUED)):
        _exchange(folder)
    try:
        return JournalFile.open(path, schema), None
    except JournalDamaged as damaged:
        return rescue(folder, str(damaged), schema=schema)


def rescue(folder: str, about: str, *, schema: Schema = SCHEMA) -> tuple[JournalFile, Damage]:
    """Put the damaged journal of `folder` aside and open a new one that holds its intact rows. It must be closed."""
    rescuing = os.path.join(folder, _RESCUING)
    for stale in (rescuing, f"{rescuing}-wal"):
        if os.path.lexists(stale):
            os.unlink(stale)
    try:
        rescued, last = _copy_intact(os.path.join(folder, DATABASE), rescuing, schema)
    except NoRoom as full:
        raise JournalUnavailable(rescuing, f"no room to rescue the intact rows of a damaged journal: {full}") from full
    os.rename(rescuing, os.path.join(folder, _RESCUED))
    sync_folder(folder)
    damage = Damage(about, _exchange(folder), rescued, last - rescued)
    _log.error("%s; kept as %s; %d rows rescued, %d lost", about, damage.moved_to, damage.rescued, damage.lost)
    return JournalFile.open(os.path.join(folder, DATABASE), schema), damage


def _copy_intact(path: str, target: str, schema: Schema) -> tuple[int, int]:
    """How many rows were rescued, and the highest number among them."""
    seen: set[int] = set()
    with closing(JournalFile.open(target, schema)) as fresh, closing(intact_rows(path)) as rows:
        while batch := list(islice(rows, _ROWS_AT_ONCE)):
            some = {row.seq: row for row in batch if row.seq not in seen}
            fresh.write(tuple(some.values()))
            seen.update(some)
    if os.path.lexists(f"{target}-wal"):
        raise NoRoom("the log could not be folded into the rescued file")
    return len(seen), max(seen, default=0)


def _exchange(folder: str) -> str:
    """Move whatever is in place aside and the rescued file into its place. Safe to do twice."""
    path, rescued = os.path.join(folder, DATABASE), os.path.join(folder, _RESCUED)
    aside = free_name(path, "damaged")
    for suffix in ("-wal", ""):
        if os.path.lexists(path + suffix):
            os.rename(path + suffix, aside + suffix)
    sync_folder(folder)
    os.rename(rescued, path)
    sync_folder(folder)
    return aside
