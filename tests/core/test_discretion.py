"""What of something saved is shown to people, who do not see every artifact."""

from __future__ import annotations

from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sidecar.core.discretion import bounded_json, discreet, discreet_text

SECRET = "fi:turn_1.files/secret.txt"


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.text(max_size=9),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=4), inner, max_size=4),
)


def sees(logical: str) -> bool:
    return logical != SECRET


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        ({"artifact_path": SECRET, "text": "x"}, None),
        ({"items": [{"artifact_path": SECRET}, {"artifact_path": "fi:turn_1.files/a.txt"}]}, "rest"),
        ({"physical_path": "turn_1/files/secret.txt"}, None),
        ({"paths": ["turn_1/files/secret.txt", "turn_1/files/a.txt"]}, {"paths": ["turn_1/files/a.txt"]}),
        ({SECRET: 1, "b": 2}, {"b": 2}),
        ({"note": "and/or", "n": [1, None, True]}, {"note": "and/or", "n": [1, None, True]}),
        ({"path": "https://a.b/c", "x": "../.."}, {"path": "https://a.b/c", "x": "../.."}),
    ],
)
def test_whatever_speaks_of_an_unseen_artifact_goes(value: Any, shown: Any) -> None:
    expected = {"items": [{"artifact_path": "fi:turn_1.files/a.txt"}]} if shown == "rest" else shown
    assert discreet(value, sees) == expected


def test_json_within_a_text_is_looked_into() -> None:
    inner = orjson.dumps({"rows": [{"artifact_path": SECRET, "title": "x"}, {"title": "y"}]}).decode()
    assert orjson.loads(discreet({"text": inner}, sees)["text"]) == {"rows": [{"title": "y"}]}


def test_a_text_that_speaks_of_nothing_else_is_empty() -> None:
    assert discreet_text(orjson.dumps({"artifact_path": SECRET}).decode(), sees) == ""


def test_half_of_a_json_that_speaks_of_artifacts_cannot_be_looked_into_and_is_not_shown() -> None:
    whole = orjson.dumps({"rows": [{"artifact_path": SECRET, "title": "x"}]}).decode()
    assert discreet_text(whole[:-5], sees) == ""


def test_the_streams_of_a_turn_call_its_files_by_name() -> None:
    names = {"items_count": 2, "artifact_names": ["secret.txt", "a.txt"]}
    items = {"items": [{"artifact_name": "secret.txt", "text": "x"}, {"artifact_name": "a.txt"}]}
    assert discreet(names, sees, turn_id="turn_1") == {"items_count": 2, "artifact_names": ["a.txt"]}
    assert discreet(items, sees, turn_id="turn_1") == {"items": [{"artifact_name": "a.txt"}]}
    assert discreet(items, sees, turn_id="turn_2") == items
    assert discreet(items, sees) == items


@given(VALUES, st.integers(0, 60))
def test_what_is_bounded_is_json_and_all_of_it_where_there_is_room(value: Any, chars: int) -> None:
    text = bounded_json(value, chars)
    orjson.loads(text)
    assert bounded_json(value, 1_000_000) == orjson.dumps(value).decode()


def test_what_is_left_of_an_object_says_what_it_is_about() -> None:
    value = {"rows": [{"text": "x" * 50, "artifact_path": SECRET}, {"text": "y" * 1000, "artifact_path": SECRET}]}
    for chars in range(0, 300, 7):
        assert "xx" not in discreet_text(bounded_json(value, chars), sees)
        assert len(bounded_json(value, chars)) < chars + 150
    held = {"text": orjson.dumps({"artifact_path": SECRET, "text": "x" * 100}).decode()}
    assert bounded_json(held, 50) == '{"text":""}'


@pytest.mark.parametrize("text", ["plain", '{ "a" : 1 }', "[no json", ""])
def test_a_text_without_anything_unseen_is_the_same_text(text: str) -> None:
    assert discreet_text(text, sees) == text


def test_what_nests_deeper_than_anybody_may_write_is_left_out() -> None:
    value: Any = "x"
    for _ in range(300):
        value = [value]
    assert "x" not in str(discreet(value, sees))
