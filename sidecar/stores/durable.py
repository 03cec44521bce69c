"""Folders that are still there when the power comes back: a name is as durable as the last sync of its folder.

Syncing a file brings its bytes to the disk and promises nothing about its name; a folder that was made just now, and
with it all that was synced in it, may be gone after a power cut. So whoever makes a name syncs the folder above it.
"""

from __future__ import annotations

import os
from contextlib import suppress


def sync_folder(folder: str) -> None:
    """Make the names in `folder` durable. Raises OSError."""
    opened = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(opened)
    finally:
        os.close(opened)


def make_folder(path: str) -> None:
    """Make `path` and what is missing above it, for us alone and durably; one that is there is made durable as well.

    Whoever made it may have died before it was synced. Above it that is so of the deepest folder alone, since each is
    synced before the next is made. Raises OSError.
    """
    missing: list[str] = []
    at = os.path.abspath(path)
    while not os.path.isdir(at) and at != os.path.dirname(at):
        missing.append(at)
        at = os.path.dirname(at)
    with suppress(PermissionError):  # a folder above that is not ours to read was not made by us
        sync_folder(os.path.dirname(at))
    for folder in reversed(missing):
        with suppress(FileExistsError):  # made by somebody else meanwhile, unless something else stands there
            os.mkdir(folder, 0o700)
        sync_folder(os.path.dirname(folder))
    if not os.path.isdir(path):
        raise NotADirectoryError(f"something that is no folder stands at {path}")
