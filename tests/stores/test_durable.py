"""Folders that outlive a power cut: which ones are synced, seen by way of the shim that writes down every sync."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from sidecar.stores.durable import make_folder
from tests.daemon_process import PROJECT, environment
from tests.faults.disk_shim import FOLDER, SYNCED, read_log, recording, require_shim


def made(folder: Path, log: Path) -> list[str]:
    """Make a folder under the shim; in order, what was made and what was synced, by name."""
    require_shim()
    top = log.parent / "top"
    words = [sys.executable, "-c", f"from sidecar.stores.durable import make_folder; make_folder({str(folder)!r})"]
    subprocess.run([*recording(top, log), *words], cwd=PROJECT, env=environment(), check=True)
    names = {top.stat().st_ino: "top"} | {inner.stat().st_ino: inner.name for inner in top.rglob("*")}
    deeds = {FOLDER: "made", SYNCED: "synced"}
    return [f"{deeds[one.what]} {names[one.node]}" for one in read_log(log) if one.what in deeds]


def test_every_folder_is_synced_into_the_one_above_before_the_next_is_made(tmp_path: Path) -> None:
    (tmp_path / "top" / "a").mkdir(parents=True)
    steps = made(tmp_path / "top" / "a" / "b" / "c", tmp_path / "log")
    assert steps == ["synced top", "made b", "synced a", "made c", "synced b"]


def test_a_folder_that_is_there_is_synced_for_whoever_did_not_come_to_it(tmp_path: Path) -> None:
    (tmp_path / "top" / "a").mkdir(parents=True)
    assert made(tmp_path / "top" / "a", tmp_path / "log") == ["synced top"]


def test_it_is_ours_alone(tmp_path: Path) -> None:
    make_folder(str(tmp_path / "a" / "b"))
    assert [(tmp_path / name).stat().st_mode & 0o777 for name in ("a", "a/b")] == [0o700, 0o700]


def test_a_file_in_the_way_is_not_taken_for_a_folder(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("a file")
    for path in ("a", "a/b"):
        with pytest.raises(OSError, match=r"folder|directory"):
            make_folder(str(tmp_path / path))
