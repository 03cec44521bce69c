"""The paths of the older generation: what they say, what is refused and with which code, and how names are matched."""

from __future__ import annotations

import time
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from protocol.requests import context
from sidecar.core.older_paths import (
    SLOT_LEAVES,
    Code,
    Made,
    Named,
    Names,
    OlderPath,
    OlderRefusal,
    Said,
    Slice,
    Sliced,
    Slotted,
    normal_name,
    parse,
    resolved_turn,
    respelled,
    sayable,
)

CURRENT = "current_turn"


@pytest.mark.rule("context.older-paths-are-read")
@pytest.mark.parametrize(
    ("text", "path"),
    [
        ("current_turn.user.prompt", Said(CURRENT, "user.prompt")),
        ("turn_2.user.prompt.text", Said("turn_2", "user.prompt", "text")),
        ("7.user", Said("7", "user.prompt")),
        ("turn_2.assistant", Said("turn_2", "assistant.completion")),
        ("turn_2.assistant.completion.text", Said("turn_2", "assistant.completion", "text")),
        ("current_turn.user.attachments.menu_pdf", Named(CURRENT, "attachments", "menu_pdf")),
        ("turn-1.user.attachment.a b.pdf", Named("turn-1", "attachments", "a b.pdf")),
        ("turn_2.attachments.x", Named("turn_2", "attachments", "x")),
        ("turn_2.files.out/report.pdf", Named("turn_2", "files", "out/report.pdf")),
        ("current_turn.artifacts.gen_1", Made(CURRENT, "gen_1")),
        ("current_turn.artifacts.gen_1.value.content.0.a", Made(CURRENT, "gen_1", ("value", "content", "0", "a"))),
        ("artifacts.s-1[1,3]", Made(CURRENT, "s-1", (), Slice(((1, 1), (3, 3))))),
        ("turn_2.artifacts.s1[2:6]", Made("turn_2", "s1", (), Slice(((2, 6),)))),
        ("turn_2.artifacts.s1.value[2:]", Made("turn_2", "s1", ("value",), Slice(((2, None),)))),
        ("turn_2.artifacts.s1[:6, 9]", Made("turn_2", "s1", (), Slice(((None, 6), (9, 9))))),
        ("turn_2.slots.report", Slotted("turn_2", "report")),
        ("slots.report.text", Slotted(CURRENT, "report", "text")),
        ("turn_2.slots.report.sources_used.0", Slotted("turn_2", "report", "sources_used")),
        ("sources_pool[3,1]", Sliced(Slice(((3, 3), (1, 1))))),
        ("sources_pool[3, 7-5]", Sliced(Slice(((3, 3), (5, 7))))),
        ("  current_turn.user  ", Said(CURRENT, "user.prompt")),
    ],
)
def test_a_path_says(text: str, path: OlderPath) -> None:
    assert parse(text) == path


@pytest.mark.rule("context.errors-are-a-closed-list")
@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("", "invalid_path_empty"),
        (" \n", "invalid_path_empty"),
        ("literal:hello", "invalid_path_literal"),
        ("current_turn.artifacts.x literal: y", "invalid_path_literal"),
        ("a turn.user.prompt", "unknown_turn_id"),
        ("logs.user.prompt", "unknown_turn_id"),
        ("turn_1", "not_found"),
        ("turn_1.memory.x", "not_found"),
        ("turn_1.artifacts", "not_found"),
        ("turn_1.artifacts.a b", "not_found"),
        ("turn_1.artifacts.s1[]", "not_found"),
        ("turn_1.artifacts.s1[a]", "not_found"),
        ("turn_1.artifacts.s1[1", "not_found"),
        ("turn_1.artifacts.s1[1-]", "not_found"),
        ("turn_1.artifacts.s1[-1]", "not_found"),
        ("turn_1.artifacts.s1[:]", "not_found"),
        ("turn_1.user.prompt.title", "not_found"),
        ("sources_pool", "not_found"),
        ("sources_pool[x]", "not_found"),
        ("sources_pool[1][2]", "not_found"),
        ("turn_1.slots.a.value", "invalid_slot_value_access"),
        ("turn_1.slots.a.value.text", "invalid_slot_value_access"),
        ("turn_1.slots.a.colour", "invalid_slot_leaf"),
        ("turn_1.slots.a.", "invalid_slot_leaf"),
    ],
)
def test_a_path_is_refused(text: str, code: str) -> None:
    with pytest.raises(OlderRefusal) as caught:
        parse(text)
    assert caught.value.code == code


