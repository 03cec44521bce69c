"""Hosted files in S3, or in a service that speaks like it.

Keys are written once, so nothing rests on conditional writes, which three real services do in three ways. Where a probe
has shown that `If-None-Match: *` holds, it guards small files against being written over, at no cost.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from typing import Any, BinaryIO, Literal

from sidecar.core.errors import NotFound, StoreUnavailable
from sidecar.ports import Abilities, Stored
from sidecar.stores.disposition import attachment, media_type
from sidecar.stores.keys import KeyTaken, check_key, is_key
from sidecar.stores.s3_client import Client, Clients, Timing
from sidecar.stores.s3_faults import ABSENT_TO_HEAD, faults, refusal_of
from sidecar.stores.s3_probe import probe_bucket
from sidecar.stores.s3_reading import stream
from sidecar.stores.s3_sending import PART_BYTES, Occupied, Parcel, Senders

COPY_BYTES = 1024**3  # a service copies this much within one answer's time
PAGE = 1000


class S3Store:
    """The `Store` port over a bucket, below `prefix`. The first call, not the constructor, imports boto3.

    Other bytes under a key are refused with KeyTaken, a ValueError, where the size tells or the service can.
    """

    kind: Literal["folder", "s3"] = "s3"
    puts_at_once = 16

    def __init__(
        self,
        bucket: str,
        prefix: str = "",
        *,
        endpoint_url: str | None = None,
        region: str | None = None,
        profile: str | None = None,
        ca_bundle: str | None = None,
        public_endpoint_url: str | None = None,
        timing: Timing | None = None,
    ) -> None:
        self.bucket = bucket
        self._prefix = f"{prefix}/" if prefix else ""
        self._uri = f"s3://{bucket}/{self._prefix}"
        self._timing = timing or Timing()
        self._clients = Clients(
            endpoint_url=endpoint_url,
            region=region,
            profile=profile,
            ca_bundle=ca_bundle,
            public_endpoint_url=public_endpoint_url,
            timing=self._timing,
        )
        self._senders = Senders()
        self._creates_atomically = False

    def uri(self, key: str) -> str:
        return self._uri + check_key(key)

    def key_of(self, uri: str) -> str | None:
        key = uri.removeprefix(self._uri)
        return key if key != uri and is_key(key) else None

    def put(self, key: str, body: BinaryIO, *, size: int, sha256: str, mime: str) -> None:
        """See `ports.Store`. What was sent before by one who did not live to say so is not sent again in parts."""
        parcel = self._parcel(key, size, sha256, mime)
        if size > PART_BYTES:
            self._put_in_parts(parcel, body)
        else:
            self._put_whole(parcel, body)

    def copy(self, source: str, key: str, *, size: int, sha256: str, mime: str) -> bool:
        parcel, origin = self._parcel(key, size, sha256, mime), self._place(source)
        if size > COPY_BYTES or self.head(source) != Stored(size, sha256):
            return False
        if self._stands(parcel):
            return True
        try:
            with faults(key, missing=("NoSuchKey", "NotImplemented", "MethodNotAllowed")):
                self._client(key).copy_object(
                    **parcel.place, **parcel.labels, CopySource=origin, MetadataDirective="REPLACE"
                )
        except NotFound:
            return False
        return True

    def get(self, key: str, *, start: int = 0) -> Iterator[bytes]:
        return stream(self._client(key), self._place(key), key, start=start, patience=self._timing.read)

    def head(self, key: str) -> Stored | None:
        place = self._place(key)
        try:
            with faults(key, missing=ABSENT_TO_HEAD):
                answer = self._client(key).head_object(**place)
                size = int(answer["ContentLength"])
        except NotFound:
            return None
        # Some services change the case of the names.
        labels = {name.lower(): value for name, value in answer.get("Metadata", {}).items()}
        return Stored(size, labels.get("sha256"))

    def modified(self, key: str) -> float | None:
        """See `ports.Store`."""
        try:
            with faults(key, missing=ABSENT_TO_HEAD):
                return self._client(key).head_object(**self._place(key))["LastModified"].timestamp()
        except NotFound:
            return None

    def list(self, prefix: str, *, after: str = "", limit: int = 1000) -> list[str]:
        found: list[str] = []
        asked: dict[str, Any] = {"Bucket": self.bucket, "Prefix": self._prefix + prefix}
        asked |= {"StartAfter": self._prefix + after} if after else {}
        while len(found) < limit:
            with faults(self.bucket):
                page = self._client(self.bucket).list_objects_v2(**asked, MaxKeys=min(PAGE, limit - len(found)))
                names = (entry["Key"].removeprefix(self._prefix) for entry in page.get("Contents", ()))
                found += [name for name in names if is_key(name)]
                if not page.get("IsTruncated"):
                    break
                asked["ContinuationToken"] = page["NextContinuationToken"]
        return found

    def delete(self, keys: Sequence[str]) -> None:
        named = [{"Key": self._full(key)} for key in keys]
        for first in range(0, len(named), PAGE):
            with faults(self.bucket):
                answer = self._client(self.bucket).delete_objects(
                    Bucket=self.bucket, Delete={"Objects": named[first : first + PAGE], "Quiet": True}
                )
            if failed := answer.get("Errors"):
                code = str(failed[0].get("Code", ""))
                about = str(failed[0].get("Key", "")).removeprefix(self._prefix)
                raise refusal_of(about, code, 403 if code == "AccessDenied" else 500)

    def presign(self, key: str, *, seconds: int, filename: str, mime: str) -> str | None:
        """Offline; the URL holds `public_endpoint_url` where one is set."""
        asked = {
            **self._place(key),
            "ResponseContentDisposition": attachment(filename),
            "ResponseContentType": media_type(mime),
        }
        with faults(key):
            return str(self._clients.links().generate_presigned_url("get_object", Params=asked, ExpiresIn=seconds))

    def probe(self) -> Abilities:
        """Two dozen small calls below `probe/`, which are cleared away again; half a minute at most."""
        found = probe_bucket(self._clients, self.bucket, self._prefix)
        self._creates_atomically = found.atomic_create
        return found

    def close(self) -> None:
        self._senders.close()
        self._clients.close()

    def _put_whole(self, parcel: Parcel, body: BinaryIO) -> None:
        condition = {"IfNoneMatch": "*"} if self._creates_atomically else {}
        try:
            is_certain = self._senders.send_whole(self._client(parcel.key), parcel, body, **condition)
        except Occupied:
            is_certain = False
        if not is_certain:
            self._require(parcel)

    def _put_in_parts(self, parcel: Parcel, body: BinaryIO) -> None:
        client = self._client(parcel.key)
        with self._senders.alone(parcel):
            if self._stands(parcel):
                return
            self._senders.clear(client, parcel)
            try:
                self._senders.send_in_parts(client, parcel, body)
            except StoreUnavailable as refusal:
                # When the answer to the last call was lost, its repetition says that there is no such upload any more.
                if refusal.fault != "server_error" or not self._stands(parcel):
                    raise
            else:
                self._require(parcel)

    def _require(self, parcel: Parcel) -> None:
        """Ask whether what was sent is there. Raises KeyTaken, or StoreUnavailable when nothing is."""
        if not self._stands(parcel):
            hint = "the store took the bytes and does not have them; ask again"
            raise StoreUnavailable(parcel.key, hint, fault="server_error")

    def _stands(self, parcel: Parcel) -> bool:
        """Whether these very bytes stand under the key. Raises KeyTaken when others do."""
        there = self.head(parcel.key)
        if there is None:
            return False
        if there.size == parcel.size and there.sha256 is None:
            hashing = hashlib.sha256()
            for chunk in self.get(parcel.key):
                hashing.update(chunk)
            there = Stored(there.size, hashing.hexdigest())
        if there != Stored(parcel.size, parcel.sha256):
            raise KeyTaken(f"{parcel.key}: other bytes stand under this key")
        return True

    def _parcel(self, key: str, size: int, sha256: str, mime: str) -> Parcel:
        return Parcel(bucket=self.bucket, full_key=self._full(key), key=key, size=size, sha256=sha256, mime=mime)

    def _client(self, about: str) -> Client:
        with faults(about):
            return self._clients.main()

    def _place(self, key: str) -> dict[str, str]:
        return {"Bucket": self.bucket, "Key": self._full(key)}

    def _full(self, key: str) -> str:
        return self._prefix + check_key(key)
