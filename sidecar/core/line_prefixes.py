"""Tells text that was copied from a numbered listing, as `cat -n` prints it, from text that begins with numbers.

Models are shown files with line numbers and copy them into what they send back. Such a text must not become the content
of a file. A file whose own lines begin like that is no listing but a table, and may be given more of the kind.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

# `     1\talpha`, as `cat -n` and `nl` align it, and the same with an arrow.
_ALIGNED = re.compile(r" +([0-9]{1,9})[\t→](.*)", re.DOTALL)
# Numbers without alignment are numbers of lines only if more than themselves says so.
_PLAIN = re.compile(r" *([0-9]{1,9})(?:\t|→|: ?| ?\| ?)(.*)", re.DOTALL)


def numbered_text(lines: Sequence[str], before: Sequence[str]) -> bool:
    """Whether a whole new text is a numbered listing of something; `before` are the lines it would replace."""
    said = [line.rstrip("\r") for line in lines if line.strip()]
    if not said or not _counting(said, _PLAIN):
        return False
    if _any_begins_like(_PLAIN, before):
        return False
    if all(map(_ALIGNED.match, said)):
        return True
    return _any_known(said, before)


def numbered_lines(texts: Iterable[str], before: Sequence[str]) -> bool:
    """Whether lines that a diff expects, and that are not there, are lines of the file with numbers before them."""
    said = [text.rstrip("\r") for text in texts if text.strip()]
    matches = [_PLAIN.match(text) for text in said]
    if not said or not all(matches) or _any_begins_like(_PLAIN, before):
        return False
    return all(map(_ALIGNED.match, said)) or _any_known(said, before)


def numbered_additions(texts: Iterable[str], before: Sequence[str]) -> bool:
    """Whether an added line has the number of a listing before it, in a file that has none such."""
    return any(map(_ALIGNED.match, texts)) and not _any_begins_like(_ALIGNED, before)


def _counting(said: Sequence[str], prefix: re.Pattern[str]) -> bool:
    """Whether every line has a number and each is one more than the one before."""
    previous: int | None = None
    for line in said:
        match = prefix.match(line)
        if match is None or (previous is not None and int(match[1]) != previous + 1):
            return False
        previous = int(match[1])
    return True


def _any_begins_like(prefix: re.Pattern[str], lines: Iterable[str]) -> bool:
    return any(map(prefix.match, lines))


def _any_known(said: Iterable[str], before: Iterable[str]) -> bool:
    """Whether a line is one of the file, but for its number."""
    known = {line.rstrip() for line in before if line.strip()}
    bodies = (match[2].rstrip() for line in said if (match := _PLAIN.match(line)))
    return any(body in known for body in bodies if body)
