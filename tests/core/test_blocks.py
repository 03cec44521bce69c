"""A block is checked once, keeps every key, and leaves a head that says all the index needs."""

from __future__ import annotations

import hashlib
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sidecar.core.blocks import (
    CALL,
    FLAGS,
    HIDDEN,
    HOSTING,
    INTERNAL,
    LEVELS,
    MIME,
    PATH,
    SHOWN,
    TS,
    TURN,
    Defaults,
    Told,
    digest_in,
    encode_head,
    holds_hosting,
    is_shallow,
    iso,
    moment_of,
    tell,
)
from sidecar.core.errors import BadPath, Refusal, TooLarge, UnsafePath

OPEN_TURN = Defaults("turn_9", 1000.0)
FILE = "fi:turn_1.files/a.md"


def told(**block: Any) -> Told:
    return tell({"type": "note", **block}, OPEN_TURN)


def whole(one: Told) -> dict[str, Any]:
    return orjson.loads(one.body)


def nested(levels: int) -> Any:
    value: Any = 1
    for _ in range(levels):
        value = [value]
    return value


@pytest.mark.rule("blocks.every-key-is-kept")
def test_every_key_is_kept() -> None:
    block = {"call_id": "tc_1", "tool_id": "t", "x": {"y": [1, None]}, "iteration": 3, "meta": {"lang": "py"}}
    kept = whole(told(**block))
    assert {key: kept[key] for key in block if key != "meta"} == {k: v for k, v in block.items() if k != "meta"}
    assert kept["meta"]["lang"] == "py"


@pytest.mark.rule("blocks.carry-turn-author-type-and-path")
def test_what_a_block_does_not_say_is_filled_in() -> None:
    assert whole(told()) == {
        "type": "note",
        "author": "agent",
        "turn_id": "turn_9",
        "ts": "1970-01-01T00:16:40Z",
        "mime": "text/markdown",
        "meta": {"turn_id": "turn_9"},
    }


def test_telling_changes_nothing_in_what_was_told() -> None:
    block: dict[str, Any] = {"type": "note", "hidden": True, "meta": {"a": 1}}
    tell(block, OPEN_TURN)
    assert block == {"type": "note", "hidden": True, "meta": {"a": 1}}


@pytest.mark.parametrize(
    ("block", "turn"),
    [
        ({"turn_id": "turn_1", "turn": "turn_2", "meta": {"turn_id": "turn_3"}}, "turn_1"),
        ({"turn": "turn_2", "meta": {"turn_id": "turn_3"}}, "turn_2"),
        ({"meta": {"turn_id": "turn_3"}}, "turn_3"),
        ({}, "turn_9"),
    ],
)
def test_the_turn_is_taken_from_where_older_writers_put_it(block: dict[str, Any], turn: str) -> None:
    assert told(**block).head[TURN] == turn


@pytest.mark.rule("blocks.time-comes-as-text-or-number", "blocks.time-is-printed-as-iso-utc")
@pytest.mark.parametrize(
    ("ts", "printed", "moment"),
    [
        ("2026-02-18T09:00:00Z", "2026-02-18T09:00:00Z", 1771405200.0),
        ("2026-02-18T09:00:00+01:00", "2026-02-18T08:00:00Z", 1771401600.0),
        ("2026-02-18T09:00:00", "2026-02-18T09:00:00Z", 1771405200.0),
        ("2026-02-18T09:00:00.25Z", "2026-02-18T09:00:00.25Z", 1771405200.25),
        ("2026-02-18", "2026-02-18T00:00:00Z", 1771372800.0),
        (1771408921.25, "2026-02-18T10:02:01.250Z", 1771408921.25),
        (1771408921.000125, "2026-02-18T10:02:01.000125Z", 1771408921.000125),
        (1771405200, "2026-02-18T09:00:00Z", 1771405200.0),
        (0, "1970-01-01T00:00:00Z", 0.0),
        (None, "1970-01-01T00:16:40Z", 1000.0),
        ("", "1970-01-01T00:16:40Z", 1000.0),
    ],
)
def test_a_time_comes_in_many_spellings_and_is_printed_in_one(ts: Any, printed: str, moment: float) -> None:
    one = told(ts=ts)
    assert (whole(one)["ts"], one.head[TS]) == (printed, moment)


