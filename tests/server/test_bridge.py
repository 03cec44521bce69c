"""The stdio door, as a process: it finds the daemon or starts one, and says clearly why it cannot."""

from __future__ import annotations

import hashlib
import os
import select
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from sidecar.server import bridge
from tests.daemon_process import eventually
from tests.server.door_site import CEILING, ROOT, Site

PARTS = ("bridge", "doorway", "upward", "session", "envelopes")


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    made = Site(tmp_path)
    yield made
    made.close()


def gone(process: int) -> bool:
    try:
        os.waitpid(process, os.WNOHANG)
    except ChildProcessError:
        pass  # it was never ours
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return True
    return False


# Finding and starting


def test_a_door_starts_the_daemon_that_it_does_not_find(site: Site) -> None:
    assert [site.door().greet()] == site.daemons()


def test_a_second_door_finds_the_daemon_of_the_first(site: Site) -> None:
    assert site.door().greet() == site.door().greet()
    assert len(site.daemons()) == 1


@pytest.mark.rule("cli.the-door-starts-or-attaches")
def test_ten_doors_at_once_start_one_daemon(site: Site) -> None:
    doors = [site.door() for _ in range(10)]
    numbers = [door.client.ask("initialize", {}) for door in doors]
    answers = [door.client.answer(number)["daemon"] for door, number in zip(doors, numbers, strict=True)]
    assert {*answers} == {*site.daemons()}
    assert len(site.daemons()) == 1


def test_the_daemon_outlives_the_door_that_started_it_and_its_terminal(site: Site) -> None:
    first = site.door()
    daemon = first.greet()
    assert os.getsid(daemon) != os.getsid(first.process.pid)
    first.process.kill()
    first.process.wait()
    assert site.door().greet() == daemon


def test_a_door_that_comes_after_a_killed_daemon_starts_another(site: Site) -> None:
    killed = site.door().greet()
    os.kill(killed, signal.SIGKILL)
    assert site.door().greet() != killed
    assert len(site.daemons()) == 2


def test_the_daemon_holds_no_descriptor_of_the_door(site: Site) -> None:
    reading, writing = os.pipe()
    code = "import sys; from sidecar.server import bridge; bridge.connect(sys.argv[1], 'exec', sys.argv[2:])"
    subprocess.run(
        [sys.executable, "-c", code, site.folder, *site.serve()],
        cwd=ROOT,
        check=True,
        pass_fds=[writing],
        timeout=CEILING,
    )
    os.close(writing)
    assert len(site.daemons()) == 1
    assert select.select([reading], [], [], CEILING)[0], "the daemon keeps the pipe open"
    assert os.read(reading, 1) == b""
    os.close(reading)


def test_a_daemon_that_is_about_to_end_and_hangs_up_is_followed_by_another(site: Site) -> None:
    assert site.door("hangs-up-on-the-first").greet() == site.daemons()[1]


# Failing


def test_a_daemon_that_cannot_start_is_reported_with_its_last_words_and_its_exit_code(site: Site) -> None:
    done = site.door("fails").end(b"hello")
    assert done == (65, b"", "the daemon ended with exit code 65: the journal is of a newer version")


def test_a_daemon_that_dies_while_it_wakes_up_is_reported_as_well(site: Site) -> None:
    code, heard, errors = site.door("dies-while-waking").end(site.request(1, "initialize"))
    assert code == 70
    assert site.read(heard)["error"]["data"]["kind"] == "shutting_down"
    assert errors == "the daemon ended with exit code 70: out of memory"


def test_a_command_that_is_not_there_is_reported(tmp_path: Path) -> None:
    with pytest.raises(bridge.Hopeless, match="cannot start") as caught:
        bridge.connect(str(tmp_path / "s" / "x"), "exec", [str(tmp_path / "nothing")])
    assert caught.value.code == bridge.UNAVAILABLE


def test_a_daemon_that_never_answers_is_not_waited_for_for_ever(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bridge, "START_SECONDS", 0.1)
    started = tmp_path / "pid"
    with pytest.raises(bridge.Hopeless, match="no daemon answered"):
        bridge.connect(str(tmp_path / "s" / "x"), "exec", ["/bin/sh", "-c", f"echo $$ > {started}; exec sleep 60"])
    process = int(started.read_text("utf-8"))
    os.kill(process, signal.SIGKILL)
    eventually(lambda: gone(process))


