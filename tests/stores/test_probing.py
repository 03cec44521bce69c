"""What a folder can do is tried and not assumed; a folder that cannot is told from one that can."""

from __future__ import annotations

import hashlib
import io
from pathlib import Path
from typing import Any

import pytest

from sidecar.core.errors import NotFound, StoreUnavailable
from sidecar.ports import Abilities
from sidecar.stores.folder_store import FolderStore
from sidecar.stores.probing import PROBE_PREFIX, Sample, probe_folder

SOUND = Abilities(reads_back=True, ranges=True, atomic_create=True, verifies_sha256=True, presigns=False)


class Careless(FolderStore):
    """Takes anything, over anything."""

    def put(self, key: str, body: Any, *, size: int, sha256: str, mime: str) -> None:
        self.delete([key])
        content = body.read()
        found = hashlib.sha256(content).hexdigest()
        super().put(key, io.BytesIO(content), size=len(content), sha256=found, mime=mime)


def test_a_sound_folder_can_all_that_a_folder_can(tmp_path: Path) -> None:
    store = FolderStore(str(tmp_path / "store"))
    assert probe_folder(store) == SOUND
    assert list((tmp_path / "store").iterdir()) == []


def test_a_careless_store_is_found_out(tmp_path: Path) -> None:
    store = Careless(str(tmp_path / "store"))
    assert probe_folder(store) == SOUND._replace(atomic_create=False, verifies_sha256=False)
    assert store.list("") == []


def test_a_folder_that_is_not_there_says_so(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(StoreUnavailable) as refused:
        probe_folder(FolderStore(str(tmp_path / "file")))
    assert refused.value.fault == "unreachable"


def test_no_two_samples_share_a_key(tmp_path: Path) -> None:
    one, other = Sample(), Sample()
    assert one.key.startswith(PROBE_PREFIX)
    assert (one.key == other.key, one.body == other.body) == (False, False)
    store = FolderStore(str(tmp_path))
    one.put(store)
    with pytest.raises(NotFound):
        list(store.get(other.key))
