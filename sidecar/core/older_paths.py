"""The paths of the older generation of runtimes: read them into a small typed form, or say why they lead nowhere.

    current_turn.user.prompt.text                 Said("current_turn", "user.prompt", "text")
    turn_2.user.attachments.menu_pdf              Named("turn_2", "attachments", "menu_pdf")
    7.files.report.pdf                            Named("7", "files", "report.pdf")
    current_turn.artifacts.gen_1.value.content    Made("current_turn", "gen_1", ("value", "content"))
    artifacts.search_1[2:6]                       Made("current_turn", "search_1", (), Slice(((2, 6),)))
    turn_2.slots.report.text                      Slotted("turn_2", "report", "text")
    sources_pool[3,1]                             Sliced(Slice(((3, 3), (1, 1))))

A path without a turn is the current one's. Nothing here knows which turns there are (seed 002, Artifact Paths).
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Literal, cast

from sidecar.core.limits import PATH_BYTES
from sidecar.core.numbers import NumberSet
from sidecar.core.paths import Place, PoolPath, is_turn_id

CURRENT = "current_turn"

Code = Literal[
    "invalid_path_empty", "invalid_path_literal", "unknown_turn_id", "not_found", "invalid_slot_value_access",
    "invalid_slot_leaf", "tool_failure",
]  # fmt: skip
"""Why an older path gives nothing; the list is closed (spec section 11)."""


class OlderRefusal(Exception):  # noqa: N818 - a refusal is an answer, not a malfunction
    """Nothing stands at an older path. `code` says why, for programs."""

    def __init__(self, code: Code, message: str) -> None:
        super().__init__(f"{code}: {message}")
        self.code: Code = code
        self.message = message


@dataclass(frozen=True, slots=True)
class Slice:
    """Sids as they were asked for: pairs of ends, both included, None for an open end."""

    items: tuple[tuple[int | None, int | None], ...]

    def select(self, sids: Iterable[int]) -> list[int]:
        """Those of `sids` that are asked for, in the order asked, each once. Work is bounded by `sids` and items."""
        known = sorted(set(sids))
        chosen: list[int] = []
        free = list(range(len(known) + 1))  # from each place on, towards the first that is not chosen yet
        for low, high in self.items:
            if len(chosen) == len(known):
                break
            at = _first_free(free, 0 if low is None else bisect_left(known, low))
            last = len(known) if high is None else bisect_right(known, high)
            while at < last:
                chosen.append(known[at])
                free[at] = at + 1
                at = _first_free(free, at + 1)
        return chosen

    def missing(self, sids: Iterable[int]) -> list[int]:
        """The numbers that were asked for one by one and are not among `sids`, ascending."""
        known = set(sids)
        return sorted({low for low, high in self.items if low is not None and low == high and low not in known})

    @property
    def logical(self) -> str | None:
        """Today's name of these rows of the pool; None where an end is open."""
        pairs = [(low, high) for low, high in self.items if low is not None and high is not None]
        if len(pairs) < len(self.items):
            return None
        numbers = NumberSet((), tuple((low, high) for low, high in pairs if low <= high))
        return PoolPath(numbers.normal()).logical


@dataclass(frozen=True, slots=True)
class Said:
    """What the user asked or the agent answered in a turn."""

    turn: str
    tail: Literal["user.prompt", "assistant.completion"]
    leaf: Literal["", "text"] = ""


@dataclass(frozen=True, slots=True)
class Named:
    """A file of a turn by its name, which may be a normalised one, or have a leaf behind a dot."""

    turn: str
    place: Place
    name: str


@dataclass(frozen=True, slots=True)
class Made:
    """An artifact of a turn, something in its value, or rows of a search by sid."""

    turn: str
    artifact_id: str
    leaf: tuple[str, ...] = ()
    rows: Slice | None = None


@dataclass(frozen=True, slots=True)
class Slotted:
    """A deliverable of a turn, or one field of it."""

    turn: str
    name: str
    leaf: str = ""


