"""What some blocks in a row became, as JSON that an answer takes in as it is."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from typing import NamedTuple

from sidecar.core.render import Message, encode, tokens_of


class Rendered(NamedTuple):
    """What one block became: its messages as JSON, a comma between two; how many they are, and what they count as."""

    body: bytes
    messages: int
    tokens: int


NOTHING = Rendered(b"", 0, 0)


def put_down(messages: Sequence[Message]) -> Rendered:
    """What these messages of one block come to."""
    return Rendered(encode(messages), len(messages), sum(map(tokens_of, messages)))


class Page:
    """Messages of blocks in a row, with what is to be known of each block.

    `body` is the messages as JSON without the brackets around them, or None when there was no room to hold it. What is
    added stands in it once the page is closed; a closed page is copied before more is added.
    """

    __slots__ = ("_pieces", "body", "counts", "ends", "messages", "size", "tokens", "total_tokens")

    def __init__(self) -> None:
        self._pieces: list[bytes] = []
        self.body: bytes | None = b""
        self.size = 0
        self.messages = 0
        self.total_tokens = 0
        self.counts = array("H")  # messages of each block
        self.tokens = array("q")  # tokens of each block
        self.ends: dict[str, int] = {}  # round -> the place of its last block that shows anything; the latest is last

    def __len__(self) -> int:
        """How many blocks it holds."""
        return len(self.counts)

    def copy(self) -> Page:
        """Another page that says the same, to be added to."""
        other = Page()
        other._pieces = [self.body] if self.body else []
        other.size, other.messages, other.total_tokens = self.size, self.messages, self.total_tokens
        other.counts, other.tokens, other.ends = self.counts[:], self.tokens[:], dict(self.ends)
        return other

    def add(self, rendered: Rendered, *, within: str) -> None:
        """Take in what the next block became. `within` names its round, and is empty for a block that is in none."""
        if rendered.messages:
            self._pieces.append(rendered.body)
            if within:
                self.ends.pop(within, None)
                self.ends[within] = len(self.counts)
        self.messages += rendered.messages
        self.total_tokens += rendered.tokens
        self.counts.append(rendered.messages)
        self.tokens.append(rendered.tokens)

    def close(self) -> bytes:
        """Put together what was added; answers the body."""
        self.body = body = b",".join(self._pieces)
        self._pieces = []
        self.size = len(body)
        return body
