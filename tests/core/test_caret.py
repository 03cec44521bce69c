"""What is being typed is known from the line alone, wherever the caret stands."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sidecar.core.caret import LINE_CHARS, typed

pytestmark = pytest.mark.rule("editor.completes-paths-and-citations")


def at(marked: str) -> str | None:
    """What is typed at `|`, as `kind:text`."""
    caret = marked.index("|")
    here = typed(marked.replace("|", "", 1), caret)
    return None if here is None else f"{here.kind}:{here.text}"


@pytest.mark.parametrize(
    ("marked", "what"),
    [
        ("see fi:|", "logical:fi:"),
        ("fi:turn_1.files/a|", "logical:fi:turn_1.files/a"),
        ("`fi:turn_1.|` and", "logical:fi:turn_1."),
        ("![x](fi:turn_1.files/a%20|)", "logical:fi:turn_1.files/a%20"),
        ("wifi:|", None),
        ("ar:fi:|", None),
        ("see turn_|", "physical:turn_"),
        ("see turn_1/fi|", "physical:turn_1/fi"),
        ('src="./turn_1/files/a|"', "physical:turn_1/files/a"),
        ("(sess-9/files/|)", "physical:sess-9/files/"),
        ("turn|", None),
        ("a word|", None),
        ("https://example.com/a|", None),
        ("/etc/|", None),
        ("[[|", "citation:[["),
        ("[[S|", "citation:[[S"),
        ("text [[S:|", "citation:"),
        ("text [[s: 1, 3-5, ga|me]]", "citation:ga"),
        ("［［S：1|", "citation:1"),
        ("[[S:1]]|", None),
        ("[[S:1]|", None),
        ("[|", None),
        ("[[x|", None),
        ("[[S:\n|", None),
        ("fi:\n|", None),
        ("[[S:1]] fi:t|", "logical:fi:t"),
        ("fi:turn_1.files/a.md [[S:|", "citation:"),
        ("|", None),
    ],
)
def test_what_is_typed(marked: str, what: str | None) -> None:
    assert at(marked) == what


def test_of_a_citation_that_is_begun_only_what_comes_next_is_typed() -> None:
    here = typed("x [[S:1, 3-5,  game th", 22)
    assert here is not None
    assert (here.text, here.start, here.is_begun) == ("game th", 15, True)
    here = typed("[[S:3-", 6)
    assert here is not None
    assert (here.text, here.start) == ("", 6)
    here = typed("x [[S", 5)
    assert here is not None
    assert (here.text, here.start, here.is_begun) == ("[[S", 2, False)


@pytest.mark.parametrize(("behind", "taken"), [("]] more", 2), ("] more", 1), ("", 0), (" ]]", 0)])
def test_brackets_that_are_there_already_are_replaced(behind: str, taken: int) -> None:
    here = typed(f"[[S:{behind}", 4)
    assert here is not None
    assert here.end == 4 + taken


def test_a_target_of_a_link_is_known_as_one() -> None:
    assert [typed(text, len(text)).is_target for text in ("[a](fi:", "[a](./turn_1/", "(fi:", "fi:")] == [  # type: ignore[union-attr]
        True, True, False, False,
    ]  # fmt: skip


def test_a_path_with_a_blank_may_have_ended() -> None:
    assert [typed(text, len(text)).loose for text in ("fi:a b", "fi:ab")] == [True, False]  # type: ignore[union-attr]


def test_a_long_line_is_looked_at_near_the_caret_only() -> None:
    assert typed("fi:" + "a" * LINE_CHARS, LINE_CHARS + 3) is None


@given(st.text(alphabet="[]S:fi/turn_1,-3 \n🎉a.", max_size=60), st.integers(0, 60))
def test_what_is_typed_ends_at_the_caret_and_is_replaced_from_where_it_begins(text: str, caret: int) -> None:
    caret = min(caret, len(text))
    here = typed(text, caret)
    if here is not None:
        assert text[here.start : caret] == here.text
        assert here.end >= caret
        assert "\n" not in text[here.start : here.end]


@pytest.mark.parametrize("piece", ["[[S:", "1,", "1-2 ,", "[[S:1,1", "fi:", "turn_", "a/", "[", "   "])
@pytest.mark.timeout(10)
def test_nothing_that_is_typed_takes_long(piece: str) -> None:
    text = piece * (2 * LINE_CHARS)
    typed(text, len(text))
    typed("[[S:" + text[-LINE_CHARS + 4 :], LINE_CHARS)
