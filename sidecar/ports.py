"""What the workspace asks of the world outside. Every method blocks unless it says otherwise; call it off the loop."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import BinaryIO, Literal, NamedTuple, Protocol

from sidecar.core.index_rows import Commit, Fence, Filters, IndexRow, Scope, Scored, Standing
from sidecar.core.inventory import FileFact, StatKey, Survey


class Record(NamedTuple):
    """One durable change. `seq` is its revision; `kind` says how to read it; `head` and `body` are JSON bytes."""

    seq: int
    kind: str
    head: bytes
    body: bytes


class Joined(NamedTuple):
    """Records of one kind that follow one another: their numbers, and their heads with a comma between two."""

    seqs: Sequence[int]
    heads: bytes


class Journal(Protocol):
    """The truth. Appends are durable in order, or not there at all (spec section 10)."""

    def load(self, *, joined: str = "") -> Iterator[Record | Joined]:
        """Every record in order of `seq`, each checked against its stored hash. Used once, at start.

        Those of the kind `joined` may come as runs, which is faster where their bodies are not wanted.
        """
        ...

    def append(self, records: Sequence[Record], done: Callable[[Exception | None], None]) -> None:
        """Queue records as one all-or-nothing group. Does not block.

        `done` is called from the writer's thread once the group is durable (None) or refused (the exception).
        Groups are committed in the order of the calls; when one is refused, so are all groups queued behind it.
        """
        ...

    def bodies(self, seqs: Sequence[int]) -> Iterator[bytes]:
        """The bodies of these records, in this order, each read when it is about to be asked for."""
        ...

    def bodies_now(self, seqs: Sequence[int]) -> list[bytes] | None:
        """The same without ever waiting: None while a commit is under way, or where they are many or long."""
        ...

    def close(self) -> None:
        """Commit what is queued and let go of the file."""
        ...


class Intake(NamedTuple):
    """What came of reading one changed file: a fact, or why there is none yet."""

    outcome: Literal["complete", "busy", "gone", "unsafe"]
    fact: FileFact | None = None


class Blobs(Protocol):
    """Kept bytes by content. What comes out has the hash it was asked for."""

    def writer(self) -> BlobWriter: ...

    def has(self, sha256: str) -> bool: ...

    def open(self, sha256: str) -> BinaryIO:
        """Raises NotFound when these bytes are not kept. The reader checks the hash, and evicts what is damaged."""
        ...

    def total_bytes(self) -> int:
        """How much is kept."""
        ...

    def sizes(self) -> dict[str, int]:
        """Every kept hash with its size."""
        ...

    def evict(self, sha256: str) -> int:
        """Give these bytes up; answers how many that were."""
        ...

    def flush(self) -> None:
        """Bring everything kept since the last flush to the disk. Raises OSError."""
        ...


class BlobWriter(Protocol):
    """Receives bytes once and keeps them under their hash, or forgets them."""

    def clone(self, fd: int) -> bool:
        """Before the first `write`: share the bytes of an open file where the disk can. `write` then only hashes."""
        ...

    def write(self, chunk: bytes) -> None: ...

    def keep(self) -> str:
        """Put the bytes aside under their sha256, which is the answer. A second copy of known bytes costs nothing.

        Where there is no room the hash is answered all the same, and `kept` stays False.
        """
        ...

    kept: bool

    def discard(self) -> None: ...


class Abilities(NamedTuple):
    """What a store was found to do when it was probed. Correctness rests on none of it but the first two."""

    reads_back: bool
    ranges: bool
    atomic_create: bool
    verifies_sha256: bool
    presigns: bool
    cas: Literal["quoted", "unquoted", "none"] = "none"


class Stored(NamedTuple):
    """What stands under a key."""

    size: int
    sha256: str | None = None


class Store(Protocol):
    """Hosted files by key: a folder, or S3. Keys are written once, under names that nothing else ever has.

    Everything blocks; call it off the loop. Safe to call from several threads. Raises StoreUnavailable, whose `fault`
    says what was wrong, NotFound where nothing stands under a key, and ValueError for a key outside the grammar.
    """

    kind: Literal["folder", "s3"]
    puts_at_once: int  # more of them would take no less time

    def uri(self, key: str) -> str:
        """`s3://bucket/prefix/<key>` or `file:///folder/<key>`."""
        ...

    def key_of(self, uri: str) -> str | None:
        """The key that a uri of this very store names; None for any other scheme, bucket, prefix or folder."""
        ...

    def put(self, key: str, body: BinaryIO, *, size: int, sha256: str, mime: str) -> None:
        """Put bytes under a new key. Putting the same bytes again changes nothing.

        Raises ValueError when the body has not this size and hash; then nothing stands under the key because of it.
        """
        ...

    def copy(self, source: str, key: str, *, size: int, sha256: str, mime: str) -> bool:
        """Put what stands under another key under this one without sending bytes; False when the store cannot."""
        ...

    def get(self, key: str, *, start: int = 0) -> Iterator[bytes]:
        """The bytes in chunks. Raises StoreUnavailable with `cut_off` when they end early."""
        ...

    def head(self, key: str) -> Stored | None: ...

    def modified(self, key: str) -> float | None:
        """When these bytes were put, in seconds since the epoch by the store's own clock; None where nothing stands."""
        ...

    def list(self, prefix: str, *, after: str = "", limit: int = 1000) -> list[str]: ...

    def delete(self, keys: Sequence[str]) -> None: ...

    def presign(self, key: str, *, seconds: int, filename: str, mime: str) -> str | None:
        """A URL that gives the bytes as a download of this name and type, or None when the store has no such thing."""
        ...

    def probe(self) -> Abilities: ...

    def close(self) -> None: ...


