"""`gc` frees what is in the store as well, what nobody names, and nothing else; a dry run frees nothing."""

from __future__ import annotations

import hashlib
import json
import os
import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest

from sidecar.core.conversation_names import blob_key, message_id
from sidecar.core.storage_names import Identity
from sidecar.stores.blobs import Blobs
from tests.console.conftest import Run
from tests.daemon_process import Workspace
from tests.postgres import Postgres

pytestmark = pytest.mark.rule("cli.export-and-gc")

DAY = 86400


def kept(workspace: Workspace) -> set[str]:
    return set(Blobs(str(workspace.state_dir)).sizes())


def sha256(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def played(workspace: Workspace) -> Workspace:
    """One version that is superseded and was never hosted, one that is hosted, and bytes that nobody knows."""
    runtime = workspace.connect("runtime")
    runtime.call("turn/begin", {"turn_id": "turn_1"})
    workspace.write("turn_1/files/a.txt", "first")
    runtime.call("workspace/sync")
    workspace.write("turn_1/files/a.txt", "second")
    runtime.call("turn/end", {"turn_id": "turn_1"})
    workspace.write("turn_1/files/late.txt", "nowhere else")
    runtime.call("workspace/sync")
    stray = workspace.state_dir / "kept" / "00" / ("1" * 62)
    stray.parent.mkdir(exist_ok=True)
    stray.write_text("stray")
    workspace.stop()
    return workspace


def freed(workspace: Workspace, command: Run, *words: str) -> dict[str, int]:
    code, out, err = command(workspace, "gc", "--json", *words)
    assert (code, err) == (0, "")
    return {one["what"]: one["count"] for one in json.loads(out[out.index("{") :])["freed"]}


def test_what_the_store_has_and_what_nobody_names_is_freed(workspace: Workspace, command: Run) -> None:
    played(workspace)
    counts = freed(workspace, command)
    assert counts["kept bytes that nothing names"] == 1
    assert counts["kept bytes that the store has"] == 1
    assert kept(workspace) == {sha256("first"), sha256("nowhere else")}
    workspace.start()
    exec_ = workspace.connect("exec")
    (workspace.out_dir / "turn_1/files/a.txt").unlink()
    (back,) = exec_.call("artifact/rehost", {"paths": ["fi:turn_1.files/a.txt"]})["rehosted"]
    assert (back["origin"], back["sha256"]) == ("store", sha256("second"))


def test_a_daemon_that_runs_is_ended_and_none_is_started(workspace: Workspace, command: Run) -> None:
    assert workspace.daemon is not None
    command(workspace, "sync")  # it has opened its journal by then
    code, out, _ = command(workspace, "gc")
    assert code == 0
    assert out.startswith(f"ended the daemon, process {workspace.daemon.pid}; the next client starts another\n")
    assert workspace.daemon.wait(5) == 0
    workspace.daemon = None
    assert not workspace.answers()


def test_a_workspace_that_was_never_served_has_nothing_to_free(
    make_workspace: Callable[..., Workspace], command: Run
) -> None:
    workspace = make_workspace()
    assert command(workspace, "gc")[0] == 0
    assert not workspace.state_dir.exists()


def test_a_dry_run_frees_nothing_and_says_the_same(workspace: Workspace, command: Run) -> None:
    before = kept(played(workspace))
    said = freed(workspace, command, "--dry-run")
    assert kept(workspace) == before
    assert freed(workspace, command) == said


def test_a_dry_run_ends_nobody_and_says_what_to_do_first(workspace: Workspace, command: Run) -> None:
    assert workspace.daemon is not None
    command(workspace, "sync")
    code, out, err = command(workspace, "gc", "--dry-run")
    assert (code, out) == (75, "")
    assert f"process {workspace.daemon.pid} serves this workspace" in err
    assert "`artifact-sidecar stop` first" in err
    assert workspace.daemon.poll() is None
    assert workspace.connect("runtime").call("workspace/status")["revision"] >= 0


def test_superseded_versions_go_when_there_are_too_many(
    workspace: Workspace, command: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    played(workspace)
    monkeypatch.setenv("ARTIFACT_SIDECAR_KEEP_BYTES", "1")
    assert freed(workspace, command)["superseded versions over the limit"] == 1
    assert kept(workspace) == {sha256("nowhere else")}


def test_a_store_that_is_not_there_spares_everything_hosted(
    make_workspace: Callable[..., Workspace], command: Run, tmp_path: Path
) -> None:
    store = tmp_path / "hosted"
    workspace = played(make_workspace(options=["--store", str(store)]).start())
    store.rename(tmp_path / "away")
    freed(workspace, command)
    assert sha256("second") in kept(workspace)


def test_a_blob_without_a_row_goes_once_it_is_a_day_old(workspace: Workspace, command: Run) -> None:
    said = workspace.connect("runtime").call("workspace/status")["conversation"]
    identity = Identity.of(said)
    played(workspace)
    store = workspace.state_dir / "store"
    old, young, strange = (
        store / blob_key(identity, "turn_1", message_id("turn.log", 5.0, mark="lost")),
        store / blob_key(identity, "turn_1", message_id("turn.log", 5.0, mark="young")),
        store / blob_key(Identity.of({**said, "conversation_id": "other"}), "turn_1", "artifact-x-turn.log"),
    )
    for path in (old, young, strange):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("{}")
    for path in (old, strange):
        os.utime(path, (os.stat(path).st_atime, os.stat(path).st_mtime - 2 * DAY))
    named = {store / key for key in keys_of_rows(workspace)}
    assert named
    for path in named:
        os.utime(path, (path.stat().st_atime, path.stat().st_mtime - 2 * DAY))
    assert freed(workspace, command)["blobs that no row names"] == 1
    assert not old.exists()
    assert all(path.exists() for path in (young, strange, *named))


def keys_of_rows(workspace: Workspace) -> set[str]:
    with sqlite3.connect(workspace.state_dir / "index.db") as index:
        return {key for (key,) in index.execute("SELECT key FROM conv_messages WHERE key != ''")}


def aged(folder: Path) -> set[Path]:
    """Every file below, each two days old by now."""
    files = {path for path in folder.rglob("*") if path.is_file()}
    for path in files:
        os.utime(path, (path.stat().st_atime, path.stat().st_mtime - 2 * DAY))
    return files


def records(folder: Path) -> set[Path]:
    return {path for path in folder.glob("cb/tenants/*/projects/*/conversation/**/*") if path.is_file()}


def put_old(path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("{}")
    os.utime(path, (path.stat().st_atime, path.stat().st_mtime - 2 * DAY))
    return path


def say_a_turn(workspace: Workspace, turn: str) -> None:
    runtime = workspace.start().connect("runtime")
    runtime.call("turn/begin", {"turn_id": turn, "prompt": "hello"})
    runtime.call("turn/end", {"turn_id": turn})
    workspace.stop()


@pytest.fixture
def moved(make_workspace: Callable[..., Workspace], postgres: Postgres) -> Workspace:
    """A conversation that `index.db` knows from earlier, and that a server with a password has rows of now."""
    workspace = make_workspace()
    say_a_turn(workspace, "turn_1")
    workspace.options = (*workspace.options, "--index", postgres.loopback_url(postgres.database(), password="Sesam-5"))
    say_a_turn(workspace, "turn_2")
    return workspace


def test_another_index_than_the_workspace_saved_to_frees_no_records(moved: Workspace, command: Run) -> None:
    store = moved.state_dir / "store"
    before = aged(store)
    assert records(store)
    code, out, err = command(moved, "gc", "--json")
    assert code == 78
    assert "blobs that no row names" not in out
    assert "this workspace saves to postgresql://postgres@127.0.0.1" in err
    assert "Sesam" not in out + err
    assert {path for path in store.rglob("*") if path.is_file()} >= before


def test_nor_does_it_after_a_daemon_that_was_not_told_of_the_index(moved: Workspace, command: Run) -> None:
    moved.options = ("--idle-exit", "600")
    say_a_turn(moved, "turn_3")
    before = records(moved.state_dir / "store")
    aged(moved.state_dir / "store")
    code, out, err = command(moved, "gc")
    assert code == 78
    assert "was the index of this workspace too" in err
    assert "Sesam" not in out + err
    assert records(moved.state_dir / "store") == before


def test_rows_of_an_earlier_file_spare_their_records_too(
    make_workspace: Callable[..., Workspace], command: Run, tmp_path: Path
) -> None:
    workspace = make_workspace()
    say_a_turn(workspace, "turn_1")
    first = keys_of_rows(workspace)
    workspace.options = (*workspace.options, "--index", str(tmp_path / "other.db"))
    say_a_turn(workspace, "turn_2")
    aged(workspace.state_dir / "store")
    freed(workspace, command)
    assert first
    assert all((workspace.state_dir / "store" / key).exists() for key in first)


def test_what_the_runtime_saved_to_the_store_alone_stays(workspace: Workspace, command: Run) -> None:
    runtime = workspace.connect("runtime")
    runtime.call("turn/begin", {"turn_id": "turn_1", "prompt": "hello"})
    for kind in ("my.kind", "my-turn.log", "conv.artifacts.stream"):
        runtime.call("conversation/save", {"kind": kind, "content": {"said": kind}, "store_only": True})
    runtime.call("turn/end", {"turn_id": "turn_1"})
    workspace.stop()
    store = workspace.state_dir / "store"
    before = aged(store)
    assert len([path for path in before if path.name.endswith(("my.kind.json", "my-turn.log.json"))]) == 2
    assert freed(workspace, command)["blobs that no row names"] == 0
    assert {path for path in store.rglob("*") if path.is_file()} == before


def test_records_under_every_user_type_that_rows_or_files_name_are_looked_at(
    workspace: Workspace, command: Run
) -> None:
    said = workspace.connect("runtime").call("workspace/status")["conversation"]
    played(workspace)
    store = workspace.state_dir / "store"
    name = message_id("turn.log", 5.0, mark="lost")
    named, unnamed = (
        put_old(store / blob_key(Identity.of({**said, "user_type": role}), "turn_1", name))
        for role in ("paid", "nobody")
    )
    with sqlite3.connect(workspace.state_dir / "index.db") as index:
        index.execute("UPDATE conv_messages SET user_type='paid' WHERE kind='turn.log'")
    assert freed(workspace, command)["blobs that no row names"] == 1
    assert (named.exists(), unnamed.exists()) == (False, True)
