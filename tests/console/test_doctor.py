"""`doctor` lists the settings with their sources, and finds what is wrong with the surroundings."""

from __future__ import annotations

import json
import os
import re
import threading
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from sidecar.__main__ import main
from sidecar.console import doctor
from sidecar.stores.indexes import migrate
from tests.daemon_process import Workspace, eventually
from tests.postgres import Postgres
from tests.radosgw import Radosgw

pytestmark = pytest.mark.rule("cli.doctor-checks-the-surroundings")

Examine = Callable[..., tuple[int, dict[str, Any]]]


@pytest.fixture
def place(make_workspace: Callable[..., Workspace]) -> Workspace:
    """A workspace without a daemon, in a folder of ours alone."""
    made = make_workspace()
    made.folder.chmod(0o700)
    return made


@pytest.fixture
def examine(capsys: pytest.CaptureFixture[str]) -> Examine:
    def run(workspace: Workspace, *words: str) -> tuple[int, dict[str, Any]]:
        code = main(["doctor", "--json", *words, *workspace.arguments])
        return code, json.loads(capsys.readouterr().out)

    return run


def findings(told: dict[str, Any], what: str) -> list[tuple[str, str]]:
    return [(finding["state"], finding["detail"]) for finding in told["findings"] if finding["what"] == what]


def test_every_setting_has_its_value_and_its_source(
    place: Workspace, examine: Examine, monkeypatch: pytest.MonkeyPatch
) -> None:
    (place.folder / "artifact-sidecar.toml").write_text("idle_exit = 7\n")
    monkeypatch.setenv("ARTIFACT_SIDECAR_TENANT", "acme")
    code, told = examine(place)
    listed = {setting["name"]: (setting["value"], setting["source"]) for setting in told["settings"]}
    assert code == 0
    assert listed["out_dir"] == (str(place.out_dir), "--out-dir")
    assert listed["idle_exit"] == (7, str(place.folder / "artifact-sidecar.toml"))
    assert listed["tenant"] == ("acme", "ARTIFACT_SIDECAR_TENANT")
    assert listed["trust_timeline"] == (False, "default")


def test_a_sound_system_has_all_that_is_needed(place: Workspace, examine: Examine) -> None:
    code, told = examine(place)
    assert code == 0
    for what in ("python", "kernel", "openat2", "leases", "file system", "inotify max_user_watches", "daemon"):
        assert [state for state, _ in findings(told, what)] == ["ok"], (what, findings(told, what))
    assert list(place.out_dir.iterdir()) == []


def test_the_daemon_is_asked_how_it_is(workspace: Workspace, examine: Examine) -> None:
    eventually(lambda: findings(examine(workspace)[1], "watcher") == [("ok", "ok")])  # its watch may yet have to begin
    _, told = examine(workspace)
    ((state, detail),) = findings(told, "daemon")
    assert workspace.daemon is not None
    assert (state, f"process {workspace.daemon.pid}," in detail) == ("ok", True)
    assert all(state == "ok" for state, _ in findings(told, "socket folder"))
    assert len(findings(told, "socket folder")) == 5


def test_roles_of_one_uid_are_said_to_guard_against_mistakes_only(place: Workspace, examine: Examine) -> None:
    ((state, detail),) = findings(examine(place)[1], "roles")
    assert state == "warn"
    assert "against mistakes" in detail


