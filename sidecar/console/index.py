"""`index`: which engine indexes conversations, where, and how its schema stands; `--migrate` makes it current."""

from __future__ import annotations

import argparse
import os
from typing import Any

from sidecar.config import PREFIX, index_from
from sidecar.console.output import complain, details, say, say_json, table
from sidecar.console.place import Place
from sidecar.core.blocks import iso
from sidecar.core.errors import StoreUnavailable
from sidecar.settings_file import BadSettings
from sidecar.stores.index_census import Census, census
from sidecar.stores.index_location import IndexFile, parse_index, shown
from sidecar.stores.indexes import migrate, migrations

OK, TRY_AGAIN = 0, 75


def index(place: Place, asked: argparse.Namespace) -> int:
    """The index of a workspace. Exit code 75 when it does not answer, or was made by a newer version."""
    return _index(place.settings.index_location, asked)


def index_alone(asked: argparse.Namespace) -> int:
    """The same where there is no workspace yet: `--index`, or its variable, says which. Raises BadSettings."""
    given = asked.index or os.environ.get(f"{PREFIX}INDEX")
    if not given:
        raise BadSettings("no index: give --index FILE or postgresql://…, or --out-dir DIR for the one of a workspace")
    return _index(index_from(given), asked)


def _index(location: str, asked: argparse.Namespace) -> int:
    where = parse_index(location)
    kind = "sqlite" if isinstance(where, IndexFile) else "postgresql"
    try:
        done = migrate(location) if asked.migrate else []
        absent = isinstance(where, IndexFile) and not os.path.lexists(where.path)
        steps = [] if absent else migrations(location)
        pending = [step.name for step in steps if step.applied is None]
        counted = None if absent or pending else census(location)
    except StoreUnavailable as refusal:
        complain(f"the index {shown(location)} does not answer: {refusal.fault}: {refusal.hint}")
        return TRY_AGAIN
    if asked.json:
        said: dict[str, Any] = {"kind": kind, "where": shown(location), "exists": not absent, "migrated": done}
        schema = [{"name": step.name, "applied": step.applied} for step in steps]
        say_json({**said, "schema": schema, **(counted._asdict() if counted else {})})
        return OK
    for name in done:
        say(f"applied {name}")
    details([("engine", kind), ("where", shown(location)), *_contents(counted, absent=absent)])
    if steps:
        say()
        table(("schema", "applied"), [(step.name, step.applied or "pending") for step in steps])
    if pending:
        say()
        say("The first daemon applies what is pending, and so does this command with --migrate.")
    return OK


def _contents(counted: Census | None, *, absent: bool) -> list[tuple[str, object]]:
    if absent:
        return [("state", "not made yet: the first daemon does, or --migrate")]
    if counted is None:
        return []
    latest = iso(counted.latest) if counted.latest is not None else None
    return [("conversations", counted.conversations), ("rows", counted.rows), ("latest row", latest)]
