"""Stable names for what an agent made: read them in any spelling, print them in one.

A *text* is what somebody wrote; a *path* is a text that was read and found legal. A path that exists is safe to join to
OUT_DIR, whoever made it: the rules of spec section 3 are checked when the value is built, not where it is used.

    fi:turn_1.files/a/b.md            turn_1/files/a/b.md           FilePath("turn_1", "files", "a/b.md")
    fi:turn_1.user.attachments/x.pdf  turn_1/attachments/x.pdf      FilePath("turn_1", "attachments", "x.pdf")
    fi:logs/out.log                   logs/out.log                  FilePath("", "", "logs/out.log")
    fi:turn_1.code.tc_1                                             CodePath("turn_1", "tc_1")
    ar:turn_1.user.prompt                                           MessagePath("turn_1", "user.prompt")
    su:turn_1.conv.range.summary                                    SummaryPath("turn_1")
    tc:turn_1.tc_1.result                                           CallPath("turn_1", "tc_1", "result")
    so:sources_pool[3, 5-6]                                         PoolPath(NumberSet(...))
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal, cast

from sidecar.core.errors import BadPath, UnsafePath
from sidecar.core.limits import PATH_BYTES, SEGMENT_BYTES
from sidecar.core.numbers import NumberSet, pool_numbers

TURN_ID = re.compile(r"[A-Za-z0-9_-]{1,128}")
CALL_ID = TURN_ID

# Folders of OUT_DIR that belong to no turn, whatever lies in them (spec section 5).
NEVER_TURNS = frozenset({"logs", "work", "current_turn", "executed_programs"})

# Kept by the runtime at the root of OUT_DIR. Anybody may read them by path, nobody may write them (spec section 5).
STATE_FILES = frozenset({"timeline.json", "context.json", "sources_pool.json"})

Place = Literal["files", "attachments", ""]
Leaf = Literal["call", "result", "notice"]


def is_turn_id(text: str) -> bool:
    """Whether a turn may be called so: 1 to 128 of `A-Za-z0-9_-`, and none of the folders that are never a turn's."""
    return TURN_ID.fullmatch(text) is not None and text not in NEVER_TURNS


def is_call_id(text: str) -> bool:
    """Whether a tool call may be called so: 1 to 128 of `A-Za-z0-9_-`."""
    return CALL_ID.fullmatch(text) is not None


@dataclass(frozen=True, slots=True)
class FilePath:
    """A file under OUT_DIR. `place` is empty for a generic file, one that is in no turn's namespace; it is read-only.

    Raises UnsafePath when built from parts that could leave OUT_DIR, BadPath for a turn id that is none.
    """

    turn_id: str
    place: Place
    rel: str

    def __post_init__(self) -> None:
        if self.place and not is_turn_id(self.turn_id):
            raise BadPath(_shown(self.turn_id), "a turn id is 1 to 128 letters, digits, _ or -")
        _check_safe(self.rel)
        if self.place:
            _check_length(self.physical)
        elif self.turn_id or _split_physical(self.rel) is not None:
            raise BadPath(_shown(self.rel), "a file in a turn's namespace is named by its turn and place")

    @property
    def physical(self) -> str:
        """The OUT_DIR-relative spelling, always in full."""
        return f"{self.turn_id}/{self.place}/{self.rel}" if self.place else self.rel

    @property
    def logical(self) -> str | None:
        """The canonical `fi:` name; None for a generic file whose name would be read as something in a turn."""
        match self.place:
            case "files":
                return f"fi:{self.turn_id}.files/{self.rel}"
            case "attachments":
                return f"fi:{self.turn_id}.user.attachments/{self.rel}"
            case "":
                return None if _TURN_SHAPE.match(self.rel) else f"fi:{self.rel}"


@dataclass(frozen=True, slots=True)
class CodePath:
    """The program of a tool call. It lives in the timeline alone."""

    turn_id: str
    call_id: str

    @property
    def logical(self) -> str:
        return f"fi:{self.turn_id}.code.{self.call_id}"


@dataclass(frozen=True, slots=True)
class MessagePath:
    """What was said in a turn; `tail` is `user.prompt`, `assistant.completion`, `react.…` or any other block's."""

    turn_id: str
    tail: str

    @property
    def logical(self) -> str:
        return f"ar:{self.turn_id}.{self.tail}"


@dataclass(frozen=True, slots=True)
class SummaryPath:
    """The summary whose last covered turn this is."""

    turn_id: str

    @property
    def logical(self) -> str:
        return f"su:{self.turn_id}.conv.range.summary"


@dataclass(frozen=True, slots=True)
class CallPath:
    """One side of a tool call: what was asked, what came back, what is to be noted."""

    turn_id: str
    call_id: str
    leaf: Leaf

    @property
    def logical(self) -> str:
        return f"tc:{self.turn_id}.{self.call_id}.{self.leaf}"


