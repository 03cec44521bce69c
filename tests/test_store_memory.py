"""The store of a workspace is remembered for whoever starts the next daemon."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from sidecar.config import read_settings
from sidecar.settings_file import BadSettings
from sidecar.store_memory import NAME, recall, remember
from tests.daemon_process import Workspace

S3 = {"store": "s3://bucket/prefix", "store_endpoint_url": "https://s3.example.com"}


def test_what_is_remembered_is_recalled(tmp_path: Path) -> None:
    remember(str(tmp_path), {**S3, "store_region": None, "idle_exit": 3})
    assert recall(str(tmp_path)) == S3
    assert (tmp_path / NAME).stat().st_mode & 0o777 == 0o600


def test_nothing_is_recalled_where_nothing_was_remembered(tmp_path: Path) -> None:
    assert recall(str(tmp_path)) == {}


def test_a_damaged_memory_is_said_and_not_guessed(tmp_path: Path) -> None:
    (tmp_path / NAME).write_text("{")
    with pytest.raises(BadSettings, match="--store"):
        recall(str(tmp_path))


def test_settings_of_ones_own_win(tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "state").mkdir()
    remember(str(tmp_path / "state"), S3)
    flags = {"out_dir": str(tmp_path / "out"), "state_dir": str(tmp_path / "state")}
    assert read_settings(flags).store == "s3://bucket/prefix"
    assert {one.name: one.source for one in read_settings(flags).listed()}["store"].endswith(NAME)
    assert read_settings({**flags, "store": "none"}).object_store is None
    assert read_settings({**flags, "store_region": "eu"}).object_store.region == "eu"  # type: ignore[union-attr]


def test_a_restart_without_flags_serves_the_same_store(
    make_workspace: Callable[..., Workspace], tmp_path: Path
) -> None:
    workspace = make_workspace(options=["--store", str(tmp_path / "hosted")]).start()
    workspace.stop()
    workspace.options = ("--idle-exit", "600")
    workspace.start()
    runtime = workspace.connect("runtime")
    runtime.call("turn/begin", {"turn_id": "turn_1"})
    workspace.write("turn_1/files/a.txt", "one")
    runtime.call("turn/end", {"turn_id": "turn_1"})
    (artifact,) = runtime.call("artifact/list")["artifacts"]
    assert artifact["hosted_uri"].startswith((tmp_path / "hosted").as_uri())


@pytest.mark.rule("settings.index-is-a-file-or-postgresql")
def test_the_index_is_remembered_beside_the_store_and_each_wins_alone(tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "state").mkdir()
    flags = {"out_dir": str(tmp_path / "out"), "state_dir": str(tmp_path / "state")}
    url = "postgresql://me@db.example.com/agents"
    read_settings({**flags, "index": url}).remember_store()
    assert recall(flags["state_dir"]) == {"index": url}
    read_settings({**flags, "store": "s3://bucket/prefix"}).remember_store()
    again = read_settings(flags)
    assert (again.store, again.index) == ("s3://bucket/prefix", url)
    assert {one.name: one.source for one in again.listed()}["index"].endswith(NAME)
    other = read_settings({**flags, "index": str(tmp_path / "i.db")})
    assert (other.store, other.index) == ("s3://bucket/prefix", str(tmp_path / "i.db"))


@pytest.mark.rule("settings.index-is-a-file-or-postgresql")
def test_a_password_is_never_written_down(tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "state").mkdir()
    flags = {"out_dir": str(tmp_path / "out"), "state_dir": str(tmp_path / "state")}
    read_settings({**flags, "index": "postgresql://me@db.example.com/agents"}).remember_store()
    secret = read_settings({**flags, "index": "postgresql://me:s3same@db.example.com/agents"})
    secret.remember_store()
    assert secret.forgets_index
    assert recall(flags["state_dir"]) == {}
    assert "s3same" not in (tmp_path / "state" / NAME).read_text()
