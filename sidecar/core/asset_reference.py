"""What a document refers to, as it is written there, and which files that may mean.

A reference is written like a URL, and files are named by people: `a%20b.png` is nearly always the file `a b.png`, and
`a.pdf#p2` the file `a.pdf`. A file whose name really holds those characters wins where it exists, so every reading is
kept, the literal one first and the usual one last. What is none of ours (another scheme, another host, a mere fragment)
has no reading at all.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal, NamedTuple
from urllib.parse import unquote

from sidecar.core.errors import BadPath, Refusal, UnsafePath
from sidecar.core.markup import GRAMMAR
from sidecar.core.numbers import NumberSet
from sidecar.core.paths import FilePath, PoolPath, is_turn_id, parse, parse_physical
from sidecar.core.tokens import token_numbers

How = Literal["embedded", "linked", "named"]
"""Part of the page, as a picture or a style sheet is; what a click leads to; or a path in the middle of prose."""

Refused = Literal["unsafe_path", "bad_path"]

SHOWN_CHARS = 4096
PATHS = 12  # that one reference may mean


class Reference(NamedTuple):
    """A reference as it is written, references to characters resolved. `others` are longer readings of prose."""

    text: str
    how: How
    others: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Place:
    """Where a reference stands: the folder of its document relative to OUT_DIR, and the turn that is open.

    Text that was sent has no folder; `loose` is where its bare names are looked for besides OUT_DIR itself.
    """

    folder: str | None = None
    loose: str = ""


@dataclass(frozen=True, slots=True)
class Wanted:
    """One file that is asked for. `paths` is what the reference may mean, in the order in which they are tried.

    `asked` is the reference as read: without fragment and query, percent codes decoded. The file that is missing when
    none of `paths` is there is `usual`; without any legal path, `refused` says why. `spelled` is how it is written.
    """

    asked: str
    how: How
    paths: tuple[FilePath, ...]
    usual: FilePath | None
    refused: Refused | None = None
    spelled: str = ""


def cited(text: str) -> NumberSet | None:
    """The numbers of a reference that is a citation, `<img src="[[S:3]]">`, or a path of the pool; else None."""
    plain = unquote(text.strip()) if len(text) <= SHOWN_CHARS else ""
    if plain.startswith(("so:", "sources_pool[")):
        try:
            path = parse(plain)
        except Refusal:
            return None
        return path.numbers if isinstance(path, PoolPath) else None
    return token_numbers(plain) if _TOKEN.fullmatch(plain) else None


def wanted(reference: Reference, place: Place) -> Wanted | None:
    """The file that a reference asks for, or None when it asks for nothing of ours."""
    text = reference.text.strip()
    if not text or text[0] in "#?" or text.startswith("//"):
        return None
    if (scheme := _SCHEME.match(text)) is not None and scheme[0] != "fi:":
        return None
    if text[0] == "/" and reference.how != "embedded":
        return None  # somebody else's file; only what is part of the page leaves a hole
    readings = _readings(text)
    usual, refused = _meant(readings[-1], place)
    paths = [path for reading in readings[:-1] for path in _meant(reading, place)[0]] + usual
    paths += [path for other in reference.others for reading in _readings(other) for path in _meant(reading, place)[0]]
    if not paths and reference.how != "embedded" and not _TURN.match(readings[-1].removeprefix("./")):
        return None
    return Wanted(
        _shown(readings[-1].removeprefix("./")),
        reference.how,
        tuple(dict.fromkeys(paths))[:PATHS],
        usual[0] if usual else None,
        None if usual else refused,
        text if len(text) <= SHOWN_CHARS else "",
    )


def _readings(text: str) -> tuple[str, ...]:
    """What may have been meant, the literal text first and the usual reading last, none twice."""
    if len(text) > SHOWN_CHARS:
        return (text[: SHOWN_CHARS + 1],)  # too long for a path, however it is read
    if _PLAIN.fullmatch(text):
        return (text,)
    text = _BREAKS.sub("", text)
    bare = _AFTER_PATH.split(text, maxsplit=1)[0]
    usual = _decoded(bare)
    literal = dict.fromkeys((text, _decoded(text), bare))
    return (*(reading for reading in literal if reading != usual), usual)


def _decoded(text: str) -> str:
    if "%" not in text:
        return text
    try:
        return unquote(text, errors="strict")
    except UnicodeDecodeError:
        return text  # no file of ours has a name that is no UTF-8


def _meant(text: str, place: Place) -> tuple[list[FilePath], Refused | None]:
    """The files that one reading may mean, the likeliest first, and why not where it means none."""
    if text.startswith("fi:"):
        return _legal([text])
    turn = _TURN.match(text.removeprefix("./"))
    if turn is not None and is_turn_id(turn[1]):
        # Written from OUT_DIR, as everywhere, and from nowhere else where it could not be: `turn_2/files/../../x`.
        found, refused = _legal([text])
        return found + (_legal(_below(place.folder, text))[0] if found and place.folder else []), refused
    if text.startswith("/"):
        return _legal([text])
    if place.folder is not None:
        return _legal([*_below(place.folder, text), text])
    bare = text.removeprefix("./")
    if not place.loose:
        return _legal([text])
    home = bare if bare.startswith(("files/", "attachments/")) else f"files/{bare}"
    return _legal([text, f"{place.loose}/{home}"])


def _below(folder: str, text: str) -> list[str]:
    """A relative reference from its document's folder; nothing when it leaves OUT_DIR."""
    parts = folder.split("/") if folder else []
    for part in text.split("/"):
        match part:
            case "" | ".":
                continue
            case "..":
                if not parts:
                    return []
                parts.pop()
            case _:
                parts.append(part)
    return ["/".join(parts)]


def _legal(texts: Iterable[str]) -> tuple[list[FilePath], Refused | None]:
    found: list[FilePath] = []
    refused: Refused | None = None
    for text in texts:
        try:
            path = parse(text) if text.startswith("fi:") else parse_physical(text)
        except UnsafePath:
            refused = "unsafe_path"
            continue
        except BadPath:
            refused = refused or "bad_path"
            continue
        if isinstance(path, FilePath) and path.logical is not None:
            found.append(path)
    return found, None if found else refused or "bad_path"


def _shown(text: str) -> str:
    return text[:SHOWN_CHARS].encode("utf-8", "backslashreplace").decode()


_TOKEN = re.compile(GRAMMAR.token)
_PLAIN = re.compile(r"[^\t\r\n%?#]*+")
_BREAKS = re.compile(r"[\t\r\n]")  # which a URL does not hold; browsers drop them too
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]{0,63}:")
_AFTER_PATH = re.compile(r"[?#]")
_TURN = re.compile(r"([A-Za-z0-9_-]{1,128})/(?:files|attachments)/")
