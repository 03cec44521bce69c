"""A page looked through for what it refers to, against the same parser alone; and its pictures brought, against copies.

The bare parse is what cannot be had for less: every token of the page, or every block of the text, and nothing made
of them. The loop that copies knows which bytes are wanted; ours finds the names in the page, looks whether a
file is there, takes it in again, and tells the journal.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from time import perf_counter

import turbohtml
from markdown_it import MarkdownIt

from sidecar.core.assets import Document, Room, plan
from tests.bench.bringing import copied, put_aside
from tests.bench.figures import Figure, Size, against, in_turns, seconds
from tests.bench.pipe import Pipe, daemon_pipe, request
from tests.bench.places import folder, served
from tests.daemon_process import Workspace

MIB = 1024 * 1024
PROSE = "What was sold, where it went, and who was asked about it is told in so many words, over and over. " * 20
PARAGRAPH = (
    "<h2>Quarter {0}</h2>\n<p class='text'>It ended <b>well</b> &mdash; see <a href='turn_1/files/{0}.html'>it</a>"
    " [[S:1,3-5]] and <img src='turn_1/files/{0}.png' alt='a chart'>, or read turn_1/files/{0}.pdf.</p>\n"
    f"<p>{PROSE}</p>\n"
)
SECTION = (
    f"## Quarter {{0}}\n\nIt ended **well**, see [the report](turn_1/files/{{0}}.html) [[S:1,3-5]] and\n"
    f"![a chart](turn_1/files/{{0}}.png), or read turn_1/files/{{0}}.pdf.\n\n{PROSE}\n\n"
)
PICTURES, PICTURE_BYTES = 100, 16 * 1024


def measure(size: Size) -> Iterator[Figure]:
    length = size.of(MIB, least=4096)
    for name, mime, part, parse in (
        ("HTML", "text/html", PARAGRAPH, _tokens),
        ("Markdown", "text/markdown", SECTION, _blocks),
    ):
        page = _page(part, length)
        rounds = in_turns(size.rounds, lambda: _scan(page, mime), lambda: _timed(parse, page))  # noqa: B023
        title = f"scan of {length // 1024} KiB of {name}"
        yield Figure(title, "the parser alone", seconds, against(rounds, ours=0, rival=1))
    yield from _pulls(size)


def _page(part: str, length: int) -> str:
    return "".join(part.format(number) for number in range(length // len(part) + 1))


def _tokens(page: str) -> None:
    for _ in turbohtml.tokenize(page):
        pass


def _blocks(page: str) -> None:
    MarkdownIt("commonmark").enable("table").parse(page)


def _timed(parse: Callable[[str], None], page: str) -> float:
    began = perf_counter()
    parse(page)
    return perf_counter() - began


def _scan(page: str, mime: str) -> float:
    began = perf_counter()
    found = plan(Document(page, mime), Room())
    spent = perf_counter() - began
    if len(found.wanted) < 3:
        raise ValueError("the page refers to more than that")
    return spent


def _pulls(size: Size) -> Iterator[Figure]:
    count = size.of(PICTURES, least=1)
    names = [f"turn_1/files/{number:04d}.bin" for number in range(count)]
    page = "".join(f"<img src='{name}'>\n" for name in names)
    with folder() as place, served(place / "ours") as workspace, daemon_pipe(workspace, "runtime") as pipe:
        for number, name in enumerate(names):
            workspace.write(name, number.to_bytes(8, "big") * (PICTURE_BYTES // 8))
        pipe.ask(request(2, "workspace/sync", {}))
        sources = [put_aside(workspace.out_dir / name, place / "aside" / name) for name in names]
        for what, pull in (("that are gone", _pull_gone), ("that are there", _pull_there)):
            rounds = in_turns(
                size.rounds,
                lambda: pull(workspace, pipe, page, names),  # noqa: B023 - called at once
                lambda: copied(sources, place / "copies"),
            )
            name = f"pull of {count} assets of {PICTURE_BYTES // 1024} KiB {what}"
            yield Figure(name, "copy and hash", seconds, against(rounds, ours=0, rival=1))


def _pull_gone(workspace: Workspace, pipe: Pipe, page: str, names: Sequence[str]) -> float:
    for name in names:
        (Path(workspace.out_dir) / name).unlink()
    pipe.ask(request(3, "workspace/sync", {}))  # they are known to be gone before the clock starts
    return _pull(pipe, page, "rehosted", len(names))


def _pull_there(workspace: Workspace, pipe: Pipe, page: str, names: Sequence[str]) -> float:
    return _pull(pipe, page, "present", len(names))


def _pull(pipe: Pipe, page: str, where: str, count: int) -> float:
    began = perf_counter()
    answer = pipe.ask(request(4, "assets/pull", {"content": page}))
    spent = perf_counter() - began
    if len(answer[where]) != count:
        raise ValueError(f"not every asset is {where}: {answer['missing'][:3]}")
    return spent
