"""Is the index as quick as its engine? Save, recent, search by vector and by words, against the same written by hand.

By hand means one statement on one connection that is always open, with apsw and numpy or with psycopg, over the same
rows: no filters, no ranking that is alike on both engines, nobody who could have changed anything meanwhile.
"""

from __future__ import annotations

import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from itertools import count
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sidecar.core.index_rows import Commit, Filters, IndexRow, Scope, Written
from sidecar.core.ranking import words_of
from sidecar.ports import Index
from sidecar.stores.indexes import open_index
from tests.bench.figures import AtLeast, Figure, Size, against, in_turns, seconds
from tests.bench.places import folder
from tests.postgres import NotInstalled, Postgres

ROWS, SMALL = 100_000, 1_000  # in one large conversation, and in a small one beside it
NUMBERS = 384
CHUNK = 2_000
TURN_ROWS = 7  # what the end of a turn saves
ASKED, LIMIT, RECENT = 20, 10, 20
VOCABULARY = [f"word{number}" for number in range(5_000)]
LARGE_SCOPE, SMALL_SCOPE = (Scope("bench", "bench", "user", name) for name in ("large", "small"))


def measure(size: Size) -> Iterator[Figure]:
    rows = size.of(ROWS, least=100)
    with folder() as place:
        yield from _engine("SQLite", str(place / "index.db"), rows, size.rounds, _BySqlite)
    try:
        server = Postgres()
    except NotInstalled as missing:
        print(f"not measured: {missing}", file=sys.stderr)
        return
    try:
        yield from _engine("PostgreSQL", server.url(server.database()), rows, size.rounds, _ByPostgres)
    finally:
        server.stop()


def _engine(name: str, location: str, rows: int, rounds: int, by_hand: Callable[[str], _ByHand]) -> Iterator[Figure]:
    made = np.random.default_rng(5)
    vectors = made.standard_normal((rows, NUMBERS), dtype=np.float32)
    index = open_index(location)
    index.open()
    try:
        _load(index, LARGE_SCOPE, vectors)
        _load(index, SMALL_SCOPE, vectors[: min(SMALL, rows)])
        rival = by_hand(location)
        questions = made.standard_normal((ASKED, NUMBERS), dtype=np.float32)
        yield _recall(name, index, vectors, questions)
        yield from _figures(name, index, rival, questions, rows=rows, rounds=rounds)
        rival.close()
    finally:
        index.close()


def _figures(
    name: str, index: Index, rival: _ByHand, questions: NDArray[np.float32], *, rows: int, rounds: int
) -> Iterator[Figure]:
    small = min(SMALL, rows)
    texts = [[VOCABULARY[at], VOCABULARY[at + 1]] for at in range(ASKED)]
    turns = count()
    asked = [list(map(float, one)) for one in questions]
    contests: tuple[tuple[str, Callable[[int], object], Callable[[int], object]], ...] = (
        (
            f"save a turn of {TURN_ROWS} rows into {rows:,}",
            lambda _: index.commit(LARGE_SCOPE, Commit(rows=_turn(next(turns)))),
            lambda _: rival.save(_turn(next(turns))),
        ),
        (
            f"the newest {RECENT} of {rows:,} rows",
            lambda _: index.rows(LARGE_SCOPE, Filters(), limit=RECENT),
            lambda _: rival.recent(LARGE_SCOPE),
        ),
        (
            f"the nearest {LIMIT} of {rows:,} vectors",
            lambda at: index.nearest(LARGE_SCOPE, asked[at], Filters(), limit=LIMIT),
            lambda at: rival.nearest(LARGE_SCOPE, questions[at]),
        ),
        (
            f"the nearest {LIMIT} of {small:,} among {rows:,}",
            lambda at: index.nearest(SMALL_SCOPE, asked[at], Filters(), limit=LIMIT),
            lambda at: rival.nearest(SMALL_SCOPE, questions[at]),
        ),
        (
            f"{LIMIT} of {rows:,} rows by two words",
            lambda at: index.matching(LARGE_SCOPE, texts[at], Filters(), limit=LIMIT),
            lambda at: rival.matching(LARGE_SCOPE, texts[at]),
        ),
    )
    for what, ours, theirs in contests:
        found = in_turns(rounds, _timed(ours), _timed(theirs))
        yield Figure(f"{name}: {what}", rival.name, seconds, against(found, ours=0, rival=1))