@pytest.mark.parametrize("ts", ["yesterday", "-1Z", -1, 253_402_300_800, float("nan"), True, [], {"at": 1}])
def test_what_is_no_time_is_refused_by_the_name_of_the_field(ts: Any) -> None:
    with pytest.raises(BadPath) as refused:
        moment_of(ts)
    assert refused.value.about == "ts"


@given(st.floats(min_value=0, max_value=253_402_300_799))
def test_printing_a_time_and_reading_it_again_loses_less_than_a_microsecond(moment: float) -> None:
    assert moment_of(iso(moment)) == pytest.approx(moment, rel=1e-12, abs=1e-6)


@pytest.mark.rule("blocks.hidden-is-read-in-both-places")
@pytest.mark.parametrize(
    ("block", "meta"),
    [
        ({"hidden": True, "replacement_text": "r"}, {"hidden": True, "replacement_text": "r"}),
        ({"meta": {"hidden": True, "replacement_text": "r"}}, {"hidden": True, "replacement_text": "r"}),
        ({"hidden": True, "meta": {"hidden": False}}, {"hidden": True}),
        ({"hidden": False}, {}),
        ({"replacement_text": "top", "meta": {"replacement_text": "inner"}}, {"replacement_text": "inner"}),
    ],
)
def test_hidden_is_read_in_both_places_and_written_in_meta(block: dict[str, Any], meta: dict[str, Any]) -> None:
    one = told(**block)
    assert whole(one)["meta"] == {**meta, "turn_id": "turn_9"}
    assert not whole(one).keys() & {"hidden", "replacement_text"}
    assert bool(one.head[FLAGS] & HIDDEN) == bool(meta.get("hidden"))


def test_a_copy_that_a_read_showed_is_marked() -> None:
    assert told(meta={"rel": "read"}).head[FLAGS] == SHOWN


def test_a_file_does_not_describe_itself() -> None:
    text = orjson.dumps({"artifact_path": FILE, "visibility": "external", "sha256": "x"}).decode()
    block = {"type": "react.tool.result", "mime": "application/json", "path": FILE, "text": text}
    assert digest_in(block) is not None
    assert digest_in({**block, "meta": {"digest": "{}"}}) is None


def test_a_block_may_say_itself_that_it_is_internal() -> None:
    assert told(text="words", meta={"visibility": "internal"}).head[FLAGS] == INTERNAL
    call = told(type="react.tool.call", text='{"tool_id": "t"}', meta={"visibility": "internal"})
    assert call.head[FLAGS] == INTERNAL
    assert told(text="words", meta={"visibility": "external"}).head[FLAGS] == 0


@pytest.mark.parametrize(
    ("path", "canonical"),
    [
        ("fi:turn_1.attachments/x.pdf", "fi:turn_1.user.attachments/x.pdf"),
        ("fi:./logs/x", "fi:logs/x"),
        ("turn_1/files/a.txt", "fi:turn_1.files/a.txt"),
        ("ar:turn_1.react.plan.plan:turn_1:0a", "ar:turn_1.react.plan.plan:turn_1:0a"),
        ("", ""),
        (None, ""),
    ],
)
def test_a_path_is_kept_in_its_one_form(path: str | None, canonical: str) -> None:
    one = told(path=path)
    assert one.head[PATH] == canonical
    assert (whole(one).get("path") or "") == canonical


@pytest.mark.parametrize(
    ("block", "refusal"),
    [
        ({"path": "xx:turn_1.a"}, BadPath),
        ({"path": "../a"}, UnsafePath),
        ({"path": 5}, BadPath),
        ({"path": "fi:turn_1.files/../a"}, UnsafePath),
        ({"turn_id": "a.b"}, BadPath),
        ({"turn_id": 5}, BadPath),
        ({"turn_id": "logs"}, BadPath),
        ({"mime": 5}, BadPath),
        ({"type": 5}, BadPath),
        ({"path": FILE, "base64": "no base64"}, BadPath),
        ({"path": FILE, "base64": "no b\u00e4se64"}, BadPath),
        ({"meta": {"deep": nested(1000)}}, TooLarge),
        ({"deep": nested(LEVELS)}, TooLarge),
    ],
)
def test_what_cannot_be_kept_is_refused(block: dict[str, Any], refusal: type[Refusal]) -> None:
    with pytest.raises(refusal):
        told(**block)


