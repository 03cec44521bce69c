"""What only an S3 store does: faults of the way there, each with its own name; links; what goes over the wire."""

from __future__ import annotations

import base64
import hashlib
import io
import logging
import os
import uuid
from collections.abc import Callable
from time import monotonic
from urllib.parse import quote, unquote, urlsplit
from urllib.request import urlopen

import pytest

from sidecar.core.errors import NotFound, StoreUnavailable
from sidecar.stores.s3_client import Timing
from sidecar.stores.s3_sending import PART_BYTES
from sidecar.stores.s3_store import S3Store
from tests.faulty_front import (
    Answer,
    Behaviour,
    CutBody,
    Drip,
    FaultyFront,
    Garbage,
    Hang,
    HangUp,
    LoseAnswer,
    WrongBytes,
)
from tests.radosgw import SECRET_KEY, Radosgw

HASTY = Timing(connect=1.0, read=0.5, attempts=1)
TWICE = Timing(connect=1.0, read=0.5, attempts=2)
TEXT = "text/plain"
SMALL, LARGE = b"some bytes", bytes(PART_BYTES + 1)

Make = Callable[..., S3Store]


@pytest.fixture
def make(bucket: str, front: FaultyFront) -> Make:
    """Stores behind the front, all below one prefix."""
    prefix = f"p-{uuid.uuid4().hex[:12]}"

    def make(timing: Timing = HASTY, **options: str) -> S3Store:
        return S3Store(bucket, prefix, timing=timing, **{"endpoint_url": front.url, **options})

    return make


@pytest.fixture
def store(make: Make) -> S3Store:
    return make()


def sha(body: bytes) -> str:
    return hashlib.sha256(body).hexdigest()


def put(store: S3Store, key: str, body: bytes) -> None:
    store.put(key, io.BytesIO(body), size=len(body), sha256=sha(body), mime=TEXT)


def read(store: S3Store, key: str) -> bytes:
    return b"".join(store.get(key))


def fault_of(ask: Callable[[], object]) -> str:
    with pytest.raises(StoreUnavailable) as refused:
        ask()
    for secret in (SECRET_KEY, "testkey", "AWS4", "http"):
        assert secret not in str(refused.value)
    assert refused.value.hint
    return refused.value.fault


def uploads(store: S3Store) -> list[str]:
    found = store._clients.main().list_multipart_uploads(Bucket=store.bucket, Prefix=store._prefix)
    return [upload["Key"] for upload in found.get("Uploads", ())]


# Faults -----------------------------------------------------------------------------------------------------------

FAULTS = [
    (Answer(500), "server_error"),
    (Answer(503, "SlowDown"), "server_error"),
    (Answer(501, "NotImplemented"), "server_error"),
    (Answer(403, "AccessDenied"), "denied"),
    (Answer(403, "InvalidAccessKeyId"), "denied"),
    (Answer(403, "SignatureDoesNotMatch"), "denied"),
    (Answer(400, "ExpiredToken"), "denied"),
    (Answer(404, "NoSuchBucket"), "no_bucket"),
    (Answer(507, "InsufficientStorage"), "disk_full"),
    (Hang(), "timed_out"),
    (HangUp(), "cut_off"),
    (Garbage(), "cut_off"),
]
NAMES = [f"{type(one).__name__}{getattr(one, 'code', '')}" for one, _ in FAULTS]


@pytest.mark.parametrize("body", [SMALL, LARGE], ids=["whole", "in parts"])
@pytest.mark.parametrize(("behaviour", "fault"), FAULTS, ids=NAMES)
def test_a_put_that_fails_says_why_and_leaves_nothing_and_the_next_one_works(
    store: S3Store, front: FaultyFront, behaviour: Behaviour, fault: str, body: bytes
) -> None:
    front.behave(behaviour, method="PUT|POST")
    assert fault_of(lambda: put(store, "a", body)) == fault
    front.heal()
    assert (store.list(""), uploads(store)) == ([], [])
    put(store, "a", body)
    assert read(store, "a") == body


@pytest.mark.parametrize(("behaviour", "fault"), FAULTS, ids=NAMES)
def test_a_get_that_fails_says_why_and_the_next_one_works(
    store: S3Store, front: FaultyFront, behaviour: Behaviour, fault: str
) -> None:
    put(store, "a", SMALL)
    front.behave(behaviour, method="GET")
    assert fault_of(lambda: read(store, "a")) == fault
    assert fault_of(lambda: store.list("")) == fault
    front.heal()
    assert read(store, "a") == SMALL


