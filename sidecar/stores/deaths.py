"""What to do about a watch that died: build it anew, leave the folder alone that killed it, or give up for a minute."""

from __future__ import annotations

from collections import Counter, deque
from typing import Literal

Verdict = Literal["rebuild", "rest", "silence"]

MINUTE = 60.0
# A folder whose names end a watch again and again is left alone for the sake of the others: unpacking an old archive
# makes many such names at once, removing them does so again.
DEATHS_OF_A_FOLDER = 3
DEATHS_UNEXPLAINED = 5
DEATHS_IN_ALL = 30


class Deaths:
    """The deaths of the last minute, each with the folder that is to blame, or None."""

    def __init__(self) -> None:
        self._deaths: deque[tuple[float, str | None]] = deque()

    def judge(self, culprit: str | None, now: float) -> Verdict:
        """Note one more. Over five unexplained ones in a minute, or thirty in all, watching costs too much."""
        self._deaths.append((now, culprit))
        while now - self._deaths[0][0] > MINUTE:
            self._deaths.popleft()
        of = Counter(blamed for _, blamed in self._deaths)
        if of[None] > DEATHS_UNEXPLAINED or len(self._deaths) > DEATHS_IN_ALL:
            self._deaths.clear()
            return "silence"
        return "rest" if culprit is not None and of[culprit] >= DEATHS_OF_A_FOLDER else "rebuild"
