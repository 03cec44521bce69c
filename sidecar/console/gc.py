"""`gc`: free kept bytes that are needed no more, and blobs of the conversation that no row of the index names.

Never the latest version of a file that is nowhere else, never what is on its way to the store, and never a blob that
could be on its way to its row.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from typing import Any, NamedTuple

from sidecar.console.offline import (
    CONFIG,
    has_journal,
    index_of,
    keys_below,
    saved_elsewhere,
    store_of,
    store_uri,
    taken,
)
from sidecar.console.output import complain, printable, say, say_json, size, size_said, table
from sidecar.console.place import Place
from sidecar.conversation.contributing import OUR_OWN
from sidecar.core.artifacts import Version
from sidecar.core.conversation_names import conversation_prefix, scope_of
from sidecar.core.erasing import in_roles, role_in
from sidecar.core.errors import StoreUnavailable
from sidecar.core.index_rows import Filters
from sidecar.core.spare import kind_in, spare
from sidecar.core.storage_names import Identity, is_ours
from sidecar.ports import Store
from sidecar.stores.blobs import Blobs
from sidecar.stores.index_location import saved_beside
from sidecar.stores.journal import Journal
from sidecar.workspace import Workspace

OK = 0
DAY = 86400.0
ASKED_AT_ONCE = 8


class Freed(NamedTuple):
    """One kind of what goes. `bytes` is None where nobody counted them."""

    what: str
    count: int
    bytes: int | None


def gc(place: Place, asked: argparse.Namespace) -> int:
    """Free what can be freed, for which a daemon that runs is ended; with `--dry-run` say what would be, and end none.

    No daemon is started. Raises Hopeless where one runs that is not to be ended.
    """
    why = ""
    if not has_journal(place):
        freed: list[Freed] = []
    else:
        with taken(place, ending=not asked.dry_run), closing(Journal.open(place.settings.state_dir)) as journal:
            workspace = Workspace(journal)
            workspace.load()
            freed = [*_kept(place, workspace, dry=asked.dry_run)]
            why = _unsure(place, workspace)
            if why:
                complain(f"blobs are left alone: {why}")
            else:
                freed += _blobs(place, workspace, dry=asked.dry_run)
    if asked.json:
        say_json({"dry_run": asked.dry_run, "freed": [one._asdict() for one in freed]})
        return CONFIG if why else OK
    table(("what", "count", "size"), [(one.what, one.count, size(one.bytes)) for one in freed])
    total = sum(one.bytes or 0 for one in freed)
    say(f"{'would free' if asked.dry_run else 'freed'} {size_said(total)}")
    return CONFIG if why else OK


def _kept(place: Place, workspace: Workspace, *, dry: bool) -> Iterator[Freed]:
    blobs = Blobs(place.settings.state_dir)
    sizes = blobs.sizes()
    known = spare(
        workspace.artifacts,
        sizes,
        _Hosted(place, workspace, sizes).has,
        awaited={sha256 for _, sha256 in workspace.hosting},
        keep_bytes=place.settings.keep_bytes,
    )
    for what, hashes in (
        ("kept bytes that nothing names", known.strays),
        ("kept bytes that the store has", known.hosted),
        ("superseded versions over the limit", known.superseded),
    ):
        if not dry:
            for sha256 in hashes:
                blobs.evict(sha256)
        yield Freed(what, len(hashes), sum(sizes[sha256] for sha256 in hashes))


class _Hosted:
    """Whether the store really has the bytes of a version: it is asked, for what it is said to have."""

    def __init__(self, place: Place, workspace: Workspace, sizes: dict[str, int]) -> None:
        self._there: set[str] = set()
        store = store_of(place)
        if store is None or "conversation" not in workspace.facts:
            return
        identity = Identity.of(workspace.facts["conversation"])
        keys = {
            key: sizes[version.sha256]
            for artifact in workspace.artifacts
            for version in artifact.versions
            if version.sha256 in sizes and version.sha256 is not None
            for key in _keys(version.facts, store, identity)
        }
        with ThreadPoolExecutor(ASKED_AT_ONCE) as askers:
            try:
                answers = list(askers.map(store.head, keys))
            except StoreUnavailable as refusal:
                complain(f"the store does not answer, so nothing is freed for its sake: {refusal.hint}")
                return
        self._there = {
            key for (key, size), there in zip(keys.items(), answers, strict=True) if there and there.size == size
        }
        self._ask = (store, identity)

    def has(self, version: Version) -> bool:
        return bool(self._there) and any(key in self._there for key in _keys(version.facts, *self._ask))


def _keys(facts: dict[str, Any], store: Store, identity: Identity) -> list[str]:
    uri, key = facts.get("hosted_uri"), facts.get("key")
    named = store.key_of(uri) if isinstance(uri, str) else key
    if not isinstance(named, str):
        return []
    return [named] if any(is_ours(named, one) for one in in_roles(identity, [role_in(named, identity)])) else []


def _roles(workspace: Workspace, identity: Identity) -> set[str]:
    """The user types that the keys of hosted files hold: what was saved before they were fixed may have several."""
    facts = [version.facts for artifact in workspace.artifacts for version in artifact.versions]
    return {role_in(one["key"], identity) for one in facts if isinstance(one.get("key"), str)}


def _unsure(place: Place, workspace: Workspace) -> str:
    """Why it cannot be known which blobs have rows; empty when it can. An index never names what another one does."""
    facts = workspace.facts
    if store_of(place) is None or "conversation" not in facts:
        return ""
    if "archived_in" not in facts:
        return "it is not known where this workspace saves, before its daemon has started once more"
    if why := saved_elsewhere(place, facts["archived_in"]):
        return why
    for location in _earlier(place, workspace):
        if not os.path.isabs(location):
            return f"{printable(location)} was the index of this workspace too, and its rows name blobs of this store"
    return ""


def _earlier(place: Place, workspace: Workspace) -> list[str]:
    """The other indexes that the workspace saved to while it had this store."""
    store = store_uri(place)
    others = (saved_beside(saved, store) for saved in workspace.facts.get("archived_elsewhere", {}))
    return [location for location in others if location]


def _blobs(place: Place, workspace: Workspace, *, dry: bool) -> Iterator[Freed]:
    store = store_of(place)
    if store is None or "conversation" not in workspace.facts:
        return
    identity = Identity.of(workspace.facts["conversation"])
    try:
        with index_of(place) as index:
            if index is None or not index.standing(scope_of(identity)).change:
                # Without an index that knows the conversation every blob of it would look forgotten.
                return
            roles = _roles(workspace, identity) | {row.user_type for row in index.rows(scope_of(identity), Filters())}
            below = [key for one in in_roles(identity, roles) for key in keys_below(store, conversation_prefix(one))]
            # Rows are read after the keys, so that what is stored meanwhile is no orphan; and a day is left for others.
            named = {row.key for row in index.rows(scope_of(identity), Filters())}
            for location in _earlier(place, workspace):
                with index_of(place, location) as former:
                    named |= {row.key for row in former.rows(scope_of(identity), Filters())} if former else set()
            # What the runtime saved to the store alone has no row: only kinds that it cannot save can be told from it.
            yield _orphans(store, [key for key in below if key not in named and kind_in(key) in OUR_OWN], dry=dry)
    except StoreUnavailable as refusal:
        complain(f"blobs are left alone: {refusal.about} does not answer: {refusal.hint}")


def _orphans(store: Store, keys: list[str], *, dry: bool) -> Freed:
    oldest = time.time() - DAY
    lost: list[str] = []
    total = 0
    for key in keys:
        there, written = store.head(key), store.modified(key)
        if there is not None and written is not None and written < oldest:
            lost.append(key)
            total += there.size
    if not dry:
        store.delete(lost)
    return Freed("blobs that no row names", len(lost), total)
