"""What an S3 service really does, found out in two dozen small calls at start, because three services differ in four.

Nothing rests on the answers but what is shown to people; only `atomic_create` also switches on an extra guard.
"""

from __future__ import annotations

import base64
import hashlib
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Literal

from sidecar.core.errors import StoreUnavailable
from sidecar.ports import Abilities
from sidecar.stores.probing import Sample
from sidecar.stores.s3_client import Clients
from sidecar.stores.s3_faults import faults
from sidecar.stores.s3_reading import chunks

RACERS = 8
DEADLINE = 30.0


def probe_bucket(clients: Clients, bucket: str, prefix: str) -> Abilities:
    """Try everything under random keys and clear them away.

    Raises StoreUnavailable when plain writing and reading fail, and `timed_out` after 30 seconds. An ability that the
    service refuses, or does not have, is simply absent.
    """
    with faults(bucket):
        probe = _Probe(clients, bucket, prefix)
        try:
            return Abilities(
                reads_back=probe.reads_back(),
                ranges=probe.can(probe.ranges),
                atomic_create=probe.can(probe.creates_once),
                verifies_sha256=probe.can(probe.verifies),
                presigns=probe.can(probe.signs_links),
                cas=probe.compares_and_swaps(),
            )
        finally:
            probe.clear()


class _Probe:
    """One run: its keys, its time, its questions in order."""

    def __init__(self, clients: Clients, bucket: str, prefix: str) -> None:
        from botocore.exceptions import ClientError

        self._client = clients.probing()
        self._clients = clients
        self._refused = ClientError
        self._bucket = bucket
        self._sample, self._raced, self._wrong = (Sample() for _ in range(3))
        self._keys = [prefix + one.key for one in (self._sample, self._raced, self._wrong)]
        self._place = {"Bucket": bucket, "Key": self._keys[0]}
        self._until = time.monotonic() + DEADLINE

    def can(self, question: Callable[[], bool]) -> bool:
        """The answer to a question; no when the service refuses it."""
        if time.monotonic() > self._until:
            raise StoreUnavailable(self._bucket, "the store is too slow to be probed; ask again", fault="timed_out")
        try:
            return question()
        except self._refused:
            return False

    def reads_back(self) -> bool:
        self._client.put_object(**self._place, Body=self._sample.body)
        return self._read() == self._sample.body

    def ranges(self) -> bool:
        return self._read(Range="bytes=10-19") == self._sample.body[10:20]

    def creates_once(self) -> bool:
        """A second create of a key is refused, and of eight at once exactly one is not."""
        if self._creates(self._keys[0]):
            return False
        with ThreadPoolExecutor(RACERS, thread_name_prefix="store-probe") as racers:
            won = racers.map(lambda _: self._creates(self._keys[1]), range(RACERS))
            return sum(won) == 1

    def verifies(self) -> bool:
        wrong = base64.b64encode(hashlib.sha256(b"other bytes").digest()).decode()
        place = {"Bucket": self._bucket, "Key": self._keys[2]}
        try:
            self._client.put_object(**place, Body=self._wrong.body, ChecksumSHA256=wrong)
        except self._refused as error:
            return bool(400 <= error.response["ResponseMetadata"]["HTTPStatusCode"] < 500)
        return False

    def signs_links(self) -> bool:
        """A link gives the bytes, to somebody who has no credentials."""
        from botocore.awsrequest import AWSRequest
        from botocore.httpsession import URLLib3Session

        url = self._client.generate_presigned_url("get_object", Params=self._place, ExpiresIn=60)
        timing = self._clients.hurried
        anybody = URLLib3Session(verify=self._clients.ca_bundle or True, timeout=(timing.connect, timing.read))
        try:
            answer = anybody.send(AWSRequest(method="GET", url=url, stream_output=True).prepare())
            size = int(answer.headers.get("Content-Length", 0))
            return answer.status_code == 200 and self._gathered(answer.raw, size) == self._sample.body
        finally:
            anybody.close()

    def compares_and_swaps(self) -> Literal["quoted", "unquoted", "none"]:
        """How an ETag must be written for a conditional overwrite: HTTP says quoted, some services disagree."""
        if not self.can(lambda: not self._swaps('"00000000000000000000000000000000"')):
            return "none"
        if self.can(lambda: self._swaps(self._etag())):
            return "quoted"
        return "unquoted" if self.can(lambda: self._swaps(self._etag().strip('"'))) else "none"

    def clear(self) -> None:
        """Remove what was put; a service that is away by now keeps it."""
        from botocore.exceptions import BotoCoreError

        try:
            for key in self._keys:
                self._client.delete_object(Bucket=self._bucket, Key=key)
        except (self._refused, BotoCoreError):
            return

    def _read(self, **span: str) -> bytes:
        answer = self._client.get_object(**self._place, **span)
        with answer["Body"] as raw:
            return self._gathered(raw, int(answer["ContentLength"]))

    def _gathered(self, raw: Any, size: int) -> bytes:
        """The bytes of an answer, of which nothing beyond the first matters: a sample is small."""
        return next(chunks(raw, size, self._bucket, self._clients.hurried.read), b"")

    def _creates(self, key: str) -> bool:
        return self._is_met(Key=key, IfNoneMatch="*")

    def _swaps(self, etag: str) -> bool:
        return self._is_met(Key=self._keys[0], IfMatch=etag)

    def _etag(self) -> str:
        return str(self._client.head_object(**self._place)["ETag"])

    def _is_met(self, **conditions: Any) -> bool:
        """Whether a PUT with conditions is taken. Raises for anything but yes and no."""
        try:
            self._client.put_object(Bucket=self._bucket, Body=self._sample.body, **conditions)
        except self._refused as error:
            if error.response["ResponseMetadata"]["HTTPStatusCode"] in (409, 412):
                return False
            raise
        return True
