"""Where in a Markdown text a token counts: everywhere but in code.

Blocks first: a blank line, a heading, a list item, a table row and a code fence each end the paragraph before them, and
neither a token nor a code span goes on past the end of its paragraph. Then, within a paragraph, whichever begins first
wins: a token, a code span, or a `<sup class="cite">`, which cites already.

Whether a run of backticks opens a code span is known only when its twin comes, and whether a line is a fence only at
its end. Each such question is given up at a stated distance, so that a stream waits for a bounded time and then says
what the whole text would say. A fence indented by four or more is read as a code span, which comes to the same unless
there is a blank line in it.
"""

from __future__ import annotations

import re
from collections.abc import Generator, Iterator
from functools import lru_cache
from typing import NamedTuple

from sidecar.core.markup import sup_numbers
from sidecar.core.tokens import Found, Grammar, first_begun, token_numbers

# A code span holds at most this much, between runs of at most so many backticks.
SPAN_CHARS = 4096
TICKS = 64
# A citing tag holds at most this much, so that even in UTF-8 it is no longer than a token may be.
SUP_CHARS = 1000
# What follows the marks of a fence on its line, and the blanks of a blank line, are looked at this far.
LINE_CHARS = 1000


class MarkdownScanner:
    """Finds what a Markdown text cites, in pieces of any size (see `tokens.Scanner`)."""

    kept: int

    def __init__(self) -> None:
        self.kept = 1
        self._fence: _Fence | None = None

    def read(self, text: str, *, final: bool) -> Iterator[Found]:
        self.kept = 1
        # A text that ends is one whose last line ends: nothing is undecided behind a line break.
        text = f"{text}\n" if final else text
        undecided = len(text) if final else _undecided_line(text)
        going = True
        while going and self.kept < len(text):
            if self._fence is None:
                going = yield from self._paragraph(text, undecided, final=final)
            else:
                going = self._leave_fence(text, self._fence)

    def safe(self, text: str) -> int:
        return GRAMMAR.first_possible(text, self.kept) if self._fence is None else len(text)

    def _leave_fence(self, text: str, fence: _Fence) -> bool:
        match = fence.ending.search(text, self.kept - 1)
        while match is not None and 0 < len(match["marks"] or "") < fence.marks:
            match = fence.ending.search(text, match.end())
        if match is None:
            undecided = fence.undecided.search(text, self.kept - 1)
            self.kept = len(text) if undecided is None else undecided.start() + 1
            return False
        self._fence = None
        # Behind the closing marks, or before the line that ends the list item and the fence in it.
        self.kept = match.end() if match["marks"] else match.start() + 1
        return True

    def _paragraph(self, text: str, undecided: int, *, final: bool) -> Generator[Found, None, bool]:
        block = _BREAK.search(text, self.kept - 1)
        if block is not None and block.lastgroup == "block" and block.start() == self.kept - 1:
            # The list item, heading or row that begins right here ends the paragraph before, not its own.
            block = _BREAK.search(text, self.kept)
        if block is None or block.start() >= undecided:
            yield from self._inline(text, min(undecided + 1, len(text)), ended=final)
            return False
        yield from self._inline(text, block.start() + 1, ended=True)
        match block.lastgroup:
            case "blank":
                blanks = _BLANKS.match(text, block.start())
                self.kept = text.rindex("\n", 0, blanks.end() if blanks else block.end()) + 1
            case "block":
                self.kept = block.start() + 1
            case _:
                self.kept = block.end()
                marks = block["ticks"] or block["tildes"]
                self._fence = _Fence(len(marks), *_fence_ends(marks[0], len(block["item"] or "")))
        return True

    def _inline(self, text: str, end: int, *, ended: bool) -> Iterator[Found]:
        """Read a paragraph up to `end`, where it is over if it has `ended` and may go on otherwise."""
        at = self.kept
        begun = end if ended else first_begun(_BEGUN, text, at, end)
        while (match := _LEXEME.search(text, at, end)) is not None and match.start() <= begun:
            behind: int | None = match.end()
            match match[0][0]:
                case "`":
                    behind = _behind_span(text, match, end, ended=ended)
                    if behind is None:
                        # Of a run too long to mean anything, enough is kept to know it for one.
                        self.kept = max(match.start(), match.end() - TICKS - 1)
                        return
                case "\\":
                    pass
                case "<":
                    numbers = sup_numbers(match[0])
                    if numbers is not None:
                        yield Found(match.start(), behind, numbers, settled=True)
                case _:
                    numbers = token_numbers(match[0])
                    if numbers is None:
                        behind = match.start() + 1
                    else:
                        yield Found(match.start(), behind, numbers, settled=False)
            at = behind
            if begun < at:
                begun = first_begun(_BEGUN, text, at, end)
        # What has begun would swallow all that is in it, should it come to its end.
        self.kept = begun


