"""`serve` hands the settings on, keeps a private log and records when asked to."""

from __future__ import annotations

import json
import logging
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, cast

import pytest
from artifact_client import Client, RpcError, dial_command

from sidecar import serve
from sidecar.server import daemon
from sidecar.stores.location import StoreSettings
from tests.daemon_process import PROJECT, Workspace, environment, eventually

if TYPE_CHECKING:
    from sidecar.server.assembly import Wanted

Served = list[tuple[object, daemon.Serving]]


@pytest.fixture
def served(monkeypatch: pytest.MonkeyPatch) -> Served:
    """What the daemon would have been run with; it is not run."""
    runs: Served = []
    monkeypatch.setattr(daemon, "run", lambda wanted, serving: runs.append((wanted, serving)) or 0)
    monkeypatch.setattr(serve, "_begin_log", lambda settings, folder: None)
    return runs


def test_the_daemon_gets_the_settings(served: Served, tmp_path: Path) -> None:
    out_dir = tmp_path / "out"
    out_dir.mkdir()
    flags = f"--out-dir {out_dir} --state-dir {tmp_path}/state --keep-bytes 1MiB --idle-exit 9 --trust-timeline"
    more = "--eligible text/* --eligible image/png --allow-uid exec=1000 --tenant acme"
    assert serve.main([*flags.split(), *more.split()]) == 0
    ((wanted, serving),) = served
    fields = ("out_dir", "state_dir", "keep_bytes", "eligible", "trust_timeline", "identity")
    assert [getattr(wanted, name) for name in fields] == [
        str(out_dir),
        str(tmp_path / "state"),
        1024**2,
        ("text/*", "image/png"),
        True,
        {"tenant": "acme"},
    ]
    assert (serving.idle_exit, serving.allowed, serving.stdio_role) == (9, {"exec": frozenset({1000})}, None)


def test_the_settings_have_all_that_the_daemon_wants() -> None:
    from dataclasses import fields

    from sidecar.config import Settings
    from sidecar.server.assembly import Wanted

    assert all(hasattr(Settings, field.name) or field.name in Settings.model_fields for field in fields(Wanted))


def test_the_store_and_its_kin_have_flags(served: Served, tmp_path: Path) -> None:
    out_dir = tmp_path / "out"
    out_dir.mkdir()
    flags = "--store s3://bucket/p --store-endpoint-url http://127.0.0.1:9 --store-region r --store-profile x"
    roots = f"--attach-root {tmp_path}/a --attach-root {tmp_path}/b"
    assert serve.main(["--out-dir", str(out_dir), *flags.split(), *roots.split()]) == 0
    wanted = cast("Wanted", served[0][0])
    assert wanted.object_store == StoreSettings(
        uri="s3://bucket/p", endpoint_url="http://127.0.0.1:9", region="r", profile="x"
    )
    assert wanted.attach_roots == (f"{tmp_path}/a", f"{tmp_path}/b")


def test_a_daemon_with_a_folder_store_never_loads_boto3(make_workspace: Callable[..., Workspace]) -> None:
    workspace = make_workspace()
    words = [sys.executable, "-X", "importtime", "-m", "sidecar", "serve", *workspace.arguments, "--idle-exit", "0.1"]
    done = subprocess.run(words, cwd=PROJECT, env=environment(), capture_output=True, text=True, check=True)
    loaded = {line.rpartition("|")[2].strip() for line in done.stderr.splitlines() if line.startswith("import time:")}
    assert {"sidecar.server.assembly", "sidecar.stores.folder_store"} <= loaded
    assert {
        name for name in loaded if name.partition(".")[0] in ("boto3", "botocore", "s3transfer", "urllib3")
    } == set()
    assert (workspace.state_dir / "store").is_dir()  # it was probed


@pytest.mark.parametrize(
    ("words", "role"),
    [((), None), (("--role", "exec"), None), (("--stdio",), "runtime"), (("--stdio", "--role", "exec"), "exec")],
)
def test_stdio_is_a_connection_only_when_asked_for(
    served: Served, tmp_path: Path, words: tuple[str, ...], role: str | None
) -> None:
    assert serve.main(["--out-dir", str(tmp_path), "--state-dir", str(tmp_path.parent / "state"), *words]) == 0
    assert served[0][1].stdio_role == role