@dataclass(frozen=True, slots=True)
class Sliced:
    """Rows of the sources pool in the order asked."""

    rows: Slice


OlderPath = Said | Named | Made | Slotted | Sliced

SLOT_LEAVES = frozenset(
    {
        "name", "type", "description", "summary", "gaps", "draft", "sources_used", "text", "format", "path", "mime",
        "filename",
    }
)  # fmt: skip


def parse(text: str) -> OlderPath:
    """Read an older path. Raises OlderRefusal."""
    text = text.strip()
    if not text:
        raise OlderRefusal("invalid_path_empty", "give a path, as in turn_1.artifacts.<id>")
    if "literal:" in text:
        raise OlderRefusal("invalid_path_literal", "a literal is no path; put it into the params themselves")
    if text.startswith("sources_pool"):
        return _pool(text)
    head, _, rest = text.partition(".")
    if _ROOT.match(text):
        return _rooted(CURRENT, text)
    if head != CURRENT and not is_turn_id(head):
        raise OlderRefusal("unknown_turn_id", f"{shown(head)} is no turn")
    return _rooted(head, rest)


def resolved_turn(token: str, *, current: str, knows: Callable[[str], bool]) -> str:
    """The turn that a path's first word means; a bare number is `turn_<number>`. Raises OlderRefusal.

    `current` is empty when there is no turn at all.
    """
    if token == CURRENT:
        if current:
            return current
        raise OlderRefusal("unknown_turn_id", "there is no turn yet")
    if knows(token):
        return token
    if token.isascii() and token.isdigit() and knows(f"turn_{token}"):
        return f"turn_{token}"
    raise OlderRefusal("unknown_turn_id", f"no turn {shown(token)} is known")


def respelled(text: str, turn_id: str) -> str:
    """A path, or a place below OUT_DIR, with the turn's own id where it says `current_turn`.

    Without a turn that word goes. Whatever is no path stays as it is.
    """
    begin = _CURRENT.match(text)
    if begin is None:
        return text
    rest = text[begin.end() :].rstrip()
    return f"{begin[1]}{turn_id}{rest}" if turn_id else f"{begin[1]}{rest.lstrip('./')}"


def sayable(text: str, turn_id: str) -> str:
    """A text as an answer may say it: the turn's own id wherever the older word for it stands, path or no path."""
    return _CURRENT_WORD.sub(turn_id, respelled(text, turn_id))


def normal_name(name: str) -> str:
    """A file's name as a segment of an older path: `Menu 1.pdf` is `menu_1_pdf`."""
    return _DROPPED.sub("", _SEPARATORS.sub("_", name)).lower()


class Names:
    """Files by what they may be called: as they stand, by their last part, or normalised; of equals the first."""

    __slots__ = ("_by_spelling",)

    def __init__(self, names: Iterable[str]) -> None:
        self._by_spelling: tuple[dict[str, str], ...] = ({}, {}, {}, {})
        for name in names:
            last = name.rpartition("/")[2]
            for known, spelling in zip(self._by_spelling, (name, last, *map(normal_name, (name, last))), strict=True):
                known.setdefault(spelling, name)

    def find(self, wanted: str) -> tuple[str, tuple[str, ...]] | None:
        """The name that is meant, and the leaf behind it, which begins as late as possible; None when no name fits."""
        segments = wanted.split(".")
        for length in range(len(segments), max(len(segments) - _LEAVES, 0), -1):
            begin = ".".join(segments[:length])
            normal = normal_name(begin)
            for known, spelling in zip(self._by_spelling, (begin, begin, normal, normal), strict=True):
                if spelling and spelling in known:
                    return known[spelling], tuple(segments[length:])
        return None


def shown(text: str) -> str:
    """A text as a sentence can carry it."""
    return repr(text[:200])


def _first_free(free: list[int], at: int) -> int:
    """The first place that is not taken; what was walked over is made shorter for the next one."""
    while free[at] != at:
        free[at] = free[free[at]]
        at = free[at]
    return at


