"""Bodies on their way in, of services that are slow, careless, or break off. The faults of real ones: test_s3_store."""

from __future__ import annotations

from typing import Any

import pytest
from botocore.exceptions import ClientError

from sidecar.core.errors import NotFound, StoreUnavailable
from sidecar.stores.s3_reading import CHUNK, SLOWEST, stream

PLACE = {"Bucket": "b", "Key": "p/k"}


class Body:
    """A response that gives `pieces` one by one, then ends."""

    def __init__(self, *pieces: bytes) -> None:
        self._pieces = list(pieces)
        self.closed = False

    def __enter__(self) -> Body:
        return self

    def __exit__(self, *_: object) -> None:
        self.closed = True

    def read1(self, size: int) -> bytes:
        if not self._pieces:
            return b""
        piece = self._pieces.pop(0)
        if len(piece) > size:
            self._pieces.insert(0, piece[size:])
        return piece[:size]


class Service:
    """Answers get_object with what was prepared, in turn, and notes the ranges that were asked for."""

    def __init__(self, *answers: dict[str, Any] | Exception) -> None:
        self._answers = list(answers)
        self.ranges: list[str] = []

    def get_object(self, *, Range: str = "", **_: Any) -> dict[str, Any]:  # noqa: N803
        self.ranges.append(Range)
        answer = self._answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer


def answer(length: int, *pieces: bytes, ranged: bool = False) -> dict[str, Any]:
    return {"Body": Body(*pieces), "ContentLength": length} | ({"ContentRange": "bytes"} if ranged else {})


def error(code: str, status: int) -> ClientError:
    response = {"Error": {"Code": code}, "ResponseMetadata": {"HTTPStatusCode": status}}
    return ClientError(response, "GetObject")  # type: ignore[arg-type]


def read(service: Service, *, start: int = 0, patience: float = 5.0) -> bytes:
    return b"".join(stream(service, PLACE, "k", start=start, patience=patience))


def test_pieces_are_gathered_into_chunks() -> None:
    pieces = [bytes(100_000)] * 30
    chunks = list(stream(Service(answer(3_000_000, *pieces)), PLACE, "k", start=0, patience=5.0))
    assert [len(chunk) for chunk in chunks] == [CHUNK, CHUNK, 3_000_000 - 2 * CHUNK]


def test_no_more_is_read_than_was_announced() -> None:
    assert read(Service(answer(3, b"abcdef"))) == b"abc"


def test_a_service_that_gives_the_whole_for_a_part_is_skipped_over() -> None:
    body = bytes(range(256)) * 10_000
    pieces = [body[at : at + 999_999] for at in range(0, len(body), 999_999)]
    for start in (1, CHUNK - 1, CHUNK, CHUNK + 1, len(body) - 1):
        assert read(Service(answer(len(body), *pieces)), start=start) == body[start:]
    assert read(Service(answer(3, b"def", ranged=True)), start=3) == b"def"


def test_a_start_behind_the_end_gives_nothing() -> None:
    assert read(Service(error("InvalidRange", 416)), start=10) == b""


def test_a_broken_body_is_taken_up_once() -> None:
    service = Service(answer(2 * CHUNK, bytes(CHUNK + 5)), answer(CHUNK, b"x" * CHUNK, ranged=True))
    assert read(service) == bytes(CHUNK) + b"x" * CHUNK
    assert service.ranges == ["", f"bytes={CHUNK}-"]


def test_a_body_that_breaks_twice_is_cut_off() -> None:
    service = Service(answer(9, b"abc"), answer(9, b"abc"))
    with pytest.raises(StoreUnavailable) as refused:
        read(service)
    assert (refused.value.fault, service.ranges) == ("cut_off", ["", ""])


def test_what_vanishes_meanwhile_is_not_found() -> None:
    with pytest.raises(NotFound):
        read(Service(answer(9, b"abc"), error("NoSuchKey", 404)))


def test_slow_but_steady_bytes_are_given_out_as_they_come() -> None:
    pieces = [bytes(SLOWEST)] * 4
    chunks = list(stream(Service(answer(4 * SLOWEST, *pieces)), PLACE, "k", start=0, patience=0.0))
    assert [len(chunk) for chunk in chunks] == [SLOWEST] * 4


def test_the_connection_is_let_go_in_every_case() -> None:
    answers = [answer(3, b"abc"), answer(9, b"abc"), answer(9, b"abc"), answer(2 * CHUNK, bytes(2 * CHUNK))]
    assert read(Service(answers[0])) == b"abc"
    with pytest.raises(StoreUnavailable):
        read(Service(*answers[1:3]))
    abandoned = stream(Service(answers[3]), PLACE, "k", start=0, patience=5.0)
    next(abandoned)
    abandoned.close()  # type: ignore[attr-defined]
    assert [one["Body"].closed for one in answers] == [True] * 4
