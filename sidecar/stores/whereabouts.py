"""Where a state folder is: what stays the same as long as it is that folder, and that a copy of it has not."""

from __future__ import annotations

import os


def whereabouts(folder: str) -> str:
    """Its inode and its real path. Who copies the folder, or moves it, has another one. The folder must be there.

    The device is left out, as a reboot may number it anew; so is the host's name, which a container changes.
    """
    path = os.path.realpath(folder)
    return f"{os.stat(path).st_ino} {path}"
