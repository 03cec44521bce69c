"""The commands against a real daemon, as a person and as a script see them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from sidecar.__main__ import main
from sidecar.console import listing
from tests.daemon_process import PROJECT, Workspace, environment, eventually

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Run:
    """Runs a command in this process on a workspace: its exit code, what it printed, what it complained of."""
    monkeypatch.setenv("PYTHONPATH", environment()["PYTHONPATH"])

    def command(workspace: Workspace, name: str, *words: str) -> tuple[int, str, str]:
        code = main([name, *words, *workspace.arguments])
        told = capsys.readouterr()
        return code, told.out, told.err

    return command


def with_files(workspace: Workspace) -> Workspace:
    workspace.write("turn_1/files/a.txt", "one\n")
    workspace.write("turn_1/files/data.bin", b"\0\1\2")
    return workspace


# Asking


@pytest.mark.rule("cli.people-get-tables-programs-get-json")
def test_listings_are_tables_or_json(workspace: Workspace, run: Run) -> None:
    with_files(workspace)
    code, out, _ = run(workspace, "ls")
    assert code == 0
    header, *rows = out.splitlines()
    assert header.split()[:3] == ["PATH", "SIZE", "TYPE"]
    assert [row.split()[0] for row in rows] == ["fi:turn_1.files/a.txt", "fi:turn_1.files/data.bin"]
    code, out, _ = run(workspace, "ls", "--json", "--prefix", "fi:turn_1.files/a")
    assert [artifact["artifact_path"] for artifact in json.loads(out)] == ["fi:turn_1.files/a.txt"]


def test_a_listing_knows_what_is_on_the_disk_by_now(workspace: Workspace, run: Run) -> None:
    assert run(workspace, "ls")[1].count("\n") == 1
    workspace.write("turn_1/files/new.txt")
    assert "fi:turn_1.files/new.txt" in run(workspace, "ls")[1]


def test_a_long_listing_comes_whole() -> None:
    pages = {None: (["a", "b"], "1"), "1": (["c"], "2"), "2": ([], None)}

    class Pages:
        def call(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
            assert method == "artifact/list"
            assert params["kind"] == "file"
            artifacts, following = pages[params.get("cursor")]
            return {"artifacts": artifacts, "next_cursor": following}

    assert list(listing.all_artifacts(Pages(), {"kind": "file"})) == ["a", "b", "c"]  # type: ignore[arg-type]


@pytest.mark.parametrize("path", ["fi:turn_1.files/a.txt", "turn_1/files/a.txt"])
def test_show_tells_of_an_artifact_and_its_text(workspace: Workspace, run: Run, path: str) -> None:
    with_files(workspace)
    code, out, _ = run(workspace, "show", path)
    head, _, text = out.partition("\n\n")
    assert (code, text) == (0, "one\n")
    assert "physical path  turn_1/files/a.txt" in head


def test_show_lists_the_rows_of_a_pool_path(workspace: Workspace, run: Run) -> None:
    with_files(workspace)
    run(workspace, "sync")
    code, out, err = run(workspace, "show", "so:sources_pool[1,9]")
    assert code == 0
    assert "fi:turn_1.files/a.txt" in out
    assert "no source has the number 9" in err


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (("show", "fi:turn_1.files/nothing"), 66),
        (("show", "fi:../x"), 66),
        (("show", "--json", "fi:turn_1.files/nothing"), 66),
        (("versions", "fi:turn_1.files/nothing"), 66),
        (("versions", "../x"), 64),
        (("sources", "1-"), 0),
    ],
)
def test_what_is_wrong_is_one_line_and_an_exit_code(
    workspace: Workspace, run: Run, words: tuple[str, ...], code: int
) -> None:
    found, out, err = run(workspace, *words)
    assert found == code, (out, err)
    assert err.count("\n") <= 1
    assert "Traceback" not in err


def test_versions_are_listed_oldest_first(workspace: Workspace, run: Run) -> None:
    workspace.write("turn_1/files/a.txt", "one")
    run(workspace, "sync")
    workspace.write("turn_1/files/a.txt", "three")
    code, out, _ = run(workspace, "versions", "turn_1/files/a.txt")
    assert code == 0
    assert [row.split()[0] for row in out.splitlines()[1:]] == ["1", "2"]
    assert len(json.loads(run(workspace, "versions", "turn_1/files/a.txt", "--json")[1])) == 2


def test_sources_are_listed_all_or_by_selector(workspace: Workspace, run: Run) -> None:
    workspace.write("turn_1/files/a.txt", "one")
    workspace.write("turn_1/files/b.txt", "two")
    assert len(run(workspace, "sources")[1].splitlines()) == 3
    rows = json.loads(run(workspace, "sources", "2", "--json")[1])["rows"]
    assert [row["sid"] for row in rows] == [2]


@pytest.mark.rule("cli.people-get-tables-programs-get-json")
def test_render_prints_what_the_agent_sees(workspace: Workspace, run: Run) -> None:
    runtime = workspace.connect("runtime")
    runtime.call("turn/begin", {"turn_id": "turn_1", "prompt": "bell \x07 and\na new line"})
    code, out, _ = run(workspace, "render")
    assert code == 0
    assert "[USER MESSAGE]\n" in out
    assert "bell \\x07 and\na new line\n\nSOURCES POOL (0 sources)\n" in out
    shown = json.loads(run(workspace, "render", "--json")[1])
    assert [message["type"] for message in shown["messages"]] == ["text"] * 3


def test_sync_says_what_is_new(workspace: Workspace, run: Run) -> None:
    with_files(workspace)
    code, out, _ = run(workspace, "sync")
    assert code == 0
    assert out.splitlines()[:2] == ["fi:turn_1.files/a.txt", "fi:turn_1.files/data.bin"]
    assert "2 artifacts, 1 sources" in out
    revision = json.loads(run(workspace, "sync", "--json")[1])["revision"]
    assert "0 artifacts" in run(workspace, "sync", "--since", str(revision))[1]


def test_status_tells_how_it_is(workspace: Workspace, run: Run) -> None:
    code, out, _ = run(workspace, "status")
    assert code == 0
    assert f"workspace     {workspace.out_dir}" in out
    assert workspace.daemon is not None
    assert f"process {workspace.daemon.pid}, up " in out
    assert json.loads(run(workspace, "status", "--json")[1])["out_dir"] == str(workspace.out_dir)


def test_a_reader_that_has_enough_is_no_failure(workspace: Workspace) -> None:
    for number in range(300):
        workspace.write(f"turn_1/files/{'long' * 40}-{number}.txt")
    listing_ = subprocess.Popen(
        [sys.executable, "-m", "sidecar", "ls", *workspace.arguments],
        cwd=PROJECT,
        env=environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert listing_.stdout is not None
    assert listing_.stdout.readline().startswith(b"PATH")
    listing_.stdout.close()
    assert listing_.stderr is not None
    with listing_.stderr:
        assert listing_.stderr.read() == b""
    assert listing_.wait(5) == 0


# The daemon's life


@pytest.mark.rule("cli.stop-restart-and-logs")
def test_stop_ends_the_daemon_and_its_lock(make_workspace: Callable[..., Workspace], run: Run) -> None:
    workspace = make_workspace().start()
    assert workspace.daemon is not None
    assert run(workspace, "stop") == (0, f"ended the daemon, process {workspace.daemon.pid}\n", "")
    assert workspace.daemon.wait(5) == 0
    workspace.daemon = None
    assert run(workspace, "stop") == (0, "no daemon was running\n", "")
    assert run(workspace, "status")[0] == 69
    workspace.start()


@pytest.mark.rule("cli.stop-restart-and-logs")
def test_restart_puts_another_daemon_in_its_place(make_workspace: Callable[..., Workspace], run: Run) -> None:
    workspace = make_workspace().start()
    workspace.write("turn_1/files/a.txt", "one")
    run(workspace, "sync")
    assert workspace.daemon is not None
    first = workspace.daemon.pid
    code, out, _ = run(workspace, "restart")
    try:
        assert code == 0
        assert out.endswith(f", in place of {first}\n")
        assert "fi:turn_1.files/a.txt" in run(workspace, "ls")[1]
    finally:
        workspace.daemon.wait(5)
        workspace.daemon = None
        run(workspace, "stop")


@pytest.mark.rule("cli.stop-restart-and-logs")
def test_logs_come_from_the_state_folder(workspace: Workspace, run: Run) -> None:
    run(workspace, "sync")
    told = eventually(lambda: "method=workspace/sync" in (found := run(workspace, "logs")[1]) and found)
    assert run(workspace, "logs", "-n", "1")[1].count("\n") == 1
    assert told.count("Z Z ") == 0
    assert (workspace.state_dir / "sidecar.log").stat().st_mode & 0o777 == 0o600


@pytest.mark.rule("cli.stop-restart-and-logs")
def test_without_a_log_that_is_said(make_workspace: Callable[..., Workspace], run: Run) -> None:
    code, _, err = run(make_workspace(), "logs")
    assert code == 66
    assert "there is no log yet" in err


@pytest.mark.rule("logs.one-line-per-request-without-contents")
def test_the_log_tells_no_contents(workspace: Workspace, run: Run) -> None:
    runtime = workspace.connect("runtime")
    runtime.call("turn/begin", {"turn_id": "turn_1", "prompt": "a secret thought"})
    runtime.call("citations/extract", {"text": "a secret text [[S:1]]"})
    told = eventually(lambda: "citations/extract" in (found := run(workspace, "logs")[1]) and found)
    assert "secret" not in told
    assert told.count("method=turn/begin") == 1


def test_a_command_starts_the_daemon_that_it_needs(make_workspace: Callable[..., Workspace], run: Run) -> None:
    workspace = make_workspace()
    workspace.write("turn_1/files/a.txt", "one")
    assert run(workspace, "status")[0] == 69
    try:
        assert "fi:turn_1.files/a.txt" in run(workspace, "ls")[1]
        assert run(workspace, "status")[0] == 0
    finally:
        assert run(workspace, "stop")[0] == 0


def test_a_daemon_that_cannot_start_is_one_line(make_workspace: Callable[..., Workspace], run: Run) -> None:
    workspace = make_workspace()
    workspace.state_dir.mkdir()
    (workspace.state_dir / "journal.db").mkdir()
    code, _, err = run(workspace, "ls")
    assert code == 70
    assert err.count("\n") == 1
    assert "the daemon ended with" in err
    assert "Is a directory" in err


def test_a_settings_file_that_is_wrong_is_named(workspace: Workspace, run: Run) -> None:
    workspace.folder.chmod(0o700)
    (workspace.folder / "artifact-sidecar.toml").write_text("secret_token = 'x'\n")
    code, _, err = run(workspace, "status")
    assert code == 64
    assert "secrets do not belong in this file" in err


# The demo


@pytest.mark.rule("cli.demo-shows-the-main-job")
def test_the_demo_shows_the_main_job_and_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in os.environ:
        if name.startswith("ARTIFACT_SIDECAR_") or name == "OUT_DIR":
            monkeypatch.delenv(name)
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)
    monkeypatch.setenv("PYTHONPATH", environment()["PYTHONPATH"])
    assert main(["demo"]) == 0
    told = capsys.readouterr().out
    for shown in (
        "fi:turn_demo.files/charts/sales.png",
        '{"sid": 1, "physical_path": "turn_demo/files/charts/sales.png", "mime": "image/png"}',
        '{"text": "region,sales\\nNorth,120\\nSouth,80\\n", "physical_path": "turn_demo/files/sales.csv"}',
        '"origin": "kept"',
        "the same bytes: yes",
        "[Sales of the year](https://example.com/sales)",
    ):
        assert shown in told
    assert list(tmp_path.iterdir()) == []


def test_status_says_how_the_index_is_and_who_writes(workspace: Workspace, run: Run) -> None:
    run(workspace, "sync")
    code, out, _ = run(workspace, "status")
    lines = dict(line.split(None, 1) for line in out.split("\n\n")[0].splitlines())
    assert code == 0
    assert lines["index"] == "sqlite, ok"
    assert lines["lease"] == "writer"
