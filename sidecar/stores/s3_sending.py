"""Bytes on their way into S3: whole up to 16 MiB, in parts beyond; read once, and checked while they are read.

A body is read into memory before it is sent, a part at a time, because a file may change under our hands and a request
is signed and perhaps repeated: what was hashed is what is sent. All uploads together hold at most 128 MiB.
"""

from __future__ import annotations

import base64
import hashlib
import threading
from collections.abc import Generator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, BinaryIO

from sidecar.core.errors import Refusal
from sidecar.stores.disposition import media_type
from sidecar.stores.s3_client import Client
from sidecar.stores.s3_faults import answer_of, faults

PART_BYTES = 16 * 1024 * 1024
HELD_BYTES = 8 * PART_BYTES
PARTS_AT_ONCE = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Parcel:
    """What is to stand under a full key of a bucket, and the key as others know it."""

    bucket: str
    full_key: str
    key: str
    size: int
    sha256: str
    mime: str

    @property
    def place(self) -> dict[str, Any]:
        return {"Bucket": self.bucket, "Key": self.full_key}

    @property
    def labels(self) -> dict[str, Any]:
        """The type, and the hash where a HEAD tells it."""
        return {"ContentType": media_type(self.mime), "Metadata": {"sha256": self.sha256}}

    def require(self, size: int, sha256: str) -> None:
        """Raises ValueError when the body was another one."""
        if (size, sha256) != (self.size, self.sha256):
            raise ValueError(f"{self.key}: the bytes are {size} with sha256 {sha256}, not {self.size}, {self.sha256}")


class Occupied(Exception):  # noqa: N818 - an answer, and callers know what to ask next
    """A condition did not hold: something stands under the key, or somebody is putting it there."""


class Senders:
    """The memory and the threads that all uploads of a store share."""

    def __init__(self) -> None:
        self._room = _Room(HELD_BYTES)
        self._lock = threading.Lock()
        self._pool: ThreadPoolExecutor | None = None
        self._busy: set[str] = set()
        self._free = threading.Condition()

    def send_whole(self, client: Client, parcel: Parcel, body: BinaryIO, **conditions: str) -> bool:
        """One PUT with the finished hash in a header. Answers whether the service said what it stored.

        Raises ValueError for another body, of which nothing is sent then, Occupied, and what `faults` raises.
        """
        with self._room.taken(parcel.size):
            content = _read(body, parcel.size + 1)
            digest = hashlib.sha256(content)
            parcel.require(len(content), digest.hexdigest())
            checksum = base64.b64encode(digest.digest()).decode()
            with faults(parcel.key):
                return _put(client, {**parcel.place, **parcel.labels, **conditions}, content, checksum)

    def send_in_parts(self, client: Client, parcel: Parcel, body: BinaryIO) -> None:
        """Send parts side by side while the next one is read. What fails or differs is aborted and leaves no part.

        Raises ValueError for another body and what `faults` raises.
        """
        with faults(parcel.key):
            upload = client.create_multipart_upload(**parcel.place, **parcel.labels)["UploadId"]
        try:
            parts = self._send_parts(client, parcel, body, upload)
            with faults(parcel.key):
                client.complete_multipart_upload(**parcel.place, UploadId=upload, MultipartUpload={"Parts": parts})
        except BaseException:
            abort(client, parcel, upload)
            raise

    @contextmanager
    def alone(self, parcel: Parcel) -> Generator[None, None, None]:
        """Nobody else of ours sends to this key meanwhile; who comes second waits, and then finds it done."""
        with self._free:
            self._free.wait_for(lambda: parcel.full_key not in self._busy)
            self._busy.add(parcel.full_key)
        try:
            yield
        finally:
            with self._free:
                self._busy.discard(parcel.full_key)
                self._free.notify_all()

    def clear(self, client: Client, parcel: Parcel) -> None:
        """Abort what an upload to this key left that did not live to abort itself. To be called `alone`."""
        try:
            with faults(parcel.key):
                found = client.list_multipart_uploads(Bucket=parcel.bucket, Prefix=parcel.full_key)
        except Refusal:
            return  # we may not ask, or it is not offered; then the bucket's own rules clear up
        for upload in found.get("Uploads", ()):
            if upload.get("Key") == parcel.full_key:
                abort(client, parcel, str(upload.get("UploadId")))

    def close(self) -> None:
        """Let the threads go once they are done."""
        with self._lock:
            pool, self._pool = self._pool, None
        if pool is not None:
            pool.shutdown(wait=False, cancel_futures=True)

    def _send_parts(self, client: Client, parcel: Parcel, body: BinaryIO, upload: str) -> list[dict[str, Any]]:
        hashing, count = hashlib.sha256(), 0
        sending: list[Future[dict[str, Any]]] = []
        try:
            while True:
                room = self._room.take(PART_BYTES)
                try:
                    content = _read(body, min(PART_BYTES, parcel.size + 1 - count))
                except BaseException:
                    self._room.give_back(room)
                    raise
                if not content:
                    self._room.give_back(room)
                    break
                hashing.update(content)
                count += len(content)
                part = {**parcel.place, "UploadId": upload, "PartNumber": len(sending) + 1}
                sending.append(self._threads().submit(_send_part, client, parcel.key, part, content))
                sending[-1].add_done_callback(lambda _, room=room: self._room.give_back(room))
                _raise_first(sending)
            parcel.require(count, hashing.hexdigest())
            return [one.result() for one in sending]
        finally:
            for one in sending:
                one.cancel()
            for one in sending:
                if not one.cancelled():
                    one.exception()  # wait: a part that arrives after the abort would stay behind

    def _threads(self) -> ThreadPoolExecutor:
        with self._lock:
            if self._pool is None:
                self._pool = ThreadPoolExecutor(PARTS_AT_ONCE, thread_name_prefix="store-part")
            return self._pool


