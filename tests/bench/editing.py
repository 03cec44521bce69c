"""Does an editor freeze with ten thousand artifacts and a thousand sources? Each request against a bare pygls server.

The rival answers as many items, from a list that it has; ours looks up which they are, and who may see them. Whoever
else is connected meanwhile is measured too.
"""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from tests.bench.figures import Figure, Size, against, in_turns, seconds
from tests.bench.pipe import Pipe, daemon_pipe, listens, request
from tests.bench.places import folder, served
from tests.daemon_process import PROJECT, Workspace, environment, eventually
from tests.rpc_client import encode, frame, initialize_params

FIRST_ID = 100_000
FILES_PER_TURN = 100
URI = "file:///elsewhere/notes.md"
# It asks for diagnostics by itself, so that nothing is published and every message is an answer.
ASKS = {"textDocument": {"diagnostic": {}}, "workspace": {"diagnostics": {"refreshSupport": True}}}
TYPED = ("fi:", "fi:art_00", "[[S:theory")


def measure(size: Size) -> Iterator[Figure]:
    artifacts, sources = size.of(10_000, least=50), size.of(1000, least=20)
    references, times = size.of(1000, least=20), size.of(50, least=2)
    with folder() as place, _filled(place, artifacts, sources) as workspace:
        with _editor(workspace.socket("editor"), _document(references, sources)) as ours:
            askings = _askings(references)
            answers = {name: ours.ask(make(FIRST_ID)) for name, make in askings.items()}
            bare = _bare(place / "bare.sock", _counts(answers))
            with bare as path, _editor(path, _document(references, sources)) as rival:
                for name, make in askings.items():
                    frames = [make(FIRST_ID + at) for at in range(times)]
                    yield _figure(size, f"{name} ({_number(answers[name])} items)", ours, rival, frames)
        yield from _meanwhile(size, workspace, _document(references, sources))


def _figure(size: Size, name: str, ours: Pipe, rival: Pipe, frames: list[bytes]) -> Figure:
    for pipe in (ours, rival):
        pipe.one_at_a_time(frames[:2])
    rounds = in_turns(size.rounds, lambda: ours.one_at_a_time(frames), lambda: rival.one_at_a_time(frames))
    return Figure(name, "pygls, from a list", seconds, against(rounds, ours=0, rival=1))


def _askings(references: int) -> dict[str, Callable[[int], bytes]]:
    """What an editor asks, by name: a request made for an id."""
    here = {"textDocument": {"uri": URI}}
    typed = {
        f"completion of `{text}`": partial(
            request,
            method="textDocument/completion",
            params={**here, "position": {"line": references + at, "character": len(text)}},
        )
        for at, text in enumerate(TYPED)
    }
    return {
        "outline of the tree": partial(request, method="workspace/outline", params={}),
        "first page of the tree": partial(request, method="artifact/list", params={"limit": 1000}),
        **typed,
        "diagnostics after a key press": _after_a_key,
        "workspace symbols of `chart`": partial(request, method="workspace/symbol", params={"query": "chart"}),
        "workspace symbols of `cht9`": partial(request, method="workspace/symbol", params={"query": "cht9"}),
    }


def _after_a_key(number: int) -> bytes:
    top = {"line": 0, "character": 0}
    change = {"range": {"start": top, "end": top}, "text": "x"}
    document = {"uri": URI, "version": number}
    told = {"jsonrpc": "2.0", "method": "textDocument/didChange"}
    changed = frame(encode({**told, "params": {"textDocument": document, "contentChanges": [change]}}))
    return changed + request(number, "textDocument/diagnostic", {"textDocument": {"uri": URI}})


def _document(references: int, sources: int) -> str:
    """A line for each reference, half of them wrong; then the lines that are being typed in."""
    known = [
        f"Emoji 🎉 [[S:{1 + at % (2 * sources)}]] here."
        if at % 2
        else f"See fi:turn_{1 + at % 40}.files/chart_0001.dat."
        for at in range(references)
    ]
    return "\n".join([*known, *TYPED, ""])


def _number(answer: Any) -> int:
    for name in ("items", "turns", "artifacts"):
        if isinstance(answer, dict) and name in answer:
            return len(answer[name])
    return len(answer)


