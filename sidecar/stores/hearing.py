"""Does the bell ring when it should? Counted, because on some disks it silently does not."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

# A ring may be under way while a look finds the same news, so a folder is missed only when none has come by then.
GRACE = 1.0
_TOO_MANY_MISSED = 0.01
_LEAST_MISSED = 3
_REMEMBERED = 10_000


class Hearing:
    """Folders rung for, and folders with news for which no ring came."""

    def __init__(self) -> None:
        self.missed = 0
        self._rung: dict[str, float] = {}
        # Both are halved now and then, so that what is long past counts less and less.
        self._recent_rings = 0.0
        self._recent_missed = 0.0

    @property
    def is_hard(self) -> bool:
        """Whether more than one in a hundred changes was missed lately."""
        heard = self._recent_rings + self._recent_missed
        return self._recent_missed >= _LEAST_MISSED and self._recent_missed > heard * _TOO_MANY_MISSED

    def rang(self, folders: Iterable[str], now: float) -> None:
        """A ring for these folders."""
        if len(self._rung) > _REMEMBERED:
            self._rung = {folder: at for folder, at in self._rung.items() if now - at < 2 * GRACE}
        fresh = dict.fromkeys(folders, now)
        self._rung.update(fresh)
        self._count(rings=len(fresh))

    def doubt(self, loop: asyncio.AbstractEventLoop, folders: Iterable[str]) -> None:
        """A look found news in these folders without having been asked to."""
        doubted = tuple(folders)
        if doubted:
            loop.call_later(GRACE, self._judge, doubted, loop.time() - GRACE)

    def _judge(self, folders: tuple[str, ...], since: float) -> None:
        if self._rung.get("", 0.0) >= since:
            return  # a ring for OUT_DIR is one for everything in it
        missed = sum(self._rung.get(folder, 0.0) < since for folder in folders)
        self.missed += missed
        self._count(missed=missed)

    def _count(self, *, rings: int = 0, missed: int = 0) -> None:
        self._recent_rings += rings
        self._recent_missed += missed
        if self._recent_rings + self._recent_missed > 1000:
            self._recent_rings /= 2
            self._recent_missed /= 2
