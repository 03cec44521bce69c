"""Files put into S3 and brought back, against sixteen plain boto3 threads and against obstore, on one real server.

Ours also hashes every byte both ways, which the rivals do not; all three read from files and write to files.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from time import perf_counter
from typing import Protocol

import boto3
import obstore
from boto3.s3.transfer import TransferConfig
from botocore.config import Config

from sidecar.stores.s3_store import S3Store
from tests.bench.figures import AtMost, Figure, Size, against, in_turns, seconds
from tests.bench.places import folder
from tests.radosgw import ACCESS_KEY, SECRET_KEY, Radosgw

THREADS = 16
KIB, MIB = 1024, 1024 * 1024
MANY, MANY_BYTES = 200, 64 * KIB
LARGE_MIB, LEAST_MIB = 256, 17  # below 17 nothing travels in parts


class Contender(Protocol):
    """Moves one file. Called from sixteen threads at once."""

    def push(self, key: str, file: Path) -> None: ...

    def pull(self, key: str, file: Path) -> None: ...


class Ours:
    """The store of the daemon, with the hashes that the daemon asks for."""

    def __init__(self, server: Radosgw, bucket: str) -> None:
        self._store = S3Store(bucket, endpoint_url=server.http)
        self._known: dict[Path, str] = {}
        self._sums: dict[str, str] = {}

    def learn(self, files: Sequence[Path]) -> None:
        """What the daemon knows of a file since it registered it."""
        self._known.update((file, hashlib.sha256(file.read_bytes()).hexdigest()) for file in files)

    def push(self, key: str, file: Path) -> None:
        self._sums[key] = sha256 = self._known[file]
        with open(file, "rb") as body:
            self._store.put(key, body, size=file.stat().st_size, sha256=sha256, mime="text/plain")

    def pull(self, key: str, file: Path) -> None:
        hashing = hashlib.sha256()
        with open(file, "wb") as target:
            for chunk in self._store.get(key):
                hashing.update(chunk)
                target.write(chunk)
        if hashing.hexdigest() != self._sums[key]:
            raise ValueError(f"other bytes came back for {key}")


class Boto3:
    """boto3 as its manual shows it, with room for sixteen connections."""

    def __init__(self, server: Radosgw, bucket: str) -> None:
        config = Config(signature_version="s3v4", s3={"addressing_style": "path"}, max_pool_connections=2 * THREADS)
        self._client = boto3.client("s3", endpoint_url=server.http, config=config, region_name="us-east-1")
        self._bucket = bucket
        self._transfer = TransferConfig(max_concurrency=THREADS, preferred_transfer_client="classic")

    def push(self, key: str, file: Path) -> None:
        if file.stat().st_size > MIB:
            self._client.upload_file(str(file), self._bucket, key, Config=self._transfer)
        else:
            with open(file, "rb") as body:
                self._client.put_object(Bucket=self._bucket, Key=key, Body=body)

    def pull(self, key: str, file: Path) -> None:
        head = self._client.get_object(Bucket=self._bucket, Key=key)
        if head["ContentLength"] > MIB:
            head["Body"].close()
            self._client.download_file(self._bucket, key, str(file), Config=self._transfer)
        else:
            file.write_bytes(head["Body"].read())


class Obstore:
    """obstore, a client in Rust, asked from sixteen threads."""

    def __init__(self, server: Radosgw, bucket: str) -> None:
        self._store = obstore.store.S3Store(
            bucket,
            endpoint=server.http,
            access_key_id=ACCESS_KEY,
            secret_access_key=SECRET_KEY,
            region="us-east-1",
            client_options={"allow_http": True},
        )

    def push(self, key: str, file: Path) -> None:
        obstore.put(self._store, key, file)

    def pull(self, key: str, file: Path) -> None:
        with open(file, "wb") as target:
            for chunk in obstore.get(self._store, key):
                target.write(chunk)


def measure(size: Size) -> Iterator[Figure]:
    """Raises NotInstalled without radosgw."""
    with _server() as server, folder() as place:
        bucket = server.make_bucket()
        ours = Ours(server, bucket)
        contenders = (ours, Boto3(server, bucket), Obstore(server, bucket))
        many = _files(place / "many", size.of(MANY, least=1), MANY_BYTES)
        ours.learn(many)
        yield from _figures(server, bucket, contenders, many, size.rounds, f"{len(many)} x {MANY_BYTES // KIB} KiB")
        mebibytes = size.of(LARGE_MIB, least=LEAST_MIB)
        large = _files(place / "large", 1, mebibytes * MIB)
        ours.learn(large)
        rounds = -(-size.rounds // 2)  # what was deleted leaves the server's memory only by and by
        yield from _figures(server, bucket, contenders, large, rounds, f"1 x {mebibytes} MiB")


def _figures(
    server: Radosgw, bucket: str, contenders: Sequence[Contender], files: Sequence[Path], rounds: int, what: str
) -> Iterator[Figure]:
    pushed, pulled = [], []
    for number in range(rounds):
        keys = [[f"{number}/{who}/{file.name}" for file in files] for who in range(len(contenders))]
        pushed += in_turns(1, *(_timed(one.push, keys[who], files) for who, one in enumerate(contenders)))
        back = [file.with_suffix(".back") for file in files]
        pulled += in_turns(1, *(_timed(one.pull, keys[who], back) for who, one in enumerate(contenders)))
        _clear(server, bucket, [key for some in keys for key in some])
    for way, found in (("push of", pushed), ("pull of", pulled)):
        yield Figure(f"{way} {what}", f"{THREADS} boto3 threads", seconds, against(found, ours=0, rival=1), AtMost(1))
        yield Figure(f"{way} {what}", f"obstore, {THREADS} threads", seconds, against(found, ours=0, rival=2))


def _timed(move: Callable[[str, Path], None], keys: Sequence[str], files: Sequence[Path]) -> Callable[[], float]:
    def run() -> float:
        with ThreadPoolExecutor(THREADS) as threads:
            began = perf_counter()
            list(threads.map(move, keys, files))
            return perf_counter() - began

    return run


def _files(place: Path, count: int, length: int) -> list[Path]:
    place.mkdir()
    made = [place / f"{number:04d}.bin" for number in range(count)]
    for file in made:
        file.write_bytes(os.urandom(length))
    return made


def _clear(server: Radosgw, bucket: str, keys: Sequence[str]) -> None:
    client = server.client()
    for first in range(0, len(keys), 1000):
        named = [{"Key": key} for key in keys[first : first + 1000]]
        client.delete_objects(Bucket=bucket, Delete={"Objects": named, "Quiet": True})


@contextmanager
def _server() -> Iterator[Radosgw]:
    server = Radosgw()
    before = dict(os.environ)
    os.environ.update(server.environment())
    try:
        yield server
    finally:
        os.environ.clear()
        os.environ.update(before)
        server.stop()
