"""Bytes on their way out of S3: in chunks, none awaited for longer than a read may take, and counted."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

from sidecar.core.errors import StoreUnavailable
from sidecar.stores.s3_client import Client
from sidecar.stores.s3_faults import ABSENT, answer_of, faults

CHUNK = 1024 * 1024
SLOWEST = 1024  # bytes per second: who sends less is as good as silent


def stream(client: Client, place: dict[str, str], key: str, *, start: int, patience: float) -> Iterator[bytes]:
    """The bytes from `start` on. When the connection ends early, it is taken up once where it broke.

    `patience` is for how many seconds a chunk may gather; what there is by then is given out. Raises NotFound, and
    StoreUnavailable with `cut_off` for bytes that end early, `timed_out` for a trickle.
    """
    at, taken_up = start, False
    while True:
        try:
            for chunk in _answer(client, place, key, at, patience):
                at += len(chunk)
                yield chunk
            return
        except StoreUnavailable as refusal:
            if taken_up or refusal.fault != "cut_off":
                raise
            taken_up = True


def _answer(client: Client, place: dict[str, str], key: str, start: int, patience: float) -> Iterator[bytes]:
    from botocore.exceptions import ClientError

    span = {"Range": f"bytes={start}-"} if start else {}
    with faults(key, missing=ABSENT):
        try:
            answer = client.get_object(**place, **span)
        except ClientError as error:
            if start and answer_of(error)[1] == 416:
                return  # there is nothing from there on
            raise
        with answer["Body"] as raw:
            # A careless service answers the whole for a part.
            unwanted = start if start and "ContentRange" not in answer else 0
            for chunk in chunks(raw, int(answer["ContentLength"]), key, patience):
                if unwanted >= len(chunk):
                    unwanted -= len(chunk)
                else:
                    yield chunk[unwanted:]
                    unwanted = 0


def chunks(raw: Any, length: int, key: str, patience: float) -> Iterator[bytes]:
    """What arrives of an open answer, gathered; one wait for the network has the client's own read timeout.

    Raises StoreUnavailable with `cut_off` or `timed_out`, and what urllib3 raises.
    """
    left = length
    while left > 0:
        began, wanted, pieces, gathered = time.monotonic(), min(CHUNK, left), list[bytes](), 0
        while gathered < wanted:
            # `read` waits until all that it was asked for has come, however long that takes.
            piece = raw.read1(wanted - gathered)
            if not piece:
                raise StoreUnavailable(key, f"{left - gathered} bytes did not come; ask again", fault="cut_off")
            pieces.append(piece)
            gathered += len(piece)
            if time.monotonic() - began > patience:
                break
        if gathered < min(left, SLOWEST * patience):
            raise StoreUnavailable(key, f"less than {SLOWEST} bytes a second came; ask again", fault="timed_out")
        left -= gathered
        yield b"".join(pieces)
