"""The command: `artifact-render pdf page.md -o turn_9/files/page.pdf`.

PAGE is a file here, `-` for stdin, or a path in the workspace. Progress and notices go to stderr, the result to stdout.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from artifact_client import NoAnswer, RpcError, SidecarError

from artifact_render import Rendered, RenderError, write_pdf, write_png, write_pptx
from artifact_render.limits import PAGE_BYTES, PNG_WIDTH, RENDER_SECONDS

_DRAW: dict[str, Callable[..., Rendered]] = {"pdf": write_pdf, "png": write_png, "pptx": write_pptx}
_BY_NAME = {".md": "text/markdown", ".markdown": "text/markdown", ".html": "text/html", ".htm": "text/html"}

# sysexits.h
_USAGE, _BAD_INPUT, _NO_INPUT, _UNAVAILABLE, _SOFTWARE, _TRY_AGAIN, _NO_PERMISSION = 64, 65, 66, 69, 70, 75, 77
_CODES = {
    "bad_page": _BAD_INPUT,
    "bad_path": _BAD_INPUT,
    "unsafe_path": _BAD_INPUT,
    "too_large": _BAD_INPUT,
    "not_found": _NO_INPUT,
    "not_permitted": _NO_PERMISSION,
    "no_browser": _UNAVAILABLE,
    "store_unavailable": _TRY_AGAIN,
    "journal_unavailable": _TRY_AGAIN,
    "shutting_down": _TRY_AGAIN,
    "timed_out": _TRY_AGAIN,
    "changed": _TRY_AGAIN,
    "stale": _BAD_INPUT,
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; the exit code."""
    asked = _parser().parse_args(arguments)
    signal.signal(signal.SIGTERM, _interrupted)
    progress = _Progress(sys.stderr.isatty())
    try:
        rendered = _render(asked, progress)
    except KeyboardInterrupt:
        return progress.failed("interrupted", "interrupted", 130, as_json=asked.json)
    except (RenderError, RpcError) as error:
        kind = error.kind or "failed"
        return progress.failed(kind, str(error), _CODES.get(kind, _SOFTWARE), as_json=asked.json)
    except SidecarError as error:
        code = _TRY_AGAIN if isinstance(error, NoAnswer) else _UNAVAILABLE
        return progress.failed("no_daemon", str(error), code, as_json=asked.json)
    except ValueError as error:
        return progress.failed("usage", str(error), _USAGE, as_json=asked.json)
    progress.done()
    _tell(rendered, as_json=asked.json)
    return 0


def _render(asked: argparse.Namespace, progress: _Progress) -> Rendered:
    extra: dict[str, Any] = {"width": asked.width, "scale": asked.scale} if asked.format == "png" else {}
    return _DRAW[asked.format](
        asked.output,
        **_page(asked),
        **extra,
        title=asked.title,
        description=asked.description,
        visibility=asked.visibility,
        tool_call_id=asked.tool_call_id,
        expect_inputs=asked.expect_inputs,
        seconds=asked.seconds,
        out_dir=asked.out_dir,
        progress=progress.say,
    )


def _page(asked: argparse.Namespace) -> dict[str, str | None]:
    """A file below OUT_DIR is named to the daemon, any other is read here; what is no file is the daemon's to find."""
    local = Path(asked.page)
    if asked.page == "-":
        return {"content": _text(sys.stdin.buffer.read(PAGE_BYTES + 1), "stdin"), "mime": asked.mime}
    if not local.is_file():
        return {"page": asked.page, "mime": asked.mime}
    out_dir = asked.out_dir or os.environ.get("OUT_DIR")
    if out_dir and local.resolve().is_relative_to(Path(out_dir).resolve()):
        return {"page": local.resolve().relative_to(Path(out_dir).resolve()).as_posix(), "mime": asked.mime}
    with local.open("rb") as file:
        content = _text(file.read(PAGE_BYTES + 1), asked.page)
    return {"content": content, "mime": asked.mime or _BY_NAME.get(local.suffix.lower())}


def _text(content: bytes, name: str) -> str:
    if len(content) > PAGE_BYTES:
        raise RenderError("too_large", f"{name} has more than {PAGE_BYTES} bytes")
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise RenderError("bad_page", f"{name} is no UTF-8 text") from None


def _tell(rendered: Rendered, *, as_json: bool) -> None:
    if as_json:
        print(json.dumps(rendered.as_json(), ensure_ascii=False))
        return
    for notice in rendered.notices:
        print(f"{notice['code']}: {notice['message']}", file=sys.stderr)
    for remark in rendered.remarks:
        print(remark, file=sys.stderr)
    artifact = rendered.artifact
    number = f"[S:{artifact['sid']}]" if artifact.get("sid") else ""
    print(*filter(None, (artifact.get("physical_path"), number, f"{artifact.get('size_bytes', 0)} bytes")), sep="  ")


class _Progress:
    """One line on stderr: rewritten on a terminal, a line for each step elsewhere."""

    def __init__(self, terminal: bool) -> None:
        self._terminal = terminal

    def say(self, what: str) -> None:
        print(f"\r\x1b[K{what} …" if self._terminal else what, file=sys.stderr, end="" if self._terminal else "\n")
        sys.stderr.flush()

    def done(self) -> None:
        if self._terminal:
            print("\r\x1b[K", file=sys.stderr, end="", flush=True)

    def failed(self, kind: str, sentence: str, code: int, *, as_json: bool) -> int:
        self.done()
        print(f"artifact-render: {kind}: {sentence}", file=sys.stderr)
        if as_json:
            print(json.dumps({"error": {"kind": kind, "message": sentence}}))
        return code


def _interrupted(*_: object) -> None:
    raise KeyboardInterrupt


def _parser() -> argparse.ArgumentParser:
    parser = _Parser("artifact-render", description="Render a page of a workspace, with its pictures and sources.")
    parser.add_argument("format", choices=_DRAW)
    parser.add_argument("page", metavar="PAGE", help="a Markdown or HTML file, a path in the workspace, or -")
    parser.add_argument("-o", "--output", metavar="PATH", required=True, help="where to, a path in the workspace")
    parser.add_argument("--out-dir", metavar="DIR", help="the workspace; by default as the environment says")
    parser.add_argument("--mime", help="text/markdown or text/html, where the name does not tell")
    parser.add_argument("--title", help="the title of the document")
    parser.add_argument("--description", help="what the result is, for the daemon")
    parser.add_argument("--visibility", choices=("external", "internal"))
    parser.add_argument("--tool-call-id", metavar="ID", help="the call that the notices belong to")
    parser.add_argument("--expect-inputs", metavar="SHA256", help="refuse unless the inputs have this hash")
    parser.add_argument("--seconds", type=_positive, default=RENDER_SECONDS, help="for the drawing (%(default)s)")
    parser.add_argument("--width", type=int, default=PNG_WIDTH, help="of a png, in CSS pixels (%(default)s)")
    parser.add_argument("--scale", type=float, default=1.0, help="pixels of a png per CSS pixel (%(default)s)")
    parser.add_argument("--json", action="store_true", help="tell programs instead of people")
    return parser


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> None:  # type: ignore[override]
        self.print_usage(sys.stderr)
        self.exit(_USAGE, f"{self.prog}: {message}\n")


def _positive(text: str) -> float:
    number = float(text)
    if not 0 < number <= 3600:
        raise argparse.ArgumentTypeError("more than 0 and at most 3600")
    return number


if __name__ == "__main__":
    sys.exit(main())
