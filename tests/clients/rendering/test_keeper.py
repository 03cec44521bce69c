"""Whoever is kept ends with its caller, in time, within its memory, and leaves nothing."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from artifact_render import keeper
from artifact_render.browser import browsing
from artifact_render.failures import RenderError

from tests.clients.rendering.looking import require
from tests.daemon_process import PROJECT, eventually, short_folder

# A child that leaves its parent, its process group and its session, as helpers of browsers do.
STRAY = """
import os, time
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        open({mark!r}, "w").write(str(os.getpid()))
        {burden}
        time.sleep(600)
    os._exit(0)
time.sleep(600)
"""


@pytest.fixture
def home() -> Iterator[Path]:
    """A folder with a short name, since browsers make sockets."""
    folder = short_folder()
    yield folder
    shutil.rmtree(folder)


def start(folder: Path, *, seconds: float, memory: int, burden: str = "pass") -> subprocess.Popen[bytes]:
    folder.mkdir()
    theirs, ours = os.pipe()
    program = STRAY.format(mark=str(folder.parent / "stray"), burden=burden)
    command = (sys.executable, "-c", program)
    held = subprocess.Popen(
        [
            sys.executable,
            "-I",
            keeper.__file__,
            str(seconds),
            str(memory),
            str(folder),
            str(theirs),
            str(ours),
            *command,
        ],
        stdin=subprocess.PIPE,
        pass_fds=(theirs, ours),
    )
    os.close(theirs)
    os.close(ours)
    return held


def stray(folder: Path) -> int:
    mark = folder.parent / "stray"
    return int(eventually(lambda: mark.exists() and mark.read_text()))


def is_there(process: int) -> bool:
    return Path(f"/proc/{process}").exists()


def test_when_the_caller_hangs_up_even_a_stray_child_is_ended(tmp_path: Path) -> None:
    held = start(tmp_path / "f", seconds=60, memory=1 << 30)
    process = stray(tmp_path / "f")
    assert is_there(process)
    assert held.stdin is not None
    held.stdin.close()
    assert held.wait(10) == 0
    assert not is_there(process)
    assert not (tmp_path / "f").exists()


def test_time_runs_out(tmp_path: Path) -> None:
    held = start(tmp_path / "f", seconds=0.5, memory=1 << 30)
    assert held.wait(10) == keeper.TIMED_OUT
    assert not (tmp_path / "f").exists()
    assert held.stdin is not None
    held.stdin.close()


def test_memory_of_a_stray_child_counts(tmp_path: Path) -> None:
    held = start(tmp_path / "f", seconds=60, memory=128 << 20, burden="held = b'x' * (256 << 20)")
    assert held.wait(20) == keeper.TOO_LARGE
    assert not is_there(stray(tmp_path / "f"))
    assert held.stdin is not None
    held.stdin.close()


def test_a_browser_whose_user_is_killed_is_gone_with_its_folder(home: Path) -> None:
    require("chromium")
    program = (
        "import pathlib, sys, time\n"
        "from artifact_render.browser import browsing\n"
        "with browsing(pathlib.Path(sys.argv[1]), seconds=60) as tools:\n"
        "    tools.call('Target.createTarget', {'url': 'about:blank'})\n"
        "    print('ready', flush=True)\n"
        "    time.sleep(60)\n"
    )
    path = os.pathsep.join(str(PROJECT / place) for place in ("clients/python", "clients/rendering"))
    user = subprocess.Popen(
        [sys.executable, "-c", program, str(home)], stdout=subprocess.PIPE, env={**os.environ, "PYTHONPATH": path}
    )
    assert user.stdout is not None
    assert user.stdout.readline() == b"ready\n"
    assert len(at_home(home)) > 1
    user.send_signal(signal.SIGKILL)
    user.wait()
    user.stdout.close()
    eventually(lambda: not at_home(home))
    assert not (home / "browser").exists()


def test_after_browsing_nothing_is_left_and_a_page_that_takes_too_long_is_an_error(home: Path) -> None:
    require("chromium")
    with pytest.raises(RenderError) as failed, browsing(home, seconds=1.5) as tools:
        tools.until(lambda: False)
    assert failed.value.kind == "timed_out"
    assert at_home(home) == []
    assert not (home / "browser").exists()


def test_a_browser_that_is_not_there_or_is_none_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, said in (("/nowhere/chromium", "was not found"), ("/bin/false", "ended by itself")):
        monkeypatch.setenv("ARTIFACT_RENDER_BROWSER", name)
        with pytest.raises(RenderError, match=said) as failed, browsing(tmp_path, seconds=20) as tools:
            tools.call("Target.createTarget", {"url": "about:blank"})
        assert failed.value.kind == "no_browser"


def at_home(folder: Path) -> list[int]:
    """The processes that live in this folder, by their environment."""
    wanted = f"HOME={folder / 'browser'}\0".encode()
    found = []
    for process in Path("/proc").iterdir():
        if process.name.isdigit():
            try:
                if wanted in (process / "environ").read_bytes() + b"\0":
                    found.append(int(process.name))
            except OSError:
                continue
    return found