@dataclass(frozen=True, slots=True)
class PoolPath:
    """Rows of the sources pool. `numbers` is in its normal form, so equal selections are equal paths."""

    numbers: NumberSet

    @property
    def logical(self) -> str:
        return f"so:sources_pool[{self.numbers}]"


Path = FilePath | CodePath | MessagePath | SummaryPath | CallPath | PoolPath


@dataclass(frozen=True, slots=True)
class Rewritten:
    """Where a write goes. `rewritten` is true when the text named another place than the current turn's files.

    `source` is the file that the text itself named: what a patch copies first.
    """

    path: FilePath
    original: str
    rewritten: bool
    source: FilePath


def parse(text: str) -> Path:
    """Read a path in either spelling. Raises BadPath or UnsafePath.

    A known family with its colon, or `sources_pool[`, makes it logical; two small letters and a colon that are no
    family are refused; all else is OUT_DIR-relative.
    """
    # A selector may be long, and remembering long texts would cost more than reading them again.
    return _parse(text) if len(text) > _REMEMBERED_CHARS else _parse_remembered(text)


def parse_logical(text: str) -> Path:
    """Read a name with its family, or a bare `sources_pool[...]`. Raises BadPath or UnsafePath."""
    family, colon, body = text.partition(":")
    if text.startswith("sources_pool["):
        return _pool(text, text)
    read = _FAMILIES.get(family) if colon else None
    if read is None:
        raise BadPath(_shown(text), f"a logical path begins with one of {', '.join(f'{name}:' for name in _FAMILIES)}")
    return read(body, text)


@lru_cache(maxsize=4096)
def parse_physical(text: str) -> FilePath:
    """Read an OUT_DIR-relative path; one leading `./` is allowed. Raises UnsafePath.

    Exactly the first two segments decide whose it is.
    """
    return _physical(text, text)


def rewrite(text: str, *, current_turn: str) -> Rewritten:
    """Read a write target and move it into the current turn's files (spec section 3, "Rewrite").

    `a.md`, `./a.md` and `files/a.md` mean the current turn's file and are no rewrite. Raises UnsafePath for what would
    leave OUT_DIR and for files outside every turn, BadPath for a name that is no file's.
    """
    if not is_turn_id(current_turn):
        raise BadPath(_shown(current_turn), "a write needs an open turn with a legal id")
    shorthand = text.removeprefix("./")
    if shorthand.startswith("files/"):
        # Looked at before parsing, which would take `files/files/a.md` for the file of a turn called `files`.
        path = _in_turn(current_turn, "files", shorthand.removeprefix("files/"), text)
        return Rewritten(path, text, rewritten=False, source=path)
    target = parse(_ALIAS.sub(rf"\g<1>{current_turn}", text, count=1))
    match target:
        case FilePath(place="") if _is_logical(text):
            raise UnsafePath(_shown(text), "files outside a turn are read-only: write fi:<turn>.files/<name> or <name>")
        case FilePath():
            path = _in_turn(current_turn, "files", target.rel, text)
            rewritten = target.place != "" and path != target
            return Rewritten(path, text, rewritten=rewritten, source=target if rewritten else path)
        case _:
            raise BadPath(_shown(text), "only a file can be written: give <name> or fi:<turn>.files/<name>")


_REMEMBERED_CHARS = 512
# The older dialect's word for the open turn. As the home of a write target it can only mean that (spec section 3).
_ALIAS = re.compile(r"\A(fi:|(?:\./)?)current_turn(?=[./](?:files|(?:user\.)?attachments)/)")

_FAMILY_LOOK = re.compile(r"[a-z]{2}:")
_DRIVE = re.compile(r"[A-Za-z]:")
_FORBIDDEN = re.compile(r"[\x00-\x1f\x7f-\x9f\\\ud800-\udfff]")
_EMPTY_OR_DOTS = re.compile(r"(?:\A|/)\.{0,2}(?:/|\Z)")
_PHYSICAL_TURN = re.compile(r"([A-Za-z0-9_-]{1,128})/(files|attachments)/")
# Turn ids have no dot, so the first dot of a turn shape is where its first marker begins.
_NEVER = "|".join(sorted(NEVER_TURNS))
_TURN_SHAPE = re.compile(
    rf"(?!(?:{_NEVER})\.)([A-Za-z0-9_-]{{1,128}})\.(?:(files|(?:user\.)?attachments)/|code\.([A-Za-z0-9_-]{{1,128}})\Z)"
)
_CALL_SHAPE = re.compile(r"([^.]*)\.([A-Za-z0-9_-]{1,128})\.(call|result|notice)")