def _put(client: Client, asked: dict[str, Any], content: bytes, checksum: str) -> bool:
    from botocore.exceptions import ClientError

    try:
        return "ETag" in client.put_object(**asked, Body=content, ChecksumSHA256=checksum)
    except ClientError as error:
        if answer_of(error)[1] in (409, 412):
            raise Occupied(asked["Key"]) from None
        raise


def abort(client: Client, parcel: Parcel, upload: str) -> None:
    """Have the service forget the parts of an upload. When it does not answer, the next upload of this key clears."""
    try:
        with faults(parcel.key):
            client.abort_multipart_upload(**parcel.place, UploadId=upload)
    except Refusal:
        return


def _send_part(client: Client, key: str, part: dict[str, Any], content: bytes) -> dict[str, Any]:
    with faults(key):
        answer = client.upload_part(**part, Body=content)
        # A service that was sent a checksum per part wants them all again in the end.
        sums = {name: value for name, value in answer.items() if name.startswith("Checksum") and name != "ChecksumType"}
        return {"ETag": answer["ETag"], "PartNumber": part["PartNumber"], **sums}


def _raise_first(sending: list[Future[dict[str, Any]]]) -> None:
    """Raise what a part failed with, so that no more of the body is read for nothing."""
    for one in sending:
        if one.done():
            one.result()


def _read(body: BinaryIO, count: int) -> bytes:
    """So many bytes, or all there are: one read may give fewer. Raises ValueError when the body cannot be read."""
    try:
        content = body.read(count)
        while 0 < len(content) < count and (more := body.read(count - len(content))):
            content += more
    except OSError as failure:
        raise ValueError(f"the body cannot be read: {failure.strerror}") from failure
    return content


class _Room:
    """How many bytes may be held at once; who wants more waits. A single one may always be held."""

    def __init__(self, most: int) -> None:
        self._free = most
        self._most = most
        self._changed = threading.Condition()

    def take(self, count: int) -> int:
        count = min(count, self._most)
        with self._changed:
            self._changed.wait_for(lambda: self._free >= count)
            self._free -= count
        return count

    def give_back(self, count: int) -> None:
        with self._changed:
            self._free += count
            self._changed.notify_all()

    @contextmanager
    def taken(self, count: int) -> Generator[None, None, None]:
        count = self.take(count)
        try:
            yield
        finally:
            self.give_back(count)
