"""A program runs as a call of a turn: in the sandbox it sees what it is given alone, in any way it leaves the same."""

from __future__ import annotations

import fcntl
import json
import os
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import artifact_client
import pytest

from sidecar.console import sandbox
from sidecar.console.sandbox import View
from tests.daemon_process import PROJECT, Workspace, environment, eventually

pytestmark = pytest.mark.rule("cli.exec-runs-a-program-inside")

CEILING = 60.0
MODES = ("none", "bwrap")


@pytest.fixture
def bwrap(tmp_path: Path) -> None:
    """A sandbox that works. Where there can be none its tests are skipped and say so, but never in CI."""
    for name in ("seen", "work", "client"):
        (tmp_path / name).mkdir()
    why = sandbox.obstacle(View(*(str(tmp_path / name) for name in ("seen", "work", "client"))))
    if why and os.environ.get("CI") == "true":
        pytest.fail(why)
    if why:
        pytest.skip(why)


@pytest.fixture(params=MODES)
def mode(request: pytest.FixtureRequest) -> str:
    if request.param == "bwrap":
        request.getfixturevalue("bwrap")
    return request.param


@pytest.fixture
def asked(workspace: Workspace) -> Workspace:
    """One source, of an earlier turn."""
    workspace.write("turn_1/files/source.txt", "may,3\n")
    return workspace


def command(workspace: Workspace, *words: str) -> list[str]:
    return [sys.executable, "-m", "sidecar", "exec", *workspace.arguments, *words]


