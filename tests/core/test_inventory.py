"""A survey against what is known says what to read again and what is gone."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sidecar.core.inventory import KEYS_AT_ONCE, ByFolder, News, StatKey, Survey, admit, news, sort_out, widest
from sidecar.pacing import at_once


def key(mtime: int, size: int = 1) -> StatKey:
    return StatKey(1, 2, size, mtime, mtime)


@pytest.mark.parametrize(
    ("scope", "there", "known", "expected"),
    [
        ("", {"a": key(2), "b": key(1)}, {}, News(("b", "a"), ())),
        ("", {"b": key(1), "a": key(1)}, {}, News(("a", "b"), ())),
        ("", {"a": key(1)}, {"a": key(1)}, News()),
        ("", {"a": key(2)}, {"a": key(1)}, News(("a",), ())),
        ("", {"a": key(1, size=2)}, {"a": key(1, size=1)}, News(("a",), ())),
        ("", {}, {"b": key(1), "a": key(1)}, News((), ("a", "b"))),
        ("t", {}, {"t/a": key(1), "t2/a": key(1), "t": key(1)}, News((), ("t/a",))),
    ],
)
def test_news_is_what_differs(scope: str, there: dict[str, StatKey], known: dict[str, StatKey], expected: News) -> None:
    assert news(Survey(scope, there, ()), known) == expected


def test_what_a_survey_that_hit_a_limit_does_not_list_is_doubtful() -> None:
    assert news(Survey("", {"a": key(1)}, (), over_limit=1), {"b": key(1)}) == News(("a",), doubtful=("b",))


FILES = st.dictionaries(st.sampled_from(["t/a", "t/b", "u/a"]), st.integers(0, 2).map(key))


@given(FILES, FILES)
def test_taking_in_the_news_makes_known_what_is_there(there: dict[str, StatKey], known: dict[str, StatKey]) -> None:
    fresh = news(Survey("", there, ()), known)
    after = {**known, **{path: there[path] for path in fresh.changed}}
    for path in fresh.gone:
        del after[path]
    assert after == there


@pytest.mark.parametrize(
    ("room", "admitted", "left_out"),
    [(2, ("old", "a", "b"), 1), (9, ("old", "a", "b", "c"), 0), (0, ("old",), 3), (-5, ("old",), 3)],
)
def test_what_is_known_needs_no_room(room: int, admitted: tuple[str, ...], left_out: int) -> None:
    assert admit(["old", "a", "b", "c"], {"old"}, room) == (admitted, left_out)


def test_a_survey_is_sorted_out_into_what_is_a_turns_and_what_has_no_name() -> None:
    key = StatKey(1, 2, 3, 4, 5)
    names = [
        "turn_1/files/a.txt",
        "turn_1/attachments/b/c.txt",
        "turn_1/elsewhere/d.txt",
        "other/files/e.txt",
        "logs/f.txt",
        "turn_2.files/g.txt",
        "h.txt",
    ]
    survey = Survey("", dict.fromkeys(names, key), ("", "turn_1", "turn_1/files", "other", "logs"))
    found = sort_out(survey, lambda folder: folder.startswith("turn_"))
    assert sorted(found.survey.files) == ["turn_1/attachments/b/c.txt", "turn_1/files/a.txt"]
    assert found.survey.folders == ("", "turn_1", "turn_1/files")
    assert found.ambiguous == ("turn_2.files/g.txt",)


PATHS = ["a", "t/a", "t/b", "t/u/c", "t/u/v/d", "tu/e"]


@given(st.lists(st.tuples(st.sampled_from(PATHS), st.booleans())), st.sampled_from(["t", "t/u", "tu", "u"]))
def test_what_is_below_a_folder_is_what_is_known_and_begins_like_it(notes: list[tuple[str, bool]], scope: str) -> None:
    known, by_folder = set[str](), ByFolder()
    for path, there in notes:
        by_folder.note(path, there=there)
        (known.add if there else known.discard)(path)
    assert sorted(by_folder.below(scope)) == sorted(path for path in known if path.startswith(f"{scope}/"))


def test_keys_below_a_folder_come_by_steps_without_what_goes_meanwhile() -> None:
    by_folder = ByFolder()
    files = {f"t/{at}": key(at) for at in range(2 * KEYS_AT_ONCE + 1)} | {"u/a": key(1)}
    for path in files:
        by_folder.note(path, there=True)
    before, steps = dict(files), by_folder.keys_below("t", files)
    next(steps)
    files.clear()
    found = at_once(steps)
    assert len(found) == KEYS_AT_ONCE
    assert found.items() < {path: one for path, one in before.items() if path.startswith("t/")}.items()


@pytest.mark.parametrize(
    ("scopes", "left"),
    [(["a/b", "a", "ab", "c/d/e", "c/d/f"], ["a", "ab", "c/d/e", "c/d/f"]), (["a", ""], [""]), ([], [])],
)
def test_scopes_within_others_are_left_out(scopes: list[str], left: list[str]) -> None:
    assert widest(scopes) == left
