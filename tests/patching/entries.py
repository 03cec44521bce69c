"""What an entry of the corpus is, and the hand-made ones, read from `by_hand.txt`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

HERE = Path(__file__).parent


@dataclass(frozen=True, slots=True)
class Entry:
    """A patch for a text, and what it means.

    `meant` is the only right result; nothing means that it has to be refused, with one of these codes. `family` says
    what is wrong with the patch, `whole` that it is a whole new text, which programs for diffs do not know.
    """

    family: str
    name: str
    before: str
    patch: str
    meant: str | None
    codes: tuple[str, ...] = ()
    whole: bool = False

    @property
    def about(self) -> str:
        return f"{self.family}: {self.name}"


@cache
def texts() -> Mapping[str, str]:
    """The texts of `texts.txt`, by name."""
    _, *sections = (HERE / "texts.txt").read_text("utf-8").split("\n%% ")
    return dict(map(_part, (section.removesuffix("\n") for section in sections)))


def visible(text: str) -> str:
    """The text that is meant by one with visible blanks, carriage returns and missing newlines."""
    text = text.replace("␠", " ").replace("␍", "\r").replace("␉", "\t")
    return text.removesuffix("\n").removesuffix("␄") if text.endswith("␄\n") else text


@cache
def by_hand() -> tuple[Entry, ...]:
    """The entries of `by_hand.txt`; its first lines say how it is written."""
    _, *families = (HERE / "by_hand.txt").read_text("utf-8").split("\n%%% ")
    return tuple(entry for family in families for entry in _family(family))


def _family(section: str) -> Iterator[Entry]:
    name, *entries = section.removesuffix("\n").split("\n%% ")
    for entry in entries:
        about, *parts = entry.split("\n%")
        yield _entry(name, about, dict(map(_part, parts)))


def _part(part: str) -> tuple[str, str]:
    head, _, body = part.partition("\n")
    return head, visible(f"{body}\n" if body else "")


def _entry(family: str, name: str, parts: Mapping[str, str]) -> Entry:
    before = parts.get("before", "")
    codes: tuple[str, ...] = ()
    meant = parts.get("after")
    for head in parts:
        match head.split():
            case ["in", text]:
                before = texts()[text]
            case ["refused", *given]:
                codes = tuple(given)
            case _:
                continue
    if "swap" in parts:
        assert before.count(parts["swap"]) == 1, f"{name}: what is swapped stands there once"
        meant = before.replace(parts["swap"], parts["for"])
    assert (meant is None) == bool(codes), f"{name}: either a result or a refusal"
    return Entry(family, name, before, parts["patch"], meant, codes, whole="whole" in parts)
