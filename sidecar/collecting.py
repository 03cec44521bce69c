"""The garbage collector in a process whose state only grows: what is known is looked through once, not each time.

Python's collector looks through all that was ever made whenever a quarter as much was made anew, and nothing else runs
meanwhile: a second and a half among 150,000 files, to find nothing. So once a look takes long, what it looked through
is set aside. What is set aside and becomes garbage in a circle waits for a look at all: when there is four times as
much as at the last one, or some minutes after it, and for ever where that look would hold up everybody for too long.
"""

from __future__ import annotations

import gc
from math import inf
from time import perf_counter
from typing import Any

OLDEST = 2  # generation
LONG_SECONDS = 0.02
GROWTH = 4
WHOLE_SECONDS = 600.0
LONGEST_WHOLE = 0.25  # seconds that a look at all may take


class Collecting:
    """From `begin` to `end`; one for the process."""

    def __init__(self) -> None:
        self._aside = 0  # objects that were set aside; to count them takes as long as to look through them
        self._whole = 0  # how many that were when all were looked through
        self._is_whole = False  # whether the next look is one at all
        self._pace = inf  # seconds for an object, when nothing else kept the processor
        self._whole_at = self._began = perf_counter()

    def begin(self) -> None:
        """What is there now is taken to stay."""
        gc.freeze()
        self._aside = self._whole = gc.get_freeze_count()
        gc.callbacks.append(self._hear)

    def end(self) -> None:
        """Leave it all to Python again."""
        gc.callbacks.remove(self._hear)
        gc.unfreeze()

    def _hear(self, phase: str, info: dict[str, Any]) -> None:
        if info["generation"] < OLDEST:
            return
        now = perf_counter()
        if phase == "start":
            self._began = now
        elif self._is_whole:
            gc.freeze()
            self._aside = self._whole = gc.get_freeze_count()
            self._whole_at, self._is_whole = now, False
        else:
            self._looked(now)

    def _looked(self, now: float) -> None:
        if now - self._began >= LONG_SECONDS:
            count = len(gc.get_objects(generation=OLDEST))
            self._pace = min(self._pace, (now - self._began) / max(count, 1))
            self._aside += count
            gc.freeze()
        is_old = self._aside > self._whole and now - self._whole_at >= WHOLE_SECONDS
        is_due = is_old or self._aside > GROWTH * self._whole
        if is_old and self._is_too_much():  # much of it may have been freed since
            self._aside, self._whole_at = gc.get_freeze_count(), now
        if is_due and not self._is_too_much():
            self._is_whole = True
            gc.unfreeze()

    def _is_too_much(self) -> bool:
        return self._aside * self._pace > LONGEST_WHOLE