@pytest.mark.parametrize("arguments", [[], ["--out-dir"], ["--out-dir", "/tmp", "--role", "root"]])
def test_a_door_without_a_workspace_or_with_an_unknown_role_says_so(
    arguments: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("OUT_DIR", raising=False)
    assert bridge.main(arguments) == 64
    assert "--" in capsys.readouterr().err


# Being closed


def test_a_door_that_is_opened_and_closed_says_nothing(site: Site) -> None:
    assert site.door().end(b"") == (0, b"", "")


def test_the_end_of_stdin_is_passed_on_and_the_answers_still_come(site: Site) -> None:
    door = site.door()
    daemon = door.greet()
    code, heard, errors = door.end(site.request(2, "late"))
    assert (code, errors) == (0, "")
    assert site.read(heard)["result"]["daemon"] == daemon


def test_a_door_ends_when_its_client_says_exit(site: Site) -> None:
    door = site.door()
    door.greet()
    door.client.notify("exit")
    assert door.process.wait(CEILING) == 0
    assert len(site.daemons()) == 1


def test_a_door_ends_when_its_reader_leaves(site: Site) -> None:
    door = site.door()
    door.greet()
    assert door.process.stdout is not None
    door.process.stdout.close()
    door.process.stdout = None
    door.client.ask("anything")
    assert door.process.wait(CEILING) == 0


# By itself


def run_file(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-S", "-E", bridge.__file__, *arguments],
        capture_output=True, text=True, env=environment, check=False, timeout=CEILING, stdin=subprocess.DEVNULL,
    )  # fmt: skip


def test_the_door_runs_as_a_file_by_itself() -> None:
    done = run_file()
    assert (done.returncode, done.stdout) == (64, "")
    assert "OUT_DIR" in done.stderr


def test_the_files_of_the_door_run_in_a_folder_where_nothing_else_is(site: Site, tmp_path: Path) -> None:
    """A sandbox may have copies of them, and no package."""
    daemon = site.door().greet()
    for name in PARTS:
        shutil.copy(Path(bridge.__file__).with_name(f"{name}.py"), tmp_path)
    site.folder = bridge.socket_folder(str(tmp_path), str(Path(site.folder).parent))
    os.rename(next(Path(site.folder).parent.iterdir()), site.folder)
    words = [str(tmp_path / "bridge.py"), "--out-dir", str(tmp_path), "--socket-dir", str(Path(site.folder).parent)]
    assert site.door_of([sys.executable, "-S", "-E", *words], cwd=tmp_path).greet() == daemon


@pytest.mark.rule("cli.the-door-is-standard-library-only")
def test_the_door_imports_nothing_that_is_not_part_of_the_interpreter() -> None:
    code = (
        "import sys; before = set(sys.modules); from sidecar.server import bridge, doorway\n"
        "bridge.socket_folder('/tmp')\n"
        "print(*sorted(set(sys.modules) - before))"
    )
    done = subprocess.run(
        [sys.executable, "-S", "-E", "-c", code], cwd=ROOT, capture_output=True, text=True, check=True
    )
    allowed = {
        "__future__", "_collections_abc", "_json", "_sha2", "_sha256", "_socket", "_stat", "genericpath", "os",
        "os.path", "posixpath", "stat", "sidecar", "sidecar.server", *(f"sidecar.server.{name}" for name in PARTS),
    }  # fmt: skip
    assert set(done.stdout.split()) <= allowed


# Where the sockets lie


@pytest.mark.rule("sockets.folder-is-named-by-the-real-path")
def test_all_spellings_of_a_workspace_have_one_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "link").symlink_to("out")
    monkeypatch.chdir(tmp_path)
    spellings = ["out", "./out/", "link", f"{tmp_path}/x/../out", str(tmp_path / "out")]
    assert len({bridge.socket_folder(spelling, "/s") for spelling in spellings}) == 1


def test_a_folder_is_named_by_the_hash_of_the_real_path_in_bytes(tmp_path: Path) -> None:
    odd = os.fsdecode(os.fsencode(tmp_path) + b"/\xff")
    name = hashlib.sha256(os.fsencode(os.path.realpath(odd))).hexdigest()[:16]
    assert bridge.socket_folder(odd, "/s") == f"/s/{name}"


