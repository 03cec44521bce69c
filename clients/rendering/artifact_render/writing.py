"""The three functions: gather a page, draw it, and have the daemon write the result."""

from __future__ import annotations

import base64
import shutil
import tempfile
from collections.abc import Callable
from contextlib import closing, nullcontext
from dataclasses import asdict, dataclass
from pathlib import Path
from time import monotonic
from typing import Any, TypedDict, Unpack

from artifact_client import Client

from artifact_render import worker
from artifact_render.asking import Daemon, Locked, connect
from artifact_render.browser import browsing
from artifact_render.failures import RenderError
from artifact_render.gathering import Asked, Gathered, gather
from artifact_render.limits import PNG_WIDTH, RENDER_SECONDS, WRITTEN_BYTES
from artifact_render.showing import Showing

Progress = Callable[[str], None]
Draw = Callable[[Gathered, Path, float], tuple[bytes, list[str]]]


class Options(TypedDict, total=False):
    """What all three take by name.

    Exactly one of `content` and `page` is given: the text of the page, or its path in the workspace, logical or
    physical. `mime` says what it is; by default Markdown, or what the daemon knows of the path.
    """

    content: str | None
    page: str | None
    mime: str | None
    title: str | None
    description: str | None
    visibility: str | None  # `external` or `internal`
    tool_call_id: str | None  # the call that the notices belong to, where the daemon takes our word for it
    expect_inputs: str | None  # refuse as `stale` unless the inputs have this hash
    seconds: float  # for the drawing; downloads have the daemon's own deadlines
    out_dir: str | None  # where OUT_DIR lies for us; by default as in the environment, else as the daemon says
    client: Client | None  # a connection as role `renderer`; by default one of our own
    progress: Progress  # is told what is going on, in a few words


@dataclass(frozen=True, slots=True)
class Rendered:
    """What came of it.

    `artifact` is what was written, `notices` what the daemon noticed, `missing` the holes as `{path, reason}`,
    `remarks` what this tool itself could not draw, in sentences. `lock` is every file that was used, `inputs` the
    sha256 of them and of the page: the same hash means that the same bytes were drawn from.
    """

    artifact: dict[str, Any]
    notices: tuple[dict[str, Any], ...]
    missing: tuple[dict[str, Any], ...]
    remarks: tuple[str, ...]
    lock: tuple[Locked, ...]
    inputs: str

    def as_json(self) -> dict[str, Any]:
        """The same for programs; the lock list as `{path, sha256}`."""
        lock = [{"path": file.path, "sha256": file.sha256} for file in self.lock]
        return {**asdict(self), "lock": lock}


def write_pdf(path: str, **options: Unpack[Options]) -> Rendered:
    """Print a page to a PDF at `path`, a file of the open turn. Raises RenderError and artifact_client.SidecarError."""

    def draw(gathered: Gathered, scratch: Path, deadline: float) -> tuple[bytes, list[str]]:
        with browsing(scratch, seconds=deadline - monotonic()) as tools:
            showing = Showing(tools, gathered.shelf, (line.sid for line in gathered.sources))
            showing.show(gathered.html, gathered.section, width=_PAPER_WIDTH, scale=1)
            return showing.pdf(), showing.remarks

    return _write(path, "write_pdf", draw, options)


def write_png(path: str, *, width: int = PNG_WIDTH, scale: float = 1, **options: Unpack[Options]) -> Rendered:
    """Picture a page, `width` CSS pixels wide and as tall as it is. Raises RenderError and SidecarError."""
    if not (1 <= width <= _WIDEST and 0.1 <= scale <= 4 and width * scale <= _WIDEST):
        raise ValueError(f"width is 1 to {_WIDEST} pixels, scaled, and scale 0.1 to 4")

    def draw(gathered: Gathered, scratch: Path, deadline: float) -> tuple[bytes, list[str]]:
        with browsing(scratch, seconds=deadline - monotonic()) as tools:
            showing = Showing(tools, gathered.shelf, (line.sid for line in gathered.sources))
            showing.show(gathered.html, gathered.section, width=width, scale=scale)
            return showing.png(width=width, scale=scale), showing.remarks

    return _write(path, "write_png", draw, options)


def write_pptx(path: str, **options: Unpack[Options]) -> Rendered:
    """Draw a page as slides, one per heading. Needs no browser. Raises RenderError and SidecarError."""

    def draw(gathered: Gathered, scratch: Path, deadline: float) -> tuple[bytes, list[str]]:
        target = scratch / "slides.pptx"
        shelf = gathered.shelf
        given = {
            "html": gathered.html,
            "title": gathered.title,
            "sources": [asdict(line) for line in gathered.sources],
            "files": {path: asdict(file) for path, file in shelf.files.items()},
            "cited": dict(shelf.cited),
            "spelled": dict(shelf.spelled),
            "page": shelf.page,
            "folder": str(shelf.folder),
            "target": str(target),
        }
        remarks = worker.run("slides", given, seconds=deadline - monotonic())["remarks"]
        if target.stat().st_size > WRITTEN_BYTES:
            raise RenderError("too_large", f"the slides have more than {WRITTEN_BYTES} bytes")
        return target.read_bytes(), remarks

    return _write(path, "write_pptx", draw, options)


def _write(path: str, tool: str, draw: Draw, options: Options) -> Rendered:
    if (options.get("content") is None) == (options.get("page") is None):
        raise ValueError("give exactly one of `content` and `page`")
    client = options.get("client")
    scratch = Path(tempfile.mkdtemp(prefix="artifact-render-"))
    try:
        with nullcontext(client) if client else closing(connect(options.get("out_dir"))) as connected:
            return _write_in(scratch, Daemon(connected, options.get("out_dir")), path, tool, draw, options)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def _write_in(scratch: Path, daemon: Daemon, path: str, tool: str, draw: Draw, options: Options) -> Rendered:
    told = options.get("progress") or (lambda _: None)
    call = options.get("tool_call_id")
    seconds = options.get("seconds", RENDER_SECONDS)
    asked = Asked(
        options.get("content"),
        options.get("page"),
        options.get("mime"),
        options.get("title"),
        f"rendering_tools.{tool}",
        call,
    )
    told("gathering the page and its files")
    gathered = gather(daemon, asked, scratch, seconds=seconds)
    if options.get("expect_inputs") not in (None, gathered.inputs):
        raise RenderError("stale", f"the inputs are {gathered.inputs} now")
    told(f"drawing, with {len(gathered.lock)} files and {len(gathered.sources)} sources")
    content, remarks = draw(gathered, scratch, monotonic() + seconds)
    told(f"writing {len(content)} bytes")
    written = daemon.write(
        {
            "path": path,
            "base64": base64.b64encode(content).decode(),
            "kind": "file",
            "visibility": options.get("visibility"),
            "description": options.get("description"),
            "sources_used": list(gathered.sources_used),
            "tool_call_id": call,
        }
    )
    notices = (*gathered.notices, *written["notices"])
    missing, lock = gathered.missing, gathered.lock
    return Rendered(written["artifact"], notices, missing, (*gathered.remarks, *remarks), lock, gathered.inputs)


_PAPER_WIDTH = 794  # CSS pixels of A4, so that what depends on the width settles as it will be printed
_WIDEST = 8000