def _counts(answers: dict[str, Any]) -> dict[str, int]:
    counts = {name: _number(answer) for name, answer in answers.items()}
    return {
        "outline": counts["outline of the tree"],
        "page": counts["first page of the tree"],
        "completion": counts["completion of `fi:`"],
        "diagnostics": counts["diagnostics after a key press"],
        "symbols": counts["workspace symbols of `chart`"],
    }


# Another client meanwhile --------------------------------------------------------------------------------------------


def _meanwhile(size: Size, workspace: Workspace, text: str) -> Iterator[Figure]:
    """The slowest of a hundred resolves while an editor types without a pause, against the same with nobody typing."""
    lines = text.count("\n")
    position = {"line": lines - len(TYPED), "character": len(TYPED[0])}
    typing = [
        request(FIRST_ID, "textDocument/completion", {"textDocument": {"uri": URI}, "position": position}),
        _after_a_key(FIRST_ID + 1),
        request(FIRST_ID + 2, "workspace/symbol", {"query": "cht9"}),
    ]
    asked = request(FIRST_ID, "artifact/resolve", {"paths": ["fi:turn_1.files/chart_0001.dat"]})
    number = size.of(1000, least=10)
    with daemon_pipe(workspace) as other, _editor(workspace.socket("editor"), text) as editor:
        for name, frames in (("completing", typing[:1]), ("doing all of it", typing)):
            rounds = in_turns(
                size.rounds,
                partial(_slowest, other, asked, number, editor, frames),
                partial(_slowest, other, asked, number, None, frames),
            )
            title = f"99th percentile of a resolve beside an editor {name}"
            yield Figure(title, "nobody beside it", seconds, against(rounds, ours=0, rival=1))


def _slowest(other: Pipe, asked: bytes, number: int, editor: Pipe | None, frames: list[bytes]) -> float:
    over = threading.Event()

    def work() -> None:
        while editor is not None and not over.is_set():
            editor.one_at_a_time(frames)

    working = threading.Thread(target=work)
    working.start()
    try:
        spent = sorted(other.one_at_a_time([asked]) for _ in range(number))
    finally:
        over.set()
        working.join()
    return spent[min(len(spent) - 1, round(0.99 * len(spent)))]


# What is there -------------------------------------------------------------------------------------------------------


@contextmanager
def _filled(place: Path, artifacts: int, sources: int) -> Iterator[Workspace]:
    """A daemon with so many artifacts that are no sources, in turns of a hundred, and so many sources of the web."""
    turns = max(1, artifacts // FILES_PER_TURN)
    for turn in range(1, turns + 1):
        made = place / "ours/out" / f"turn_{turn}/files"
        made.mkdir(parents=True)
        for at in range(artifacts // turns):
            (made / f"{'chart' if at % 2 else 'part'}_{at:04d}.dat").write_bytes(b"\0%d" % at)
    with served(place / "ours") as workspace:
        with daemon_pipe(workspace, "runtime") as runtime:
            runtime.ask(request(2, "workspace/sync", {"since": 0}))
            for turn in range(1, turns + 1):
                begun = {"turn_id": f"turn_{turn}", "prompt": f"Question {turn}, and what is to be known of it"}
                runtime.ask(request(3, "turn/begin", begun))
            rows = [{"title": f"Game theory, part {at}", "url": f"https://example.com/{at}"} for at in range(sources)]
            runtime.ask(request(4, "sources/merge", {"rows": rows}))
        yield workspace


@contextmanager
def _editor(path: Path, text: str) -> Iterator[Pipe]:
    """An editor with a document open."""
    with Pipe.direct(path) as pipe:
        pipe.ask(request(1, "initialize", {**initialize_params({}), "capabilities": ASKS}))
        document = {"uri": URI, "languageId": "markdown", "version": 1, "text": text}
        pipe.tell("initialized", {})
        pipe.tell("textDocument/didOpen", {"textDocument": document})
        yield pipe


@contextmanager
def _bare(path: Path, counts: dict[str, int]) -> Iterator[Path]:
    command = [sys.executable, "-m", "tests.bench.bare", str(path), json.dumps(counts)]
    with subprocess.Popen(command, cwd=PROJECT, env=environment()) as server:
        try:
            eventually(lambda: listens(path), ceiling=60)
            yield path
        finally:
            server.terminate()