@pytest.mark.parametrize(
    ("behaviour", "fault"),
    [
        (Answer(500), "server_error"),
        (Hang(), "timed_out"),
        (Answer(403, "AccessDenied"), "denied"),
        (HangUp(), "cut_off"),
    ],
)
def test_a_question_that_fails_is_no_answer(
    store: S3Store, front: FaultyFront, behaviour: Behaviour, fault: str
) -> None:
    put(store, "a", SMALL)
    front.behave(behaviour)
    for ask in (
        lambda: store.head("a"),
        lambda: store.delete(["a"]),
        lambda: store.copy("a", "b", size=10, sha256=sha(SMALL), mime=TEXT),
        store.probe,
    ):
        assert fault_of(ask) == fault
    front.heal()
    assert store.list("") == ["a"]


def test_a_server_that_nobody_reaches_is_unreachable(store: S3Store, front: FaultyFront) -> None:
    put(store, "a", SMALL)
    front.refuse()
    for ask in (lambda: put(store, "b", SMALL), lambda: read(store, "a"), lambda: store.head("a"), store.probe):
        assert fault_of(ask) == "unreachable"
    front.accept()
    put(store, "b", SMALL)
    assert (read(store, "a"), store.list("")) == (SMALL, ["a", "b"])


def test_a_server_that_hangs_costs_no_more_than_all_tries(make: Make, front: FaultyFront) -> None:
    store = make(TWICE)
    front.behave(Hang())
    for ask in (lambda: put(store, "a", SMALL), lambda: read(store, "a"), lambda: store.head("a"), store.probe):
        began = monotonic()
        assert fault_of(ask) == "timed_out"
        assert monotonic() - began < 5.0  # two tries of half a second, and a rest of one second at most


def test_a_hanging_part_ends_the_whole_upload(store: S3Store, front: FaultyFront) -> None:
    front.behave(Hang(), method="PUT", path="partNumber=2")
    began = monotonic()
    assert fault_of(lambda: put(store, "a", LARGE)) == "timed_out"
    assert monotonic() - began < 5.0
    front.heal()
    assert (store.list(""), uploads(store)) == ([], [])


def test_a_passing_fault_is_not_even_noticed(make: Make, front: FaultyFront) -> None:
    store = make(TWICE)
    front.behave(Answer(500), times=1)
    put(store, "a", SMALL)
    front.behave(Answer(503, "SlowDown"), times=1)
    assert read(store, "a") == SMALL


# Bodies -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("after", [0, 1, 700_000, 2_500_000])
def test_a_body_cut_once_is_taken_up_where_it_broke(store: S3Store, front: FaultyFront, after: int) -> None:
    body = os.urandom(3_000_000)
    put(store, "a", body)
    front.behave(CutBody(after), method="GET", times=1)
    assert read(store, "a") == body
    asked = [seen.headers.get("range", "") for seen in front.seen if seen.method == "GET"]
    assert asked == ["", f"bytes={after // 1048576 * 1048576}-" if after > 1048576 else ""]


def test_a_body_that_is_always_cut_is_cut_off(store: S3Store, front: FaultyFront) -> None:
    put(store, "a", bytes(3_000_000))
    front.behave(CutBody(100), method="GET")
    assert fault_of(lambda: read(store, "a")) == "cut_off"
    front.heal()
    assert len(read(store, "a")) == 3_000_000


@pytest.mark.parametrize("pause", [0.05, 0.3])
def test_a_body_that_trickles_is_as_good_as_hanging(store: S3Store, front: FaultyFront, pause: float) -> None:
    put(store, "a", bytes(100_000))
    front.behave(Drip(pause), method="GET")
    began = monotonic()
    assert fault_of(lambda: read(store, "a")) == "timed_out"
    assert monotonic() - began < 5.0


def test_wrong_bytes_of_the_right_length_are_for_the_reader_to_find(store: S3Store, front: FaultyFront) -> None:
    put(store, "a", SMALL)
    front.behave(WrongBytes(), method="GET", path="/a")
    assert read(store, "a") != SMALL
    front.heal()
    assert read(store, "a") == SMALL


@pytest.mark.parametrize("body", [SMALL, LARGE], ids=["whole", "in parts"])
def test_an_upload_whose_answer_was_lost_is_found_to_stand(make: Make, front: FaultyFront, body: bytes) -> None:
    store = make(TWICE)
    store.probe()
    front.behave(LoseAnswer(), method="PUT|POST", path="/a($|[?]uploadId=[^&]*$)", times=1)
    put(store, "a", body)
    assert (read(store, "a") == body, store.list(""), uploads(store)) == (True, ["a"], [])