def started(workspace: Workspace, *words: str, **extra: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        command(workspace, *words),
        env=environment(**extra),
        cwd=PROJECT,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def ran(workspace: Workspace, *words: str, **extra: str) -> tuple[int, str, str]:
    """The exit code, what was printed, and what was complained of."""
    process = started(workspace, *words, **extra)
    out, err = process.communicate(timeout=CEILING)
    return process.returncode, out, err


def python(program: str) -> list[str]:
    return ["--", "python3", "-c", program]


MAKES = """
import os, pathlib, sys
from artifact_client import fetch_ctx
row = fetch_ctx("so:sources_pool[1]")["ret"][0]
text = pathlib.Path(os.environ["OUT_DIR"], row["physical_path"]).read_text()
files = pathlib.Path(os.environ["OUT_DIR"], os.environ["ARTIFACT_SIDECAR_TURN_ID"], "files", "deep")
files.mkdir(parents=True)
files.joinpath("table.md").write_text(f"{text} [[S:1]]")
files.joinpath("data.bin").write_bytes(bytes(9))
pathlib.Path("scratch.txt").write_text("mine")
print("made", os.getcwd() == os.environ["WORK_DIR"])
"""


def test_a_program_fetches_a_source_and_its_files_are_told(asked: Workspace, mode: str) -> None:
    code, out, err = ran(asked, "--turn", "turn_2", "--sandbox", mode, "--expect", "gone.txt", *python(MAKES))
    assert (code, err) == (1, "")
    said, header, *rows = out.splitlines()
    assert (said, header.split()) == ("made True", ["FILE", "SIZE", "TYPE", "SOURCE"])
    assert [row.split() for row in rows] == [
        ["turn_2/files/deep/data.bin", "made", "9", "application/octet-stream", "-"],
        ["turn_2/files/deep/table.md", "made", "14", "text/markdown", "2"],
        ["gone.txt", "missing", "-", "-", "-"],
    ]


def test_for_programs_there_is_json_and_nothing_else(asked: Workspace, mode: str) -> None:
    words = ("--turn", "turn_2", "--tool-call-id", "tc_9", "--sandbox", mode, "--json", "--expect", "gone.txt")
    code, out, err = ran(asked, *words, *python(f"{MAKES}\nsys.exit(7)"))
    told = json.loads(out)
    assert (code, told["exit_code"], told["isolation"], told["timed_out"]) == (7, 7, mode, False)
    assert (told["turn_id"], told["tool_call_id"]) == ("turn_2", "tc_9")
    assert [(one["tool_call_id"], one["tool_id"]) for one in told["artifacts"]] == [("tc_9", "exec")] * 2
    assert told["missing"] == ["gone.txt"]
    assert err == "made True\n"


@pytest.mark.rule("lineage.what-a-call-used-went-into-what-it-made", "lineage.says-when-it-is-incomplete")
def test_what_the_program_fetched_went_into_what_it_made(asked: Workspace, mode: str) -> None:
    ran(asked, "--turn", "turn_2", "--tool-call-id", "tc_9", "--sandbox", mode, *python(MAKES))
    path = {"path": "turn_2/files/deep/data.bin", "direction": "up"}
    answer = asked.connect("editor").call("artifact/lineage", path)
    edge = {"from": "fi:turn_1.files/source.txt", "to": "fi:turn_2.files/deep/data.bin"}
    assert answer == {"edges": [{**edge, "how": "observed", "tool_call_id": "tc_9"}], "complete": True}


# The turn


def test_without_a_turn_it_says_so_and_runs_nothing(asked: Workspace) -> None:
    code, out, err = ran(asked, "--", "sh", "-c", 'touch "$OUT_DIR/here"')
    assert (code, out, err.count("\n")) == (66, "", 1)
    assert "no turn is open" in err
    assert not (asked.out_dir / "here").exists()


def test_the_open_turn_is_used_and_stays_open(asked: Workspace) -> None:
    runtime = asked.connect("runtime")
    runtime.call("turn/begin", {"turn_id": "turn_2"})
    assert ran(asked, "--sandbox", "none", *python(MAKES))[0] == 0
    assert ran(asked, "--sandbox", "none", "--turn", "turn_2", "--", "true")[0] == 0
    assert runtime.call("workspace/status")["turn_id"] == "turn_2"


def test_a_turn_of_its_own_begins_and_ends(asked: Workspace) -> None:
    assert ran(asked, "--turn", "turn_2", "--sandbox", "none", "--", "true")[0] == 0
    runtime = asked.connect("runtime")
    assert "turn_id" not in runtime.call("workspace/status")
    assert runtime.refused("turn/begin", {"turn_id": "turn_2", "prompt": "again"}).kind == "not_permitted"


def test_another_open_turn_is_not_ended_for_it(asked: Workspace) -> None:
    runtime = asked.connect("runtime")
    runtime.call("turn/begin", {"turn_id": "turn_2"})
    code, _, err = ran(asked, "--turn", "turn_3", "--", "true")
    assert (code, "turn_2 is open" in err) == (77, True)
    assert runtime.call("workspace/status")["turn_id"] == "turn_2"


def test_a_call_id_that_was_used_runs_nothing(asked: Workspace) -> None:
    words = ("--tool-call-id", "tc_1", "--sandbox", "none", "--", "true")
    assert ran(asked, "--turn", "turn_2", *words)[0] == 0
    code, _, err = ran(asked, "--turn", "turn_3", *words)
    assert (code, "tc_1" in err) == (77, True)


# Exit codes


CODES: dict[tuple[str, ...], int] = {
    ("true",): 0,
    ("sh", "-c", "exit 3"): 3,
    ("sh", "-c", "kill -9 $$"): 137,
    ("no-such-program",): 127,
    ("/no/such/program",): 127,
    ("/usr/lib",): 126,
}


def test_the_exit_code_is_the_programs_own(asked: Workspace, mode: str) -> None:
    turns = {words: f"turn_{at}" for at, words in enumerate(CODES, start=2)}
    found = {words: ran(asked, "--turn", turns[words], "--sandbox", mode, "--", *words)[0] for words in CODES}
    assert found == CODES


def test_what_is_missing_is_a_failure_unless_the_program_tells_of_its_own(asked: Workspace) -> None:
    words = ("--sandbox", "none", "--json", "--expect", "gone.txt", "--", "sh", "-c")
    found = [ran(asked, "--turn", f"turn_{at}", *words, f"exit {own}") for at, own in ((2, 0), (3, 5))]
    assert [(code, json.loads(out)["exit_code"]) for code, out, _ in found] == [(1, 0), (5, 5)]


def test_when_nothing_was_made_it_says_where_files_count(asked: Workspace) -> None:
    code, out, _ = ran(asked, "--turn", "turn_2", "--sandbox", "none", "--", "sh", "-c", "echo x > $OUT_DIR/beside")
    assert (code, out) == (0, "no files were made: those count that lie below $OUT_DIR/turn_2/files/\n")


@pytest.mark.parametrize(
    "words", [(), ("--",), ("--timeout", "0", "--", "true"), ("--timeout", "x", "--", "true"), ("--sandbox", "x")]
)
def test_what_cannot_be_meant_is_refused(make_workspace: Callable[..., Workspace], words: tuple[str, ...]) -> None:
    assert ran(make_workspace(), *words)[0] == 64


# The folder to work in


def test_a_folder_to_work_in_may_be_named_and_is_kept(asked: Workspace, mode: str, tmp_path: Path) -> None:
    work = tmp_path / "mine"
    work.mkdir()
    (work / "program.py").write_text(MAKES)
    words = ("--turn", "turn_2", "--sandbox", mode, "--work-dir", str(work))
    assert ran(asked, *words, "--", "python3", "program.py")[0] == 0
    assert (work / "scratch.txt").read_text() == "mine"


@pytest.mark.parametrize("place", ["out", "out/below", ".", "state", "nowhere"])
def test_it_lies_outside_of_everything_that_is_ours(make_workspace: Callable[..., Workspace], place: str) -> None:
    workspace = make_workspace()
    (workspace.out_dir / "below").mkdir()
    code, _, err = ran(workspace, "--turn", "turn_2", "--work-dir", str(workspace.folder / place), "--", "true")
    assert (code, err.count("\n")) == (64, 1)


def test_a_temporary_one_is_gone_afterwards(asked: Workspace, mode: str, tmp_path: Path) -> None:
    code, out, _ = ran(
        asked, "--turn", "turn_2", "--sandbox", mode, "--", "sh", "-c", "echo $WORK_DIR", TMPDIR=str(tmp_path)
    )
    work = Path(out.splitlines()[0])
    assert (code, work.is_relative_to(tmp_path), work.parent.exists()) == (0, True, False)


# The sandbox

PROBES = """
import json, os, pathlib, socket
target = json.loads(pathlib.Path("target.json").read_text())
def tried(what):
    try:
        return repr(what())
    except Exception as error:
        return type(error).__name__
def dial(path):
    with socket.socket(socket.AF_UNIX) as link:
        link.connect(path)
        return "connected"
def get(path):
    return os.listdir(path) if os.path.isdir(path) else open(path, "rb").read()
def mark(folder):
    return open(os.path.join(folder, "mark"), "w").write("x")
def descriptors():
    for number in os.listdir("/proc/self/fd"):
        link = f"/proc/self/fd/{number}"
        if int(number) > 2 and os.path.islink(link):  # the one that lists them is closed again
            yield os.readlink(link).partition(":")[0]
found = {path: tried(lambda: get(path)) for path in target["read"]}
found.update({path: tried(lambda: dial(path)) for path in target["dial"]})
found["network"] = tried(lambda: socket.create_connection(("127.0.0.1", target["port"]), 1).close() or "connected")
found["write"] = [tried(lambda: mark(path)) for path in target["write"]]
found["environment"] = [name for name, value in os.environ.items() if "secret" in value.lower()]
found["links"] = sorted(descriptors())
found["processes"] = sorted(int(name) for name in os.listdir("/proc") if name.isdigit())
status = [line.split() for line in open("/proc/self/status")]
found["privileges"] = [line[1] for line in status if line[0] in ("CapEff:", "CapBnd:", "NoNewPrivs:")]
files = pathlib.Path(os.environ["OUT_DIR"], os.environ["ARTIFACT_SIDECAR_TURN_ID"], "files")
files.mkdir(parents=True)
files.joinpath("found.json").write_text(json.dumps(found))
"""


@pytest.fixture
def listener() -> Iterator[socket.socket]:
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server


@pytest.mark.usefixtures("bwrap")
def test_in_the_sandbox_nothing_outside_can_be_read_reached_or_changed(
    asked: Workspace, listener: socket.socket, tmp_path: Path
) -> None:
    home, work = tmp_path / "home", tmp_path / "mine"
    for folder in (home, work):
        folder.mkdir()
    (home / "key").write_text("secret")
    (asked.out_dir / "to-state").symlink_to(asked.state_dir)
    outside = [
        *(str(asked.state_dir), str(asked.state_dir / "journal.db"), str(asked.socket_dir), str(home / "key")),
        *("/etc/shadow", "/etc/passwd", "/home", "/var", "/run", "/sys", "/proc/1/root" + str(home)),
        # This Python may lie in the project's folder, which then is there and holds nothing else.
        *(str(PROJECT / "README.md"), str(PROJECT / "sidecar"), str(asked.out_dir / "to-state")),
    ]
    target = {
        "read": outside,
        "dial": [str(asked.socket(role)) for role in ("runtime", "renderer", "editor", "exec")],
        "port": listener.getsockname()[1],
        "write": ["/", "/usr", "/etc", "/usr/bin", sys.prefix, str(home), str(asked.folder)],
    }
    (work / "target.json").write_text(json.dumps(target))
    words = ("--turn", "turn_2", "--sandbox", "bwrap", "--work-dir", str(work))
    code, _, err = ran(asked, *words, *python(PROBES), HOME=str(home), SECRET="secret")
    assert (code, err) == (0, "")
    found = json.loads((asked.out_dir / "turn_2/files/found.json").read_text())
    assert {path: found[path] for path in outside} == dict.fromkeys(outside, "FileNotFoundError")
    assert {found[path] for path in target["dial"]} == {"FileNotFoundError"}
    assert found["network"] in ("OSError", "ConnectionRefusedError")  # a loopback of its own, on which nobody listens
    assert not [path for path in target["write"] if (Path(path) / "mark").exists()]
    assert found["environment"] == []
    assert found["links"] == ["socket"]
    assert len(found["processes"]) <= 3
    assert found["processes"][0] == 1
    assert found["privileges"] == ["0000000000000000", "0000000000000000", "1"]
    assert (home / "key").read_text() == "secret"


@pytest.mark.usefixtures("bwrap")
def test_the_sandbox_is_what_keeps_them_away(asked: Workspace, listener: socket.socket, tmp_path: Path) -> None:
    work = tmp_path / "mine"
    work.mkdir()
    target = {
        "read": [str(asked.state_dir)],
        "dial": [str(asked.socket("runtime"))],
        "port": listener.getsockname()[1],
        "write": [str(tmp_path)],
    }
    (work / "target.json").write_text(json.dumps(target))
    words = ("--turn", "turn_2", "--sandbox", "none", "--work-dir", str(work))
    assert ran(asked, *words, *python(PROBES))[0] == 0
    found = json.loads((asked.out_dir / "turn_2/files/found.json").read_text())
    assert "journal.db" in found[str(asked.state_dir)]
    assert (found[str(asked.socket("runtime"))], found["network"]) == ("'connected'", "'connected'")
    assert (tmp_path / "mark").read_text() == "x"


OWN = """
import os, pathlib
for path in ("/proc/sys/kernel/core_pattern", "/proc/sys/vm/swappiness", "/proc/sysrq-trigger"):
    try:
        descriptor = os.open(path, os.O_WRONLY)
    except OSError as error:
        print(path, type(error).__name__)
        continue
    if path != "/proc/sysrq-trigger":  # to which nothing is harmless
        os.write(descriptor, pathlib.Path(path).read_bytes())
    print(path, "written")
print(os.path.basename(os.readlink("/proc/self/exe")).startswith("python"), len(os.listdir("/proc/self/fd")) > 3)
print(os.system("mount -o remount,rw /proc 2>/dev/null || umount -l /proc 2>/dev/null") != 0)
print("said", file=open("/proc/self/fd/1", "w"))
os.system("echo said > /dev/stdout; cat /proc/self/comm")
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="the settings of the kernel are root's alone")
@pytest.mark.usefixtures("bwrap")
def test_root_in_the_sandbox_changes_no_setting_of_the_kernel(asked: Workspace) -> None:
    code, out, err = ran(asked, "--turn", "turn_2", "--sandbox", "bwrap", "--", "python3", "-u", "-c", OWN)
    assert (code, err) == (0, "")
    *settings, runs, remounted, first, second, third = out.splitlines()[:-1]
    assert len(settings) == 3
    assert not [line for line in settings if line.endswith("written")]
    assert (runs, remounted, first, second, third) == ("True True", "True", "said", "said", "cat")


def without_bwrap(tmp_path: Path) -> dict[str, str]:
    """A PATH on which there is everything but bubblewrap."""
    folder = tmp_path / "bin"
    folder.mkdir()
    for name in ("sh", "true"):
        (folder / name).symlink_to(f"/bin/{name}")
    return {"PATH": str(folder)}


def test_where_there_is_no_sandbox_it_says_so_and_does_not_pretend(asked: Workspace, tmp_path: Path) -> None:
    path = without_bwrap(tmp_path)
    code, out, err = ran(asked, "--turn", "turn_2", "--json", "--", "true", **path)
    assert (code, json.loads(out)["isolation"]) == (0, "none")
    assert "WITHOUT a sandbox" in err
    assert "not installed" in err


def test_a_sandbox_that_must_be_and_cannot_be_runs_nothing(asked: Workspace, tmp_path: Path) -> None:
    path = without_bwrap(tmp_path)
    (tmp_path / "bin/bwrap").write_text("#!/bin/sh\necho 'bwrap: No permissions to create new namespace' >&2\nexit 1\n")
    (tmp_path / "bin/bwrap").chmod(0o755)
    code, out, err = ran(asked, "--turn", "turn_2", "--sandbox", "bwrap", "--", "true", **path)
    assert (code, out) == (69, "")
    assert "No permissions to create new namespace" in err
    asked.connect("runtime").call("turn/begin", {"turn_id": "turn_2", "prompt": "it never began"})


FORBID = (
    "echo 0 > /proc/sys/user/max_user_namespaces && "
    'exec setpriv --inh-caps=-all --bounding-set=-all --no-new-privs "$@"'
)


@pytest.mark.usefixtures("bwrap")
def test_where_the_kernel_forbids_it_there_is_none(asked: Workspace) -> None:
    words = ["unshare", "-Ur", "sh", "-c", FORBID, "sh", *command(asked, "--turn", "turn_2", "--sandbox")]
    auto, must = (
        subprocess.run(
            [*words, mode, "--", "true"],
            env=environment(),
            cwd=PROJECT,
            capture_output=True,
            text=True,
            timeout=CEILING,
        )
        for mode in ("auto", "bwrap")
    )
    if "WITHOUT a sandbox" not in auto.stderr:
        pytest.skip(f"user namespaces cannot be forbidden here: {auto.stderr}")
    assert "Operation not permitted" in auto.stderr
    assert (auto.returncode, must.returncode) == (0, 69)


# How it ends

HOLDS = """
import fcntl, os, signal, sys, time
lock = open(os.path.join(os.environ["WORK_DIR"], "lock"), "w")
fcntl.flock(lock, fcntl.LOCK_EX)
"""
# In short sleeps: a signal that comes just before a sleep is handled after it.
WAITS = HOLDS + 'print("ready", flush=True)\nfor _ in range(6000):\n    time.sleep(0.1)\n'
LEAVES = HOLDS + 'if os.fork() == 0:\n    os.setsid()\n    time.sleep(600)\nprint("ready", flush=True)\n'


def is_free(work: Path) -> bool:
    """Whether nobody who held the lock still runs."""
    with (work / "lock").open("a") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True


@pytest.fixture
def work(tmp_path: Path) -> Path:
    (tmp_path / "mine").mkdir()
    return tmp_path / "mine"


def test_a_program_whose_time_is_up_is_ended(asked: Workspace, mode: str, work: Path) -> None:
    words = ("--turn", "turn_2", "--sandbox", mode, "--work-dir", str(work), "--timeout", "1", "--json")
    code, out, err = ran(asked, *words, *python(WAITS))
    assert (code, json.loads(out)["timed_out"]) == (124, True)
    assert "after 1 seconds" in err
    assert is_free(work)


def test_what_a_program_leaves_running_is_ended_with_it(asked: Workspace, mode: str, work: Path) -> None:
    code, _, _ = ran(asked, "--turn", "turn_2", "--sandbox", mode, "--work-dir", str(work), *python(LEAVES))
    assert code == 0
    assert is_free(work)


CATCHES = """
def caught(number, frame):
    files = os.path.join(os.environ["OUT_DIR"], os.environ["ARTIFACT_SIDECAR_TURN_ID"], "files")
    os.makedirs(files)
    open(os.path.join(files, "last.txt"), "w").write(signal.Signals(number).name)
    sys.exit(5)
for number in (signal.SIGTERM, signal.SIGINT):
    signal.signal(number, caught)
"""


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_signals_are_passed_on_and_what_was_made_is_told(
    asked: Workspace, mode: str, work: Path, number: signal.Signals
) -> None:
    words = ("--turn", "turn_2", "--sandbox", mode, "--work-dir", str(work))
    process = started(asked, *words, *python("import os, signal, sys\n" + CATCHES + WAITS))
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    process.send_signal(number)
    out, _ = process.communicate(timeout=CEILING)
    assert process.returncode == 5
    assert "turn_2/files/last.txt" in out
    assert (asked.out_dir / "turn_2/files/last.txt").read_text() == number.name


def test_a_program_does_not_outlive_who_ran_it(asked: Workspace, mode: str, work: Path) -> None:
    process = started(asked, "--turn", "turn_2", "--sandbox", mode, "--work-dir", str(work), *python(WAITS))
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    process.kill()
    process.communicate(timeout=CEILING)
    eventually(lambda: is_free(work))


def stuck(tmp_path: Path) -> dict[str, str]:
    """A bubblewrap that tells of its child and then never gets ready, unless it is only tried."""
    real = shutil.which("bwrap")
    folder = tmp_path / "stuck"
    folder.mkdir()
    os.mkfifo(folder / "never")
    lines = (
        'case "$*" in *--json-status-fd*) ;; *) exec ' + f'{real} "$@" ;; esac',
        f"exec 9<>{shlex.quote(str(folder / 'never'))}",
        f"touch {shlex.quote(str(folder / 'begun'))}",
        f'exec {real} --block-fd 9 "$@"',
    )
    (folder / "bwrap").write_text("\n".join(("#!/bin/sh", *lines, "")))
    (folder / "bwrap").chmod(0o755)
    return {"PATH": f"{folder}:{os.environ['PATH']}"}


@pytest.mark.usefixtures("bwrap")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_that_comes_before_the_sandbox_is_ready_is_not_lost(
    asked: Workspace, tmp_path: Path, number: signal.Signals
) -> None:
    words = ("--turn", "turn_2", "--sandbox", "bwrap", "--", "sleep", "600")
    process = started(asked, *words, **stuck(tmp_path))
    eventually(lambda: (tmp_path / "stuck/begun").exists())
    process.send_signal(number)
    _, err = process.communicate(timeout=CEILING)
    assert process.returncode == 128 + number
    assert f"{number.name} came before it began" in err


@pytest.mark.usefixtures("bwrap")
def test_a_signal_is_lost_at_no_moment(asked: Workspace) -> None:
    """Sent as soon as there is a bubblewrap, and ever later."""
    asked.connect("runtime").call("turn/begin", {"turn_id": "turn_2"})
    for late in range(8):
        process = started(asked, "--sandbox", "bwrap", "--", "sleep", "600")
        eventually(lambda: is_running(process.pid, b"json-status-fd"))  # noqa: B023 - asked at once
        time.sleep(late * 0.004)
        process.send_signal(signal.SIGTERM)
        _, err = process.communicate(timeout=CEILING)
        assert process.returncode == 128 + signal.SIGTERM, (late, err)


def is_running(parent: int, word: bytes) -> bool:
    """Whether a process has a child with this word in its command line."""
    for pid in Path(f"/proc/{parent}/task/{parent}/children").read_text().split():
        try:
            if word in Path(f"/proc/{pid}/cmdline").read_bytes():
                return True
        except OSError:
            continue
    return False


@pytest.mark.usefixtures("bwrap")
def test_time_may_be_up_before_the_sandbox_is_ready(asked: Workspace, tmp_path: Path) -> None:
    words = ("--turn", "turn_2", "--sandbox", "bwrap", "--timeout", "0.5", "--", "sleep", "600")
    assert ran(asked, *words, **stuck(tmp_path))[0] == 124


FAMILY = (
    HOLDS
    + """
if os.fork() == 0:
    os.setsid()
print("ready", flush=True)
time.sleep(600)
"""
)


def own_folders(place: Path) -> list[Path]:
    return sorted(place.glob("artifact-sidecar-exec-*"))


def test_the_next_one_cleans_up_after_one_that_was_killed(asked: Workspace, mode: str, tmp_path: Path) -> None:
    place, work = tmp_path / "temporary", tmp_path / "mine"
    for folder in (place, work):
        folder.mkdir()
    words = ("--turn", "turn_2", "--sandbox", mode, "--work-dir", str(work))
    process = started(asked, *words, *python(FAMILY), TMPDIR=str(place))
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    process.kill()
    process.wait(CEILING)
    assert len(own_folders(place)) == 1
    assert ran(asked, "--sandbox", mode, "--", "true", TMPDIR=str(place))[0] == 0
    process.communicate(timeout=CEILING)  # whoever had its output is over
    eventually(lambda: is_free(work))
    assert own_folders(place) == []


WRITES = (
    HOLDS
    + """
folder = os.path.join(os.environ["OUT_DIR"], os.environ["ARTIFACT_SIDECAR_TURN_ID"], "files")
os.makedirs(folder)
open(os.path.join(folder, "half.txt"), "w").write("work")
print("ready", flush=True)
time.sleep(600)
"""
)


def killed(workspace: Workspace, place: Path, work: Path, *words: str) -> None:
    """One that is killed while its program, which has made a file, goes on."""
    process = started(
        workspace, *words, "--sandbox", "none", "--work-dir", str(work), *python(WRITES), TMPDIR=str(place)
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    process.kill()
    process.communicate(timeout=CEILING)


@pytest.mark.rule("exec.a-killed-one-leaves-no-call-open")
def test_the_call_of_one_that_was_killed_is_ended_by_the_next(asked: Workspace, work: Path, tmp_path: Path) -> None:
    (place := tmp_path / "temporary").mkdir()
    runtime = asked.connect("runtime")
    runtime.call("turn/begin", {"turn_id": "turn_2"})
    killed(asked, place, work, "--tool-call-id", "tc_9")
    assert ran(asked, "--sandbox", "none", "--", "true", TMPDIR=str(place))[0] == 0
    assert own_folders(place) == []
    assert runtime.refused("call/end", {"tool_call_id": "tc_9"}).kind == "not_found", "it is over"
    result = runtime.call("artifact/fetch", {"path": "tc:turn_2.tc_9.result"})["ret"]["text"]
    assert "was killed" in result
    made = runtime.call("artifact/resolve", {"paths": ["fi:turn_2.files/half.txt"]})["results"][0]["artifact"]
    assert (made["visibility"], made["tool_call_id"]) == ("external", "tc_9")
    assert runtime.call("workspace/status")["turn_id"] == "turn_2", "the turn is the agent's"


def test_the_turn_of_one_that_was_killed_is_in_nobodys_way(asked: Workspace, work: Path, tmp_path: Path) -> None:
    (place := tmp_path / "temporary").mkdir()
    killed(asked, place, work, "--turn", "turn_2")
    code, _, err = ran(asked, "--turn", "turn_3", "--sandbox", "none", "--", "true", TMPDIR=str(place))
    assert (code, err) == (0, "")
    assert "turn_id" not in asked.connect("runtime").call("workspace/status")


def test_what_was_begun_in_another_workspace_waits_for_the_next_one_in_there(
    make_workspace: Callable[..., Workspace], asked: Workspace, work: Path, tmp_path: Path
) -> None:
    (place := tmp_path / "temporary").mkdir()
    killed(asked, place, work, "--turn", "turn_2", "--tool-call-id", "tc_9")
    other = make_workspace().start()
    alone = ("--turn", "turn_2", "--sandbox", "none", "--", "true")
    assert ran(other, *alone, TMPDIR=str(place))[0] == 0
    assert is_free(work)
    assert len(own_folders(place)) == 1
    assert ran(asked, "--sandbox", "none", "--", "true", TMPDIR=str(place))[0] == 0
    assert own_folders(place) == []
    assert asked.connect("runtime").refused("call/end", {"tool_call_id": "tc_9"}).kind == "not_found"


def test_what_one_that_runs_has_and_what_is_not_known_to_be_ours_is_left_alone(
    asked: Workspace, work: Path, tmp_path: Path
) -> None:
    place = tmp_path / "temporary"
    place.mkdir()
    words = ("--turn", "turn_2", "--sandbox", "none", "--work-dir", str(work))
    process = started(asked, *words, *python(WAITS), TMPDIR=str(place))
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    (place / "artifact-sidecar-exec-unheld").mkdir()
    (place / "artifact-sidecar-exec-link").symlink_to(tmp_path)
    before = own_folders(place)
    assert ran(asked, "--sandbox", "none", "--", "true", TMPDIR=str(place))[0] == 0
    assert own_folders(place) == before
    assert not is_free(work)
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=CEILING)
    assert len(own_folders(place)) == 2


def test_the_call_ends_at_the_daemon_that_follows(asked: Workspace, work: Path) -> None:
    words = ("--turn", "turn_2", "--sandbox", "none", "--work-dir", str(work), "--json")
    process = started(asked, *words, *python("import os, signal, sys\n" + CATCHES + WAITS))
    assert process.stderr is not None
    assert process.stderr.readline() == "ready\n"
    asked.restart()
    process.send_signal(signal.SIGTERM)
    out, _ = process.communicate(timeout=CEILING)
    assert process.returncode == 5
    assert [made["physical_path"] for made in json.loads(out)["artifacts"]] == ["turn_2/files/last.txt"]


# The same in each way to run it


def in_process(workspace: Workspace, work: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The program as a part of the agent's own process."""
    runtime = workspace.connect("runtime")
    runtime.call("turn/begin", {"turn_id": "turn_2"})
    runtime.call("call/begin", {"tool_call_id": "tc_9", "tool_id": "exec", "params": {}})
    monkeypatch.setenv("OUT_DIR", str(workspace.out_dir))
    monkeypatch.setenv("WORK_DIR", str(work))
    monkeypatch.setenv("ARTIFACT_SIDECAR_TURN_ID", "turn_2")
    with (
        monkeypatch.context() as here,
        artifact_client.Client(lambda: artifact_client.dial_socket(str(workspace.socket("exec")))) as client,
    ):
        here.setattr(artifact_client, "call", client.call)
        here.chdir(work)
        exec(compile(MAKES, "program", "exec"), {})
    runtime.call("call/end", {"tool_call_id": "tc_9"})
    runtime.call("turn/end", {"turn_id": "turn_2"})


def layout(workspace: Workspace) -> dict[str, bytes | None]:
    """What lies in OUT_DIR; of the views, which hold times, only that they are there."""
    return {
        str(path.relative_to(workspace.out_dir)): path.read_bytes() if path.suffix != ".json" else None
        for path in workspace.out_dir.rglob("*")
        if path.is_file()
    }


@pytest.mark.rule("context.layout-is-equal-in-every-isolation")
@pytest.mark.usefixtures("bwrap")
def test_the_layout_is_the_same_in_process_in_a_subprocess_and_in_the_sandbox(
    make_workspace: Callable[..., Workspace], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    layouts: list[dict[str, bytes | None]] = []
    rows: list[Any] = []
    for way in ("in process", *MODES):
        workspace, work = make_workspace().start(), tmp_path / f"work {way}"
        work.mkdir()
        workspace.write("turn_1/files/source.txt", "may,3\n")
        looking = workspace.connect("runtime")
        looking.call("workspace/sync")  # the program asks for it as soon as it runs
        looking.close()
        if way == "in process":
            in_process(workspace, work, monkeypatch)
        else:
            words = ("--turn", "turn_2", "--tool-call-id", "tc_9", "--sandbox", way, "--work-dir", str(work))
            assert ran(workspace, *words, *python(MAKES))[0] == 0
        runtime = workspace.connect("runtime")
        runtime.call("timeline/flush")
        layouts.append(layout(workspace))
        rows.append([(row["sid"], row["physical_path"]) for row in runtime.call("sources/list")["rows"]])
        assert [path.name for path in work.iterdir()] == ["scratch.txt"]
    assert layouts[0] == layouts[1] == layouts[2]
    assert {"turn_2/files/deep/table.md", "turn_2/files/deep/data.bin", "timeline.json"} <= layouts[0].keys()
    assert rows[0] == rows[1] == rows[2]
