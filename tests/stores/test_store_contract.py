"""Every store keeps the port's promise: a folder, and a real S3 server over http and over https."""

from __future__ import annotations

import hashlib
import io
import os
import uuid
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from sidecar.core.errors import NotFound
from sidecar.ports import Store
from sidecar.stores.folder_store import FolderStore
from sidecar.stores.objects import open_store
from sidecar.stores.s3_sending import PART_BYTES
from sidecar.stores.s3_store import S3Store
from tests.radosgw import Radosgw

MIB = 1024 * 1024
TEXT = "text/plain; charset=utf-8"
NAMES = (
    "cb/tenants/a/projects/b/attachments/registered/u/c/turn_1/3f9a-report.pdf",
    "with blank, comma;semi=equals&and+plus.txt",
    "colon:pipe|star*question?hash#percent%20%.txt",
    "ünïcödé/日本語/🙂.txt",
    "quotes'\"`<>[]{}\\^~!@$()",
    ".hidden/..three/...",
    ".new-0123",
    "-",
    "s" * 200,
    "/".join(["d" * 99] * 9),
)
NO_KEYS = ("", "/", "/a", "a/", "a//b", ".", "..", "a/./b", "../a", "a/..", "a\0b", "a\nb", "s" * 201, "a/" * 450 + "b")


