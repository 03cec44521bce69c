"""The index in SQL as PostgreSQL has it, with pgvector: one transaction, or one question, on one connection."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from sidecar.core.errors import StoreUnavailable
from sidecar.core.index_rows import Filters, IndexRow, Scope, Scored
from sidecar.stores.index_matching import Candidate
from sidecar.stores.index_session import Conversation, Put
from sidecar.stores.index_texts import MICROSECONDS, micros
from sidecar.stores.index_vectors import SCORE_STEPS, require_length
from sidecar.stores.postgres_server import lock_alone, lock_shared

if TYPE_CHECKING:
    import numpy as np
    import psycopg
    from numpy.typing import NDArray

TRIES = 5
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


def channel(scope: Scope) -> str:
    """Where changes of this conversation are announced: a name that says nothing, and that PostgreSQL can take."""
    return f"conv_{hashlib.sha256(chr(0).join(scope).encode()).hexdigest()[:40]}"


class PostgresSession:
    """The port `Session`."""

    def __init__(self, link: psycopg.Connection[tuple[Any, ...]]) -> None:
        self._link = link

    def _run(self, statement: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        cursor = self._link.execute(statement.encode(), values)
        return cursor.fetchall() if cursor.description else []

    def now(self) -> int:
        ((now,),) = self._run("SELECT clock_timestamp()")
        return _micros(now)

    # The conversation

    def find(self, scope: Scope) -> Conversation | None:
        return self._find(scope, "")

    def hold(self, scope: Scope) -> Conversation | None:
        return self._find(scope, "FOR UPDATE")

    def _find(self, scope: Scope, how: str) -> Conversation | None:
        found = self._run(f"SELECT {_STANDING} FROM conv_conversations WHERE {_IS_SCOPE} {how}", scope)
        if not found:
            return None
        number, change, next_block, generation, holder, label, expires = found[0]
        counts = (int(number), int(change), int(next_block), int(generation))
        return Conversation(*counts, *_texts([holder, label]), expires=_micros(expires))

    def make(self, scope: Scope) -> Conversation:
        names = "tenant, project, user_id, conversation_id"
        for _ in range(TRIES):
            held = self.hold(scope)
            if held is not None:
                return held
            self._run(f"INSERT INTO conv_conversations ({names}) VALUES (%s, %s, %s, %s) ON CONFLICT DO NOTHING", scope)
        # Somebody forgot it as often as we made it.
        raise StoreUnavailable("index", "others keep removing this conversation; ask again")

    def settle(self, conversation: Conversation) -> None:
        number, *values, expires = (getattr(conversation, name) for name in Conversation.__slots__)
        names = "change = %s, next_block = %s, generation = %s, holder = %s, label = %s, expires = %s"
        self._run(f"UPDATE conv_conversations SET {names} WHERE id = %s", (*values, _moment(expires), number))

    def announce(self, scope: Scope, change: int) -> None:
        self._run("SELECT pg_notify(%s, %s)", (channel(scope), str(change)))

    def facts(self, scope: Scope) -> dict[str, str]:
        found = self._run(f"SELECT name, value FROM conv_facts WHERE conversation = {_OWN}", scope)
        _texts([text for pair in found for text in pair])
        return dict(found)

    def put_facts(self, number: int, facts: Mapping[str, str]) -> None:
        put = "INSERT INTO conv_facts VALUES (%s, %s, %s) ON CONFLICT (conversation, name) DO UPDATE"
        rows = [(number, name, value) for name, value in facts.items()]
        self._link.cursor().executemany(f"{put} SET value = excluded.value".encode(), rows)

    # Writing rows

    def changes(self, number: int, message_ids: Sequence[str]) -> dict[str, int]:
        query = "SELECT message_id, change FROM conv_messages WHERE conversation = %s AND message_id = ANY(%s)"
        return dict(self._run(query, (number, list(message_ids)))) if message_ids else {}

    def put(self, number: int, puts: Sequence[Put], change: int) -> None:
        values = [
            [
                number,
                *(getattr(put.row, name) for name in _ROW),
                *(_moment(put.ts), change, list(put.row.tags), len(put.words), put.words, _vector(put.vector)),
            ]
            for put in puts
        ]
        self._link.cursor().executemany(_PUT.encode(), values)

    def embed(self, number: int, message_id: str, vector: NDArray[np.float32], change: int) -> None:
        where = "WHERE conversation = %s AND message_id = %s"
        values = (_vector(vector), change, number, message_id)
        self._run(f"UPDATE conv_messages SET embedding = %s::vector, change = %s {where}", values)

    def remove(self, number: int, message_ids: Sequence[str]) -> None:
        if message_ids:
            where = "WHERE conversation = %s AND message_id = ANY(%s)"
            self._run(f"DELETE FROM conv_messages {where}", (number, list(message_ids)))

    def remove_all(self, number: int) -> None:
        self._run("DELETE FROM conv_messages WHERE conversation = %s", (number,))
        self._run("DELETE FROM conv_facts WHERE conversation = %s", (number,))
        self._run("DELETE FROM conv_conversations WHERE id = %s", (number,))

    def scrub(self) -> None:
        """Its own VACUUM does that."""

    # Reading rows

    def row(self, scope: Scope, message_id: str) -> IndexRow | None:
        query = f"SELECT {_COLUMNS} FROM conv_messages m WHERE conversation = {_OWN} AND message_id = %s"
        found = self._run(query, (*scope, message_id))
        return _row(found[0]) if found else None

    def rows(
        self, scope: Scope, filters: Filters, *, after_change: int = 0, limit: int | None = None
    ) -> list[IndexRow]:
        where, values = _passing(scope, filters)
        if after_change:
            where, values = f"{where} AND m.change > %s", [*values, after_change]
        query = f"SELECT {_COLUMNS} FROM conv_messages m WHERE {where} ORDER BY {_NEWEST} LIMIT %s"
        return [_row(one) for one in self._run(query, (*values, limit))]

    def latest_per_turn(self, scope: Scope, filters: Filters) -> list[IndexRow]:
        where, values = _passing(scope, filters, since=">")
        latest = f"SELECT DISTINCT ON (turn_id) id FROM conv_messages m WHERE {where} ORDER BY turn_id, {_NEWEST}"
        query = f"SELECT {_COLUMNS} FROM conv_messages m WHERE id IN ({latest}) ORDER BY {_NEWEST}"
        return [_row(one) for one in self._run(query, values)]

    def by_id(self, numbers: Sequence[int]) -> dict[int, IndexRow]:
        query = f"SELECT {_COLUMNS}, id FROM conv_messages m WHERE id = ANY(%s)"
        return {one[-1]: _row(one) for one in self._run(query, (list(numbers),))} if numbers else {}

    def holding(self, scope: Scope, words: Sequence[str], filters: Filters) -> list[Candidate]:
        where, values = _passing(scope, filters)
        quoted = [f"'{word}'" for word in words]
        query = (
            "SELECT id, ts, change, message_id, words,"
            " ARRAY(SELECT m.found_by @@ one FROM unnest(%s::text[]::tsquery[]) WITH ORDINALITY AS each(one, n)"
            " ORDER BY n)"
            f" FROM conv_messages m WHERE found_by @@ %s::tsquery AND {where}"
        )
        found = self._run(query, (quoted, " | ".join(quoted), *values))
        return [
            Candidate(number, _micros(ts) / MICROSECONDS, *rest, tuple(place for place, hit in enumerate(hits) if hit))
            for number, ts, *rest, hits in found
        ]

    # Vectors

    def require_length(self, vector: NDArray[np.float32]) -> None:
        if self._length() is not None:
            # From now on nobody settles another length before we are done; but somebody may have done so just now.
            lock_shared(self._link)
        else:
            lock_alone(self._link)
        length = self._length()
        if length is not None:
            require_length(vector, length)

    def require_known_length(self, vector: NDArray[np.float32]) -> None:
        length = self._length()
        if length is not None:
            require_length(vector, length)

    def _length(self) -> int | None:
        found = self._run("SELECT vector_dims(embedding) FROM conv_messages WHERE embedding IS NOT NULL LIMIT 1")
        return found[0][0] if found else None

    def nearest(self, scope: Scope, vector: NDArray[np.float32], filters: Filters, *, limit: int) -> list[Scored]:
        where, values = _passing(scope, filters)
        # Of vectors of length one the inner product is the cosine; pgvector answers it with a minus.
        score = f"round((m.embedding <#> %s::vector) * -{SCORE_STEPS}) / {SCORE_STEPS}"
        query = (
            f"SELECT {_COLUMNS}, least(1, greatest(-1, {score})) AS score FROM conv_messages m"
            f" WHERE {where} AND m.embedding IS NOT NULL ORDER BY score DESC, {_NEWEST} LIMIT %s"
        )
        found = self._run(query, (_vector(vector), *values, limit))
        return [Scored(_row(one), one[-1]) for one in found]


def _passing(scope: Scope, filters: Filters, *, since: str = ">=") -> tuple[str, list[Any]]:
    """The condition of rows `m` of this conversation that pass, and its values."""
    conditions: list[str] = [f"m.conversation = {_OWN}"]
    values: list[Any] = [*scope]
    for column, names in (("kind", filters.kinds), ("turn_id", filters.turn_ids)):
        if names:
            conditions.append(f"m.{column} = ANY(%s)")
            values.append(list(names))
    if filters.but_kinds:
        conditions.append("m.kind <> ALL(%s)")
        values.append(list(filters.but_kinds))
    if filters.tags:
        conditions.append("m.tags @> %s::text[]")
        values.append(list(filters.tags))
    for sign, end in ((since, filters.since), ("<=", filters.until)):
        if end is not None:
            conditions.append(f"m.ts {sign} %s")
            values.append(_moment(micros(end)))
    return " AND ".join(conditions), values


def _row(found: Sequence[Any]) -> IndexRow:
    values = dict(zip(_ROW, found, strict=False))
    ts, change, tags, has_embedding = found[len(_ROW) : len(_ROW) + 4]
    _texts([*tags, *(value for name, value in values.items() if name != "ttl_days")])
    values["ttl_days"] = int(values["ttl_days"])
    return IndexRow(
        **values, ts=_micros(ts) / MICROSECONDS, change=int(change), tags=tuple(tags), has_embedding=bool(has_embedding)
    )


def _texts(values: list[Any]) -> list[str]:
    """The values if they are texts; the server says of which type they are, and that may be changed on its way."""
    if not all(isinstance(value, str) for value in values):
        raise TypeError("a value that is no text")
    return values


def _moment(microseconds: int) -> datetime:
    """A datetime, for it is exact where a float of seconds is not."""
    return _EPOCH + microseconds * _MICROSECOND


def _micros(moment: datetime) -> int:
    return (moment - _EPOCH) // _MICROSECOND


def _vector(vector: NDArray[np.float32] | None) -> str | None:
    return None if vector is None else f"[{','.join(map(str, vector.tolist()))}]"


_ROW = (
    "message_id", "kind", "turn_id", "role", "origin", "ttl_days", "user_type", "bundle_id", "hosted_uri", "key", "rn",
    "text",
)  # fmt: skip
_STORED = ("conversation", *_ROW, "ts", "change", "tags", "words", "found_by", "embedding")
_IS_SCOPE = "(tenant, project, user_id, conversation_id) = (%s, %s, %s, %s)"
_OWN = f"(SELECT id FROM conv_conversations WHERE {_IS_SCOPE})"
_STANDING = "id, change, next_block, generation, holder, label, expires"
_COLUMNS = f"{', '.join(f'm.{name}' for name in _ROW)}, m.ts, m.change, m.tags, m.embedding IS NOT NULL"
_NEWEST = "m.ts DESC, m.change DESC, m.message_id DESC"
_PUT = (
    f"INSERT INTO conv_messages ({', '.join(_STORED)})"
    f" VALUES ({', '.join(['%s'] * (len(_STORED) - 2))}, array_to_tsvector(%s::text[]), %s::vector)"
    " ON CONFLICT (conversation, message_id) DO UPDATE SET"
    f" {', '.join(f'{name} = excluded.{name}' for name in _STORED[2:-1])},"
    " embedding = coalesce(excluded.embedding, conv_messages.embedding)"
)
