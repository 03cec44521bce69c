"""The garbage collector in a process whose state only grows: what is known is looked through once, not each time.

Python's collector looks through all that was ever made whenever a quarter as much was made anew, and nothing else runs
meanwhile: a second and a half among 150,000 files, to find nothing. So what it has looked through is set aside. What
was set aside and became garbage in a circle is found when there is four times as much as at the last look at all.
"""

from __future__ import annotations

import gc
from typing import Any

OLDEST = 2  # generation
GROWTH = 4


class Collecting:
    """From `begin` to `end`; one for the process."""

    def __init__(self) -> None:
        self._aside = 0  # objects that are set aside, counted as they were: to count them anew takes as long as a look
        self._whole = 0  # how many that were when all were looked through
        self._is_whole = False  # whether the next look is one at all

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
        if phase != "stop" or info["generation"] < OLDEST:
            return
        if self._is_whole:
            self._whole, self._is_whole = self._aside, False
        else:
            self._aside += len(gc.get_objects(generation=OLDEST))
        gc.freeze()
        if self._aside > GROWTH * self._whole:
            self._is_whole = True
            gc.unfreeze()