def _is_logical(text: str) -> bool:
    return text.startswith(("fi:", "ar:", "so:", "su:", "tc:", "sources_pool["))


def _parse(text: str) -> Path:
    if _is_logical(text):
        return parse_logical(text)
    if _FAMILY_LOOK.match(text):
        raise BadPath(_shown(text), f"{text[:3]} is no family of paths; known are {' '.join(_FAMILIES)}")
    return parse_physical(text)


_parse_remembered = lru_cache(maxsize=4096)(_parse)


def _file(body: str, text: str) -> Path:
    shape = _TURN_SHAPE.match(body)
    if shape is None:
        return _physical(body, text)
    turn_id, place, call_id = shape.groups()
    if call_id is not None:
        return CodePath(turn_id, call_id)
    return _in_turn(turn_id, "files" if place == "files" else "attachments", body[shape.end() :], text)


def _message(body: str, text: str) -> MessagePath:
    turn_id, _, tail = body.partition(".")
    if not is_turn_id(turn_id) or not tail:
        raise BadPath(_shown(text), "write ar:<turn>.user.prompt, ar:<turn>.assistant.completion or a block's own path")
    if _FORBIDDEN.search(tail):
        raise UnsafePath(_shown(text), "control characters and backslashes are in no path")
    _check_length(body)
    return MessagePath(turn_id, tail)


def _summary(body: str, text: str) -> SummaryPath:
    turn_id, _, tail = body.partition(".")
    if not is_turn_id(turn_id) or tail != "conv.range.summary":
        raise BadPath(_shown(text), "write su:<turn>.conv.range.summary")
    return SummaryPath(turn_id)


def _call(body: str, text: str) -> CallPath:
    shape = _CALL_SHAPE.fullmatch(body)
    if shape is None or not is_turn_id(shape[1]):
        raise BadPath(_shown(text), "write tc:<turn>.<call>.call, .result or .notice")
    return CallPath(shape[1], shape[2], cast(Leaf, shape[3]))


def _pool(body: str, text: str) -> PoolPath:
    numbers = pool_numbers(body)
    if numbers is None:
        raise BadPath(_shown(text), "write so:sources_pool[1,3-5]")
    return PoolPath(numbers.normal())


_FAMILIES: dict[str, Callable[[str, str], Path]] = {
    "ar": _message,
    "fi": _file,
    "so": _pool,
    "su": _summary,
    "tc": _call,
}


def _physical(rel: str, text: str) -> FilePath:
    rel = rel.removeprefix("./")
    turn_and_place = _split_physical(rel)
    if turn_and_place is None:
        return _in_turn("", "", rel, text)
    turn_id, place = turn_and_place
    return _in_turn(turn_id, place, rel[len(turn_id) + len(place) + 2 :], text)


def _in_turn(turn_id: str, place: Place, rel: str, text: str) -> FilePath:
    """Build the path; a refusal is about the text that was asked, not about the part that was found wrong."""
    try:
        return FilePath(turn_id, place, rel)
    except UnsafePath as refused:
        raise UnsafePath(_shown(text), refused.hint) from None


def _split_physical(rel: str) -> tuple[str, Place] | None:
    shape = _PHYSICAL_TURN.match(rel)
    if shape is None or shape[1] in NEVER_TURNS:
        return None
    return shape[1], cast(Place, shape[2])


def _check_safe(rel: str) -> None:
    if len(rel) > PATH_BYTES:
        raise UnsafePath(_shown(rel), f"a path has at most {PATH_BYTES} bytes")
    if _EMPTY_OR_DOTS.search(rel):
        raise UnsafePath(_shown(rel), "a path is relative to OUT_DIR, without empty, . or .. segments")
    if _FORBIDDEN.search(rel):
        raise UnsafePath(_shown(rel), "control characters and backslashes are in no path, and it is UTF-8")
    if _DRIVE.match(rel):
        raise UnsafePath(_shown(rel), "drive letters are not used here")
    if len(rel) * 4 > SEGMENT_BYTES:
        _check_length(rel)
        if any(len(segment.encode()) > SEGMENT_BYTES for segment in rel.split("/")):
            raise UnsafePath(_shown(rel), f"a name has at most {SEGMENT_BYTES} bytes")


def _check_length(text: str) -> None:
    if len(text) * 4 > PATH_BYTES and len(text.encode()) > PATH_BYTES:
        raise UnsafePath(_shown(text), f"a path has at most {PATH_BYTES} bytes")


def _shown(text: str) -> str:
    """A text as an answer can carry it: what is no UTF-8 is spelled out, and no answer is longer than a path."""
    return text[:PATH_BYTES].encode("utf-8", "backslashreplace").decode()