_LEAVES = 16  # how many segments of a name may turn out to be a leaf behind it
_SEPARATORS = re.compile(r"[\s./:\\]+")
_DROPPED = re.compile(r"[^A-Za-z0-9_-]+")
_ROOT = re.compile(r"(?:user|assistant|attachments?|files|artifacts|slots)(?:[.]|\Z)")
_CURRENT = re.compile(r"\s*((?:literal:)?(?:fi:|ar:|tc:|su:|(?:\./)*(?:out/)?))current_turn(?=[./]|\s*\Z)")
_CURRENT_WORD = re.compile(r"(?<![A-Za-z0-9_-])current_turn(?![A-Za-z0-9_-])")
_NAME = r"[A-Za-z0-9_-]{1,128}"
_MADE = re.compile(rf"artifacts\.({_NAME})((?:\.[^.\[\]]+)*)(\[[^\[\]]*\])?")
_SLOTTED = re.compile(rf"slots\.({_NAME})(?:\.(.*))?", re.DOTALL)
_FILED = re.compile(r"(files|(?:user\.)?attachments?)\.(.+)", re.DOTALL)
_SAID = re.compile(r"(user(?:\.prompt)?|assistant(?:\.completion)?)(\.text)?")
_ITEM = re.compile(r"\s*([0-9]{0,16})\s*(?:([:-])\s*([0-9]{0,16})\s*)?")


def _rooted(turn: str, rest: str) -> OlderPath:
    if said := _SAID.fullmatch(rest):
        tail = "user.prompt" if rest.startswith("user") else "assistant.completion"
        return Said(turn, tail, cast('Literal["", "text"]', (said[2] or "").removeprefix(".")))
    if filed := _FILED.fullmatch(rest):
        return Named(turn, "files" if filed[1] == "files" else "attachments", filed[2])
    if made := _MADE.fullmatch(rest):
        leaf = tuple(made[2].split(".")[1:])
        return Made(turn, made[1], leaf, _sliced(made[3]) if made[3] else None)
    if slotted := _SLOTTED.fullmatch(rest):
        return Slotted(turn, slotted[1], _slot_leaf(slotted[2]))
    raise OlderRefusal("not_found", f"{shown(rest)} is nothing of a turn; its roots are {_ROOTS}")


_ROOTS = "user.prompt, user.attachments, assistant.completion, files, artifacts and slots"


def _slot_leaf(rest: str | None) -> str:
    """What of a slot is meant. What stands behind a legal leaf was always ignored."""
    if rest is None:
        return ""
    leaf = rest.partition(".")[0]
    if leaf == "value":
        raise OlderRefusal("invalid_slot_value_access", "a slot has no .value; its fields are its leaves, as in .text")
    if leaf not in SLOT_LEAVES:
        raise OlderRefusal("invalid_slot_leaf", f"a slot has {', '.join(sorted(SLOT_LEAVES))}, and no {shown(leaf)}")
    return leaf


def _pool(text: str) -> Sliced:
    body = text.removeprefix("sources_pool")
    if not (body.startswith("[") and body.endswith("]")) or len(text) > _LONGEST:
        raise OlderRefusal("not_found", "slice the pool, as in sources_pool[3,1]")
    return Sliced(_sliced(body))


def _sliced(brackets: str) -> Slice:
    """`[1,3]`, `[2:6]`, `[2:]`, `[:6]`, and a range as today's selectors have it. Raises OlderRefusal."""
    items: list[tuple[int | None, int | None]] = []
    for piece in brackets[1:-1].split(","):
        match = _ITEM.fullmatch(piece)
        if match is None or not (match[1] or match[3]) or (match[2] == "-" and not (match[1] and match[3])):
            raise OlderRefusal("not_found", f"{shown(brackets)} selects nothing; write [1,3] or [2:6], by sid")
        low = int(match[1]) if match[1] else None
        high = low if match[2] is None else int(match[3]) if match[3] else None
        if match[2] == "-" and low is not None and high is not None:
            low, high = min(low, high), max(low, high)
        items.append((low, high))
    return Slice(tuple(items))


_LONGEST = 16 * PATH_BYTES
