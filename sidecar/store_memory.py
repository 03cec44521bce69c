"""The store and the index that a workspace was last served with, kept in its state folder.

Whoever starts the next daemon need not know them: a door, a console command or a restart without settings of their own
finds the files where they were hosted, and the conversation where it was saved. Flags, variables and the settings file
win over it. It holds no credentials: an index with a password in its name is not remembered.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping

from sidecar.settings_file import BadSettings
from sidecar.stores.durable import sync_folder

NAME = "store.json"
BYTES = 65536
STORE = (
    "store", "store_endpoint_url", "store_region", "store_profile", "store_ca_bundle", "store_public_endpoint_url",
)  # fmt: skip
INDEX = "index"
PARTS = (*STORE, INDEX)


def recall(state_dir: str) -> dict[str, object]:
    """What was remembered, by name of the setting; empty when nothing was. Raises BadSettings for a damaged file."""
    path = os.path.join(state_dir, NAME)
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        return {}
    with os.fdopen(fd, "rb") as file:
        content = file.read(BYTES)
    try:
        said = json.loads(content)
    except ValueError as fault:
        raise BadSettings(f"{path} is damaged; remove it, and give --store and --index again") from fault
    return {name: said[name] for name in PARTS if isinstance(said, dict) and isinstance(said.get(name), str)}


def remember(state_dir: str, settings: Mapping[str, object]) -> None:
    """Write it down whole, for the owner alone. Raises OSError."""
    path = os.path.join(state_dir, NAME)
    said = {name: str(settings[name]) for name in PARTS if settings.get(name)}
    arriving = f"{path}.new"
    fd = os.open(arriving, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    with os.fdopen(fd, "w", encoding="utf-8") as file:
        json.dump(said, file)
        file.flush()
        os.fsync(file.fileno())
    os.replace(arriving, path)
    sync_folder(state_dir)
