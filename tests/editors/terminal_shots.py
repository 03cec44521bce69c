"""Takes pictures of the Neovim plugin as a person sees it, in a dark and a light theme.

`python -m tests.editors.terminal_shots DIR [NAME...]` writes them, one PNG for each shot and theme.

Neovim runs in a terminal that exists only as a grid of cells (pyte, fed by pexpect); rich draws the grid as SVG, and
Chromium makes a PNG of that. No test needs it: people look at the pictures.
"""

from __future__ import annotations

import io
import re
import shutil
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from time import monotonic, sleep
from typing import Any

from tests.daemon_process import Workspace
from tests.editors import neovim
from tests.editors.agent_work import AgentWork

NEEDED = "terminal_shots needs pexpect and pyte (pip install pexpect pyte) and Chromium (apt-get install chromium)"
COLUMNS, LINES = 148, 38
CEILING = 60.0
COLOURS = {"dark": ("#14161b", "#e0e2ea"), "light": ("#e0e2ea", "#14161b")}  # those of Neovim's own scheme


@dataclass(frozen=True, slots=True)
class Shot:
    """One picture: what is typed, step by step, and the words that are on the screen when a step is done."""

    name: str
    steps: Sequence[tuple[str, str]]


TREE = (":Artifacts tree\r", "summary.pdf"), ("/How did\r", "How did our"), ("\r", "write_tools.patch")
REPORT = (*TREE, ("/patch\r", "patch"), ("\r", "report.md"), ("/report.md\r", "report.md"))
SHOTS = (
    Shot("tree", (*REPORT, ("\t", "v1"), ("\r", "Coffee sales"))),
    Shot("preview", (*REPORT, ("p", "follows a link"))),
    Shot(
        "card", (*TREE, ("/exec\r", "exec_tools"), ("\r", "sales.png"), ("/sales.png\r", "sales"), ("p", "image/png"))
    ),
    Shot("diff", (*REPORT, ("d", "v2"))),
    Shot("sources", ((":Artifacts tree\r", "summary.pdf"), (":wincmd p\r", ""), (":Sources\r", "Harvest report"))),
    Shot("keys", ((":Artifacts tree\r", "summary.pdf"), ("g?", "compare with"))),
    Shot("hover", ((":edit turn_1/files/report.md\r", "nobody knows"), ("/S:4\r", "S:4"), ("K", "monthly means"))),
)


class Terminal:
    """A Neovim on a grid of cells."""

    def __init__(self, build: neovim.Build, workspace: Workspace, folder: Path, background: str) -> None:
        try:
            import pexpect
            import pyte
        except ImportError:
            raise SystemExit(NEEDED) from None

        class Screen(pyte.Screen):
            def report_device_status(self, mode: int = 0, private: bool = False) -> None:  # Neovim asks privately
                super().report_device_status(mode)

        self.screen = Screen(COLUMNS, LINES)
        self._stream = pyte.ByteStream(self.screen)
        env = {**neovim.surroundings(workspace, folder), "TERM": "xterm-256color", "COLORTERM": "truecolor"}
        dress = f"set background={background} termguicolors noswapfile noruler nohlsearch laststatus=2 shortmess+=I"
        words = [*neovim.arguments(build), "-c", dress]
        self._child = pexpect.spawn(
            words[0], words[1:], env=env, cwd=str(workspace.out_dir), dimensions=(LINES, COLUMNS), timeout=CEILING
        )
        self._lock = threading.Lock()
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        import pexpect

        while True:
            try:
                data = self._child.read_nonblocking(65536, timeout=None)
            except (pexpect.EOF, OSError):
                return
            with self._lock:
                self._stream.feed(data)

    def type(self, keys: str) -> None:
        self._child.send(keys)

    def text(self) -> str:
        with self._lock:
            return "\n".join(self.screen.display)

    def until(self, words: str) -> None:
        """Wait until the words are on the screen, and nothing has moved for a moment."""
        deadline, before = monotonic() + CEILING, ""
        while True:
            now = self.text()
            if words in now and now == before:
                return
            if monotonic() > deadline:
                raise SystemExit(f"{words!r} did not come\n{now}")
            before = now
            sleep(0.4)

    def svg(self, theme: str) -> str:
        """The screen as it is, drawn by rich."""
        from rich.console import Console
        from rich.style import Style
        from rich.terminal_theme import TerminalTheme
        from rich.text import Text

        paper, ink = COLOURS[theme]
        console = Console(width=COLUMNS, record=True, file=io.StringIO(), force_terminal=True)
        with self._lock:
            for row in range(LINES):
                line = Text(no_wrap=True, end="\n")
                for column in range(COLUMNS):
                    cell = self.screen.buffer[row][column]
                    line.append(cell.data, _style(cell, Style, ink, paper))
                console.print(line, soft_wrap=True)
        ansi = [(0, 0, 0)] * 8
        colours = TerminalTheme(_rgb(paper), _rgb(ink), ansi, ansi)
        return console.export_svg(title="Neovim", theme=colours)

    def close(self) -> None:
        self._child.close(force=True)