def test_uids_that_are_let_in_are_named(place: Workspace, examine: Examine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ARTIFACT_SIDECAR_ALLOW_UID", "exec=1234")
    ((state, detail),) = findings(examine(place)[1], "roles")
    assert state == "ok"
    assert "1234" in detail


def test_whether_there_is_a_sandbox_is_tried(
    place: Workspace, examine: Examine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for says, code in (("", 0), ("no namespaces", 1)):
        program = tmp_path / "bwrap"
        program.write_text(f"#!/bin/sh\necho '{says}' >&2\nexit {code}\n")
        program.chmod(0o755)
        monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
        ((state, detail),) = findings(examine(place)[1], "sandbox")
        assert (state, says in detail) == ("warn" if code else "ok", True)


def test_a_settings_file_that_is_not_read_says_why(place: Workspace, examine: Examine) -> None:
    file = place.folder / "artifact-sidecar.toml"
    file.write_text("idle_exit = 7\n")
    file.chmod(0o666)
    _, told = examine(place)
    assert findings(told, "settings file") == [("warn", f"{file} is not read: it can be written by others")]


def test_a_journal_that_was_damaged_is_not_forgotten(place: Workspace, examine: Examine) -> None:
    place.state_dir.mkdir(mode=0o700)
    (place.state_dir / "journal.db.damaged-20260101T000000Z").touch()
    found = findings(examine(place)[1], "journal")
    assert [state for state, _ in found] == ["ok", "warn"]
    assert "damaged-20260101T000000Z" in found[1][1]


def test_a_state_folder_that_others_can_read_is_found(place: Workspace, examine: Examine) -> None:
    place.state_dir.mkdir()
    place.state_dir.chmod(0o755)
    ((state, _),) = findings(examine(place)[1], "state")
    assert state == "warn"


def test_a_socket_that_others_can_reach_is_found(workspace: Workspace, examine: Examine) -> None:
    workspace.socket("exec").parent.chmod(0o755)
    found = findings(examine(workspace)[1], "socket folder")
    assert [state for state, detail in found if "/exec is" in detail] == ["warn"]


def test_what_is_missing_makes_an_exit_code(
    place: Workspace, examine: Examine, monkeypatch: pytest.MonkeyPatch
) -> None:
    old = os.uname_result(("Linux", "here", "5.4.0-1-amd64", "1", "x86_64"))
    monkeypatch.setattr(doctor.os, "uname", lambda: old)
    code, told = examine(place)
    assert code == 69
    assert findings(told, "kernel") == [("fail", "linux 5.4.0-1-amd64")]


def test_people_get_two_tables(place: Workspace, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor", *place.arguments]) == 0
    settings, checks = capsys.readouterr().out.split("\n\n")
    assert settings.startswith("SETTING")
    assert checks.startswith("CHECKED")


def test_the_file_system_is_that_of_the_longest_mount_point(tmp_path: Path) -> None:
    kind, _, point = doctor._file_system("/proc/self").partition(" at ")
    assert (kind, point) == ("proc", "/proc")


# The store --------------------------------------------------------------------------------------------------------


def test_a_store_that_is_yet_to_be_made_is_not_made_by_a_look(place: Workspace, examine: Examine) -> None:
    ((state, detail),) = findings(examine(place)[1], "store")
    assert (state, detail) == ("ok", f"{place.state_dir}/store, made by the first daemon")
    assert not place.state_dir.exists()


def test_no_store_is_as_good(place: Workspace, examine: Examine) -> None:
    code, told = examine(place, "--store", "none")
    assert (code, findings(told, "store")) == (0, [("ok", "none: files are kept here and not hosted")])


def test_a_folder_is_tried_and_left_as_it_was(place: Workspace, examine: Examine) -> None:
    store = place.folder / "hosted"
    store.mkdir()
    code, told = examine(place, "--store", str(store))
    ((state, detail),) = findings(told, "store")
    assert (code, state) == (0, "ok")
    assert detail.startswith(f"{store} can: read back what was put, read from the middle, ")
    assert list(store.iterdir()) == []


def test_a_folder_that_is_none_is_a_failure_with_a_hint(place: Workspace, examine: Examine) -> None:
    (place.folder / "file").write_bytes(b"")
    code, told = examine(place, "--store", str(place.folder / "file"))
    ((state, detail),) = findings(told, "store")
    assert (code, state) == (69, "fail")
    assert "unreachable: the store's folder is not there" in detail


def test_a_bucket_is_tried(place: Workspace, examine: Examine, s3: Radosgw, bucket: str) -> None:
    words = ("--store", f"s3://{bucket}/x", "--store-endpoint-url", s3.https, "--store-ca-bundle", s3.ca_bundle)
    code, told = examine(place, *words)
    ((state, detail),) = findings(told, "store")
    assert (code, state) == (0, "ok")
    assert detail == (
        f"s3://{bucket}/x can: read back what was put, read from the middle, refuse a second create, "
        "does not check hashes, sign links, conditional writes by unquoted ETag"
    )


def test_a_bucket_that_is_not_there_is_a_failure_with_a_hint(place: Workspace, examine: Examine, s3: Radosgw) -> None:
    code, told = examine(place, "--store", "s3://no-such-bucket", "--store-endpoint-url", s3.http)
    assert code == 69
    assert findings(told, "store") == [
        ("fail", "s3://no-such-bucket: no_bucket: there is no such bucket: make it, or change --store (NoSuchBucket)")
    ]


def test_a_store_that_hangs_is_left_behind(place: Workspace, examine: Examine, monkeypatch: pytest.MonkeyPatch) -> None:
    hanging = threading.Event()
    store = place.folder / "hosted"
    store.mkdir()
    monkeypatch.setattr(doctor, "STORE_SECONDS", 0.05)
    monkeypatch.setattr(doctor, "open_configured", lambda settings: SimpleNamespace(probe=hanging.wait))
    code, told = examine(place, "--store", str(store))
    hanging.set()
    assert (code, findings(told, "store")) == (69, [("fail", f"{store}: timed_out: no answer within 0.05 seconds")])


def test_people_read_values_with_their_units(
    place: Workspace, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ARTIFACT_SIDECAR_KEEP_BYTES", "2000")
    monkeypatch.setenv("ARTIFACT_SIDECAR_IDLE_EXIT", "7")
    main(["doctor", *place.arguments])
    told = capsys.readouterr().out
    for setting in (r"keep_bytes\s+2000 bytes\s", r"idle_exit\s+7 seconds\s", r"lease_seconds\s+30 seconds\s"):
        assert re.search(setting, told), setting


# The index --------------------------------------------------------------------------------------------------------


def test_an_index_that_is_yet_to_be_made_is_not_made_by_a_look(place: Workspace, examine: Examine) -> None:
    assert findings(examine(place)[1], "index") == [("ok", f"{place.state_dir}/index.db, made by the first daemon")]
    assert not place.state_dir.exists()


def test_an_index_that_is_made_is_known_by_its_engine(place: Workspace, examine: Examine) -> None:
    file = place.folder / "i.db"
    migrate(str(file))
    ((state, detail),) = findings(examine(place, "--index", str(file))[1], "index")
    assert state == "ok"
    assert detail.startswith(f"{file} is SQLite 3.")
    assert ", schema 0" in detail


def test_postgresql_is_checked_and_its_password_not_shown(
    place: Workspace, examine: Examine, postgres: Postgres, postgres_database: str
) -> None:
    code, told = examine(place, "--index", postgres_database)
    ((state, detail),) = findings(told, "index")
    assert (code, state) == (0, "warn")
    assert "pgvector" in detail
    assert "`artifact-sidecar index --migrate`" in detail
    url = postgres.loopback_url("postgres", user="locked", password="wrong-secret")
    code, told = examine(place, "--index", url)
    assert code == 69
    assert [state for state, _ in findings(told, "index")] == ["warn", "fail"]
    assert "never written down" in findings(told, "index")[0][1]
    assert "denied" in findings(told, "index")[1][1]
    assert "wrong-secret" not in json.dumps(told)


def test_a_file_that_is_no_index_is_a_failure(place: Workspace, examine: Examine) -> None:
    file = place.folder / "i.db"
    file.write_bytes(b"this is no database, whatever it is called" * 100)
    code, told = examine(place, "--index", str(file))
    ((state, detail),) = findings(told, "index")
    assert (code, state) == (69, "fail")
    assert "wrong_bytes" in detail


# Who writes -------------------------------------------------------------------------------------------------------


def test_a_conversation_that_somebody_else_writes_is_told(
    make_workspace: Callable[..., Workspace], examine: Examine, tmp_path: Path
) -> None:
    shared = {"index": str(tmp_path / "index.db"), "store": str(tmp_path / "store"), "conversation_id": "shared"}
    first, second = make_workspace(settings=shared).start(), make_workspace(settings=shared)
    writer = first.connect("runtime")
    writer.call("turn/begin", {"turn_id": "turn_1"})
    assert findings(examine(first)[1], "conversation") == [("ok", "this daemon writes it")]
    second.start()
    reader = second.connect("runtime")
    eventually(lambda: reader.call("workspace/status")["conversation_store"]["lease"] == "reader", ceiling=60)
    ((state, told),) = findings(examine(second)[1], "conversation")
    assert state == "warn"
    assert "writes it: here it can be read" in told
    assert "another daemon" not in told, "it is named"


@pytest.mark.parametrize(
    ("kept", "state", "says"),
    [
        ({"state": "ok", "lease": "diverged", "held_by": "ann@here:out"}, "fail", "ann@here:out went on"),
        ({"state": "unavailable", "reason": "timed_out", "lease": "unknown"}, "warn", "does not answer: timed_out"),
        ({"state": "ok", "lease": "writer", "unsaved": 3}, "warn", "3 turns or summaries wait"),
    ],
)
def test_what_is_wrong_with_saving_is_told(kept: dict[str, Any], state: str, says: str) -> None:
    found = doctor._conversation({"conversation_store": kept})
    assert found.state == state
    assert says in found.detail
