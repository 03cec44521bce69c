"""What a style sheet refers to: `url()`, `src()`, `image-set()` and `@import`, read by tinycss2.

A style sheet is a list of tokens in which blocks nest. Nothing is known of properties: a `url()` counts wherever it
stands. The name of a namespace alone is no reference.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import tinycss2

from sidecar.core.asset_reference import Reference
from sidecar.core.stretches import first_match

PIECE = 16_384  # characters of a style sheet that are read at once, and on to the end of the rule


def css_references(text: str) -> Iterator[Reference]:
    """Every reference of a style sheet, or of the declarations of a `style` attribute. Never raises."""
    if not may_refer(text):
        return
    waiting: list[tuple[Iterator[Any], bool]] = [(iter(tinycss2.parse_component_value_list(text, True)), False)]
    rule = ""
    while waiting:
        tokens, strings_count = waiting[-1]
        token = next(tokens, None)
        if token is None:
            waiting.pop()
            continue
        match token.type:
            case "at-keyword":
                rule = token.lower_value
            case "literal" if token.value == ";":
                rule = ""
            case "url" if rule != "namespace":
                yield Reference(token.value, "embedded")
            case "string" if strings_count or rule == "import":
                yield Reference(token.value, "embedded")
            case "function":
                # In an @import the strings below are conditions, such as `supports(...)`.
                waiting.append((iter(token.arguments), token.lower_name in _WITH_STRINGS and rule != "namespace"))
            case "{} block" | "[] block" | "() block":
                if token.type == "{} block":
                    rule = ""
                waiting.append((iter(token.content), False))
            case _:
                pass


def css_pieces(text: str) -> Iterator[str]:
    """A style sheet in parts that can be read by themselves: each ends where a rule does, unless it never does.

    A parsed sheet takes a hundred times its length, and letting go of it at once would hold up everybody.
    """
    start = depth = 0
    for mark in _MARK.finditer(text) if len(text) > PIECE else ():
        sign = mark[0]
        if sign in "([{":
            depth += 1
        elif sign in ")]}":
            depth = max(0, depth - 1)
        if depth == 0 and sign in "};" and mark.end() - start >= PIECE:
            yield text[start : mark.end()]
            start = mark.end()
    if start < len(text):
        yield text[start:]


def may_refer(text: str) -> bool:
    """Whether there is anything to look for. An escape may spell any word."""
    return first_match(_MAY_REFER, text, reach=len("@import")) is not None


# Whatever may hold a bracket that is none, and brackets.
_MARK = re.compile(
    r"""/\*(?:[^*]|\*(?!/))*+(?:\*/)?|"(?:[^"\\\n]|\\.)*+"?|'(?:[^'\\\n]|\\.)*+'?|url\([^"'()\\]*+\)|\\.|[{}()\[\];]""",
    re.IGNORECASE | re.DOTALL,
)
_WITH_STRINGS = frozenset({"url", "src", "image", "image-set", "-webkit-image-set"})
_MAY_REFER = re.compile(r"url\(|src\(|image|\\|@import", re.IGNORECASE)
