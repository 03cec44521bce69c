"""The settings file beside OUT_DIR: read only when nobody but its owner can have written it.

A sandbox may own OUT_DIR, so the file never lies inside it; and whoever can write the file, or put another one in its
place, decides where the daemon keeps its state and whom it lets in (spec section 13).
"""

from __future__ import annotations

import os
import re
import stat
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

NAME = "artifact-sidecar.toml"
BYTES = 65536

_SECRET = re.compile(r"key|secret|token|passw|credential", re.IGNORECASE)


class BadSettings(Exception):  # noqa: N818 - said to a person, with what to change
    """A setting that cannot be used. The message names it and where it came from."""


@dataclass(frozen=True, slots=True)
class SettingsFile:
    """What the file says; or no values and why it was not read, which is empty when there is no file."""

    path: str
    values: Mapping[str, object] = field(default_factory=dict[str, object])
    ignored: str = ""


def read_beside(out_dir: str) -> SettingsFile:
    """The settings beside this OUT_DIR, a real path. Raises BadSettings for a file that is ours and cannot be used."""
    folder = os.path.dirname(out_dir)
    path = os.path.join(folder, NAME)
    try:
        opened = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError:
        return SettingsFile(path)
    except OSError as error:
        return SettingsFile(path, ignored=f"it cannot be opened ({error.strerror})")
    try:
        ignored = _why_not(os.fstat(opened), "it") or _why_not(os.stat(folder), "its folder")
        if not stat.S_ISREG(os.fstat(opened).st_mode):
            ignored = "it is no regular file"
        content = b"" if ignored else os.read(opened, BYTES + 1)
    finally:
        os.close(opened)
    if ignored:
        return SettingsFile(path, ignored=ignored)
    return SettingsFile(path, _parse(content, path))


def _why_not(status: os.stat_result, what: str) -> str:
    if status.st_uid not in (os.geteuid(), 0):
        return f"{what} belongs to another user"
    if status.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        return f"{what} can be written by others"
    return ""


def _parse(content: bytes, path: str) -> dict[str, object]:
    if len(content) > BYTES:
        raise BadSettings(f"{path} is larger than {BYTES} bytes")
    try:
        values = tomllib.loads(content.decode("utf-8"))
    except ValueError as error:
        raise BadSettings(f"{path} cannot be read: {error}") from None
    for name in _names(values):
        if _SECRET.search(name):
            raise BadSettings(f"{path} holds {name!r}: secrets do not belong in this file")
    return values


def _names(table: Mapping[str, object]) -> Iterator[str]:
    for name, value in table.items():
        yield name
        if isinstance(value, dict):
            yield from _names(value)
