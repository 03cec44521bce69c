"""The stdio door, as a process: it finds the daemon or starts one, copies bytes, and says clearly why it cannot."""

from __future__ import annotations

import hashlib
import os
import select
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from time import monotonic

import pytest

from sidecar.server import bridge
from tests.server import fake_daemon

ROOT = Path(bridge.__file__).parents[2]
CEILING = 10.0  # a machine that is busy starts ten interpreters slowly


class Site:
    """A workspace's socket folder, the diary of the fake daemons started there, and the doors to it."""

    def __init__(self, tmp_path: Path) -> None:
        self.folder = str(tmp_path / "sockets" / "0123456789abcdef")
        self.diary = tmp_path / "diary"
        self.doors: list[subprocess.Popen[bytes]] = []

    def serve(self, how: str = "echoes") -> list[str]:
        return [sys.executable, "-m", "tests.server.fake_daemon", self.folder, str(self.diary), how]

    def door(self, how: str = "echoes") -> subprocess.Popen[bytes]:
        code = (
            "import sys; from sidecar.server import bridge\n"
            "try: bridge.join(sys.argv[1], 'exec', sys.argv[2:])\n"
            "except bridge.Hopeless as error: print(error, file=sys.stderr); sys.exit(error.code)"
        )
        door = subprocess.Popen(
            [sys.executable, "-S", "-E", "-c", code, self.folder, *self.serve(how)],
            cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )  # fmt: skip
        self.doors.append(door)
        return door

    def daemons(self) -> list[int]:
        return [int(line) for line in self.diary.read_text("utf-8").split()] if self.diary.exists() else []

    def close(self) -> None:
        for door in self.doors:
            if door.poll() is None:
                door.kill()
            door.communicate()
        for daemon in self.daemons():
            try:
                os.kill(daemon, signal.SIGKILL)
            except ProcessLookupError:
                pass  # it ended by itself


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    made = Site(tmp_path)
    yield made
    made.close()


def say(door: subprocess.Popen[bytes], words: bytes) -> None:
    assert door.stdin is not None
    os.write(door.stdin.fileno(), words)


def hear(door: subprocess.Popen[bytes], size: int) -> bytes:
    assert door.stdout is not None
    heard, deadline = b"", monotonic() + CEILING
    while len(heard) < size:
        ready, _, _ = select.select([door.stdout], [], [], deadline - monotonic())
        assert ready, f"heard only {heard!r}"
        chunk = os.read(door.stdout.fileno(), 65536)
        if not chunk:
            break
        heard += chunk
    return heard


def until_gone(process: int) -> None:
    deadline = monotonic() + CEILING
    while monotonic() < deadline:
        try:
            os.kill(process, 0)
            os.waitpid(process, os.WNOHANG)
        except (ProcessLookupError, ChildProcessError):
            return
        select.select([], [], [], 0.005)
    raise AssertionError(f"{process} is still there")


# Finding and starting


def test_a_door_starts_the_daemon_that_it_does_not_find(site: Site) -> None:
    door = site.door()
    say(door, b"hello")
    assert hear(door, 5) == b"hello"
    assert len(site.daemons()) == 1


def test_a_second_door_finds_the_daemon_of_the_first(site: Site) -> None:
    for words in (b"one", b"two"):
        door = site.door()
        say(door, words)
        assert hear(door, 3) == words
    assert len(site.daemons()) == 1


@pytest.mark.rule("cli.the-door-starts-or-attaches")
def test_ten_doors_at_once_start_one_daemon(site: Site) -> None:
    doors = [site.door() for _ in range(10)]
    for number, door in enumerate(doors):
        say(door, b"%d" % number)
    assert [hear(door, 1) for door in doors] == [b"%d" % number for number in range(10)]
    assert len(site.daemons()) == 1


