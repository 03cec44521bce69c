"""A stock of connections."""

from __future__ import annotations

from sidecar.stores.index_links import Links


def stock(spare: int = 2) -> tuple[Links[str], list[str]]:
    discarded: list[str] = []
    return Links(discarded.append, spare=spare), discarded


def test_what_was_given_back_last_is_taken_first() -> None:
    links, _ = stock()
    links.give_back("a")
    links.give_back("b")
    assert [links.take(), links.take(), links.take()] == ["b", "a", None]


def test_what_is_too_many_is_discarded() -> None:
    links, discarded = stock()
    for name in "abc":
        links.give_back(name)
    assert discarded == ["c"]


def test_all_that_wait_can_be_discarded() -> None:
    links, discarded = stock()
    links.give_back("a")
    links.discard_waiting()
    links.give_back("b")
    assert (discarded, links.take()) == (["a"], "b")


def test_what_comes_back_after_the_end_is_discarded() -> None:
    links, discarded = stock()
    links.give_back("a")
    links.close()
    links.give_back("b")
    assert (discarded, links.closed, links.take()) == (["a", "b"], True, None)
