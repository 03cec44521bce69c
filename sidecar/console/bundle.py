"""A ZIP archive that is the same bytes for the same contents, and stands at its name whole or not at all."""

from __future__ import annotations

import os
import secrets
import zipfile
from collections.abc import Generator
from contextlib import contextmanager
from typing import IO

CHUNK = 1024 * 1024
LARGE = 1 << 31
EPOCH = (1980, 1, 1, 0, 0, 0)  # the oldest moment that an archive can say; whose clock it was does not matter


class Taken(Exception):  # noqa: N818 - said to a person
    """Something stands at the archive's name already."""


class Bundle:
    """An archive being written. Names are given in the order in which they shall stand."""

    def __init__(self, archive: zipfile.ZipFile) -> None:
        self._archive = archive

    def add(self, name: str, body: IO[bytes], *, size: int) -> None:
        info = zipfile.ZipInfo(name, EPOCH)
        info.create_system = 3  # Unix, wherever we run
        info.external_attr = 0o644 << 16
        info.compress_type = zipfile.ZIP_DEFLATED
        with self._archive.open(info, "w", force_zip64=size >= LARGE) as entry:
            while chunk := body.read(CHUNK):
                entry.write(chunk)


@contextmanager
def bundle(path: str, *, replacing: bool) -> Generator[Bundle]:
    """Write an archive; it takes its name at the end, if all went well. Raises Taken, unless it may replace."""
    arriving = os.path.join(os.path.dirname(os.path.abspath(path)), f".{secrets.token_hex(8)}.part")
    if not replacing and os.path.lexists(path):
        raise Taken(f"{path} is there already; --force replaces it")
    try:
        with open(arriving, "xb") as file:
            with zipfile.ZipFile(file, "w", allowZip64=True) as archive:
                yield Bundle(archive)
            file.flush()
            os.fsync(file.fileno())
        if replacing:
            os.replace(arriving, path)
        else:
            _take_name(arriving, path)
    finally:
        if os.path.lexists(arriving):
            os.unlink(arriving)


def _take_name(arriving: str, path: str) -> None:
    try:
        os.link(arriving, path)
    except FileExistsError:
        raise Taken(f"{path} is there already; --force replaces it") from None
