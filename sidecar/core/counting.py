"""The one token count of the product: a quarter of the bytes, rounded up for text and down for what is none (spec 12).

It is no tokeniser's number. It is the same everywhere, needs no vocabulary, and is never far off for prose.
"""

from __future__ import annotations


def count_tokens(text: str) -> int:
    """What a text counts as."""
    return text_tokens(len(text.encode("utf-8", "surrogatepass")))


def text_tokens(size_bytes: int) -> int:
    """What a text of this size in UTF-8 counts as."""
    return -(-size_bytes // 4)


def binary_tokens(size_bytes: int) -> int:
    """What bytes that are no text count as."""
    return size_bytes // 4


def packed_size(packed: str) -> int:
    """How many bytes a base64 text stands for."""
    return len(packed) * 3 // 4 - packed[-2:].count("=")