@pytest.mark.rule("context.errors-are-a-closed-list")
@given(st.text(alphabet=st.sampled_from("abu1.[]:,-_/ \n"), max_size=40) | st.text(max_size=40))
def test_any_text_is_a_path_or_refused(text: str) -> None:
    assert {outcome(f"turn_1.{text}"), outcome(text)} <= {"", *get_args(Code)}


def outcome(text: str) -> str:
    """The code that a text is refused with, or nothing."""
    try:
        parse(text)
    except OlderRefusal as refusal:
        return refusal.code
    return ""


def test_the_wire_has_the_same_codes() -> None:
    assert get_args(context.Code) == get_args(Code)


@pytest.mark.rule("context.search-artifacts-are-sliced-by-sid")
@pytest.mark.parametrize(
    ("asked", "found"),
    [
        ("[1,3]", [3]),
        ("[9,3,9]", [9, 3]),
        ("[3:7]", [3, 5, 7]),
        ("[4:]", [5, 7, 9]),
        ("[:5]", [3, 5]),
        ("[7:3]", []),
        ("[9,:5]", [9, 3, 5]),
        ("[1:9999999999999999]", [3, 5, 7, 9]),
    ],
)
def test_a_slice_selects_by_sid_with_both_ends(asked: str, found: list[int]) -> None:
    path = parse(f"artifacts.s{asked}")
    assert isinstance(path, Made)
    assert path.rows is not None
    assert path.rows.select([9, 7, 5, 3, 3]) == found


@pytest.mark.rule("context.requested-order-of-the-older-pool-slice")
def test_a_slice_of_the_pool_keeps_the_order_asked() -> None:
    path = parse("sources_pool[3,1,3,2]")
    assert isinstance(path, Sliced)
    assert path.rows.select([1, 2, 3, 4]) == [3, 1, 2]


@pytest.mark.parametrize(
    ("text", "name", "missing"),
    [
        ("sources_pool[3,1]", "so:sources_pool[1, 3]", [3]),
        ("sources_pool[2:4]", "so:sources_pool[2-4]", []),
        ("sources_pool[4:2,9]", "so:sources_pool[9]", [9]),
        ("sources_pool[2:]", None, []),
    ],
)
def test_a_slice_has_a_name_today_and_says_what_is_missing(text: str, name: str | None, missing: list[int]) -> None:
    path = parse(text)
    assert isinstance(path, Sliced)
    assert path.rows.logical == name
    assert path.rows.missing([1, 2]) == missing


@pytest.mark.parametrize(
    ("token", "current", "turn"),
    [
        (CURRENT, "turn_12", "turn_12"),
        ("turn_12", "turn_13", "turn_12"),
        ("12", "turn_13", "turn_12"),
        ("7", "turn_13", "7"),
    ],
)
def test_a_turn_is_the_current_one_a_known_one_or_a_bare_number(token: str, current: str, turn: str) -> None:
    assert resolved_turn(token, current=current, knows={"turn_12", "turn_13", "7"}.__contains__) == turn


@pytest.mark.parametrize(("token", "current"), [(CURRENT, ""), ("13", "turn_1"), ("²", "turn_1")])
def test_an_unknown_turn_is_refused(token: str, current: str) -> None:
    with pytest.raises(OlderRefusal) as caught:
        resolved_turn(token, current=current, knows={"turn_12"}.__contains__)
    assert caught.value.code == "unknown_turn_id"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("current_turn.artifacts.x", "turn_1.artifacts.x"),
        ("current_turn/files/x", "turn_1/files/x"),
        ("fi:current_turn.files/x", "fi:turn_1.files/x"),
        ("out/current_turn/attachments/x", "out/turn_1/attachments/x"),
        ("current_turns.artifacts.x", "current_turns.artifacts.x"),
        ("see current_turn.artifacts.x", "see current_turn.artifacts.x"),
        ("turn_9.files.current_turn", "turn_9.files.current_turn"),
    ],
)
def test_an_answer_says_the_turn_s_own_id(text: str, said: str) -> None:
    assert respelled(text, "turn_1") == said


