"""A workspace without its daemon: ended if it ran, and kept out until the work on its state is done."""

from __future__ import annotations

import os
import uuid
from collections.abc import Generator
from contextlib import ExitStack, contextmanager

from sidecar.console.output import printable, say
from sidecar.console.place import Place
from sidecar.core.errors import StoreUnavailable
from sidecar.core.index_rows import Fence, Scope
from sidecar.ports import Index, Store
from sidecar.server import bridge, listening
from sidecar.stores.index_location import IndexFile, parse_index, saved_to
from sidecar.stores.indexes import open_index
from sidecar.stores.journal_file import DATABASE, JournalLocked
from sidecar.stores.journal_schema import JournalNewer
from sidecar.stores.objects import open_configured

BAD_DATA, TRY_AGAIN, CONFIG = 65, 75, 78
LEASE_SECONDS = 120.0


@contextmanager
def taken(place: Place, *, ending: bool = True) -> Generator[None]:
    """Have the state folder to ourselves. A daemon that runs is asked to end; none is started afterwards.

    Raises StillThere, and Hopeless with its exit code when the state cannot be had: also because a daemon runs, when
    nobody is to be ended for it.
    """
    if not ending and (pid := place.daemon()) is not None:
        raise bridge.Hopeless(
            TRY_AGAIN,
            f"process {pid} serves this workspace, and only looking ends nobody: `artifact-sidecar stop` first",
        )
    pid = place.end() if ending else None
    if pid is not None:
        say(f"ended the daemon, process {pid}; the next client starts another")
    with ExitStack() as stack:
        try:
            lock = listening.take_lock(place.folder)
        except listening.AlreadyServed as answer:
            raise bridge.Hopeless(TRY_AGAIN, str(answer)) from None
        stack.callback(os.close, lock)
        try:
            yield
        except JournalLocked as locked:
            raise bridge.Hopeless(TRY_AGAIN, str(locked)) from None
        except JournalNewer as newer:
            raise bridge.Hopeless(BAD_DATA, str(newer)) from None


def has_journal(place: Place) -> bool:
    """Whether a daemon ever served this workspace."""
    return os.path.lexists(os.path.join(place.settings.state_dir, DATABASE))


def store_of(place: Place) -> Store | None:
    """The store that the settings name, where there is one yet."""
    wanted = place.settings.object_store
    if wanted is None or (os.path.isabs(wanted.uri) and not os.path.lexists(wanted.uri)):
        return None
    return open_configured(wanted)


def saved_elsewhere(place: Place, known: str) -> str:
    """Why the index and the store of the settings are not those that the workspace saved to; empty when they are.

    `known` is the fact `archived_in`. An index with a password is not remembered for the next command, which then would
    take an earlier index for it.
    """
    named = saved_to(place.settings.index_location, store_uri(place))
    if named == known:
        return ""
    return (
        f"this workspace saves to {printable(known.strip())}, and the settings name {printable(named.strip())}: "
        "give --index and --store as its daemon has them"
    )


def store_uri(place: Place) -> str:
    """The uri that tells the store of the settings from others, whether it is there yet or not; empty for none."""
    wanted = place.settings.object_store
    return open_configured(wanted).uri("cb") if wanted is not None else ""


@contextmanager
def index_of(place: Place, location: str = "") -> Generator[Index | None]:
    """The index at a location, else the one that the settings name, opened; None where its file is not there.

    Raises StoreUnavailable.
    """
    location = location or place.settings.index_location
    where = parse_index(location)
    if isinstance(where, IndexFile) and not os.path.lexists(where.path):
        yield None
        return
    index = open_index(location)
    try:
        index.open()
        yield index
    finally:
        index.close()


@contextmanager
def writing(index: Index, scope: Scope, holder: str) -> Generator[Fence]:
    """Be the conversation's one writer. Raises Hopeless when another daemon is.

    `holder` is the workspace's own id where it has one, so that its own lease is no hindrance. A new writer raises the
    generation: who knew the one before and has it written down knows that nobody else wrote since.
    """
    own = holder or uuid.uuid4().hex
    standing = index.claim(scope, own, f"process {os.getpid()}", seconds=LEASE_SECONDS)
    if standing.holder != own:
        raise bridge.Hopeless(
            TRY_AGAIN,
            f"{standing.label or 'another daemon'} writes this conversation for {standing.expires_in:.0f} more seconds "
            "at least: end that daemon first",
        )
    try:
        yield Fence(own, standing.generation)
    finally:
        try:
            index.release(scope, own)
        except StoreUnavailable:
            pass  # the lease expires by itself


def keys_below(store: Store, prefix: str) -> list[str]:
    """Every key below a prefix. Raises StoreUnavailable."""
    keys: list[str] = []
    while page := store.list(prefix, after=keys[-1] if keys else ""):
        keys += page
    return keys
