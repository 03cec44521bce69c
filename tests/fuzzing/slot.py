"""One target for some seconds, in a process of its own with an end to its time and its memory."""

from __future__ import annotations

import ast
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from tests.daemon_process import PROJECT
from tests.fuzzing import corpus
from tests.fuzzing.target import Target

NEEDED = "atheris leads the fuzzing and is not installed: pip install -c .ci/constraints.txt -e '.[test,fuzz]'"
MEMORY_MB = 2048
HANGS_SECONDS = 60

_TRIED = re.compile(r"^(?:#|stat::number_of_executed_units: )(\d+)", re.MULTILINE)
_EDGES = re.compile(r" cov: (\d+) ")


class NotInstalled(Exception):  # noqa: N818 - it says what
    """There is no atheris here."""


@dataclass(frozen=True, slots=True)
class Done:
    """What came of a slot. `seconds` are those of a processor.

    `faults` are texts by mark: the input as a literal, then what was raised. `growth` is the most by which the time for
    an input grew over its length: 1 is in proportion to it.
    """

    seconds: float
    executions: int
    edges: int
    growth: float
    grown: str
    faults: dict[str, str]


class Slot:
    """A target that is being fuzzed; `wait` for its end, or `stop` it before."""

    def __init__(self, target: Target, *, seconds: int, seed: int) -> None:
        if find_spec("atheris") is None:
            raise NotInstalled(NEEDED)
        self.target = target
        self.seed = seed
        self._folder = Path(tempfile.mkdtemp(prefix="as-fuzz-", dir=memory()))
        self._said = (self._folder / "said").open("w+b")
        self._process = _start(
            target, self._folder, self._said.fileno(),
            [
                f"-max_total_time={seconds}", f"-seed={seed % 2**32 or 1}", f"-max_len={target.longest}",
                f"-rss_limit_mb={MEMORY_MB}", f"-timeout={HANGS_SECONDS}", f"-report_slow_units={HANGS_SECONDS}",
                f"-artifact_prefix={self._folder}/died-",
                f"-use_value_profile={seed % 2}", "-print_final_stats=1", "-reload=0",
                str(working_corpus(target)), str(beginnings(target, self._folder / "kept")),
            ],
        )  # fmt: skip

    def stop(self) -> None:
        with suppress(ProcessLookupError):  # it may have ended by itself
            os.kill(self._process.pid, signal.SIGTERM)

    def wait(self) -> Done:
        _, status, used = os.wait4(self._process.pid, 0)
        code = self._process.returncode = os.waitstatus_to_exitcode(status)
        seconds = used.ru_utime + used.ru_stime
        self._said.seek(0)
        said = self._said.read().decode("utf-8", "replace")
        faults = {page.stem: page.read_text("utf-8") for page in self._folder.glob("*.txt")}
        for death in self._folder.glob("died-*"):
            faults[death.name[:40]] = f"{death.read_bytes()!r}\n\n{said[-4000:]}"
        if code not in (0, -signal.SIGTERM) and not faults and "run interrupted" not in said:
            faults[f"ended-{code}"] = f"b''\n\n{said[-4000:]}"
        steepest = self._folder / "steepest"
        growth, _, grown = (steepest.read_text("utf-8") if steepest.exists() else "0").partition("\n")
        self._said.close()
        shutil.rmtree(self._folder, ignore_errors=True)
        executions = max(map(int, _TRIED.findall(said)), default=0)
        edges = max(map(int, _EDGES.findall(said)), default=0)
        return Done(seconds, executions, edges, float(growth), grown.strip(), faults)


def smallest(target: Target, *, most: int) -> list[bytes]:
    """So many bytes at most of inputs that reach, as near as can be, what the whole working corpus reaches."""
    with tempfile.TemporaryDirectory(prefix="as-fuzz-", dir=memory()) as top:
        folder = Path(top)
        (folder / "merged").mkdir()
        with (folder / "said").open("wb") as said:
            flags = ["-set_cover_merge=1", f"-max_len={min(target.longest, 400)}", f"-rss_limit_mb={MEMORY_MB}"]
            shutil.copytree(working_corpus(target), folder / "working")
            folders = [folder / "merged", folder / "working", beginnings(target, folder / "kept")]
            _start(target, folder, said.fileno(), [*flags, *map(str, folders)]).wait()
        merged = sorted((path.read_bytes() for path in (folder / "merged").iterdir()), key=len)
    chosen: list[bytes] = []
    for one in merged:
        most -= len(repr(one)) + 1
        if most < 0:
            break
        chosen.append(one)
    return chosen


def working_corpus(target: Target) -> Path:
    folder = corpus.growing() / "corpus" / target.name
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def beginnings(target: Target, folder: Path) -> Path:
    """The seeds of the target and what is kept of it, a file each, as libFuzzer takes them."""
    folder.mkdir(parents=True, exist_ok=True)
    inputs = [*target.seeds(), *corpus.kept(target.name), *corpus.findings(target.name)]
    for number, one in enumerate(dict.fromkeys(inputs)):
        (folder / str(number)).write_bytes(one)
    return folder


def still_fails(target: Target, fault: str) -> bool:
    """Whether a finding, as it was written down, is one today."""
    try:
        target.check(ast.literal_eval(fault.partition("\n")[0]))
    except Exception:  # noqa: BLE001 - that is what it was kept for
        return True
    return False


def _start(target: Target, folder: Path, said: int, flags: Sequence[str]) -> subprocess.Popen[bytes]:
    if target.words:  # libFuzzer takes a dictionary of none for a mistake
        words = folder / "words"
        words.write_text("".join(f'"{_quoted(word)}"\n' for word in target.words), "ascii")
        flags = [f"-dict={words}", *flags]
    temporary = folder / "tmp"
    temporary.mkdir()
    command = [sys.executable, "-m", "tests.fuzzing.inside", target.name, str(folder), *flags]
    return subprocess.Popen(
        command, cwd=PROJECT, env={**os.environ, "TMPDIR": str(temporary)}, stdin=subprocess.DEVNULL, stdout=said,
        stderr=said,
    )  # fmt: skip


def _quoted(word: bytes) -> str:
    return "".join(f"\\x{byte:02X}" for byte in word)


def memory() -> str | None:
    """A disk in memory, where there is one: a million journals need not be brought to a real one."""
    return "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
