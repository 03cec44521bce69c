"""One deed under the eyes of one daemon: what was missed, and what was registered that never was a whole file.

A deed is watched in one of two ways. `synced`: nothing is asked until the deed is over, then `workspace/sync` once.
`told`: nothing is asked at all, and events must tell of every file by themselves.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from time import monotonic
from typing import Any, NamedTuple

from tests.daemon_process import PROJECT, Workspace, environment
from tests.rpc_client import Client
from tests.watching.deeds import Files

PATIENCE = 60.0  # seconds that an answer takes at most
SILENCE = 30.0  # seconds without any news after which no more is expected
PAGE = 1000


@dataclass(slots=True)
class Outcome:
    """`half` are registered states that no complete file ever had; `seconds` is from the end to the last file."""

    made: int
    missed: list[str] = field(default_factory=list[str])
    half: list[str] = field(default_factory=list[str])
    unnumbered: list[str] = field(default_factory=list[str])
    seconds: float = 0.0

    @property
    def is_clean(self) -> bool:
        return self.made > 0 and not (self.missed or self.half or self.unnumbered)

    def __str__(self) -> str:
        return (
            f"{len(self.missed)} of {self.made} missed {self.missed[:3]}, {len(self.half)} half {self.half[:3]}, "
            f"{len(self.unnumbered)} without a number of their own {self.unnumbered[:3]}"
        )


class Deed(NamedTuple):
    process: subprocess.Popen[bytes]
    report: Path

    @classmethod
    def begin(cls, workspace: Workspace, name: str, prefix: str, size: int) -> Deed:
        """Begin it in a process of its own."""
        report = workspace.folder / f"{prefix}.json"
        words = [sys.executable, "-m", "tests.watching.deeds", name, str(workspace.out_dir), prefix, str(size)]
        with report.open("wb") as out:
            return cls(subprocess.Popen(words, cwd=PROJECT, env=environment(), stdout=out), report)

    @property
    def is_over(self) -> bool:
        return self.process.poll() is not None

    def files(self) -> Files:
        """Wait for its end; the hashes of what it made."""
        assert self.process.wait(300) == 0
        files: Files = json.loads(self.report.read_bytes())
        return files


def synced(workspace: Workspace, name: str, prefix: str, size: int) -> Outcome:
    """One sync after the end. Every file must be in its answer, and resolve."""
    client = workspace.connect("runtime", ceiling=PATIENCE)
    files = Deed.begin(workspace, name, prefix, size).files()
    over = monotonic()
    listed = {*client.call("workspace/sync")["artifacts"]}
    seconds = monotonic() - over
    outcome = judge(client, files)
    outcome.seconds = seconds
    outcome.missed += [path for path in files if logical(path) not in listed and path not in outcome.missed]
    return outcome


def told(workspace: Workspace, name: str, prefix: str, size: int) -> Outcome:
    """Events alone, whichever look they came from."""
    client = workspace.connect("runtime", ceiling=PATIENCE, events=["artifacts"])
    deed = Deed.begin(workspace, name, prefix, size)
    outcome = hear(client, lambda: deed.files() if deed.is_over else {})
    client.drop()
    return outcome


def hear(client: Client, made: Callable[[], Files]) -> Outcome:
    """Listen until every file was told of. `made` is asked now and then, and answers once all of them are there."""
    client.ceiling = 0.25
    states: dict[str, set[str]] = {}
    numbers: dict[str, int] = {}
    files: Files = {}
    over = last = monotonic()
    while not files or not (files.keys() <= states.keys() or monotonic() > max(over, last) + SILENCE):
        if not files and (files := made()):
            over = monotonic()
        try:
            message = client.receive()
        except TimeoutError:
            continue
        for artifact in message["params"]["artifacts"]:
            states.setdefault(artifact["physical_path"], set()).add(artifact["sha256"])
            numbers[artifact["physical_path"]] = artifact.get("sid", 0)
        last = monotonic()
    outcome = Outcome(len(files), seconds=max(0.0, last - over))
    outcome.missed = [path for path, whole in files.items() if whole not in states.get(path, ())]
    outcome.half = [path for path, seen in states.items() if path in files and seen - {files[path]}]
    outcome.unnumbered = twice_or_never(numbers[path] for path in files if path in numbers)
    return outcome


WAYS: dict[str, Callable[[Workspace, str, str, int], Outcome]] = {"sync": synced, "events": told}


def judge(client: Client, files: Files) -> Outcome:
    """Compare what is registered with what was made, every version of it."""
    outcome = Outcome(len(files))
    numbers: list[int] = []
    for path, artifact in zip(files, resolved(client, files), strict=True):
        if artifact is None or artifact.get("sha256") != files[path] or not artifact["on_disk"]:
            outcome.missed.append(path)
            continue
        numbers.append(artifact.get("sid", 0))
        if artifact["version"] > 1:
            versions = client.call("artifact/versions", {"path": path})["versions"]
            outcome.half += [path for version in versions if version["sha256"] != files[path]]
    outcome.unnumbered = twice_or_never(numbers)
    return outcome


def resolved(client: Client, paths: Iterable[str]) -> list[dict[str, Any] | None]:
    """The artifact at each path, or None."""
    wanted = list(paths)
    pages = [wanted[at : at + PAGE] for at in range(0, len(wanted), PAGE)]
    return [
        result.get("artifact")
        for page in pages
        for result in client.call("artifact/resolve", {"paths": page})["results"]
    ]


def twice_or_never(numbers: Iterable[int]) -> list[str]:
    """Source numbers that two files have, and a zero for each file that has none."""
    seen: set[int] = set()
    wrong: list[str] = []
    for number in numbers:
        if number == 0 or number in seen:
            wrong.append(f"[S:{number}]")
        seen.add(number)
    return wrong


def logical(path: str) -> str:
    """The canonical name of a file in a turn's `files`."""
    turn, _, rel = path.partition("/files/")
    return f"fi:{turn}.files/{rel}"
