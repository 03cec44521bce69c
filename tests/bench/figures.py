"""A figure is a ratio: ours against a named rival, measured in turns in the same run, so that noise hits both."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from statistics import median
from typing import NamedTuple, TypeVar

T = TypeVar("T")


class Size(NamedTuple):
    """How much is measured: how many rounds, and which share of the full amount in each."""

    rounds: int
    share: float

    def of(self, full: int, *, least: int) -> int:
        return max(least, round(full * self.share))


FULL = Size(rounds=8, share=1.0)
QUICK = Size(rounds=3, share=0.1)
TINY = Size(rounds=1, share=0.001)


class AtMost(NamedTuple):
    ratio: float

    def __str__(self) -> str:
        return f"<= {self.ratio:g}"

    def met(self, ratio: float) -> bool:
        return ratio <= self.ratio


class AtLeast(NamedTuple):
    ratio: float

    def __str__(self) -> str:
        return f">= {self.ratio:g}"

    def met(self, ratio: float) -> bool:
        return ratio >= self.ratio


@dataclass(frozen=True, slots=True)
class Figure:
    """`pairs` has one (ours, rival) per round; `show` prints either of them with its unit."""

    name: str
    rival: str
    show: Callable[[float], str]
    pairs: Sequence[tuple[float, float]]
    aim: AtMost | AtLeast | None = None

    @property
    def ratios(self) -> list[float]:
        return [ours / rival for ours, rival in self.pairs]

    @property
    def ratio(self) -> float:
        return median(self.ratios)

    def cells(self) -> tuple[str, ...]:
        ours, rival = (self.show(median(side)) for side in zip(*self.pairs, strict=True))
        spread = f"{_short(min(self.ratios))} to {_short(max(self.ratios))}"
        aim = "" if self.aim is None else f"{self.aim} {'met' if self.aim.met(self.ratio) else 'MISSED'}"
        return self.name, ours, rival, self.rival, _short(self.ratio), spread, aim


def in_turns(rounds: int, *contenders: Callable[[], T]) -> list[tuple[T, ...]]:
    """A/B/A/B: each contender once per round, in this order."""
    return [tuple([contender() for contender in contenders]) for _ in range(rounds)]


def against(rounds: Iterable[tuple[float, ...]], *, ours: int, rival: int) -> list[tuple[float, float]]:
    """The pairs of two contenders."""
    return [(one[ours], one[rival]) for one in rounds]


def table(figures: Iterable[Figure]) -> str:
    """As Markdown, the columns aligned for a terminal."""
    rows = [("figure", "ours", "rival", "the rival is", "ratio", "spread", "aim"), *(one.cells() for one in figures)]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = [" | ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) for row in rows]
    rule = " | ".join("-" * width for width in widths)
    return "\n".join(f"| {line} |" for line in (lines[0], rule, *lines[1:])) + "\n"


def seconds(value: float) -> str:
    if value < 1e-3:
        return f"{value * 1e6:.1f} us"
    return f"{value * 1e3:.2f} ms" if value < 1 else f"{value:.2f} s"


def _short(ratio: float) -> str:
    """Two digits behind the point; of what is smaller than those, the first two that are not 0."""
    return f"{ratio:.2f}" if ratio >= 0.1 else f"{ratio:.2g}"


def per_second(value: float) -> str:
    return f"{value:,.0f}/s"


def mebibytes(value: float) -> str:
    return f"{value / 2**20:,.0f} MiB"


def per_block(value: float) -> str:
    return f"{value:,.0f} B/block"