def _timed(work: Callable[[int], object]) -> Callable[[], float]:
    """Seconds of one question, of twenty different ones."""

    def run() -> float:
        began = perf_counter()
        for at in range(ASKED):
            work(at)
        return (perf_counter() - began) / ASKED

    return run


def _recall(name: str, index: Index, vectors: NDArray[np.float32], questions: NDArray[np.float32]) -> Figure:
    """How many of the truly nearest are found: by numbers of twice the length over every vector."""
    exact = vectors.astype(np.float64)
    exact /= np.linalg.norm(exact, axis=1, keepdims=True)
    shares: list[float] = []
    for question in questions:
        best = np.argsort(-(exact @ question.astype(np.float64)), kind="stable")[:LIMIT]
        hits = index.nearest(LARGE_SCOPE, list(map(float, question)), Filters(), limit=LIMIT)
        wanted = {_row(int(at)).message_id for at in best}
        shares.append(len(wanted & {hit.row.message_id for hit in hits}) / len(wanted))
    share = sum(shares) / len(shares)
    return Figure(f"{name}: recall of the nearest {LIMIT}", "brute force", _share, [(share, 1.0)], AtLeast(1.0))


def _share(value: float) -> str:
    return f"{value:.1%}"


def _load(index: Index, scope: Scope, vectors: NDArray[np.float32]) -> None:
    for first in range(0, len(vectors), CHUNK):
        chunk = vectors[first : first + CHUNK].tolist()
        index.commit(scope, Commit(rows=[Written(_row(first + at), one) for at, one in enumerate(chunk)]))


def _row(at: int) -> IndexRow:
    text = " ".join(VOCABULARY[(at * 31 + step * step) % len(VOCABULARY)] for step in range(40))
    turn = f"turn_{at // TURN_ROWS}"
    return IndexRow(
        message_id=f"m{at:07d}",
        kind="chat:user",
        turn_id=turn,
        ts=1_700_000_000.0 + at,
        text=text,
        tags=("artifact:chat:user", f"turn:{turn}", "chat:user"),
    )


def _turn(number: int) -> list[Written]:
    first = 10_000_000 + number * TURN_ROWS
    return [Written(_row(first + at), [1.0] * NUMBERS) for at in range(TURN_ROWS)]


class _ByHand(ABC):
    """The same questions in the engine's own words."""

    name: str

    @abstractmethod
    def save(self, turn: Sequence[Written]) -> object: ...

    @abstractmethod
    def recent(self, scope: Scope) -> object: ...

    @abstractmethod
    def nearest(self, scope: Scope, question: NDArray[np.float32]) -> object: ...

    @abstractmethod
    def matching(self, scope: Scope, words: Sequence[str]) -> object: ...

    @abstractmethod
    def close(self) -> None: ...


