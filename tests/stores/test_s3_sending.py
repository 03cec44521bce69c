"""Bodies on their way out: hashed before they are sent, never too many in memory, nothing left of a failure."""

from __future__ import annotations

import hashlib
import io
import threading
from collections.abc import Iterator
from typing import Any

import pytest
from botocore.exceptions import ClientError

from sidecar.core.errors import StoreUnavailable
from sidecar.stores.s3_sending import HELD_BYTES, PART_BYTES, Occupied, Parcel, Senders, _Room
from tests.daemon_process import eventually


class Service:
    """The calls that an upload makes, noted. `fails` names one that answers 500; parts wait until `go` is set."""

    def __init__(self, *, fails: str = "", status: int = 500) -> None:
        self._status = status
        self.calls: list[str] = []
        self.held = 0
        self.most = 0
        self.go = threading.Event()
        self.go.set()
        self.standing: list[dict[str, str]] = []
        self._fails = fails
        self._lock = threading.Lock()

    def _note(self, name: str) -> None:
        with self._lock:
            self.calls.append(name)
        if name == self._fails:
            response = {"Error": {"Code": "InternalError"}, "ResponseMetadata": {"HTTPStatusCode": self._status}}
            raise ClientError(response, name)  # type: ignore[arg-type]

    def put_object(self, **_: Any) -> dict[str, str]:
        self._note("put")
        return {"ETag": '"x"'}

    def create_multipart_upload(self, **_: Any) -> dict[str, str]:
        self._note("create")
        return {"UploadId": "u"}

    def upload_part(self, *, Body: bytes, PartNumber: int, **_: Any) -> dict[str, str]:  # noqa: N803
        with self._lock:
            self.held += len(Body)
            self.most = max(self.most, self.held)
        self.go.wait(5)
        self._note(f"part {PartNumber}")
        with self._lock:
            self.held -= len(Body)
        return {"ETag": f'"{PartNumber}"', "ChecksumCRC32": "sum", "ChecksumType": "COMPOSITE"}

    def complete_multipart_upload(self, *, MultipartUpload: Any, **_: Any) -> None:  # noqa: N803
        self.parts = MultipartUpload["Parts"]
        self._note("complete")

    def abort_multipart_upload(self, *, UploadId: str, **_: Any) -> None:  # noqa: N803
        self._note(f"abort {UploadId}")

    def list_multipart_uploads(self, **_: Any) -> dict[str, Any]:
        self._note("list")
        return {"Uploads": self.standing}


class Zeros(io.RawIOBase):
    """So many zero bytes, and how many were read."""

    def __init__(self, size: int) -> None:
        self.left = size
        self.taken = 0

    def read(self, size: int = -1) -> bytes:
        given = bytes(min(size, self.left))
        self.left -= len(given)
        self.taken += len(given)
        return given


def parcel(size: int, sha256: str = "") -> Parcel:
    return Parcel(
        bucket="b", full_key="p/k", key="k", size=size, sha256=sha256 or sha_of_zeros(size), mime="text/plain"
    )  # fmt: skip


