"""Does in a process of its own what cannot be interrupted: reading Markdown and drawing slides.

`python -m artifact_render.worker TASK` takes JSON on stdin and answers JSON on stdout. Time and memory are bounded, so
a page that costs too much ends this process and not its caller.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from artifact_render.failures import RenderError
from artifact_render.limits import WORKER_BYTES


def run(task: str, given: dict[str, Any], *, seconds: float) -> dict[str, Any]:
    """Have a task done elsewhere. Raises RenderError when it takes too long or fails."""
    if seconds <= 0:
        raise RenderError("timed_out", "there was no time left")
    command = [sys.executable, "-P", "-m", "artifact_render.worker", task, str(int(seconds) + 1)]
    text = json.dumps(given).encode()
    # It finds the modules where we found them, however that came about.
    places = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    try:
        done = subprocess.run(command, input=text, capture_output=True, timeout=seconds, env=places, check=False)
    except subprocess.TimeoutExpired:
        raise RenderError("timed_out", f"{task} took longer than {seconds:.0f} s") from None
    if done.returncode != 0:
        said = done.stderr.decode("utf-8", "replace").strip().splitlines() or [f"it ended with {done.returncode}"]
        raise RenderError("failed", f"{task} failed: {said[-1]}")
    return json.loads(done.stdout)


def _markdown(given: dict[str, Any]) -> dict[str, Any]:
    from artifact_render.markdown import html_of

    return {"html": html_of(given["text"], given["citations"])}


def _slides(given: dict[str, Any]) -> dict[str, Any]:
    from artifact_render.documents import SourceLine
    from artifact_render.outline import slides_of
    from artifact_render.shelf import Shelf, Shelved
    from artifact_render.slides import draw

    files = {path: Shelved(**file) for path, file in given["files"].items()}
    shelf = Shelf(Path(given["folder"]), files, given["cited"], given["page"], given["spelled"])
    lines = tuple(SourceLine(**line) for line in given["sources"])
    remarks = draw(slides_of(given["html"]), shelf, lines, Path(given["target"]), title=given["title"])
    return {"remarks": remarks}


_TASKS: dict[str, Callable[[dict[str, Any]], dict[str, Any]]] = {"markdown": _markdown, "slides": _slides}


def main() -> None:
    task, seconds = sys.argv[1:]
    resource.setrlimit(resource.RLIMIT_AS, (WORKER_BYTES, WORKER_BYTES))
    resource.setrlimit(resource.RLIMIT_CPU, (int(seconds), int(seconds) + 1))
    answer = _TASKS[task](json.load(sys.stdin))
    sys.stdout.write(json.dumps(answer))


if __name__ == "__main__":
    main()