def test_a_repeated_completion_that_finds_no_upload_is_no_failure(make: Make, front: FaultyFront) -> None:
    store = make(TWICE)
    front.behave(Answer(404, "NoSuchUpload"), method="POST", path="/a[?]uploadId=[^&]*$")
    assert fault_of(lambda: put(store, "a", LARGE)) == "server_error"
    front.behave(LoseAnswer(), method="POST", path="/a[?]uploadId=[^&]*$", times=1)
    put(store, "a", LARGE)
    assert (read(store, "a") == LARGE, uploads(store)) == (True, [])


def test_what_was_taken_and_is_not_there_is_an_error(store: S3Store, front: FaultyFront) -> None:
    front.behave(Answer(404, "NotFound"), method="HEAD")
    assert fault_of(lambda: put(store, "a", LARGE)) == "server_error"


def test_parts_of_one_who_was_killed_are_cleared_by_the_next_upload(store: S3Store) -> None:
    client = store._clients.main()
    for key in ("a", "a-b"):
        place = {"Bucket": store.bucket, "Key": store._prefix + key}
        upload = client.create_multipart_upload(**place)["UploadId"]
        client.upload_part(**place, UploadId=upload, PartNumber=1, Body=b"x")
    put(store, "a", LARGE)
    assert uploads(store) == [store._prefix + "a-b"]


def test_what_stands_already_is_not_sent_again_in_parts(store: S3Store, front: FaultyFront) -> None:
    put(store, "a", LARGE)
    front.seen.clear()
    put(store, "a", LARGE)
    assert [seen.method for seen in front.seen] == ["HEAD"]


def test_without_a_hash_beside_it_what_stands_is_read(store: S3Store) -> None:
    client = store._clients.main()
    client.put_object(Bucket=store.bucket, Key=store._prefix + "a", Body=LARGE)
    put(store, "a", LARGE)
    with pytest.raises(ValueError, match="other bytes"):
        put(store, "a", b"x" + LARGE[1:])


# Credentials and endpoints ----------------------------------------------------------------------------------------


def test_a_wrong_secret_is_denied(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "wrong")
    store = make()
    for ask in (lambda: put(store, "a", SMALL), lambda: read(store, "a"), lambda: store.head("a"), store.probe):
        assert fault_of(ask) == "denied"