def sha_of_zeros(size: int) -> str:
    hashing = hashlib.sha256()
    for _ in range(size // PART_BYTES):
        hashing.update(bytes(PART_BYTES))
    hashing.update(bytes(size % PART_BYTES))
    return hashing.hexdigest()


@pytest.fixture
def senders() -> Iterator[Senders]:
    made = Senders()
    yield made
    made.close()


def test_a_wrong_body_is_not_sent(senders: Senders) -> None:
    service = Service()
    for body in (b"12345678", b"123456789", b"1234567890!", b""):
        with pytest.raises(ValueError):
            senders.send_whole(service, parcel(10), io.BytesIO(body))
    assert service.calls == []


@pytest.mark.parametrize("status", [409, 412])
def test_a_condition_that_does_not_hold_is_no_fault(senders: Senders, status: int) -> None:
    service = Service(fails="put", status=status)
    with pytest.raises(Occupied):
        senders.send_whole(service, parcel(10), io.BytesIO(bytes(10)), IfNoneMatch="*")


def test_an_abort_waits_for_parts_that_are_still_on_their_way(senders: Senders) -> None:
    class Slow(Service):
        def upload_part(self, *, Body: bytes, PartNumber: int, **_: Any) -> dict[str, str]:  # noqa: N803
            if PartNumber == 1:
                started.wait(5)
            else:
                started.set()
                threading.Event().wait(0.2)  # the other one has failed long before
            return super().upload_part(Body=Body, PartNumber=PartNumber)

    started = threading.Event()
    service = Slow(fails="part 1")
    with pytest.raises(StoreUnavailable):
        senders.send_in_parts(service, parcel(2 * PART_BYTES), Zeros(2 * PART_BYTES))  # type: ignore[arg-type]
    assert service.calls[-2:] == ["part 2", "abort u"]


def test_parts_are_told_in_order_with_their_sums(senders: Senders) -> None:
    service = Service()
    senders.send_in_parts(service, parcel(2 * PART_BYTES + 1), Zeros(2 * PART_BYTES + 1))  # type: ignore[arg-type]
    assert service.parts == [
        {"ETag": f'"{number}"', "PartNumber": number, "ChecksumCRC32": "sum"} for number in (1, 2, 3)
    ]
    assert (service.calls[0], service.calls[-1]) == ("create", "complete")


def test_uploads_hold_no_more_than_the_room_for_all_of_them(senders: Senders) -> None:
    service = Service()
    size = 6 * PART_BYTES
    sha256 = sha_of_zeros(size)
    bodies = [Zeros(size) for _ in range(3)]
    uploads = [
        threading.Thread(target=senders.send_in_parts, args=(service, parcel(size, sha256), body)) for body in bodies
    ]
    service.go.clear()
    for upload in uploads:
        upload.start()
    eventually(lambda: len(senders._room._changed._waiters) == 3)  # type: ignore[attr-defined]
    assert sum(body.taken for body in bodies) == HELD_BYTES
    service.go.set()
    for upload in uploads:
        upload.join()
    assert (service.most, service.calls.count("complete")) == (HELD_BYTES, 3)


def test_a_part_that_fails_stops_the_reading_and_aborts(senders: Senders) -> None:
    service, body = Service(fails="part 1"), Zeros(40 * PART_BYTES)
    with pytest.raises(StoreUnavailable) as refused:
        senders.send_in_parts(service, parcel(40 * PART_BYTES, "0" * 64), body)  # type: ignore[arg-type]
    assert (refused.value.fault, service.calls[-1]) == ("server_error", "abort u")
    assert body.taken <= HELD_BYTES + 8 * PART_BYTES
    assert "complete" not in service.calls


@pytest.mark.parametrize("fails", ["complete", "part 2"])
def test_whatever_fails_is_aborted_after_its_last_part(senders: Senders, fails: str) -> None:
    service = Service(fails=fails)
    with pytest.raises(StoreUnavailable):
        senders.send_in_parts(service, parcel(3 * PART_BYTES), Zeros(3 * PART_BYTES))  # type: ignore[arg-type]
    assert service.calls[-1] == "abort u"
    assert service.held == 0 or fails == "part 2"


def test_a_body_that_cannot_be_read_gives_its_room_back(senders: Senders) -> None:
    class Broken(io.RawIOBase):
        def read(self, size: int = -1) -> bytes:
            raise OSError(5, "Input/output error")

    service = Service()
    for _ in range(HELD_BYTES // PART_BYTES + 1):
        with pytest.raises(ValueError, match="Input/output error"):
            senders.send_in_parts(service, parcel(2 * PART_BYTES, "0" * 64), Broken())  # type: ignore[arg-type]
        with pytest.raises(ValueError, match="Input/output error"):
            senders.send_whole(service, parcel(PART_BYTES, "0" * 64), Broken())  # type: ignore[arg-type]
    assert set(service.calls) == {"create", "abort u"}


def test_one_at_a_time_sends_to_a_key(senders: Senders) -> None:
    order: list[str] = []

    def second() -> None:
        with senders.alone(parcel(1)):
            order.append("second")

    with senders.alone(parcel(1)):
        waiting = threading.Thread(target=second)
        waiting.start()
        eventually(lambda: len(senders._free._waiters) == 1)  # type: ignore[attr-defined]
        order.append("first")
    waiting.join()
    assert order == ["first", "second"]


def test_only_uploads_of_this_key_are_cleared(senders: Senders) -> None:
    service = Service()
    service.standing = [{"Key": "p/k", "UploadId": "dead"}, {"Key": "p/k-other", "UploadId": "theirs"}]
    senders.clear(service, parcel(1))
    assert service.calls == ["list", "abort dead"]


def test_a_service_that_does_not_list_uploads_is_let_be(senders: Senders) -> None:
    service = Service(fails="list")
    senders.clear(service, parcel(1))
    assert service.calls == ["list"]


def test_more_than_there_is_room_for_may_be_held_alone() -> None:
    room = _Room(10)
    with room.taken(100):
        assert room._free == 0
    assert room._free == 10