def test_without_a_turn_the_word_goes() -> None:
    assert respelled("current_turn.artifacts.x", "") == "artifacts.x"


@pytest.mark.parametrize(
    ("name", "normal"),
    [("menu.pdf", "menu_pdf"), ("Menu 1.PDF", "menu_1_pdf"), ("a/b:c\\d", "a_b_c_d"), ("né-e!.txt", "n-e_txt")],
)
def test_a_name_is_normalised(name: str, normal: str) -> None:
    assert normal_name(name) == normal


@pytest.mark.parametrize(
    ("wanted", "found"),
    [
        ("menu.pdf", ("menu.pdf", ())),
        ("menu_pdf", ("menu.pdf", ())),
        ("report.md", ("out/report.md", ())),
        ("out/report.md", ("out/report.md", ())),
        ("out_report_md", ("out/report.md", ())),
        ("menu_pdf.mime", ("menu.pdf", ("mime",))),
        ("menu.pdf.text", ("menu.pdf", ("text",))),
        ("MENU.PDF", ("menu.pdf", ())),
        ("nothing", None),
        ("", None),
    ],
)
def test_a_name_fits_as_it_stands_or_normalised(wanted: str, found: tuple[str, tuple[str, ...]] | None) -> None:
    assert Names(["menu.pdf", "out/report.md", "!"]).find(wanted) == found


def test_of_names_that_are_equal_the_first_is_meant() -> None:
    assert Names(["b/a.md", "c/a.md", "a.md"]).find("a_md") == ("a.md", ())
    assert Names(["b/a.md", "c/a.md"]).find("a.md") == ("b/a.md", ())


def test_a_name_of_many_dots_is_read_in_no_time() -> None:
    assert Names(["a"]).find("a" + "." * 10_000) is None


def test_every_leaf_of_a_slot_is_read() -> None:
    assert {parse(f"slots.s.{leaf}") for leaf in SLOT_LEAVES} == {Slotted(CURRENT, "s", leaf) for leaf in SLOT_LEAVES}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("  current_turn.files.a \n", "turn_2.files.a"),
        ("./out/current_turn/files/a", "./out/turn_2/files/a"),
        ("literal:current_turn.files.a", "literal:turn_2.files.a"),
        ("my_current_turn.files.a", "my_current_turn.files.a"),
    ],
)
def test_the_word_is_known_however_its_path_begins(text: str, said: str) -> None:
    assert respelled(text, "turn_2") == said


@pytest.mark.parametrize("text", ["fi:fi:current_turn.x", "a current_turn[1]", "x.current_turn", "current_turn"])
def test_no_sentence_says_the_word(text: str) -> None:
    assert sayable(text, "turn_2") == text.replace("current_turn", "turn_2")
    assert sayable("my_current_turn", "turn_2") == "my_current_turn"


def test_a_slice_of_many_items_walks_each_row_once() -> None:
    path = parse("sources_pool[" + ",".join(["1:"] * 10_000 + ["5000:"] * 5_000) + "]")
    assert isinstance(path, Sliced)
    began = time.thread_time()
    assert path.rows.select(range(1, 20_001)) == list(range(1, 20_001))
    assert Slice(((3, 3), *[(2, 19_999)] * 20_000)).select(range(1, 20_001))[:3] == [3, 2, 4]
    assert time.thread_time() - began < 2


@given(
    st.lists(st.tuples(st.none() | st.integers(0, 30), st.none() | st.integers(0, 30)), max_size=8),
    st.sets(st.integers(1, 30)),
)
def test_a_slice_has_each_row_once_in_the_order_asked(
    items: list[tuple[int | None, int | None]], sids: set[int]
) -> None:
    asked = [
        sid
        for low, high in items
        for sid in sorted(sids)
        if (low is None or low <= sid) and (high is None or sid <= high)
    ]
    assert Slice(tuple(items)).select(sids) == list(dict.fromkeys(asked))
