"""How a search in a conversation ranks what it found and shows of it: words, fusion, the best hit of a turn.

Two rankings of one question, by vector and by text, have scores that cannot be compared. Their ranks can: a row is
worth 1 / (60 + rank) in each of them (reciprocal rank fusion), so that the answer is the same whatever engine counted.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import orjson

from sidecar.core.hosting import ALL, without
from sidecar.core.index_rows import Scored

WORDS = 2000
WORD_CHARS = 64
RANK_OFFSET = 60  # the usual constant: the first places matter, and none of them decides alone
SNIPPET_CHARS = 200
SNIPPET_REACH = 4 * SNIPPET_CHARS  # how far around a word is looked at, whatever blanks lie there
READABLE_CHARS = 1_000_000
STRETCH_CHARS = 2048  # of a long text that are folded at once: most words stand early

_WORD = re.compile(r"\w+")
_BLANK = re.compile(r"\s")


def words_of(text: str) -> list[str]:
    """The distinct words of a text in the order they first stand in it, as they are searched for.

    Case, accents and compatibility forms make no difference: `Ärger` and `arger` are one word, `ﬁle` is `file`. A word
    is cut at 64 characters; at most 2,000 are told.
    """
    words: dict[str, None] = {}
    for match in _WORD.finditer(_plain(text)):
        words[match[0][:WORD_CHARS]] = None
        if len(words) == WORDS:
            break
    return list(words)


def _plain(text: str) -> str:
    """The text without case and marks: what is equal to a reader's eye is equal here."""
    if text.isascii():
        return text.lower()
    folded = unicodedata.normalize("NFKD", unicodedata.normalize("NFKD", text).casefold())
    return "".join([one for one in folded if one < "\u0300" or not unicodedata.category(one).startswith("M")])


# Fusion


def fused(*rankings: Iterable[Scored]) -> list[Scored]:
    """One ranking of several, best first. Equal rows are ranked by time, the newest first, then by their id."""
    worth: dict[str, Scored] = {}
    for ranking in rankings:
        for rank, (row, _) in enumerate(by_worth(ranking), start=1):
            known = worth.get(row.message_id)
            earlier = known.score if known is not None else 0.0
            worth[row.message_id] = Scored(row, earlier + 1 / (RANK_OFFSET + rank))
    return by_worth(worth.values())


def by_worth(ranking: Iterable[Scored]) -> list[Scored]:
    """The hits of one ranking, best first, equal ones in the same order whatever engine counted."""
    return sorted(ranking, key=_best_first)


def best_per_turn(ranking: Iterable[Scored]) -> list[Scored]:
    """The first hit of every turn, in order. A row that is of no turn stands for itself."""
    best: dict[tuple[str, str], Scored] = {}
    for hit in ranking:
        best.setdefault((hit.row.turn_id, "" if hit.row.turn_id else hit.row.message_id), hit)
    return list(best.values())


def _best_first(hit: Scored) -> tuple[float, float, str]:
    return -hit.score, -hit.row.ts, hit.row.message_id


# What is shown


def snippet(text: str, words: Sequence[str]) -> str:
    """About 200 characters around the first of these words that stands in the text, else its beginning. On one line."""
    said = readable(text)
    return snippet_at(said, place_of(said, frozenset(words)))


def snippet_at(text: str, place: int | None) -> str:
    """The same around a place of a readable text, None for its beginning. However long the text is, it costs little."""
    at = place or 0
    first, last = max(0, at - SNIPPET_REACH), at + SNIPPET_REACH
    line = " ".join(text[first:last].split())
    at = len(" ".join((text[first:at] + "x").split())) - 1
    is_whole = first == 0 and last >= len(text)
    if is_whole and len(line) <= SNIPPET_CHARS:
        return line
    begin = max(0, min(at - SNIPPET_CHARS // 3, len(line) - SNIPPET_CHARS))
    end = begin + SNIPPET_CHARS
    if begin:
        begin = _next_blank(line, begin, at)
    if end < len(line):
        end = _last_blank(line, end, max(at + 1, begin + SNIPPET_CHARS // 2))
    is_end = end >= len(line) and not text[last:].strip()
    return ("… " if begin or first else "") + line[begin:end].strip() + ("" if is_end else " …")


def place_of(text: str, words: frozenset[str]) -> int | None:
    """Where the first of these words begins in a text, or None. It looks no further than it must."""
    if not words:
        return None
    for begin, stretch in _stretches(text):
        if any(word[:WORD_CHARS] in words for word in _WORD.findall(_plain(stretch))):
            return begin + _first_of(stretch, words)
    return None


def _stretches(text: str) -> Iterator[tuple[int, str]]:
    """The text in parts, each with its place, cut at blanks: no word of a reader's goes over a blank."""
    begin = 0
    while begin < len(text):
        blank = _BLANK.search(text, begin + STRETCH_CHARS)
        end = blank.start() if blank is not None else len(text)
        yield begin, text[begin:end]
        begin = end


def _first_of(stretch: str, words: frozenset[str]) -> int:
    """Where the first of these words begins; 0 for one that only stands there once marks are taken away."""
    for match in _WORD.finditer(stretch):
        word = match[0]
        # A word of another script may be several once its compatibility forms are taken apart.
        if word[:WORD_CHARS].lower() in words if word.isascii() else not words.isdisjoint(words_of(word)):
            return match.start()
    return 0


def readable(text: str) -> str:
    """What a person would read of a row's text: of JSON its texts, without mere names and moments; else the text.

    It never says where anything is hosted.
    """
    stripped = text.lstrip()
    if stripped[:1] not in ("{", "["):
        return text
    try:
        value = orjson.loads(stripped)
    except orjson.JSONDecodeError:
        return text
    told: list[str] = []
    room = READABLE_CHARS
    value = without(value, ALL)
    for one in _texts(value):
        told.append(one)
        room -= len(one)
        if room < 0:
            break
    return " · ".join(told) or orjson.dumps(value).decode()


# Members of JSON that say which thing it is about, when, or where it lies, and nothing that a person would read.
_NAMES = {
    "turn_id", "from_turn_id", "turn_ids", "ts", "end_ts", "origin", "reaction", "mime", "artifact_path", "message_id",
    "physical_path", "tool_call_id", "sha256", "kind", "channel", "favicon", "type", "published_time_iso", "last_ts",
    "conversation_started_at", "last_activity_at", "last_origin", "last_reaction", "version", "visibility",
}  # fmt: skip


def _texts(value: Any) -> Iterator[str]:
    """The texts in JSON, in order, without recursion: somebody else decided how deep it nests."""
    open_ends: list[Any] = [value]
    while open_ends:
        match open_ends.pop():
            case str() as text if text.strip():
                yield text.strip()
            case dict() as members:
                open_ends.extend(item for key, item in reversed(members.items()) if key not in _NAMES)
            case list() as items:
                open_ends.extend(reversed(items))
            case _:
                pass


def _next_blank(line: str, begin: int, before: int) -> int:
    """The beginning of the next word at or after `begin`, unless that is behind `before`."""
    at = line.find(" ", begin, before)
    return begin if at < 0 else at + 1


def _last_blank(line: str, end: int, after: int) -> int:
    at = line.rfind(" ", after, end + 1)
    return end if at < 0 else at
