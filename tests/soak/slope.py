"""A straight line through what was measured, and how sure its steepness is."""

from __future__ import annotations

from collections.abc import Sequence
from math import sqrt
from statistics import fmean
from typing import NamedTuple

BATCHES = 20
T_95 = {1: 12.71, 2: 4.30, 3: 3.18, 4: 2.78, 5: 2.57, 6: 2.45, 7: 2.36, 8: 2.31, 9: 2.26, 10: 2.23, 12: 2.18, 18: 2.10}


class Slope(NamedTuple):
    """How much `y` grows with each `x`; the true value is within `sure` of that in 95 of 100 cases."""

    steep: float
    sure: float


def slope(points: Sequence[tuple[float, float]]) -> Slope:
    """Least squares over the means of at most 20 batches: neighbouring samples of a memory say much the same."""
    length = max(1, len(points) // BATCHES)
    batches = [points[at : at + length] for at in range(0, len(points) - length + 1, length)]
    xs = [fmean(x for x, _ in batch) for batch in batches]
    ys = [fmean(y for _, y in batch) for batch in batches]
    if len(xs) < 3:
        return Slope(0.0, float("inf"))
    middle, level = fmean(xs), fmean(ys)
    spread = sum((x - middle) ** 2 for x in xs)
    if not spread:
        return Slope(0.0, float("inf"))
    steep = sum((x - middle) * (y - level) for x, y in zip(xs, ys, strict=True)) / spread
    left = sum((y - level - steep * (x - middle)) ** 2 for x, y in zip(xs, ys, strict=True))
    free = len(xs) - 2
    quantile = next(value for degrees, value in sorted(T_95.items(), reverse=True) if degrees <= free)
    return Slope(steep, quantile * sqrt(left / free / spread))
