"""The log is read from its end and followed over its rotation."""

from __future__ import annotations

import io
import logging
import os
import queue
import threading
from pathlib import Path

import pytest

from sidecar.console.life import follow, last_lines
from sidecar.serve import _PrivateFile


@pytest.mark.parametrize(
    ("content", "count", "wanted"),
    [
        (b"", 5, b""),
        (b"one\ntwo\nthree\n", 2, b"two\nthree\n"),
        (b"one\ntwo\nhalf", 2, b"two\nhalf"),
        (b"one\n", 5, b"one\n"),
        (b"one\ntwo\n", 0, b""),
        (b"x" * 200_000 + b"\nlast\n", 2, b"x" * 200_000 + b"\nlast\n"),
        (b"line\n" * 100_000, 3, b"line\n" * 3),
    ],
)
def test_the_last_lines_are_read_from_the_end(content: bytes, count: int, wanted: bytes) -> None:
    log = io.BytesIO(content)
    assert b"".join(last_lines(log, count)) == wanted
    assert log.tell() == len(content)


def test_following_goes_on_with_the_next_file_and_loses_nothing(tmp_path: Path) -> None:
    path = tmp_path / "sidecar.log"
    path.write_bytes(b"old\n")
    log = path.open("rb")
    log.seek(0, os.SEEK_END)
    heard: queue.SimpleQueue[bytes] = queue.SimpleQueue()
    enough = threading.Event()

    def rest() -> None:
        if enough.wait(0.01):
            raise KeyboardInterrupt

    def listen() -> None:
        try:
            for chunk in follow(log, path, rest=rest):
                heard.put(chunk)
        except KeyboardInterrupt:
            return  # as a person ends it

    listener = threading.Thread(target=listen)
    listener.start()
    handler = _PrivateFile(str(path))

    def write(numbers: range) -> bytes:
        for n in numbers:
            handler.emit(logging.makeLogRecord({"msg": f"line {n}"}))
        return b"".join(b"line %d\n" % n for n in numbers)

    def hear(wanted: bytes) -> None:
        got = b""
        while len(got) < len(wanted):
            got += heard.get(timeout=5)
        assert got == wanted

    hear(write(range(100)))
    wanted = write(range(100, 200))
    handler.doRollover()
    hear(wanted + write(range(200, 300)))
    handler.close()
    enough.set()
    listener.join(5)
    assert not listener.is_alive()


def test_the_log_is_private_and_kept_in_three_files(tmp_path: Path) -> None:
    path = tmp_path / "sidecar.log"
    handler = _PrivateFile(str(path))
    for n in range(4):
        handler.emit(logging.makeLogRecord({"msg": f"file {n}"}))
        handler.doRollover()
    handler.emit(logging.makeLogRecord({"msg": "last"}))
    handler.close()
    files = sorted(tmp_path.iterdir())
    assert [file.read_text() for file in files] == ["last\n", "file 3\n", "file 2\n"]
    assert {file.stat().st_mode & 0o777 for file in files} == {0o600}
