"""Where the index is to be, as people write it: a file, or `postgresql://…`; parsed, and nothing opened."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, field
from urllib.parse import parse_qsl, urlencode


@dataclass(frozen=True, slots=True)
class IndexFile:
    """A SQLite file by its absolute path."""

    path: str


@dataclass(frozen=True, slots=True)
class IndexServer:
    """A PostgreSQL database by its URL, which may hold a password and is therefore not shown."""

    url: str = field(repr=False)


IndexPlace = IndexFile | IndexServer


def parse_index(location: str) -> IndexPlace:
    """An absolute path, `postgresql://[user[:password]@][host][:port][/database][?…]`, or the same with `postgres://`.

    Raises ValueError with a sentence that says what is wrong and never repeats the location: it may hold a secret.
    """
    if "\0" in location:
        raise ValueError("an index is named without NUL")
    if os.path.isabs(location):
        if location.endswith("/"):
            raise ValueError("an index is a file, and this is the name of a folder")
        return IndexFile(os.path.normpath(location))
    if _SERVER.fullmatch(location):
        return IndexServer(location)
    if location.partition("://")[0] in ("postgresql", "postgres"):
        raise ValueError("a PostgreSQL index is postgresql://user@host:port/database")
    raise ValueError("an index is an absolute path of a file, or postgresql://user@host:port/database")


def shown(location: str) -> str:
    """A location as it may be shown to anybody: without a password, and without parameters that could hold one."""
    try:
        place = parse_index(location)
    except ValueError:
        return "(no index)"
    if isinstance(place, IndexFile):
        return place.path
    match = _SERVER.fullmatch(place.url)
    assert match is not None
    user = f"{match['user']}@" if match["user"] else ""
    known = [(name, value) for name, value in _parameters(match["query"]) if name in _SHOWN]
    query = f"?{urlencode(known, safe='/')}" if known else ""
    return f"postgresql://{user}{match['hosts']}{match['path'] or ''}{query}"


def saved_to(location: str, store_uri: str) -> str:
    """What a workspace remembers of where it saves: the index as it may be shown, and a uri in the store, or none.

    Two places are the same when this is: a console command must not take another index for the one that was written.
    """
    return f"{shown(location)} {store_uri}"


def saved_beside(saved: str, store_uri: str) -> str:
    """The index, as it may be shown, of what `saved_to` answered for this store; empty when it was another store."""
    index = saved.removesuffix(f" {store_uri}")
    return index if index != saved else ""


def holds_secret(location: str) -> bool:
    """Whether a location has a password in it; such a one is refused in a settings file."""
    match = _SERVER.fullmatch(location)
    if match is None:
        return False
    return match["password"] is not None or any("password" in name for name, _ in _parameters(match["query"]))


def _parameters(query: str | None) -> list[tuple[str, str]]:
    return parse_qsl(query or "", keep_blank_values=True)


# libpq takes several hosts, so this is no URL that `urlsplit` could read. Whatever it has not, has no password either.
_SERVER = re.compile(
    r"postgres(?:ql)?://(?:(?P<user>[^:@/?#\s]*)(?::(?P<password>[^@/?#\s]*))?@)?"
    r"(?P<hosts>[^@/?#\s]*)(?P<path>/[^?#@\s]*)?(?:\?(?P<query>[^#\s]*))?"
)
_SHOWN = {"host", "hostaddr", "port", "user", "dbname", "sslmode", "service", "target_session_attrs"}
