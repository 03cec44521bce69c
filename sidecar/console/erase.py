"""`erase`: forget a turn, or the whole conversation, wherever this workspace has put it. It asks first.

The index and the store come first, the journal after them: who is killed halfway still knows what to erase, and doing
it again finishes it. What was numbered stays numbered.
"""

from __future__ import annotations

import argparse
import os
import shutil
import stat
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple

from sidecar.console.cleaning import Archived, clean_others, delete_pending
from sidecar.console.offline import (
    CONFIG,
    has_journal,
    index_of,
    keys_below,
    saved_elsewhere,
    store_of,
    taken,
    writing,
)
from sidecar.console.output import complain, printable, say
from sidecar.console.place import Place
from sidecar.core.conversation_names import conversation_prefix, execution_prefix, scope_of
from sidecar.core.entries import Stored
from sidecar.core.erasing import Whose, in_roles, read_turn, whose, without_anything, without_turn
from sidecar.core.index_rows import Filters, LeaseLost, RowChanged
from sidecar.core.paths import is_turn_id
from sidecar.core.storage_names import Identity, key_prefix
from sidecar.ports import Store
from sidecar.stores import kernel
from sidecar.stores.blobs import Blobs
from sidecar.stores.journal_file import DATABASE, JournalFile, NoRoom, Row, seal, take_lock
from sidecar.stores.journal_repair import open_sound
from sidecar.stores.opens import FOLDER, held
from sidecar.stores.whereabouts import whereabouts

OK, USAGE, NO_INPUT, TRY_AGAIN = 0, 64, 66, 75
VIEWS = ("timeline.json", "context.json", "sources_pool.json")
Change = tuple[int, Stored | None]


class _Order(NamedTuple):
    """What is to be forgotten. `turn_id` is empty for the whole conversation."""

    turn_id: str
    with_files: bool

    @property
    def what(self) -> str:
        return f"turn {self.turn_id}" if self.turn_id else "the whole conversation"


def erase(place: Place, asked: argparse.Namespace) -> int:
    """Forget, once the person at the terminal has said yes, or `--yes` has. A kill is finished by the next one."""
    order = _Order(asked.turn or "", asked.files)
    if order.turn_id and not is_turn_id(order.turn_id):
        complain(f"{order.turn_id!r} is no turn id")
        return USAGE
    if not has_journal(place):
        complain(f"there is nothing to erase: no daemon ever served {place.settings.out_dir}")
        return NO_INPUT
    if not asked.yes and not _agreed(place, order):
        return USAGE
    try:
        with taken(place):
            return _erase(place, order)
    except (LeaseLost, RowChanged):
        complain("the conversation was changed meanwhile, and not all is erased: run this command again")
    except NoRoom:
        complain(f"no room to write the journal anew in {place.settings.state_dir}: make room, run this command again")
    return TRY_AGAIN


def _agreed(place: Place, order: _Order) -> bool:
    if not sys.stdin.isatty():
        complain("erasing cannot be undone: say --yes where nobody can be asked")
        return False
    say(f"This erases {order.what} of {printable(place.settings.out_dir)} for ever: from the index, the store and the")
    say("state folder." + (" Its files in OUT_DIR go as well." if order.with_files else ""))
    sys.stdout.write("Type yes to go on: ")
    sys.stdout.flush()
    return sys.stdin.readline().strip().lower() == "yes"


def _erase(place: Place, order: _Order) -> int:
    state_dir = place.settings.state_dir
    lock = take_lock(state_dir)
    try:
        file, damage = open_sound(state_dir)
        with closing(file):
            if damage is not None:
                say(f"the journal was damaged; {damage.rescued} records were rescued")
            known = whose(_records(file))
            if known.archived_in and (why := saved_elsewhere(place, known.archived_in)):
                complain(f"nothing is erased: {why}")
                return CONFIG
            if order.turn_id and not read_turn(_records(file), order.turn_id).is_known:
                complain(f"no turn is called {order.turn_id!r}")
                return NO_INPUT
            generation = _forget_saved(place, order, known, file) if known.identity else None
            _forget_journalled(state_dir, order, file, generation)
        _forget_copies(place, order)
        _settle(state_dir, place.settings.out_dir)
    finally:
        os.close(lock)
    say(f"{order.what} is erased; its numbers stay given")
    return OK


def _forget_saved(place: Place, order: _Order, known: Whose, file: JournalFile) -> Any:
    """What the index and the store have. Both have to answer before anything is removed.

    Answers the fact `generation` that the workspace is to remember: that nobody wrote but itself. None where that is
    not so, or not known.
    """
    identity = Identity.of(known.identity)
    store, scope = store_of(place), scope_of(identity)
    identities = in_roles(identity, known.roles)
    generation: Any = None
    count = 0
    with index_of(place) as index:
        if store is not None:
            keys_below(store, conversation_prefix(identity))
        if index is not None:
            before = [*scope, index.standing(scope).generation]
            copied = known.held_at not in ("", whereabouts(place.settings.state_dir))
            with writing(index, scope, "" if copied else known.holder) as fence:
                identities = in_roles(identity, known.roles | {row.user_type for row in index.rows(scope, Filters())})
                if store is not None:
                    # First, since it may be the rows alone that know of other user types: who is killed finds them.
                    count = _delete_below(store, order, identities[1:])
                if order.turn_id and read_turn(_records(file), order.turn_id).generation == before:
                    generation = [*scope, fence.generation]
                _forget_rows(Archived(identity, index, store, fence), order, file, place.settings.state_dir)
        if store is not None:
            _forget_blobs(store, order, identities, count)
    return generation


