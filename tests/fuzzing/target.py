"""What is fuzzed: a function that takes any bytes, and the sentence that it holds to be true of all of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Target:
    """`check` raises whatever it likes for bytes of which `says` is not true. `words` are what its grammar is made of.

    `seeds` are inputs to begin with, none longer than `longest` bytes. `plainly` is what the product does with an input
    and nothing besides, where that takes time in proportion to its length.
    """

    name: str
    says: str
    check: Callable[[bytes], None]
    words: tuple[bytes, ...]
    seeds: Callable[[], Iterable[bytes]]
    longest: int = 2048
    plainly: Callable[[bytes], object] | None = None


def worded(plain: str, *others: str) -> tuple[bytes, ...]:
    """Words of a grammar: those divided by blanks, and others as they stand."""
    return tuple(word.encode() for word in (*plain.split(), *others))
