"""Markdown as HTML, by markdown-it-py, with one difference: a citation stays a citation.

CommonMark reads `[[S:1]](2024)` as a link with the text `[S:1]`. The daemon reads a citation and four characters behind
it, so what it says is a citation is kept as text here.
"""

from __future__ import annotations

from collections.abc import Callable, Collection

from markdown_it import MarkdownIt
from markdown_it.rules_inline import StateInline

from artifact_render.shelf import CANDIDATE


def html_of(text: str, citations: Collection[str]) -> str:
    """The body of a document. `citations` are those pieces of the text, brackets included, that cite something."""
    reader = MarkdownIt("commonmark", {"html": True}).enable(["table", "strikethrough"])
    reader.inline.ruler.before("link", "citation", _citation_rule(frozenset(citations)))
    return reader.render(text)


def doubtful(text: str) -> list[str]:
    """The pieces that CommonMark may take for a link and the daemon for a citation; each once, in order."""
    found = (match for match in CANDIDATE.finditer(text) if text.startswith(("(", "["), match.end()))
    return list(dict.fromkeys(match[0] for match in found))


def _citation_rule(citations: Collection[str]) -> Callable[[StateInline, bool], bool]:
    def rule(state: StateInline, silent: bool) -> bool:
        match = CANDIDATE.match(state.src, state.pos, state.posMax)
        if match is None or match[0] not in citations:
            return False
        if not silent:
            state.pending += match[0]
        state.pos = match.end()
        return True

    return rule
