"""Blocks as an agent's turns leave them, about 500 bytes each, and journals that hold them.

A turn has ten: a prompt, three calls with their results, a file's digest and content, an answer.
"""

from __future__ import annotations

import atexit
import shutil
import tempfile
import threading
from collections.abc import Iterator
from functools import cache
from itertools import count, islice
from pathlib import Path
from typing import Any

import orjson

from sidecar.core.blocks import Defaults, Told, tell
from sidecar.core.entries import BlockTold, encode
from sidecar.ports import Record
from sidecar.stores.journal import Journal

BLOCKS_PER_TURN = 10
RECORDS_PER_GROUP = 5000
_MOMENT = "2026-01-01T00:00:00Z"
_PROSE = "What the agent found out and wrote down, line by line, so that others could read it. " * 4


def turn_name(number: int) -> str:
    return f"turn_{number:07d}"


def file_path(turn: int) -> str:
    """The logical path of the one file of a turn."""
    return f"fi:{turn_name(turn)}.files/report.md"


def blocks(first_turn: int = 0) -> Iterator[dict[str, Any]]:
    """Turn after turn, without end."""
    for number in count(first_turn):
        yield from _turn(number)


def bodies(number: int) -> Iterator[bytes]:
    """The JSON of that many blocks, as they are kept."""
    return (told.body for told in told_blocks(number))


def told_blocks(number: int, first_turn: int = 0) -> Iterator[Told]:
    defaults = Defaults("turn_0", 0.0)
    return (tell(block, defaults) for block in islice(blocks(first_turn), number))


def records(number: int, first_seq: int = 1) -> Iterator[Record]:
    """What the journal keeps of that many blocks."""
    for seq, told in enumerate(told_blocks(number), start=first_seq):
        yield Record(seq, *encode(BlockTold(told)))


@cache
def kept(number: int) -> Path:
    """A folder with a journal of that many blocks, `journal`, and the same as one JSON array, `array.json`.

    It is made once in a run and is for reading: who changes a journal takes a copy.
    """
    place = Path(tempfile.mkdtemp(prefix="as-bench-corpus-"))
    atexit.register(shutil.rmtree, place, ignore_errors=True)
    fill_journal(place / "journal", number)
    with (place / "array.json").open("wb") as array:
        array.write(b"[")
        for at, body in enumerate(bodies(number)):
            array.write(b"," + body if at else body)
        array.write(b"]")
    return place


def fill_journal(state_dir: Path, number: int) -> None:
    """A journal of that many blocks, durable and closed."""
    journal = Journal.open(str(state_dir))
    rows = records(number)
    while group := list(islice(rows, RECORDS_PER_GROUP)):
        _commit(journal, group)
    journal.close()


def _commit(journal: Journal, group: list[Record]) -> None:
    ended = threading.Event()
    refusals: list[Exception | None] = []

    def done(refused: Exception | None) -> None:
        refusals.append(refused)
        ended.set()

    journal.append(group, done)
    ended.wait()
    if refusals[0] is not None:
        raise refusals[0]


def _turn(number: int) -> Iterator[dict[str, Any]]:
    turn = turn_name(number)
    yield _block("user.prompt", "user", turn, f"ar:{turn}.user.prompt", _PROSE[:330])
    for at in range(3):
        call = f"tc_{number:07d}_{at}"
        asked = orjson.dumps({"tool_id": "exec", "tool_call_id": call, "params": {"code": _PROSE[:140]}}).decode()
        mime = "application/json"
        yield _block("react.tool.call", "agent", turn, f"tc:{turn}.{call}.call", asked, call=call, mime=mime)
        yield _block("react.tool.result", "tool", turn, f"tc:{turn}.{call}.result", _PROSE[:240], call=call)
    path = file_path(number)
    digest = orjson.dumps(
        {"artifact_path": path, "mime": "text/markdown", "kind": "file", "visibility": "external", "tool_call_id": call}
    ).decode()
    result = f"tc:{turn}.{call}.result"
    yield _block("react.tool.result", "tool", turn, result, digest, call=call, mime="application/json")
    yield _block("react.tool.result", "tool", turn, path, f"{number} {_PROSE[:240]}", call=call)
    yield _block("assistant.completion", "assistant", turn, f"ar:{turn}.assistant.completion", _PROSE[:310])


def _block(
    kind: str, author: str, turn: str, path: str, text: str, *, call: str = "", mime: str = "text/markdown"
) -> dict[str, Any]:
    meta = {"turn_id": turn, **({"tool_call_id": call} if call else {})}
    return {
        "type": kind,
        "author": author,
        "turn_id": turn,
        "ts": _MOMENT,
        "mime": mime,
        "path": path,
        "text": text,
        "meta": meta,
    }
