"""How rows are ranked that hold the words of a question: BM25 over those rows, the same on every engine.

The engines only tell which words a row holds. A word is told once per row, so that its number of times does not count;
what counts is how rare it is among the rows found, and how much else a row says.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from math import log
from typing import NamedTuple

from sidecar.core.ranking import WORD_CHARS

WORDS = 64
SATURATION, LENGTH_WEIGHT = 1.2, 0.75  # the usual ones


class Candidate(NamedTuple):
    """A row that holds at least one of the words. `id` is the engine's own; `words` counts its different words."""

    id: int
    ts: float
    change: int
    message_id: str
    words: int
    hits: tuple[int, ...]  # the places of the words that it holds


def asked(words: Iterable[str]) -> list[str]:
    """The different words of a question, at most 64; what is no word is left out, for no text holds it."""
    return list(dict.fromkeys(word[:WORD_CHARS] for word in words if _WORD.fullmatch(word)))[:WORDS]


def ranked(candidates: Sequence[Candidate], asked_for: int, *, limit: int) -> list[tuple[int, float]]:
    """The ids of the best rows with their scores, best first: of those that hold all words, else of all.

    Equal ones come newest first, as rows do.
    """
    rarity = _rarity(candidates, asked_for)
    full = [one for one in candidates if len(one.hits) == asked_for]
    standing = full or candidates
    if not standing:
        return []
    usual = sum(one.words for one in standing) / len(standing)
    scored = [(_score(one, rarity, usual), one) for one in standing]
    scored.sort(key=lambda pair: (pair[0], pair[1].ts, pair[1].change, pair[1].message_id), reverse=True)
    return [(one.id, score) for score, one in scored[:limit]]


def _rarity(candidates: Sequence[Candidate], asked_for: int) -> list[float]:
    """What each word is worth: more, the fewer of the rows hold it."""
    holding = [0] * asked_for
    for one in candidates:
        for place in one.hits:
            holding[place] += 1
    return [log(1 + (len(candidates) - count + 0.5) / (count + 0.5)) for count in holding]


def _score(one: Candidate, rarity: Sequence[float], usual: float) -> float:
    length = 1 - LENGTH_WEIGHT + LENGTH_WEIGHT * one.words / usual
    return sum(rarity[place] for place in one.hits) * (SATURATION + 1) / (1 + SATURATION * length)


_WORD = re.compile(r"\w+")