def _rgb(colour: str) -> tuple[int, int, int]:
    return int(colour[1:3], 16), int(colour[3:5], 16), int(colour[5:7], 16)


def _style(cell: Any, style: Callable[..., Any], ink: str, paper: str) -> Any:
    front = ink if cell.fg == "default" else _named(cell.fg, ink)
    back = paper if cell.bg == "default" else _named(cell.bg, paper)
    if cell.reverse:
        front, back = back, front
    lines = {"underline": cell.underscore, "strike": cell.strikethrough}
    return style(color=front, bgcolor=back, bold=cell.bold, italic=cell.italics, **lines)


def _named(colour: str, fallback: str) -> str:
    return f"#{colour}" if len(colour) == 6 and all(c in "0123456789abcdefABCDEF" for c in colour) else fallback


def png(svg: str, target: Path) -> None:
    """Let Chromium draw an SVG, without the fonts that it would fetch."""
    chromium = shutil.which("chromium")
    if chromium is None:
        raise SystemExit(NEEDED)
    svg = re.sub(r"@font-face\s*{[^}]*}", "", svg).replace("Fira Code", "DejaVu Sans Mono")
    size = re.search(r'viewBox="0 0 ([\d.]+) ([\d.]+)"', svg)
    assert size is not None, "rich writes the size of the picture"
    width, height = (int(float(part)) + 1 for part in size.groups())
    with tempfile.TemporaryDirectory() as folder:
        page = Path(folder, "page.html")
        look = f"<meta charset='utf-8'><style>body{{margin:0}}svg{{display:block;width:{width}px}}</style>"
        page.write_text(look + svg, "utf-8")
        command = [chromium, "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars"]
        where = [
            f"--user-data-dir={folder}/profile",
            f"--window-size={width},{height}",
            f"--screenshot={target}",
            page.as_uri(),
        ]
        subprocess.run([*command, *where], check=True, capture_output=True, timeout=120)


def main(folder: Path, wanted: Sequence[str], build: neovim.Build = neovim.NEWEST) -> None:
    """Take every picture in both themes; the workspace is made for it and goes afterwards."""
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as scratch, Workspace(Path(scratch)) as workspace:
        AgentWork(workspace).two_turns()
        for theme in COLOURS:
            for shot in SHOTS:
                if wanted and shot.name not in wanted:
                    continue
                terminal = Terminal(build, workspace, Path(scratch, f"{theme}-{shot.name}"), theme)
                try:
                    terminal.until("[No Name]")
                    for keys, words in shot.steps:
                        terminal.type(keys)
                        terminal.until(words)
                    target = folder / f"{shot.name}-{theme}.png"
                    png(terminal.svg(theme), target)
                    print(target)
                finally:
                    terminal.close()


if __name__ == "__main__":
    if len(sys.argv) < 2:
        raise SystemExit("usage: python -m tests.editors.terminal_shots DIR [NAME...]")
    main(Path(sys.argv[1]), sys.argv[2:])