@pytest.mark.parametrize(
    ("environment", "base"),
    [
        ({"ARTIFACT_SIDECAR_SOCKET_DIR": "/a", "XDG_RUNTIME_DIR": "/b"}, "/a"),
        ({"XDG_RUNTIME_DIR": "/b"}, "/b/artifact-sidecar"),
        ({}, f"/tmp/artifact-sidecar-{os.geteuid()}"),
    ],
)
def test_the_base_is_the_first_of_flag_variable_runtime_folder_and_tmp(
    environment: dict[str, str], base: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("ARTIFACT_SIDECAR_SOCKET_DIR", "XDG_RUNTIME_DIR"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert os.path.dirname(bridge.socket_folder("/x")) == base
    assert os.path.dirname(bridge.socket_folder("/x", "/flag")) == "/flag"


def make_open(base: Path, folder: Path) -> None:
    folder.mkdir(parents=True)
    folder.chmod(0o777)


def make_base_open(base: Path, folder: Path) -> None:
    folder.mkdir(parents=True, mode=0o700)
    base.chmod(0o770)


def make_link(base: Path, folder: Path) -> None:
    base.mkdir(mode=0o700)
    (base.parent / "elsewhere").mkdir(mode=0o700)
    folder.symlink_to(base.parent / "elsewhere")


@pytest.mark.parametrize("prepare", [make_open, make_base_open, make_link])
def test_a_folder_that_somebody_else_may_have_put_there_is_not_used(
    prepare: object, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("ARTIFACT_SIDECAR_SOCKET_DIR", raising=False)
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    folder = Path(bridge.socket_folder(str(tmp_path / "out")))
    prepare(folder.parent, folder)  # type: ignore[operator]
    (folder / "exec").mkdir()
    trap = socket.socket(socket.AF_UNIX)
    bridge.with_address(str(folder / "exec"), trap.bind)
    trap.listen()
    for use in (bridge.make_folder, lambda path: bridge.connect(path, "exec", ["/bin/false"])):
        with pytest.raises(bridge.Hopeless, match="ours alone") as caught:
            use(str(folder))
        assert caught.value.code == bridge.NO_PERMISSION
    trap.setblocking(False)
    with pytest.raises(BlockingIOError):  # nobody came
        trap.accept()
    trap.close()


@pytest.mark.rule("cli.the-door-is-exec-by-default")
@pytest.mark.parametrize(
    ("arguments", "passed_on"),
    [
        (["--out-dir", "/o"], []),
        (["--out-dir=/o", "--role=editor"], []),
        (["--store", "s3://b", "--out-dir", "/o"], ["--store", "s3://b"]),
        (["--out-dir", "/o", "--socket-dir", "/s"], ["--socket-dir", "/s"]),
    ],
)
def test_what_the_door_does_not_know_is_for_the_daemon(
    arguments: list[str], passed_on: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    started: list[list[str]] = []
    monkeypatch.setattr(bridge, "join", lambda folder, role, serve: started.append([role, *serve]))
    assert bridge.main(arguments) == 0
    role = "editor" if "--role=editor" in arguments else "exec"
    assert started == [[role, sys.executable, "-m", "sidecar", "serve", "--out-dir", "/o", *passed_on]]


@pytest.mark.parametrize("mask", [0o022, 0o077, 0])
def test_on_a_fresh_machine_the_default_folders_are_ours_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mask: int
) -> None:
    monkeypatch.delenv("ARTIFACT_SIDECAR_SOCKET_DIR", raising=False)
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    before = os.umask(mask)
    try:
        folder = bridge.socket_folder(str(tmp_path / "out"))
        bridge.make_folder(folder)
    finally:
        os.umask(before)
    assert [oct(os.stat(place).st_mode & 0o777) for place in (os.path.dirname(folder), folder)] == ["0o700", "0o700"]


def test_what_clients_of_editors_add_is_not_passed_on() -> None:
    """A daemon that is told to serve its own stdio would end with the client that it was started for."""
    assert bridge._options(["--stdio", "--role", "editor", "--verbose"])[1] == ["--verbose"]