def _forget_rows(archived: Archived, order: _Order, file: JournalFile, state_dir: str) -> None:
    index, scope = archived.index, scope_of(archived.identity)
    filters = Filters(turn_ids=(order.turn_id,)) if order.turn_id else Filters()
    count = len(index.rows(scope, filters))
    told = 0
    if order.turn_id:
        told = clean_others(archived, read_turn(_records(file), order.turn_id).doomed, state_dir)
        delete_pending(archived, state_dir)
        index.forget(scope, turn_id=order.turn_id)
    else:
        index.forget(scope)
    say(f"index: {count} rows removed" + (f", {told} rows of other turns rid of it" if told else ""))


def _forget_blobs(store: Store, order: _Order, identities: Sequence[Identity], before: int) -> None:
    count = before + _delete_below(store, order, identities)
    say(f"store: {count} objects removed")


def _delete_below(store: Store, order: _Order, identities: Iterable[Identity]) -> int:
    count = 0
    for identity in identities:
        for prefix in (conversation_prefix(identity), execution_prefix(identity), key_prefix(identity)):
            below = f"{prefix}{order.turn_id}/" if order.turn_id else prefix
            keys = keys_below(store, below)
            store.delete(keys)
            count += len(keys)
    return count


def _forget_journalled(state_dir: str, order: _Order, file: JournalFile, generation: Any) -> None:
    """What the journal says, and the kept bytes that it names no more."""
    now = time.time()
    if order.turn_id:
        found = read_turn(_records(file), order.turn_id)
        changes = without_turn(_records(file), found, ts=now, generation=generation)
        named = found.contents
    else:
        changes, named = without_anything(_records(file), ts=now), frozenset()
    rows, gone = _as_rows(changes)
    file.rewrite(rows, gone)
    say(f"journal: {len(gone)} records removed, {max(0, len(rows) - 1)} emptied")
    blobs = Blobs(state_dir)
    freed = sum(blobs.evict(sha256) for sha256 in blobs.sizes().keys() - named)
    blobs.scrub()
    say(f"kept bytes: {freed} removed")


def _as_rows(changes: Iterable[Change]) -> tuple[list[Row], list[int]]:
    rows: list[Row] = []
    gone: list[int] = []
    for seq, after in changes:
        if after is None:
            gone.append(seq)
        else:
            rows.append(Row(seq, *after, seal(seq, *after)))
    return rows, gone


def _forget_copies(place: Place, order: _Order) -> None:
    """Copies of what the journal held: older journals put aside, the view in OUT_DIR; with `--files` the files."""
    state_dir, out_dir = Path(place.settings.state_dir), Path(place.settings.out_dir)
    for copy in sorted(state_dir.glob(f"{DATABASE}.*")):
        copy.unlink()
        say(f"{copy.name}, a copy of the journal put aside, is removed")
    for name in VIEWS:
        _remove_file(out_dir / name)
    if not order.turn_id:
        for log in sorted(state_dir.glob("sidecar.log*")):
            log.unlink()
    if place.settings.record is not None and os.path.lexists(place.settings.record):
        say(f"the recording {printable(place.settings.record)} holds contents and is left: remove it yourself")
    turns = [order.turn_id] if order.turn_id else _turns_in(out_dir)
    left = [turn for turn in turns if os.path.lexists(out_dir / turn)]
    if order.with_files:
        for turn in left:
            _remove_folder(out_dir / turn)
        say(f"OUT_DIR: {len(left)} folders of turns removed")
    elif left:
        say(f"OUT_DIR keeps {len(left)} folders of turns, which the next daemon registers anew; --files removes them")


def _settle(*folders: str) -> None:
    """Bring to the disk that files are gone, before anybody is told so: a power cut would bring them back."""
    for folder in folders:
        with held(os.open(folder, FOLDER)) as opened:
            kernel.syncfs(opened)


def _turns_in(out_dir: Path) -> list[str]:
    """The folders that hold files of turns, whatever else lies in OUT_DIR."""
    return sorted(
        entry.name
        for entry in os.scandir(out_dir)
        if is_turn_id(entry.name)
        and entry.is_dir(follow_symlinks=False)
        and any(os.path.isdir(os.path.join(entry.path, place)) for place in ("files", "attachments"))
    )


def _remove_folder(path: Path) -> None:
    """Remove a folder; of a link only the link, since what it names is not ours."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink()


def _remove_file(path: Path) -> None:
    """Remove a regular file by its name; anything else under that name is not ours."""
    try:
        if stat.S_ISREG(path.lstat().st_mode):
            path.unlink()
    except FileNotFoundError:
        pass


def _records(file: JournalFile) -> Iterator[tuple[int, str, bytes, bytes]]:
    for rows in file.scan(after=0):
        for row in rows:
            yield row[0], row[1], row[2], row[3]