def test_no_turn_at_all_is_refused() -> None:
    with pytest.raises(BadPath):
        tell({"type": "note"}, Defaults("", 0.0))


@pytest.mark.parametrize(
    ("block", "call"),
    [
        ({"meta": {"tool_call_id": "tc_1"}, "call_id": "tc_2"}, "tc_1"),
        ({"tool_call_id": "tc_2", "call_id": "tc_3"}, "tc_2"),
        ({"call_id": "tc_3"}, "tc_3"),
        ({"path": "tc:turn_1.tc_4.notice"}, "tc_4"),
        ({"type": "react.tool.call", "text": '{"tool_call_id":"tc_5","tool_id":"t"}'}, "tc_5"),
        ({"type": "react.tool.call", "text": "no JSON", "path": "tc:turn_1.tc_6.call"}, "tc_6"),
        ({"meta": {"tool_call_id": "not a call"}}, ""),
        ({}, ""),
    ],
)
def test_the_call_of_a_block_is_found(block: dict[str, Any], call: str) -> None:
    assert told(**block).head[CALL] == call


def test_a_tool_call_says_its_tool() -> None:
    assert told(type="react.tool.call", text='{"tool_id":"react.write"}').part == {"tool": "react.write"}
    assert told(type="react.tool.call", meta={"tool_id": "t"}, text="free text").part == {"tool": "t"}


DIGEST = '{"artifact_path":"%s","mime":"text/markdown"}'


@pytest.mark.rule("discovery.metadata-block-is-canonical")
@pytest.mark.parametrize(
    ("block", "at"),
    [
        ({"type": "react.tool.result", "mime": "application/json", "text": DIGEST % FILE}, FILE),
        (
            {
                "type": "react.tool.result",
                "mime": "application/json",
                "path": "tc:turn_1.tc_1.result",
                "text": DIGEST % "turn_1/files/a.md",
            },
            FILE,
        ),
        ({"type": "react.tool.result", "mime": "application/json", "path": FILE, "text": DIGEST % FILE}, FILE),
        (
            {"type": "user.attachment.meta", "mime": "application/json", "path": FILE, "text": '{"mime":"a/b"}'},
            FILE,
        ),
        ({"type": "user.attachment.meta", "path": FILE, "text": '{"mime":"a/b"}'}, FILE),
    ],
)
def test_a_metadata_block_describes_its_artifact(block: dict[str, Any], at: str) -> None:
    part = tell(block, OPEN_TURN).part
    assert part is not None
    assert part["at"] == at
    assert "digest" in part


@pytest.mark.parametrize(
    "block",
    [
        {"type": "react.tool.result", "mime": "text/plain", "text": DIGEST % FILE},
        {"type": "react.tool.result", "mime": "application/json", "text": "[1]"},
        {"type": "react.tool.result", "mime": "application/json", "text": '{"broken'},
        {"type": "react.tool.result", "mime": "application/json", "text": DIGEST % "../x"},
        {"type": "react.tool.result", "mime": "application/json", "text": DIGEST % "ar:turn_1.user.prompt"},
        # A generic file whose name reads as a turn's has no logical path, so nothing can be told of it.
        {"type": "react.tool.result", "mime": "application/json", "text": DIGEST % "turn_1.files/x"},
        {"type": "react.tool.result", "mime": "application/json", "text": '{"artifact_path":7}'},
        {"type": "user.attachment.meta", "path": FILE, "text": "no JSON at all"},
        {"type": "user.prompt", "path": "ar:turn_1.user.prompt", "text": "hello"},
    ],
)
def test_other_blocks_say_nothing_of_an_artifact(block: dict[str, Any]) -> None:
    assert tell(block, OPEN_TURN).part is None


def test_a_json_file_that_speaks_of_another_artifact_is_content() -> None:
    """Otherwise whoever writes a file could describe somebody else's."""
    text = DIGEST % "fi:turn_1.files/other.md"
    block = {"type": "react.tool.result", "mime": "application/json", "path": FILE, "text": text}
    assert digest_in(block) is None
    part = tell(block, OPEN_TURN).part
    assert part is not None
    assert part["at"] == FILE
    assert part["content"]["holds"] == "text"


