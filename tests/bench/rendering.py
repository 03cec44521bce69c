"""Does a render cost what changed? The render of a long timeline after one append, against the first one.

Both answers carry the whole timeline, so what is left of the cost after an append is putting them on the wire.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from tests.bench.corpus import BLOCKS_PER_TURN, blocks, fill_journal
from tests.bench.figures import AtMost, Figure, Size, against, seconds
from tests.bench.pipe import Pipe, daemon_pipe, request
from tests.bench.places import folder, served

RENDERS = 5


def measure(size: Size) -> Iterator[Figure]:
    """A daemon renders for the first time once, so every round has its own."""
    many = size.of(10_000, least=200)
    rounds = [_round(many) for _ in range(size.rounds)]
    yield Figure(
        f"render {many:,} blocks after one append", "the first render of them", seconds,
        against(rounds, ours=1, rival=0), AtMost(0.25),
    )  # fmt: skip
    yield Figure(
        f"render {many:,} blocks after one append",
        "the render of nothing new",
        seconds,
        against(rounds, ours=1, rival=2),
    )


def _round(many: int) -> tuple[float, float, float]:
    """Seconds of the first render, of one after an append, and of one after nothing."""
    with folder() as place:
        _fill(place / "ours", many)
        with served(place / "ours") as workspace, daemon_pipe(workspace, "runtime") as pipe:
            first = _render(pipe)
            appended = blocks(many // BLOCKS_PER_TURN + 1)
            changed: list[float] = []
            for at in range(RENDERS):
                pipe.ask(request(10 + at, "timeline/append", {"blocks": [next(appended)]}))
                changed.append(_render(pipe))
            return first, sorted(changed)[RENDERS // 2], pipe.one_at_a_time([_ASKED] * RENDERS)


def _fill(place: Path, many: int) -> None:
    fill_journal(place / "state", many)


def _render(pipe: Pipe) -> float:
    return pipe.one_at_a_time([_ASKED])


_ASKED = request(100_000, "timeline/render", {})