class Index(Protocol):
    """Rows of conversations, found by tag, time, text and vector: a SQLite file, or PostgreSQL with pgvector.

    Everything blocks; call it off the loop. Safe to call from several threads and beside other daemons on the same
    index: each method is one transaction. Raises StoreUnavailable about `index` when the engine does not answer, and
    then nothing was changed. Vectors are of one length in an index, the first one's; any other is WrongDimension.
    """

    kind: Literal["sqlite", "postgresql"]

    def open(self) -> None:
        """Make or migrate the schema. Raises StoreUnavailable, also when a newer version made it."""
        ...

    def standing(self, scope: Scope) -> Standing:
        """How a conversation stands; one that nobody knows stands at zero."""
        ...

    def claim(self, scope: Scope, holder: str, label: str, *, seconds: float) -> Standing:
        """Take the lease, or go on holding it, for so long by the engine's own clock.

        It is taken when it is free, expired, or held by this very holder. The answer says who holds it now; a new
        holder raises `generation`.
        """
        ...

    def release(self, scope: Scope, holder: str) -> None:
        """Give the lease up, if it is this holder's."""
        ...

    def commit(self, scope: Scope, commit: Commit, *, fence: Fence | None = None) -> int:
        """One change, all of it or nothing; answers its number. Raises LeaseLost, RowChanged and WrongDimension."""
        ...

    def react(self, scope: Scope, row: IndexRow, *, alone: bool) -> tuple[int, list[IndexRow]]:
        """Put a reaction. With `alone` the rows of its turn, kind and origin go: the answer's second part.

        The first part is the number of the change. Reactions of one conversation come one after the other.
        """
        ...

    def embed(self, scope: Scope, message_id: str, embedding: Sequence[float]) -> bool:
        """Give a row its vector; False when there is no such row."""
        ...

    def facts(self, scope: Scope) -> dict[str, str]:
        """The small texts kept with the conversation."""
        ...

    def rows(
        self, scope: Scope, filters: Filters, *, after_change: int = 0, limit: int | None = None
    ) -> list[IndexRow]:
        """Rows that pass, newest first (`ts`, then `change`, then `message_id`, each descending)."""
        ...

    def row(self, scope: Scope, message_id: str) -> IndexRow | None: ...

    def latest_reactions(
        self, scope: Scope, *, turn_ids: Sequence[str] = (), since: float | None = None
    ) -> list[IndexRow]:
        """The latest row of kind `turn.log.reaction` per turn: by `ts`, ties by arrival. Newest first.

        `since` is exclusive: what a reader who knows this moment has not seen.
        """
        ...

    def nearest(self, scope: Scope, embedding: Sequence[float], filters: Filters, *, limit: int) -> list[Scored]:
        """The rows whose vectors are nearest, best first; the score is the cosine similarity, -1 to 1. Exact."""
        ...

    def matching(self, scope: Scope, words: Sequence[str], filters: Filters, *, limit: int) -> list[Scored]:
        """The rows whose text holds the words (see `core.ranking.words_of`): all of them, else any; best first."""
        ...

    def forget(self, scope: Scope, *, turn_id: str | None = None) -> list[str]:
        """Remove the rows of a turn, or everything of the conversation, its standing included; answers their keys."""
        ...

    def changed(self, scope: Scope, known: int, *, seconds: float) -> bool:
        """Wait at most so long until the conversation has changed beyond this number; answers whether it has.

        At most one thread waits at a time; `close` ends the waiting.
        """
        ...

    def close(self) -> None: ...