def test_bad_settings_are_one_line(served: Served, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert serve.main(["--out-dir", str(tmp_path), "--idle-exit", "soon"]) == 64
    assert served == []
    err = capsys.readouterr().err
    assert err.startswith("artifact-sidecar: idle_exit (from --idle-exit)")
    assert err.count("\n") == 1


@pytest.mark.rule("cli.unsupported-systems-exit-69")
@pytest.mark.parametrize(
    ("platform", "release", "why"),
    [("darwin", "24.0.0", "runs on Linux only"), ("linux", "5.5.19-generic", "needs Linux 5.6 or later")],
)
def test_elsewhere_the_daemon_says_so(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    platform: str,
    release: str,
    why: str,
) -> None:
    out_dir = tmp_path / "out"
    out_dir.mkdir()
    monkeypatch.setattr(daemon.sys, "platform", platform)
    monkeypatch.setattr(daemon.os, "uname", lambda: os.uname_result((platform, "here", release, "1", "x86_64")))
    monkeypatch.setattr(serve, "_begin_log", lambda settings, folder: None)
    assert serve.main(["--out-dir", str(out_dir), "--state-dir", str(tmp_path / "state")]) == 69
    assert why in capsys.readouterr().err


@pytest.mark.rule("cli.serve-stdio-is-a-connection")
def test_serve_speaks_on_its_own_stdio_in_the_role_it_was_given(make_workspace: Callable[..., Workspace]) -> None:
    workspace = make_workspace()
    words = [sys.executable, "-m", "sidecar", "serve", *workspace.arguments, "--stdio", "--role", "exec"]
    with Client(lambda: dial_command(["env", f"PYTHONPATH={PROJECT}", *words])) as client:
        assert client.call("workspace/status")["out_dir"] == str(workspace.out_dir)
        with pytest.raises(RpcError) as refused:
            client.call("turn/begin", {"turn_id": "turn_1"})
    assert refused.value.kind == "not_permitted"
    eventually(lambda: not workspace.answers())


def test_lines_of_requests_keep_their_own_time() -> None:
    layout = serve._Layout()
    of_request = logging.makeLogRecord({"name": "sidecar.request", "msg": "2026-01-01T00:00:00.000Z client=1"})
    other = logging.makeLogRecord({"name": "sidecar.daemon", "msg": "serving", "levelname": "INFO", "created": 0.5})
    assert layout.format(of_request) == "2026-01-01T00:00:00.000Z client=1"
    assert layout.format(other).startswith("1970-01-01T00:00:00.")
    assert layout.format(other).endswith("Z INFO sidecar.daemon serving")


def test_a_recording_holds_every_message_and_only_its_owner_reads_it(tmp_path: Path) -> None:
    path = tmp_path / "frames.jsonl"
    recording = serve.Recording(str(path))
    client = SimpleNamespace(id=3, role="exec")
    recording.tap(client, "in", b'{"id":1}')  # type: ignore[arg-type]
    recording.tap(client, "out", b"\xff no json")  # type: ignore[arg-type]
    lines = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
    assert [(line["client"], line["role"], line["way"]) for line in lines] == [(3, "exec", "in"), (3, "exec", "out")]
    assert (lines[0]["body"], lines[1]["garbage"]) == ({"id": 1}, "\\xff no json")
    assert path.stat().st_mode & 0o777 == 0o600


def test_a_running_daemon_records(make_workspace: Callable[..., Workspace]) -> None:
    workspace = make_workspace(options=["--record", "frames.jsonl"])
    workspace.options = ("--record", str(workspace.folder / "frames.jsonl"))
    workspace.start().connect("exec").call("workspace/status")
    bodies = [json.loads(line)["body"] for line in (workspace.folder / "frames.jsonl").read_text().splitlines()]
    assert [body["method"] for body in bodies if "method" in body] == ["initialize", "initialized", "workspace/status"]


@pytest.mark.rule("cli.one-daemon-per-workspace")
def test_a_second_daemon_says_that_one_runs(workspace: Workspace) -> None:
    second = workspace.serve()
    assert second.wait(10) == 75
    assert "this workspace is served already" in workspace.log.read_text()


def test_what_a_door_started_says_little_into_the_file_that_is_never_rotated(
    make_workspace: Callable[..., Workspace],
) -> None:
    workspace = make_workspace()
    door = [sys.executable, "-m", "sidecar", "connect", *workspace.arguments]
    done = subprocess.run(
        door, cwd=PROJECT, env=environment(), stdin=subprocess.DEVNULL, capture_output=True, check=True
    )
    assert done.stderr == b""
    eventually(lambda: "serving" in ((log := workspace.state_dir / "sidecar.log").exists() and log.read_text()))
    assert (workspace.socket("exec").parent.parent / "spawn.log").read_bytes() == b""
    stop = [sys.executable, "-m", "sidecar", "stop", *workspace.arguments]
    subprocess.run(stop, cwd=PROJECT, env=environment(), capture_output=True, check=True)


def test_the_spawn_log_is_known_by_its_inode(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert not serve._is_spawn_log(str(tmp_path))
    (tmp_path / "spawn.log").touch()
    assert not serve._is_spawn_log(str(tmp_path))
    status = os.stat(tmp_path / "spawn.log")
    monkeypatch.setattr(serve.os, "fstat", lambda fd: status)
    assert serve._is_spawn_log(str(tmp_path))