def test_the_daemon_outlives_the_door_that_started_it_and_its_terminal(site: Site) -> None:
    first = site.door()
    say(first, b"a")
    hear(first, 1)
    [daemon] = site.daemons()
    assert os.getsid(daemon) != os.getsid(first.pid)
    first.kill()
    first.wait()
    second = site.door()
    say(second, b"b")
    assert hear(second, 1) == b"b"
    assert site.daemons() == [daemon]


def test_a_daemon_that_was_killed_is_replaced(site: Site) -> None:
    first = site.door()
    say(first, b"a")
    hear(first, 1)
    [daemon] = site.daemons()
    os.kill(daemon, signal.SIGKILL)
    assert first.wait(CEILING) == 0
    second = site.door()
    say(second, b"b")
    assert hear(second, 1) == b"b"
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
    door = site.door("hangs-up-on-the-first")
    say(door, b"hello")
    assert hear(door, 5) == b"hello"
    assert len(site.daemons()) == 2


# Failing


def test_a_daemon_that_cannot_start_is_reported_with_its_last_words_and_its_exit_code(site: Site) -> None:
    door = site.door("fails")
    _, errors = door.communicate(b"hello", timeout=CEILING)
    assert door.returncode == 65
    assert errors.decode().strip() == "the daemon ended with exit code 65: the journal is of a newer version"


def test_a_daemon_that_dies_while_it_wakes_up_is_reported_as_well(site: Site) -> None:
    door = site.door("dies-while-waking")
    say(door, b"hello")
    assert door.wait(CEILING) == 70
    assert door.stderr is not None
    assert b"out of memory" in door.stderr.read()


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
    until_gone(process)


@pytest.mark.parametrize("arguments", [[], ["--out-dir"], ["--out-dir", "/tmp", "--role", "root"]])
def test_a_door_without_a_workspace_or_with_an_unknown_role_says_so(
    arguments: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("OUT_DIR", raising=False)
    assert bridge.main(arguments) == 64
    assert "--" in capsys.readouterr().err


# Copying


def test_bytes_are_copied_as_they_are_both_ways(site: Site) -> None:
    door = site.door()
    sent = os.urandom(3_000_000)
    heard, _ = door.communicate(sent, timeout=CEILING)
    assert hashlib.sha256(heard).digest() == hashlib.sha256(sent).digest()
    assert door.returncode == 0


def test_the_end_of_stdin_is_passed_on_and_the_answers_still_come(site: Site) -> None:
    door = site.door()
    heard, errors = door.communicate(b"hello", timeout=CEILING)
    assert (heard, errors, door.returncode) == (b"hello", b"", 0)


def test_a_door_that_is_opened_and_closed_says_nothing(site: Site) -> None:
    first = site.door()
    assert first.communicate(b"", timeout=CEILING) == (b"", b"")
    assert first.returncode == 0


def test_a_door_ends_when_the_daemon_hangs_up(site: Site) -> None:
    door = site.door()
    say(door, b"a")
    hear(door, 1)
    say(door, fake_daemon.END)
    assert door.wait(CEILING) == 0


def test_a_door_ends_when_its_reader_leaves(site: Site) -> None:
    door = site.door()
    say(door, b"a")
    hear(door, 1)
    assert door.stdout is not None
    door.stdout.close()
    door.stdout = None
    say(door, b"b")
    assert door.wait(CEILING) == 0


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


@pytest.mark.rule("cli.the-door-is-standard-library-only")
def test_the_door_imports_nothing_that_is_not_part_of_the_interpreter() -> None:
    code = (
        "import sys; before = set(sys.modules); from sidecar.server import bridge; bridge.socket_folder('/tmp');"
        "print(*sorted(set(sys.modules) - before))"
    )
    done = subprocess.run(
        [sys.executable, "-S", "-E", "-c", code], cwd=ROOT, capture_output=True, text=True, check=True
    )
    allowed = {
        "__future__", "_collections_abc", "_sha2", "_sha256", "_socket", "_stat", "genericpath", "os", "os.path",
        "posixpath", "stat", "sidecar", "sidecar.server", "sidecar.server.bridge",
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
