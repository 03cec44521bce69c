"""A conversation whose pictures are only in the store when a page wants them, two turns later."""

from __future__ import annotations

import base64
import json
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.clients.rendering.looking import BLUE, GREEN, RED, picture
from tests.daemon_process import PROJECT, Workspace, environment, eventually

PHOTO, CHART, LOGO = "turn_1/attachments/photo (one).png", "turn_1/files/out/chart.png", "turn_1/files/logo.png"
PAGE = """\
# Weekly report

Soup sells [[S:1]], as nobody says [[S:99]].

![the photo](turn_1/attachments/photo%20(one).png)

![the chart]([[S:3]])

![nothing](turn_1/files/gone.png)

See [the chart](turn_1/files/out/chart.png) and [a page](https://example.org/b).

<p style="width:40px;height:40px;background:url(turn_1/files/logo.png)"></p>
"""
HOLE, NOBODY = "turn_1/files/gone.png", 99


@dataclass(frozen=True, slots=True)
class Ran:
    """How one run of the command ended."""

    code: int
    out: str
    err: str

    @property
    def answer(self) -> Any:
        assert self.code == 0, self.err
        return json.loads(self.out)


class Story:
    """The agent loop up to the third turn, and the command as its renderer."""

    def __init__(self, workspace: Workspace) -> None:
        self.workspace = workspace
        self.runtime = workspace.connect("runtime")

    def first_turns(self) -> None:
        """Source 1 is a web page, 2 the photo, 3 the chart, 4 the logo."""
        ask = self.runtime.call
        ask("sources/merge", {"rows": [{"url": "https://example.org/a", "title": "Soup <sells>"}]})
        photo = {"name": "photo (one).png", "base64": base64.b64encode(picture(RED)).decode()}
        ask("turn/begin", {"turn_id": "turn_1", "prompt": "Draw it", "attachments": [photo]})
        for number, (path, colour) in enumerate({CHART: BLUE, LOGO: GREEN}.items(), start=1):
            ask("call/begin", {"tool_call_id": f"tc_{number}", "tool_id": "exec", "params": {}})
            self.workspace.write(path, picture(colour))
            ask("call/end", {"tool_call_id": f"tc_{number}"})
        ask("turn/end", {"turn_id": "turn_1"})
        ask("turn/begin", {"turn_id": "turn_2", "prompt": "Wait"})
        ask("turn/end", {"turn_id": "turn_2"})
        rows = ask("sources/list")["rows"]
        assert [row.get("physical_path") for row in rows] == [None, PHOTO, CHART, LOGO]

    def leave_it_to_the_store(self) -> None:
        """OUT_DIR is emptied and nothing is kept: the pictures are in the store and nowhere else."""
        eventually(lambda: all("key" in one for one in self.runtime.call("artifact/list")["artifacts"]))
        self.runtime.drop()
        self.workspace.stop()
        for entry in self.workspace.out_dir.iterdir():
            shutil.rmtree(entry) if entry.is_dir() else entry.unlink()
        shutil.rmtree(self.workspace.state_dir / "kept")
        self.workspace.start()
        self.runtime = self.workspace.connect("runtime")

    def third_turn(self) -> None:
        self.runtime.call("turn/begin", {"turn_id": "turn_3", "prompt": "Print it"})

    def environment(self, **extra: str) -> dict[str, str]:
        """Where the command and its door find this workspace and nothing else."""
        folders = {
            "ARTIFACT_SIDECAR_SOCKET_DIR": str(self.workspace.socket_dir),
            "ARTIFACT_SIDECAR_STATE_DIR": str(self.workspace.state_dir),
        }
        path = ":".join(str(PROJECT / place) for place in (".", "clients/python", "clients/rendering"))
        return {**environment(**folders), "PYTHONPATH": path, "OUT_DIR": str(self.workspace.out_dir), **extra}

    def command(self, *arguments: str, cwd: Path | None = None, text: str = "", **extra: str) -> Ran:
        """Run `artifact-render` to its end."""
        done = subprocess.run(
            [sys.executable, "-m", "artifact_render", *arguments],
            cwd=cwd or PROJECT,
            env=self.environment(**extra),
            input=text,
            capture_output=True,
            text=True,
            timeout=100,
        )
        return Ran(done.returncode, done.stdout, done.stderr)

    def made(self, answer: dict[str, Any]) -> Path:
        """The file that was written."""
        return self.workspace.out_dir / answer["artifact"]["physical_path"]


def texts(answer: Any) -> Iterator[str]:
    """Every text in an answer, keys included."""
    match answer:
        case dict():
            for key, value in answer.items():
                yield key
                yield from texts(value)
        case list():
            for one in answer:
                yield from texts(one)
        case str():
            yield answer