def test_a_content_block_is_hashed_once_when_it_is_told() -> None:
    part = told(path=FILE, text="héllo", mime="text/plain", meta={"kind": "file", "digest": '{"description":"d"}'}).part
    assert part == {
        "at": FILE,
        "content": {
            "kind": "file",
            "mime": "text/plain",
            "attachment": False,
            "digest": {"description": "d"},
            "sha256": hashlib.sha256("héllo".encode()).hexdigest(),
            "size_bytes": 6,
            "holds": "text",
        },
    }


@pytest.mark.parametrize(
    "value",
    [
        {"rn": "ef:x"},
        {"a": [{"b": {"key": "k"}}]},
        {"text": '{"artifact_path":"fi:x","hosted_uri":"s3://b/k"}'},
        {"text": '{"rows":[{"sid":1,"key":"k"}]}'},
        {"text": '{"said":"{\\"artifact_path\\":\\"fi:x\\",\\"rn\\":\\"ef:x\\"}"}'},
        {"text": '"{\\"artifact_path\\":\\"fi:x\\",\\"rn\\":\\"ef:x\\"}"'},
        {"text": '{"artifact_path":"fi:x","hosted\\u005furi":"s3://b/k"}'},
    ],
)
def test_hosting_fields_are_found_at_any_depth(value: Any) -> None:
    assert holds_hosting(value)
    assert told(x=value).head[FLAGS] & HOSTING


@pytest.mark.parametrize(
    "value",
    [
        {"hosted_uri": None, "rn": "", "text": "the key to it"},
        {"text": '{"key":"C major","name":"my own file"}'},
        {"text": '{"artifact_path":"fi:x"}'},
        {"text": '{"artifact_path":"fi:x","key":'},
        [],
    ],
)
def test_what_only_looks_like_hosting_is_none(value: Any) -> None:
    assert not holds_hosting(value)


def test_json_however_deep_is_looked_through_without_falling() -> None:
    text = '{"artifact_path":' + "[" * 900 + "]" * 900 + ',"rn":"ef:x"}'
    assert holds_hosting({"text": text})
    assert holds_hosting([nested(5000), {"rn": "ef:x"}])


@pytest.mark.parametrize(("texts", "found"), [(0, True), (3, True), (12, False)])
def test_texts_in_texts_come_to_an_end(texts: int, found: bool) -> None:
    text = '{"artifact_path":"fi:x","rn":"ef:x"}'
    for _ in range(texts):
        text = orjson.dumps({"sid": 1, "said": text}).decode()
    assert holds_hosting({"text": text}) is found


@pytest.mark.parametrize(("levels", "shallow"), [(0, True), (LEVELS - 1, True), (LEVELS, False), (5000, False)])
def test_json_nests_only_so_deep(levels: int, shallow: bool) -> None:
    assert is_shallow(nested(levels)) is shallow


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(codec="utf-8"), max_size=20),
    lambda inner: st.lists(inner, max_size=4)
    | st.dictionaries(st.text(st.characters(codec="utf-8")), inner, max_size=4),
    max_leaves=12,
)  # fmt: skip
OWN = frozenset({"type", "author", "turn_id", "ts", "mime", "path", "meta", "hidden", "replacement_text", "turn"})


@pytest.mark.rule("blocks.every-key-is-kept", "blocks.unknown-types-are-kept")
@given(st.dictionaries(st.text(st.characters(codec="utf-8"), min_size=1), JSON, max_size=6))
def test_unknown_keys_come_back_as_they_were_told(extra: dict[str, Any]) -> None:
    strange = {key: value for key, value in extra.items() if key not in OWN}
    kept = whole(tell({**strange, "type": "note"}, OPEN_TURN))
    assert {key: kept[key] for key in strange} == orjson.loads(orjson.dumps(strange))


@given(st.sampled_from([None, FILE, "ar:turn_1.x", "tc:turn_1.tc_1.result"]), st.text(st.characters(codec="utf-8")))
def test_the_stored_head_is_the_live_one(path: str | None, text: str) -> None:
    one = told(path=path, text=text, meta={"tool_call_id": "tc_1"})
    stored = orjson.loads(encode_head(one))
    assert stored == [*one.head, *([one.part] if one.part else [])]
    assert one.head[MIME] == "text/markdown"
