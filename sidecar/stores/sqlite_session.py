"""The index in SQL as SQLite has it: one transaction on one connection."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any

from sidecar.core.index_rows import Filters, IndexRow, Scope, Scored
from sidecar.stores.index_matching import Candidate
from sidecar.stores.index_session import Conversation, Put
from sidecar.stores.index_texts import MICROSECONDS, micros
from sidecar.stores.index_vectors import best, require_length, similarities

if TYPE_CHECKING:
    import apsw
    import numpy as np
    from numpy.typing import NDArray

VECTORS_AT_ONCE = 4096  # that are in memory together while they are compared


class SqliteSession:
    """The port `Session`."""

    def __init__(self, connection: apsw.Connection) -> None:
        self._run: Callable[..., Any] = connection.execute
        self._run_many: Callable[..., Any] = connection.executemany

    def now(self) -> int:
        return time.time_ns() // 1000

    # The conversation

    def find(self, scope: Scope) -> Conversation | None:
        found = self._run(f"SELECT {_STANDING} FROM conv_conversations WHERE {_IS_SCOPE}", scope).fetchall()
        return Conversation(*found[0]) if found else None

    hold = find  # who writes is alone with the whole file

    def make(self, scope: Scope) -> Conversation:
        names = "tenant, project, user_id, conversation_id"
        self._run(f"INSERT INTO conv_conversations ({names}) VALUES (?, ?, ?, ?) ON CONFLICT DO NOTHING", scope)
        made = self.find(scope)
        assert made is not None
        return made

    def settle(self, conversation: Conversation) -> None:
        number, *values = (getattr(conversation, name) for name in Conversation.__slots__)
        names = "change = ?, next_block = ?, generation = ?, holder = ?, label = ?, expires = ?"
        self._run(f"UPDATE conv_conversations SET {names} WHERE id = ?", (*values, number))

    def announce(self, scope: Scope, change: int) -> None:
        """Whoever waits looks at the file itself."""

    def facts(self, scope: Scope) -> dict[str, str]:
        return dict(self._run(f"SELECT name, value FROM conv_facts WHERE conversation = {_OWN}", scope).fetchall())

    def put_facts(self, number: int, facts: Mapping[str, str]) -> None:
        rows = [(number, name, value) for name, value in facts.items()]
        self._run_many("INSERT OR REPLACE INTO conv_facts VALUES (?, ?, ?)", rows)

    # Writing rows

    def changes(self, number: int, message_ids: Sequence[str]) -> dict[str, int]:
        asked = (number, json.dumps(message_ids))
        query = f"SELECT message_id, change FROM conv_messages WHERE conversation = ? AND message_id IN {_LISTED}"
        return dict(self._run(query, asked).fetchall())

    def put(self, number: int, puts: Sequence[Put], change: int) -> None:
        for put in puts:
            self._put(number, put, change)

    def _put(self, number: int, put: Put, change: int) -> None:
        row = put.row
        values = [number, *(getattr(row, name) for name in _ROW), put.ts, change, _tags(row.tags), len(put.words)]
        (identity,) = self._run(_PUT, values).fetchall()[0]
        self._take_out("conv_words", "rowid", [identity])
        self._take_out("conv_tags", "id", [identity])
        self._run("INSERT INTO conv_words (rowid, words) VALUES (?, ?)", (identity, f"#{number} {' '.join(put.words)}"))
        self._run_many("INSERT INTO conv_tags VALUES (?, ?, ?)", [(number, tag, identity) for tag in row.tags])
        if put.vector is not None:
            self._run("INSERT OR REPLACE INTO conv_vectors VALUES (?, ?)", (identity, put.vector.tobytes()))

    def embed(self, number: int, message_id: str, vector: NDArray[np.float32], change: int) -> None:
        where = "WHERE conversation = ? AND message_id = ? RETURNING id"
        ((identity,),) = self._run(
            f"UPDATE conv_messages SET change = ? {where}", (change, number, message_id)
        ).fetchall()
        self._run("INSERT OR REPLACE INTO conv_vectors VALUES (?, ?)", (identity, vector.tobytes()))

    def remove(self, number: int, message_ids: Sequence[str]) -> None:
        where = f"WHERE conversation = ? AND message_id IN {_LISTED}"
        found = self._run(f"DELETE FROM conv_messages {where} RETURNING id", (number, json.dumps(message_ids)))
        identities = [identity for (identity,) in found.fetchall()]
        for table, column in _BESIDE:
            self._take_out(table, column, identities)

    def remove_all(self, number: int) -> None:
        found = self._run("DELETE FROM conv_messages WHERE conversation = ? RETURNING id", (number,)).fetchall()
        for table, column in _BESIDE:
            self._take_out(table, column, [identity for (identity,) in found])
        self._run("DELETE FROM conv_facts WHERE conversation = ?", (number,))
        self._run("DELETE FROM conv_conversations WHERE id = ?", (number,))

    def scrub(self) -> None:
        """Words that are taken out are only crossed out until their part of the word list is written anew."""
        self._run("INSERT INTO conv_words (conv_words) VALUES ('optimize')")

    def _take_out(self, table: str, column: str, identities: Iterable[int]) -> None:
        self._run_many(f"DELETE FROM {table} WHERE {column} = ?", [(identity,) for identity in identities])

    # Reading rows

    def row(self, scope: Scope, message_id: str) -> IndexRow | None:
        query = f"SELECT {_COLUMNS} FROM conv_messages m WHERE conversation = {_OWN} AND message_id = ?"
        found = self._run(query, (*scope, message_id)).fetchall()
        return _row(found[0]) if found else None

    def rows(
        self, scope: Scope, filters: Filters, *, after_change: int = 0, limit: int | None = None
    ) -> list[IndexRow]:
        where, values = _passing(scope, filters)
        if after_change:
            where, values = f"{where} AND m.change > ?", [*values, after_change]
        query = f"SELECT {_COLUMNS} FROM conv_messages m WHERE {where} ORDER BY {_NEWEST} LIMIT ?"
        found = self._run(query, (*values, -1 if limit is None else limit)).fetchall()
        return [_row(one) for one in found]

    def latest_per_turn(self, scope: Scope, filters: Filters) -> list[IndexRow]:
        where, values = _passing(scope, filters, since=">")
        ranked = f"SELECT id, row_number() OVER (PARTITION BY turn_id ORDER BY {_NEWEST}) AS place FROM conv_messages m"
        latest = f"SELECT id FROM ({ranked} WHERE {where}) WHERE place = 1"
        query = f"SELECT {_COLUMNS} FROM conv_messages m WHERE id IN ({latest}) ORDER BY {_NEWEST}"
        return [_row(one) for one in self._run(query, values).fetchall()]

    def by_id(self, numbers: Sequence[int]) -> dict[int, IndexRow]:
        query = f"SELECT {_COLUMNS}, id FROM conv_messages m WHERE id IN {_LISTED}"
        return {one[-1]: _row(one) for one in self._run(query, (json.dumps(numbers),)).fetchall()}

    def holding(self, scope: Scope, words: Sequence[str], filters: Filters) -> list[Candidate]:
        conversation = self.find(scope)
        if conversation is None:
            return []
        where, values = _passing(scope, filters)
        query = (
            "SELECT m.id, m.ts, m.change, m.message_id, m.words FROM conv_words JOIN conv_messages m"
            f" ON m.id = conv_words.rowid WHERE conv_words MATCH ? AND {where}"
        )
        facts: dict[int, tuple[Any, ...]] = {}
        hits: dict[int, list[int]] = {}
        for place, word in enumerate(words):
            wanted = f'"#{conversation.number}" AND "{word}"'
            for identity, *rest in self._run(query, (wanted, *values)).fetchall():
                facts[identity] = tuple(rest)
                hits.setdefault(identity, []).append(place)
        return [Candidate(identity, *facts[identity], tuple(places)) for identity, places in hits.items()]

    # Vectors

    def require_length(self, vector: NDArray[np.float32]) -> None:
        for (size,) in self._run("SELECT length(vector) FROM conv_vectors LIMIT 1").fetchall():
            require_length(vector, size // vector.itemsize)

    require_known_length = require_length

    def nearest(self, scope: Scope, vector: NDArray[np.float32], filters: Filters, *, limit: int) -> list[Scored]:
        where, values = _passing(scope, filters)
        query = f"SELECT m.id, v.vector FROM conv_messages m JOIN conv_vectors v ON v.id = m.id WHERE {where}"
        cursor = self._run(f"{query} ORDER BY {_NEWEST}", values)
        identities: list[int] = []
        scores: list[float] = []
        while some := list(islice(cursor, VECTORS_AT_ONCE)):
            identities += [identity for identity, _ in some]
            scores += similarities([blob for _, blob in some], vector).tolist()
        places = best(scores, limit)
        rows = self.by_id([identities[place] for place in places])
        return [Scored(rows[identities[place]], scores[place]) for place in places]


def _passing(scope: Scope, filters: Filters, *, since: str = ">=") -> tuple[str, list[Any]]:
    """The condition of rows `m` of this conversation that pass, and its values."""
    conditions: list[str] = [f"m.conversation = {_OWN}"]
    values: list[Any] = [*scope]
    for column, names in (("kind", filters.kinds), ("turn_id", filters.turn_ids)):
        if len(names) == 1:
            conditions.append(f"m.{column} = ?")  # for a list SQLite would not trust the index as it may here
            values += names
        elif names:
            conditions.append(f"m.{column} IN {_LISTED}")
            values.append(json.dumps(names))
    if filters.but_kinds:
        conditions.append(f"m.kind NOT IN {_LISTED}")
        values.append(json.dumps(filters.but_kinds))
    for tag in filters.tags:
        conditions.append(
            "EXISTS (SELECT 1 FROM conv_tags t WHERE (t.conversation, t.tag, t.id) = (m.conversation, ?, m.id))"
        )
        values.append(tag)
    for sign, end in ((since, filters.since), ("<=", filters.until)):
        if end is not None:
            conditions.append(f"m.ts {sign} ?")
            values.append(micros(end))
    return " AND ".join(conditions), values


def _row(found: Sequence[Any]) -> IndexRow:
    values = dict(zip(_ROW, found, strict=False))
    ts, change, tags, has_embedding = found[len(_ROW) : len(_ROW) + 4]
    return IndexRow(
        **values,
        ts=ts / MICROSECONDS,
        change=change,
        tags=tuple(json.loads(tags)),
        has_embedding=bool(has_embedding),
    )


def _tags(tags: tuple[str, ...]) -> str:
    return json.dumps(tags, ensure_ascii=False)


_ROW = (
    "message_id", "kind", "turn_id", "role", "origin", "ttl_days", "user_type", "bundle_id", "hosted_uri", "key", "rn",
    "text",
)  # fmt: skip
_STORED = ("conversation", *_ROW, "ts", "change", "tags", "words")
_IS_SCOPE = "(tenant, project, user_id, conversation_id) = (?, ?, ?, ?)"
_OWN = f"(SELECT id FROM conv_conversations WHERE {_IS_SCOPE})"
_STANDING = "id, change, next_block, generation, holder, label, expires"
_LISTED = "(SELECT value FROM json_each(?))"
_COLUMNS = (
    f"{', '.join(f'm.{name}' for name in _ROW)}, m.ts, m.change, m.tags,"
    " EXISTS (SELECT 1 FROM conv_vectors v WHERE v.id = m.id)"
)
_NEWEST = "m.ts DESC, m.change DESC, m.message_id DESC"
_PUT = (
    f"INSERT INTO conv_messages ({', '.join(_STORED)}) VALUES ({', '.join('?' * len(_STORED))})"
    " ON CONFLICT (conversation, message_id) DO UPDATE SET"
    f" {', '.join(f'{name} = excluded.{name}' for name in _STORED[2:])} RETURNING id"
)
_BESIDE = (("conv_words", "rowid"), ("conv_tags", "id"), ("conv_vectors", "id"))
