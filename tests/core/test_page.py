"""A page knows what each of its blocks became, and may be copied to go on."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from sidecar.core.page import Page, put_down
from sidecar.core.render import Message, decode

BLOCKS = st.lists(st.tuples(st.lists(st.text("ab", max_size=9), max_size=3), st.sampled_from(["", "x", "y", "z"])))


def messages(texts: list[str]) -> list[Message]:
    return [{"type": "text", "text": text} for text in texts]


def filled(blocks: list[tuple[list[str], str]], page: Page | None = None) -> Page:
    page = page or Page()
    for texts, within in blocks:
        page.add(put_down(messages(texts)), within=within)
    page.close()
    return page


@given(BLOCKS)
def test_a_page_holds_the_messages_of_its_blocks_in_order(blocks: list[tuple[list[str], str]]) -> None:
    page = filled(blocks)
    assert page.body is not None
    assert decode(page.body) == [message for texts, _ in blocks for message in messages(texts)]
    assert list(page.counts) == [len(texts) for texts, _ in blocks]
    assert list(page.tokens) == [sum(-(-len(text) // 4) for text in texts) for texts, _ in blocks]
    assert (page.messages, page.total_tokens, page.size) == (sum(page.counts), sum(page.tokens), len(page.body))


@given(BLOCKS)
def test_a_round_ends_with_its_last_block_that_shows_anything(blocks: list[tuple[list[str], str]]) -> None:
    shown = [(within, at) for at, (texts, within) in enumerate(blocks) if texts and within]
    last = dict(shown)
    assert list(filled(blocks).ends.items()) == sorted(last.items(), key=lambda end: end[1])


@given(BLOCKS, BLOCKS)
def test_a_copy_goes_on_and_the_page_stays_as_it_was(
    first: list[tuple[list[str], str]], more: list[tuple[list[str], str]]
) -> None:
    page = filled(first)
    before = (page.body, list(page.counts), dict(page.ends))
    grown, whole = filled(more, page.copy()), filled(first + more)
    assert (page.body, list(page.counts), dict(page.ends)) == before
    assert (grown.body, grown.size, grown.messages, grown.total_tokens) == (
        whole.body, whole.size, whole.messages, whole.total_tokens,
    )  # fmt: skip
    assert (list(grown.ends.items()), grown.counts, grown.tokens) == (
        list(whole.ends.items()),
        whole.counts,
        whole.tokens,
    )
    assert len(grown) == len(first) + len(more)
