"""Every way a PostgreSQL server and the way to it can fail, put into our words once.

What libpq says may name users and hosts, and a connection that failed remembers its password, so none of it is passed
on but the five letters of the server's code.
"""

from __future__ import annotations

import logging
import struct
import traceback
from collections.abc import Generator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from sidecar.core.errors import Fault, StoreUnavailable
from sidecar.core.index_rows import WrongDimension

if TYPE_CHECKING:
    import psycopg

log = logging.getLogger(__name__)


@contextmanager
def faults() -> Generator[None, None, None]:
    """Raise StoreUnavailable about the index for what psycopg raises on a connection that was made.

    An answer that was changed on its way raises whatever its reading meets, from psycopg's own loaders on.
    """
    import psycopg

    try:
        yield
    except psycopg.Error as error:
        refusal = _refusal(error)
    except WrongDimension:
        raise
    except _UNREADABLE as error:
        where = "".join(traceback.format_tb(error.__traceback__))  # and not what it says, which may be contents
        log.warning("an answer of PostgreSQL is none to what it was asked: %s\n%s", type(error).__name__, where)
        refusal = StoreUnavailable("index", _NO_ANSWER, fault="wrong_bytes")
    else:
        return
    raise refusal


@contextmanager
def connecting() -> Generator[None, None, None]:
    """The same while a connection is being made. The server's code is not to be had then, only what it says."""
    import psycopg

    try:
        yield
    except (psycopg.Error, OSError) as error:
        refusal = _not_connected(error)
    else:
        return
    raise refusal


def _refusal(error: psycopg.Error) -> StoreUnavailable:
    import psycopg

    code = error.sqlstate or ""
    if not code:
        fault: Fault = "cut_off" if isinstance(error, psycopg.OperationalError) else "server_error"
        return StoreUnavailable("index", _HINTS[fault], fault=fault)
    fault = _BY_CODE.get(code) or _BY_CLASS.get(code[:2], "server_error")
    return StoreUnavailable("index", f"{_SAY.get(code, _HINTS[fault])} ({code})", fault=fault)


def _not_connected(error: Exception) -> StoreUnavailable:
    import psycopg

    if isinstance(error, psycopg.errors.ConnectionTimeout):
        return StoreUnavailable("index", _HINTS["timed_out"], fault="timed_out")
    if isinstance(error, psycopg.ProgrammingError):
        return StoreUnavailable("index", "the index's URL has a parameter that libpq does not know: check --index")
    said = str(error)
    for words, fault, hint in _SAID:
        if any(word in said for word in words):
            return StoreUnavailable("index", hint, fault=fault)
    fault = "server_error" if "FATAL" in said else "unreachable"
    return StoreUnavailable("index", _HINTS[fault], fault=fault)


_UNREADABLE = (
    ArithmeticError, AssertionError, AttributeError, LookupError, RuntimeError, TypeError, ValueError,
    struct.error,
)  # fmt: skip
_NO_ANSWER = "what comes from PostgreSQL makes no sense: something on the way changes it, or its tables are not ours"

_HINTS: dict[Fault, str] = {
    "unreachable": "no PostgreSQL answers there: check --index, the server and the network",
    "timed_out": "PostgreSQL did not answer in time; ask again",
    "server_error": "PostgreSQL answers with an error of its own; ask again",
    "denied": "PostgreSQL does not let us: check the user, ~/.pgpass or PGPASSWORD, and the rights on the tables",
    "cut_off": "the connection to PostgreSQL ended; ask again",
    "disk_full": "PostgreSQL has no room left",
    "wrong_bytes": "PostgreSQL says that its files are damaged",
}

_BY_CODE: dict[str, Fault] = {
    "25006": "denied",
    "42501": "denied",
    "53100": "disk_full",
    "55P03": "timed_out",
    "57014": "timed_out",
    "57P01": "cut_off",
    "57P02": "cut_off",
    "57P03": "unreachable",
    "57P05": "cut_off",
    "25P03": "cut_off",
}

_BY_CLASS: dict[str, Fault] = {
    "08": "cut_off",
    "28": "denied",
    "XX": "server_error",
}

_SAY = {
    "0A000": "this PostgreSQL lacks something we need; is pgvector installed on the server?",
    "25006": "this PostgreSQL only reads: it is a standby, or set to read-only; name the primary in --index",
    "42501": "PostgreSQL does not let us: who may make tables runs `artifact-sidecar index --migrate` (for pgvector a "
    "superuser runs CREATE EXTENSION vector first) and grants us SELECT, INSERT, UPDATE and DELETE on them",
    "42704": "the type `vector` is not found: install pgvector, in a schema of our search path",
    "42P01": "the tables of the index are gone; ask again and they are made anew",
    "42P07": "tables of these names are there already, and are not ours: use a database or schema of its own",
    "53300": "PostgreSQL takes no more connections; ask again later",
    "58P01": "pgvector is not installed on the PostgreSQL server: its package is usually called postgresql-…-pgvector",
    "XX001": _HINTS["wrong_bytes"],
}

# The server's own words, in English: a server that speaks another language is told apart from a silent one, no more.
_SAID: tuple[tuple[tuple[str, ...], Fault, str], ...] = (
    (("password", "authentication", "pg_hba.conf", "permission denied", "certificate"), "denied", _HINTS["denied"]),
    (("role \"",), "denied", "PostgreSQL knows no such user: make it, or change --index"),
    (("database \"",), "server_error", "there is no such database: make it, or change --index"),
    (("starting up", "shutting down", "recovery mode"), "unreachable", "PostgreSQL is starting or stopping; ask again"),
    (("too many", "remaining connection slots"), "server_error", _SAY["53300"]),
)  # fmt: skip
