"""What is printed: tables on a terminal, aligned text in a pipe, JSON for programs.

Names come from a sandbox: whatever could move a cursor or turn a line around is shown as an escape.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import contextmanager
from typing import Any

Progress = Callable[[dict[str, Any]], None]


def on_terminal() -> bool:
    """Whether a person reads what is printed."""
    return sys.stdout.isatty()


def say(text: str = "") -> None:
    """One line."""
    sys.stdout.write(f"{text}\n")


def complain(text: str) -> None:
    """One line on stderr, with the program's name."""
    sys.stderr.write(f"artifact-sidecar: {printable(text)}\n")


def say_json(value: object) -> None:
    say(json.dumps(value, ensure_ascii=False, indent=2, default=str))


def printable(text: str, *, keep: str = "") -> str:
    """The text with everything that is not printable escaped, except the characters to `keep`."""
    if text.isprintable():
        return text
    return "".join(
        c if c.isprintable() or c in keep else c.encode("unicode_escape", "surrogatepass").decode() for c in text
    )


def cell(value: object) -> str:
    match value:
        case None:
            return "-"
        case bool():
            return "yes" if value else "no"
        case list() | tuple():
            return ", ".join(map(cell, value)) or "-"
        case _:
            return printable(str(value))


def size(count: int | None) -> str:
    """Bytes as people read them on a terminal, and as programs do elsewhere."""
    if count is None or not on_terminal() or count < 1024:
        return cell(count)
    amount, unit = float(count), 0
    while amount >= 1024 and unit < 4:
        amount, unit = amount / 1024, unit + 1
    return f"{amount:.1f} {'BKMGT'[unit]}iB"


def size_said(count: int) -> str:
    """The same within a sentence, where a bare number would need its unit."""
    told = size(count)
    return f"{told} bytes" if told.isdigit() else told


def table(columns: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """Rows under their columns. Numbers stand at the right."""
    cells = [[cell(value) for value in row] for row in rows]
    right = [bool(cells) and all(row[at].replace(".", "", 1).isdigit() for row in cells) for at in range(len(columns))]
    if on_terminal():
        _rich_table(columns, cells, right)
        return
    widths = [max(len(line[at]) for line in [list(columns), *cells]) for at in range(len(columns))]
    for line in [[column.upper() for column in columns], *cells]:
        padded = [
            text.rjust(width) if at_right else text.ljust(width)
            for text, width, at_right in zip(line, widths, right, strict=True)
        ]
        say("  ".join(padded).rstrip())


def details(pairs: Iterable[tuple[str, object]]) -> None:
    """Names and values, one pair per line; what is None is left out."""
    lines = [(name, cell(value)) for name, value in pairs if value is not None]
    width = max((len(name) for name, _ in lines), default=0)
    for name, value in lines:
        say(f"{name.ljust(width)}  {value}")


@contextmanager
def progress() -> Generator[Progress | None]:
    """A bar on stderr for the `$/progress` of one request; None where nobody would see it."""
    if not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import Progress as Bar

    with Bar(console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("", total=None)

        def report(value: dict[str, Any]) -> None:
            title = value.get("title") or value.get("message")
            done = value.get("percentage")
            bar.update(
                task,
                description=printable(title) if title else None,
                completed=done,
                total=None if done is None else 100,
            )

        yield report


def _rich_table(columns: Sequence[str], cells: Iterable[Sequence[str]], right: Sequence[bool]) -> None:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    drawn = Table(box=None, pad_edge=False, header_style="bold")
    for column, at_right in zip(columns, right, strict=True):
        drawn.add_column(column, justify="right" if at_right else "left", overflow="fold")
    for row in cells:
        drawn.add_row(*map(Text, row))
    Console().print(drawn)
