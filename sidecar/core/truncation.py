"""Whether a diff may have been cut off: its last hunk has fewer lines than its header counts.

Models miscount, so a count that is too high means little by itself. It means something when a cut would explain it: the
file has the missing lines, and they are enough for a further change with as much context behind it as the diff gives
elsewhere. Up to that number only context can be missing, and missing context changes nothing. At the end of the file
there need be no context behind a change, so there every missing line counts.
"""

from __future__ import annotations

from collections.abc import Sequence

from sidecar.core.hunks import Hunk


def may_be_cut(hunks: Sequence[Hunk], stop: int, lines: int, *, ended: bool) -> bool:
    """Whether lines with changes may be missing behind the last hunk.

    `stop` is the line behind it in the file, counted from 0, `lines` the length of the file; `ended` says whether the
    last line of the diff is whole.
    """
    last = hunks[-1]
    if last.numbers is None:
        return False
    old, new = last.counts
    missing_old, missing_new = last.numbers.old_count - old, last.numbers.new_count - new
    if min(missing_old, missing_new) < 0 or missing_old + missing_new == 0 or stop + missing_old > lines:
        return False
    if stop + missing_old == lines:
        return True
    habit = _context(hunks)
    if not ended and last.signs[-1] != " " and min(missing_old, missing_new) >= habit:
        return True  # the last change itself may be half a line
    return min(missing_old, missing_new) >= habit and max(missing_old, missing_new) > habit


def _context(hunks: Sequence[Hunk]) -> int:
    """How many lines of context this diff has around its changes, at the least."""
    found = 0
    for hunk in hunks:
        inner = hunk.signs.replace("-", "+").split("+")
        found = max(found, len(inner[0]), *(-(-len(run) // 2) for run in inner[1:]))
        if hunk is not hunks[-1]:
            found = max(found, len(inner[-1]))
    return found