def test_no_credentials_at_all_are_denied(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("AWS_ACCESS_KEY_ID")
    monkeypatch.delenv("AWS_SECRET_ACCESS_KEY")
    store = make()
    presign = lambda: store.presign("a", seconds=60, filename="x", mime=TEXT)  # noqa: E731
    for ask in (lambda: put(store, "a", SMALL), lambda: read(store, "a"), store.probe, presign):
        assert fault_of(ask) == "denied"


def test_an_unknown_profile_is_denied(make: Make) -> None:
    store = make(profile="nobody")
    assert fault_of(lambda: store.head("a")) == "denied"
    assert fault_of(store.probe) == "denied"


def test_a_bucket_that_is_not_there_is_named_so(s3: Radosgw) -> None:
    store = S3Store("no-such-bucket", endpoint_url=s3.http, timing=HASTY)
    for ask in (lambda: put(store, "a", SMALL), lambda: put(store, "a", LARGE), lambda: store.list(""), store.probe):
        assert fault_of(ask) == "no_bucket"
    assert fault_of(lambda: read(store, "a")) == "no_bucket"


def test_a_certificate_that_is_not_trusted_is_told_as_such(s3: Radosgw, bucket: str, tmp_path: object) -> None:
    for bundle in (None, f"{tmp_path}/none.pem"):
        store = S3Store(bucket, endpoint_url=s3.https, ca_bundle=bundle, timing=HASTY)
        assert fault_of(lambda store=store: put(store, "a", SMALL)) == "untrusted"


def test_a_web_server_that_is_no_store_does_not_make_files_gone(store: S3Store, front: FaultyFront) -> None:
    front.behave(Answer(404, "NotFound"))
    for ask in (lambda: put(store, "a", SMALL), lambda: read(store, "a"), lambda: store.list("")):
        assert fault_of(ask) == "no_bucket"
    front.heal()
    with pytest.raises(NotFound):
        read(store, "a")


def test_nothing_secret_is_logged(make: Make, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG):
        store = make()
        put(store, "a", SMALL)
        read(store, "a")
        store.presign("a", seconds=60, filename="x", mime=TEXT)
        store.probe()
    told = "\n".join(record.getMessage() for record in caplog.records)
    assert [word for word in ("AWS4", "Signature", SECRET_KEY, "testkey", "http://") if word in told] == []


# What goes over the wire ------------------------------------------------------------------------------------------


def test_the_finished_hash_is_sent_and_no_trailer(store: S3Store, front: FaultyFront) -> None:
    put(store, "a", SMALL)
    (seen,) = front.seen
    digest = base64.b64encode(hashlib.sha256(SMALL).digest()).decode()
    assert (seen.method, seen.size, seen.headers["x-amz-checksum-sha256"]) == ("PUT", len(SMALL), digest)
    assert seen.headers["authorization"].startswith("AWS4-HMAC-SHA256 ")
    assert [name for name in seen.headers if "trailer" in name or "algorithm" in name] == []
    assert (seen.headers["content-type"], seen.headers["x-amz-meta-sha256"]) == (TEXT, sha(SMALL))


def test_a_large_body_travels_in_parts_of_sixteen_mebibytes(store: S3Store, front: FaultyFront) -> None:
    put(store, "a", LARGE)
    sizes = sorted(seen.size for seen in front.seen if "partNumber" in seen.path)
    assert sizes == [1, PART_BYTES]


def test_a_guarded_put_asks_nothing_more(store: S3Store, front: FaultyFront) -> None:
    store.probe()
    front.seen.clear()
    put(store, "a", SMALL)
    ((method, _, _, headers),) = front.seen
    assert (method, headers["if-none-match"]) == ("PUT", "*")


def test_a_type_that_is_none_is_not_sent(store: S3Store) -> None:
    store.put("a", io.BytesIO(b""), size=0, sha256=sha(b""), mime="text/html\r\nX-Evil: 1")
    assert store._clients.main().head_object(Bucket=store.bucket, Key=store._prefix + "a")["ContentType"] == (
        "application/octet-stream"
    )


# Links ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["plain.txt", 'ünï "quoted"; filename=evil.exe', "a\r\nSet-Cookie: x=1", "%41/b\\c"])
def test_a_link_gives_a_download_of_this_name_and_type(store: S3Store, name: str) -> None:
    put(store, "a b/ü", SMALL)
    url = store.presign("a b/ü", seconds=60, filename=name, mime="text/html")
    assert url is not None
    with urlopen(url, timeout=5) as answer:
        assert (answer.read(), answer.headers["Content-Type"]) == (SMALL, "text/html")
        told = answer.headers["Content-Disposition"]
        assert answer.headers["Set-Cookie"] is None
    kind, plain, exact = told.split("; ", 1)[0], *told.split("; ", 1)[1].rsplit("; ", 1)
    assert (kind, plain.startswith('filename="'), plain.count('"')) == ("attachment", True, 2)
    assert unquote(exact.removeprefix("filename*=UTF-8''")) == name.rpartition("/")[2]


def test_a_link_is_for_this_key_alone_and_for_a_time(store: S3Store) -> None:
    put(store, "a", SMALL)
    put(store, "b", SMALL)
    url = store.presign("a", seconds=60, filename="x", mime=TEXT)
    assert url is not None
    assert "X-Amz-Expires=60" in url
    with pytest.raises(OSError, match="403"):
        urlopen(url.replace("/a?", "/b?"), timeout=5)


def test_links_name_the_endpoint_that_people_reach(make: Make, s3: Radosgw, front: FaultyFront) -> None:
    store = make(public_endpoint_url=s3.http)
    put(store, "a", SMALL)
    front.refuse()  # nothing is asked to sign
    url = store.presign("a", seconds=60, filename="x", mime=TEXT)
    assert url is not None
    assert urlsplit(url).netloc == urlsplit(s3.http).netloc
    with urlopen(url, timeout=5) as answer:
        assert answer.read() == SMALL


def test_uris_are_plain(bucket: str) -> None:
    assert S3Store(bucket, "p/q").uri("a b/ü") == f"s3://{bucket}/p/q/a b/ü"
    assert S3Store(bucket).uri("a") == f"s3://{bucket}/a"
    assert S3Store(bucket, "p/q").key_of(f"s3://{bucket}/p/q/{quote('a b')}") == "a%20b"
    assert S3Store(bucket, "p/q").key_of(f"s3://{bucket}/p/other/a") is None
