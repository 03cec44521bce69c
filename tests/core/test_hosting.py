"""No role gets a hosting field it must not have, and nobody's own contents are altered."""

from __future__ import annotations

from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sidecar.core.blocks import LEVELS, holds_hosting
from sidecar.core.hosting import ALL, CUT_FOR, Verbatim, without, without_hosting

FIELDS = {"hosted_uri": "s3://b/k", "rn": "ef:x", "key": "cb/x", "sid": 1}


@pytest.mark.rule("roles.exec-never-sees-hosting-fields")
@pytest.mark.parametrize(
    ("role", "left"),
    [
        ("runtime", {"hosted_uri", "rn", "key", "sid"}),
        ("renderer", {"rn", "sid"}),
        ("editor", {"rn", "sid"}),
        ("exec", {"sid"}),
    ],
)
def test_each_role_gets_what_it_may_have(role: str, left: set[str]) -> None:
    text = orjson.dumps(FIELDS).decode()
    cut = without({"rows": [FIELDS], "meta": {"inner": FIELDS}, "text": text}, CUT_FOR[role])
    assert cut["rows"][0].keys() == left
    assert cut["meta"]["inner"].keys() == left
    assert orjson.loads(cut["text"]).keys() == left


@pytest.mark.parametrize(
    ("value", "cut"),
    [
        ({"a": ({"rn": 1}, 2)}, {"a": [{}, 2]}),
        ({"text": '{"key":"C major"}'}, {"text": '{"key":"C major"}'}),
        ({"text": '{"sid":1,"key":'}, {"text": '{"sid":1,"key":'}),
        ({"text": '{ "sid": 1 }'}, {"text": '{ "sid": 1 }'}),
        ({"text": Verbatim('{"sid":1,"key":"k"}')}, {"text": '{"sid":1,"key":"k"}'}),
        ({"text": '{"sid":1,"in":"{\\"sid\\":1,\\"rn\\":\\"x\\"}"}'}, {"text": '{"sid":1,"in":"{\\"sid\\":1}"}'}),
        ({"text": '{"said":"{\\"sid\\":1,\\"rn\\":\\"x\\"}"}'}, {"text": '{"said":"{\\"sid\\":1}"}'}),
        ("plain", "plain"),
        (None, None),
    ],
)  # fmt: skip
def test_the_cut_goes_to_any_depth_and_no_further(value: Any, cut: Any) -> None:
    assert without(value, ALL) == cut


def test_a_value_without_hosting_is_the_same_object() -> None:
    value = {"a": [1]}
    assert without_hosting(value) is value
    assert without_hosting({"a": 1, "rn": "x"}) == {"a": 1}


def test_what_nests_too_deep_is_left_out_and_nothing_falls() -> None:
    deep: Any = {"rn": "ef:x"}
    for _ in range(3000):
        deep = [deep]
    assert not holds_hosting(without({"a": deep}, ALL))
    text = '{"sid":1,"a":' + "[" * (LEVELS + 50) + '{"rn":"ef:x"}' + "]" * (LEVELS + 50) + "}"
    assert "rn" not in without({"text": text}, ALL)["text"]


KEYS = st.sampled_from(["hosted_uri", "rn", "key", "sid", "artifact_path", "text", "other"])
LEAVES = st.none() | st.integers(0, 9) | st.text('ab{}[]"\\', max_size=6)
RECORDS = st.recursive(
    LEAVES,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(KEYS, inner, max_size=4)
        | inner.map(lambda value: orjson.dumps({"sid": 1, "held": value}).decode())
    ),
    max_leaves=8,
)


@given(RECORDS)
def test_after_the_cut_no_hosting_field_is_left(value: Any) -> None:
    assert not holds_hosting(without(value, ALL))


@given(RECORDS)
def test_cutting_nothing_changes_nothing(value: Any) -> None:
    assert orjson.loads(orjson.dumps(without(value, frozenset()))) == _same_texts(value)


def _same_texts(value: Any) -> Any:
    """JSON held in text may be written anew; what it says is the same."""
    match value:
        case dict():
            return {key: _same_texts(item) for key, item in value.items()}
        case list():
            return [_same_texts(item) for item in value]
        case str():
            return without(value, frozenset())
        case _:
            return value


RESULT = "tc:turn_1.tc_1.result"


@pytest.mark.parametrize(
    ("said", "left"),
    [
        ({"rn": "ef:t:p", "key": "cb/k", "ok": 1}, {"ok": 1}),
        ({"params": [{"rn": "rn:x", "title": "t"}]}, {"params": [{"title": "t"}]}),
        ({"key": "C major", "rn": 7}, {"key": "C major", "rn": 7}),
        ({"said": '{"rn":"ef:x","ok":1}'}, {"said": '{"ok":1}'}),
        ({"sid": 1, "said": '{"rn":"ef:x","ok":1}'}, {"sid": 1, "said": '{"ok":1}'}),
    ],
)
@pytest.mark.parametrize(
    "block",
    [
        {"type": "react.tool.call", "path": "tc:turn_1.tc_1.call"},
        {"type": "react.tool.result", "path": RESULT},
        {"type": "react.notice", "path": RESULT},
    ],
)
def test_what_we_gave_out_does_not_stand_in_what_a_tool_said(block: dict[str, str], said: Any, left: Any) -> None:
    told = {**block, "text": orjson.dumps(said).decode()}
    assert holds_hosting(told) == (said != left)
    cut = without([told], ALL)[0]
    assert orjson.loads(cut["text"]) == left
    assert without(told, frozenset()) == told
    assert not holds_hosting(cut)


@pytest.mark.parametrize("spelled", ['{"rn":"\\u0065f:x"}', '{"\\u006bey":"cb\\/k"}', ' {"rn" : "ef:x"}'])
def test_another_spelling_hides_nothing(spelled: str) -> None:
    cut = without({"type": "react.tool.result", "path": RESULT, "text": spelled}, ALL)
    assert orjson.loads(cut["text"]) == {}


@pytest.mark.parametrize(
    "block",
    [
        {"type": "react.tool.result", "path": "fi:turn_1.files/a.json", "text": '{"rn":"ef:x","key":"cb/k"}'},
        {"type": "user.prompt", "path": "ar:turn_1.user.prompt", "text": '{"rn":"ef:x"}'},
        {"type": "react.tool.result", "path": RESULT, "text": Verbatim('{"rn":"ef:x"}')},
        {"type": "react.tool.result", "path": RESULT, "text": "{rn: ef:x}"},
    ],
)
def test_what_is_nobodys_call_is_content(block: dict[str, str]) -> None:
    assert without(block, ALL) == block