class Placed(Protocol):
    """A file that stands at its name for now. End it with `keep` or `take_back`, once."""

    key: StatKey

    def keep(self) -> None: ...

    def take_back(self) -> bool:
        """What stood there before stands there again. False when a program changed it meanwhile: that stays."""
        ...


class OutDir(Protocol):
    """OUT_DIR on a disk. Opens stay beneath it, links are never followed, only regular files are opened."""

    root: str

    def survey(self, scope: str = "") -> Survey:
        """One look at everything below `scope`. Entries that vanish meanwhile are simply not there."""
        ...

    def key(self, path: str) -> StatKey | None:
        """The key of a regular file, or None when nothing is there. Raises UnsafePath for anything else."""
        ...

    def take_in(self, path: str, blobs: Blobs | None) -> Intake:
        """Read a complete file: hash it, tell its mime and, with `blobs`, keep its bytes."""
        ...

    def take_in_all(self, paths: Iterable[str], blobs: Blobs | None) -> Iterator[Intake]:
        """The same for one file after the other, each read when it is asked for."""
        ...

    def open(self, path: str) -> BinaryIO:
        """Open for reading. Raises NotFound, or UnsafePath for links, FIFOs, devices, sockets and folders."""
        ...

    def bytes_of(self, path: str, key: StatKey) -> bytes | None:
        """All that one state of a file holds; None when it is in another by now, or is no such file any more."""
        ...

    def bytes_now(self, path: str, key: StatKey) -> bytes | None:
        """The same without ever waiting for a disk: None where that would be needed. For a short file, on the loop."""
        ...

    def write_whole(self, path: str, chunks: Iterable[bytes], *, sha256: str | None = None) -> StatKey:
        """Write under a temporary name, sync, then rename. With `sha256`, bytes of another hash change nothing.

        Raises UnsafePath, or ValueError when the hash differs.
        """
        ...

    def put_back(self, path: str, chunks: Iterable[bytes], *, sha256: str | None, over: StatKey | None) -> StatKey:
        """Like `write_whole`, but only over the file with this key, or with None where nothing stands.

        Raises FileExistsError when something else stands there by now.
        """
        ...

    def place(self, path: str, chunks: Iterable[bytes], *, over: StatKey | None) -> Placed:
        """Like `put_back`, and it can be taken back: the former file stays aside until `keep` or `take_back`."""
        ...

    def take_away(self, path: str, key: StatKey) -> bool:
        """Remove that very file. False when it is another by now, or somebody writes to it: then it stays."""
        ...