GRAMMAR = Grammar("`")


class _Fence(NamedTuple):
    """How a fence of so many marks ends: with as many, or where its list item does; and what may still become that."""

    marks: int
    ending: re.Pattern[str]
    undecided: re.Pattern[str]


# Sixteen widths of a list item, and none; the number of marks is no part of the patterns, as a text could make many.
@lru_cache(maxsize=64)
def _fence_ends(mark: str, item_width: int) -> tuple[re.Pattern[str], re.Pattern[str]]:
    indent = item_width + 3
    ends = [rf"[ ]{{0,{indent}}}(?P<marks>{mark}{{3,{LINE_CHARS}}})[ \t]{{0,{LINE_CHARS}}}\r?(?=\n)"]
    if item_width:
        ends.append(rf"(?=[ ]{{0,{item_width - 1}}}[^ \t\r\n{mark}])")
    undecided = rf"\n[ ]{{0,{indent}}}{mark}{{0,{LINE_CHARS}}}[ \t]{{0,{LINE_CHARS}}}\r?\Z"
    return re.compile(rf"\n(?:{'|'.join(ends)})"), re.compile(undecided)


_ITEM = r"[ ]{0,3}(?:[-*+]|[0-9]{1,9}[.)])"
_INFO = rf"[^`\n]{{0,{LINE_CHARS}}}"
_BLANK_CHARS = r"[ \t\r\f\v]"
_BREAK = re.compile(
    rf"""\n(?:
        (?P<blank>{_BLANK_CHARS}{{0,{LINE_CHARS}}}\n)
      | (?P<fence>(?:(?P<item>{_ITEM}[ ]{{1,4}})|[ ]{{0,3}})
            (?:(?P<ticks>`{{3,{TICKS}}}+)(?!`){_INFO}(?=\n)|(?P<tildes>~{{3,{TICKS}}}+)(?!~)))
      | (?P<block>(?={_ITEM}[ \t]|[ ]{{0,3}}(?:\#{{1,6}}[ \t]|\|)))
    )""",
    re.VERBOSE,
)
_BLANKS = re.compile(r"[ \t\r\f\v\n]*+")
# The last line, while it can still turn out to be one of those.
_MAYBE_BREAK = re.compile(
    rf"""\n(?:
        {_BLANK_CHARS}{{0,{LINE_CHARS}}}
      | (?:{_ITEM}[ ]{{0,4}}|[ ]{{0,3}})(?:`{{0,{TICKS}}}|`{{3,{TICKS}}}+(?!`){_INFO}|~{{0,{TICKS}}})
      | [ ]{{0,3}}(?:[0-9]{{1,9}}|\#{{1,6}})
    )\Z""",
    re.VERBOSE,
)

_LEXEME = re.compile(rf"{GRAMMAR.token}|`++|\\[\\`]|<[sS][uU][pP]\s[^<>]{{0,{SUP_CHARS}}}>")
_BEGUN = re.compile(rf"{GRAMMAR.begun}|\\\Z|<(?:[sS](?:[uU](?:[pP](?:\s[^<>]{{0,{SUP_CHARS}}})?+)?+)?+)?+\Z")


def _undecided_line(text: str) -> int:
    """The line break before the last line if that line may still end the paragraph; else the end of the text."""
    line = text.rfind("\n")
    return line if line >= 0 and _MAYBE_BREAK.match(text, line) else len(text)


def _behind_span(text: str, opening: re.Match[str], end: int, *, ended: bool) -> int | None:
    """Where reading goes on behind a run of backticks: after the span that it opens, or after the run if it opens none.

    None while that is unknown: the run, or one that may be its twin, is not over yet, or the twin may still come.
    """
    ticks = len(opening[0])
    start = opening.end()
    if start == end and not ended:
        return None
    if ticks > TICKS:
        return start
    furthest = start + SPAN_CHARS
    visible = furthest + ticks + 1
    twin = _up_to_run(ticks).match(text, start, min(end, visible))
    if twin is not None and twin.end() - ticks <= furthest:
        return None if twin.end() == end and not ended else twin.end()
    return start if ended or visible <= end else None


@lru_cache(maxsize=TICKS)
def _up_to_run(ticks: int) -> re.Pattern[str]:
    # Whole runs are stepped over: trying each backtick of a long one would cost the square of its length.
    return re.compile(rf"(?:[^`]++|(?!`{{{ticks}}}(?!`))`++)*+`{{{ticks}}}")