class _BySqlite(_ByHand):
    name = "apsw and numpy by hand"

    def __init__(self, location: str) -> None:
        import apsw

        self._link = apsw.Connection(str(Path(location)))
        run = self._link.execute
        run("PRAGMA journal_mode=WAL").fetchall()
        run("PRAGMA synchronous=FULL").fetchall()
        self._numbers: dict[str, int] = dict(run("SELECT conversation_id, id FROM conv_conversations").fetchall())
        run("CREATE VIRTUAL TABLE by_hand_words USING fts5(text, conversation UNINDEXED)")
        run("INSERT INTO by_hand_words(rowid, text, conversation) SELECT id, text, conversation FROM conv_messages")
        run("CREATE TABLE by_hand(id INTEGER PRIMARY KEY, message_id TEXT, ts REAL, text TEXT, vector BLOB)")

    def save(self, turn: Sequence[Written]) -> object:
        with self._link:
            for row, embedding, _ in ((one.row, one.embedding, one.expected) for one in turn):
                vector = np.asarray(embedding, dtype=np.float32).tobytes()
                values = (row.message_id, row.ts, row.text, vector)
                self._link.execute("INSERT INTO by_hand(message_id, ts, text, vector) VALUES (?, ?, ?, ?)", values)
                last = self._link.last_insert_rowid() + 10**9
                self._link.execute("INSERT INTO by_hand_words(rowid, text) VALUES (?, ?)", (last, row.text))
        return None

    def recent(self, scope: Scope) -> object:
        query = "SELECT * FROM conv_messages WHERE conversation = ? ORDER BY ts DESC LIMIT ?"
        return self._link.execute(query, (self._numbers[scope.conversation_id], RECENT)).fetchall()

    def nearest(self, scope: Scope, question: NDArray[np.float32]) -> object:
        query = "SELECT id, vector FROM conv_vectors JOIN conv_messages USING (id) WHERE conversation = ?"
        found = self._link.execute(query, (self._numbers[scope.conversation_id],)).fetchall()
        matrix = np.frombuffer(b"".join(vector for _, vector in found), dtype=np.float32).reshape(-1, NUMBERS)
        scores = matrix @ question
        best = np.argpartition(-scores, min(LIMIT, len(scores) - 1))[:LIMIT]
        ids = [found[int(at)][0] for at in best[np.argsort(-scores[best])]]
        listed = ",".join("?" * len(ids))
        return self._link.execute(f"SELECT * FROM conv_messages WHERE id IN ({listed})", ids).fetchall()

    def matching(self, scope: Scope, words: Sequence[str]) -> object:
        query = (
            "SELECT m.* FROM by_hand_words w JOIN conv_messages m ON m.id = w.rowid "
            "WHERE by_hand_words MATCH ? AND w.conversation = ? ORDER BY rank LIMIT ?"
        )
        asked = " ".join(f'"{word}"' for word in words)
        return self._link.execute(query, (asked, self._numbers[scope.conversation_id], LIMIT)).fetchall()

    def close(self) -> None:
        self._link.close()


class _ByPostgres(_ByHand):
    name = "psycopg by hand"

    def __init__(self, location: str) -> None:
        import psycopg

        self._link = psycopg.connect(location, autocommit=True)
        self._numbers: dict[str, int] = dict(self._run("SELECT conversation_id, id FROM conv_conversations"))
        self._run("CREATE TABLE by_hand (LIKE conv_messages INCLUDING ALL)")
        self._run("ANALYZE conv_messages")

    def _run(self, statement: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        cursor = self._link.execute(statement.encode(), values)
        return cursor.fetchall() if cursor.description else []

    def save(self, turn: Sequence[Written]) -> object:
        columns = (
            "conversation, message_id, kind, turn_id, role, origin, ts, change, ttl_days, user_type, bundle_id, "
            "hosted_uri, key, rn, tags, words, text, found_by, embedding"
        )
        places = (
            "%s, %s, %s, %s, %s, %s, to_timestamp(%s), 1, %s, %s, %s, %s, %s, %s, %s, %s, %s, array_to_tsvector(%s), %s"
        )
        values = [
            (
                1, row.message_id, row.kind, row.turn_id, row.role, row.origin, row.ts, row.ttl_days, row.user_type,
                row.bundle_id, row.hosted_uri, row.key, row.rn, list(row.tags), len(words_of(row.text)), row.text,
                words_of(row.text), str(list(one.embedding or ())),
            )
            for one in turn
            for row in (one.row,)
        ]  # fmt: skip
        with self._link.transaction():
            self._link.cursor().executemany(f"INSERT INTO by_hand ({columns}) VALUES ({places})".encode(), values)
        return None

    def recent(self, scope: Scope) -> object:
        query = "SELECT * FROM conv_messages WHERE conversation = %s ORDER BY ts DESC LIMIT %s"
        return self._run(query, (self._numbers[scope.conversation_id], RECENT))

    def nearest(self, scope: Scope, question: NDArray[np.float32]) -> object:
        query = "SELECT * FROM conv_messages WHERE conversation = %s ORDER BY embedding <=> %s::vector LIMIT %s"
        return self._run(query, (self._numbers[scope.conversation_id], str(question.tolist()), LIMIT))

    def matching(self, scope: Scope, words: Sequence[str]) -> object:
        query = (
            "SELECT *, ts_rank(found_by, asked) AS rank FROM conv_messages, to_tsquery('simple', %s) AS asked "
            "WHERE conversation = %s AND found_by @@ asked ORDER BY rank DESC LIMIT %s"
        )
        return self._run(query, (" & ".join(words), self._numbers[scope.conversation_id], LIMIT))

    def close(self) -> None:
        self._link.close()
