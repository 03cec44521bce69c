"""A state folder is known from its copies."""

from __future__ import annotations

import shutil
from pathlib import Path

from sidecar.stores.whereabouts import whereabouts


def test_the_same_folder_has_one_place_by_whatever_name(tmp_path: Path) -> None:
    folder = tmp_path / "state"
    folder.mkdir()
    (tmp_path / "link").symlink_to(folder)
    assert whereabouts(str(tmp_path / "link")) == whereabouts(f"{folder}/") == whereabouts(str(folder))


def test_a_copy_has_another_one_also_at_the_same_path(tmp_path: Path) -> None:
    folder = tmp_path / "state"
    folder.mkdir()
    before = whereabouts(str(folder))
    folder.rename(tmp_path / "aside")
    shutil.copytree(tmp_path / "aside", folder)
    assert before != whereabouts(str(folder))
    assert before != whereabouts(str(tmp_path / "aside"))
