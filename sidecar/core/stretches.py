"""A long text looked through in stretches: one call of `re` holds the interpreter of everybody to its end."""

from __future__ import annotations

import re

SEARCHED_AT_ONCE = 8 * 1024  # characters, for which a slow pattern takes half a millisecond


def first_match(pattern: re.Pattern[str], text: str, at: int = 0, *, reach: int) -> re.Match[str] | None:
    """What `pattern.search(text, at)` finds. `reach` is how many characters a match and what is behind it may take."""
    while at <= len(text):
        until = at + SEARCHED_AT_ONCE
        match = pattern.search(text, at, until + reach)
        if match is not None and match.start() < until:
            return match
        at = until
    return None