@pytest.fixture(params=["folder", "s3-http", "s3-https"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    if request.param == "folder":
        opened: Store = open_store(str(tmp_path / "store"))
    else:
        opened = s3_store(request, secure=request.param == "s3-https")
    yield opened
    opened.close()


def s3_store(request: pytest.FixtureRequest, *, secure: bool) -> Store:
    server: Radosgw = request.getfixturevalue("s3")
    uri = f"s3://{request.getfixturevalue('bucket')}/p-{uuid.uuid4().hex[:12]}"
    if secure:
        return open_store(uri, endpoint_url=server.https, ca_bundle=server.ca_bundle)
    return open_store(uri, endpoint_url=server.http)


def sha(body: bytes) -> str:
    return hashlib.sha256(body).hexdigest()


def put(store: Store, key: str, body: bytes) -> None:
    store.put(key, io.BytesIO(body), size=len(body), sha256=sha(body), mime=TEXT)


def read(store: Store, key: str, start: int = 0) -> bytes:
    return b"".join(store.get(key, start=start))


def leftovers(store: Store) -> list[str]:
    """What lies about that is under no key: unfinished files, parts of uploads."""
    if isinstance(store, FolderStore):
        return [name for name in os.listdir(store.root) if name.startswith(".new-")]
    assert isinstance(store, S3Store)
    found = store._clients.main().list_multipart_uploads(Bucket=store.bucket, Prefix=store._prefix)
    return [upload["Key"] for upload in found.get("Uploads", ())]


# Bytes in, bytes out ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [0, 1, MIB + 1, PART_BYTES, 2 * PART_BYTES + 3])
def test_what_is_put_comes_back(store: Store, size: int) -> None:
    body = os.urandom(size)
    put(store, "a/b", body)
    assert read(store, "a/b") == body
    head = store.head("a/b")
    assert head is not None
    assert (head.size, head.sha256 in (None, sha(body)), leftovers(store)) == (size, True, [])


def test_it_is_known_when_it_was_put(store: Store) -> None:
    assert store.modified("a") is None
    put(store, "a", b"one")
    put(store, "b", b"two")
    first, second = store.modified("a"), store.modified("b")
    assert first is not None
    assert second is not None
    assert second - first < 600  # by one clock, in seconds
    assert first > 1_700_000_000


def test_it_comes_back_from_the_middle(store: Store) -> None:
    body = os.urandom(2 * MIB + 5)
    put(store, "a", body)
    for start in (1, MIB, 2 * MIB + 4, 2 * MIB + 5, 3 * MIB):
        assert read(store, "a", start) == body[start:]


def test_chunks_are_of_a_bounded_size(store: Store) -> None:
    put(store, "a", bytes(3 * MIB))
    assert max(map(len, store.get("a"))) <= MIB


@pytest.mark.parametrize("key", NAMES)
def test_every_key_can_be_used(store: Store, key: str) -> None:
    put(store, key, key.encode())
    assert (read(store, key), store.list("")) == (key.encode(), [key])
    assert store.copy(key, "copy", size=len(key.encode()), sha256=sha(key.encode()), mime=TEXT)
    assert store.key_of(store.uri(key)) == key
    store.delete([key])
    assert (store.head(key), store.list("")) == (None, ["copy"])


def test_a_body_may_be_a_stream_that_gives_little_at_a_time(store: Store) -> None:
    class Trickle(io.RawIOBase):
        def __init__(self, body: bytes) -> None:
            self._body = io.BytesIO(body)

        def read(self, size: int = -1) -> bytes:
            return self._body.read(min(size, 70_001) if size >= 0 else 70_001)

    body = os.urandom(PART_BYTES + 200_000)
    store.put("a", Trickle(body), size=len(body), sha256=sha(body), mime=TEXT)  # type: ignore[arg-type]
    assert sha(read(store, "a")) == sha(body)


def test_a_reader_that_stops_early_disturbs_nobody(store: Store) -> None:
    put(store, "a", bytes(3 * MIB))
    for _ in range(40):
        stream = store.get("a")
        next(stream)
        stream.close()  # type: ignore[attr-defined]
    assert len(read(store, "a")) == 3 * MIB


# Written once -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [10, PART_BYTES + 1])
def test_the_same_bytes_again_change_nothing(store: Store, size: int) -> None:
    store.probe()
    body = os.urandom(size)
    put(store, "a", body)
    put(store, "a", body)
    assert (read(store, "a"), store.list(""), leftovers(store)) == (body, ["a"], [])


@pytest.mark.parametrize("size", [10, PART_BYTES + 1])
@pytest.mark.parametrize("other", [0, 1])
def test_other_bytes_under_a_key_are_refused(store: Store, size: int, other: int) -> None:
    store.probe()
    body = os.urandom(size)
    put(store, "a", body)
    with pytest.raises(ValueError, match="other bytes stand under this key"):
        put(store, "a", body[::-1] + b"x" * other)
    assert (read(store, "a") == body, leftovers(store)) == (True, [])


@pytest.mark.parametrize("size", [10, PART_BYTES + 1])
@pytest.mark.parametrize("wrong", ["hash", "shorter", "longer"])
def test_a_wrong_body_leaves_nothing(store: Store, size: int, wrong: str) -> None:
    body = os.urandom(size)
    given = {"hash": body[::-1], "shorter": body[:-1], "longer": body + b"x"}[wrong]
    with pytest.raises(ValueError, match="the bytes are"):
        store.put("a/b", io.BytesIO(given), size=size, sha256=sha(body), mime=TEXT)
    assert (store.head("a/b"), store.list(""), leftovers(store)) == (None, [], [])
    put(store, "a/b", body)
    assert read(store, "a/b") == body


@pytest.mark.parametrize("size", [1000, PART_BYTES + 1])
def test_many_threads_may_put_the_same(store: Store, size: int) -> None:
    store.probe()
    body = os.urandom(size)
    with ThreadPoolExecutor(3) as threads:
        list(threads.map(lambda _: put(store, "a/b", body), range(3)))
    assert (read(store, "a/b") == body, store.list(""), leftovers(store)) == (True, ["a/b"], [])


def test_many_threads_may_put_and_delete_side_by_side(store: Store) -> None:
    def work(number: int) -> bytes:
        key = f"deep/er/{number % 3}/{number}"
        put(store, key, key.encode())
        found = read(store, key)
        store.delete([key])
        return found

    with ThreadPoolExecutor(16) as threads:
        found = list(threads.map(work, range(120)))
    assert found == [f"deep/er/{number % 3}/{number}".encode() for number in range(120)]
    assert (store.list(""), leftovers(store)) == ([], [])


def test_a_body_that_cannot_be_read_is_a_wrong_body(store: Store) -> None:
    class Broken(io.RawIOBase):
        def read(self, size: int = -1) -> bytes:
            raise OSError(5, "Input/output error")

    for size in (10, PART_BYTES + 1):
        with pytest.raises(ValueError, match="cannot be read"):
            store.put("a", Broken(), size=size, sha256=sha(b""), mime=TEXT)  # type: ignore[arg-type]
    assert (store.list(""), leftovers(store)) == ([], [])


# Copies -----------------------------------------------------------------------------------------------------------


def test_a_copy_stands_on_its_own(store: Store) -> None:
    put(store, "a", b"bytes")
    assert store.copy("a", "b/c", size=5, sha256=sha(b"bytes"), mime="image/png")
    assert store.copy("a", "b/c", size=5, sha256=sha(b"bytes"), mime="image/png")
    store.delete(["a"])
    assert (read(store, "b/c"), store.list("")) == (b"bytes", ["b/c"])


@pytest.mark.parametrize(("source", "size", "content"), [("none", 5, b"bytes"), ("a", 4, b"byte"), ("a", 5, b"other")])
def test_what_is_not_there_is_not_copied(store: Store, source: str, size: int, content: bytes) -> None:
    put(store, "a", b"bytes")
    assert not store.copy(source, "b", size=size, sha256=sha(content), mime=TEXT)
    assert (store.list(""), leftovers(store)) == (["a"], [])


def test_a_copy_writes_over_nothing(store: Store) -> None:
    put(store, "a", b"bytes")
    put(store, "b", b"other")
    with pytest.raises(ValueError, match="other bytes"):
        store.copy("a", "b", size=5, sha256=sha(b"bytes"), mime=TEXT)
    assert read(store, "b") == b"other"


# Names ------------------------------------------------------------------------------------------------------------


def test_what_is_not_there_is_not_found(store: Store) -> None:
    put(store, "folder/file", b"x")
    for key in ("none", "folder", "folder/file/below", "folder/fil"):
        assert store.head(key) is None
        with pytest.raises(NotFound):
            read(store, key)
    store.delete(["none", "folder", "folder/none"])
    assert store.list("") == ["folder/file"]


@pytest.mark.parametrize("key", NO_KEYS)
def test_what_is_no_key_is_refused_before_anything_is_asked(store: Store, key: str) -> None:
    for ask in (
        lambda: put(store, key, b"x"),
        lambda: read(store, key),
        lambda: store.head(key),
        lambda: store.uri(key),
        lambda: store.delete([key]),
        lambda: store.copy("a", key, size=0, sha256=sha(b""), mime=TEXT),
        lambda: store.copy(key, "a", size=0, sha256=sha(b""), mime=TEXT),
        lambda: store.presign(key, seconds=60, filename="x", mime=TEXT),
    ):
        with pytest.raises(ValueError):
            ask()


@pytest.mark.rule("hosting-trust.only-the-configured-store-is-contacted")
def test_only_this_stores_own_uris_have_a_key(store: Store) -> None:
    own = store.uri("a/b")
    base = own.removesuffix("a/b")
    assert store.key_of(own) == "a/b"
    for uri in (
        "",
        "a/b",
        base,
        base.rstrip("/"),
        base.rstrip("/") + "-other/a",
        base + "../a",
        base + "%2e%2e/a" if store.kind == "folder" else base + "a//b",
        base + "a/../../b",
        base.upper() + "a",
        "https://example.com/a/b",
        own.replace("s3://", "s3a://").replace("file://", "file://host"),
        "s3://another-bucket/a/b",
        "file:///etc/passwd",
        "http://127.0.0.1/" + own,
        " " + own,
    ):
        assert store.key_of(uri) is None, uri


def test_keys_are_listed_in_order_and_in_pages(store: Store) -> None:
    keys = sorted(["a", "a-b", "a/b", "a/b-c", "a/b/c", "a0", "b/1", "b/10", "b/2", "bb", "ü/x"])
    storable = [key for key in keys if key not in ("a", "a/b")] if store.kind == "folder" else keys
    for key in storable:
        put(store, key, b"")
    assert store.list("") == storable
    for prefix in ("a", "a/", "a/b", "b/1", "b", "c", "ü"):
        assert store.list(prefix) == [key for key in storable if key.startswith(prefix)]
    paged: list[str] = []
    while page := store.list("", after=paged[-1] if paged else "", limit=3):
        assert len(page) <= 3
        paged += page
    assert paged == storable
    assert store.list("b", after="b/10", limit=2) == ["b/2", "bb"]


def test_more_than_one_page_of_the_service_is_listed_and_deleted(store: Store) -> None:
    keys = [f"many/{number:04}" for number in range(1003)]
    with ThreadPoolExecutor(8) as threads:
        list(threads.map(lambda key: put(store, key, b""), keys))
    assert store.list("many/", limit=2000) == keys
    store.delete(keys)
    assert store.list("") == []


def test_a_probe_tells_what_the_store_can_and_leaves_nothing(store: Store) -> None:
    can = store.probe()
    assert (can.reads_back, can.ranges, can.atomic_create) == (True, True, True)
    assert can.presigns == (store.kind == "s3")
    assert (store.list(""), leftovers(store)) == ([], [])
