"""The only way out: JSON, cut to the role."""

from __future__ import annotations

import orjson
import pytest

from sidecar.core.hosting import Verbatim
from sidecar.pieces import Pieces
from sidecar.server.wire import ITEMS_AT_ONCE, LongList, cut_block, encode, encode_in_pieces

HOSTED = {"hosted_uri": "s3://b/k", "rn": "ef:1", "key": "cb/k", "title": "t"}


@pytest.mark.parametrize(
    ("role", "kept"),
    [("runtime", {"hosted_uri", "rn", "key"}), ("renderer", {"rn"}), ("editor", {"rn"}), ("exec", set[str]())],
)
@pytest.mark.parametrize("around", [lambda row: row, lambda row: [{"meta": row}], lambda row: {"a": ({"b": [row]},)}])
def test_fields_are_cut_at_any_depth(role: str, kept: set[str], around: object) -> None:
    body = encode(around(HOSTED), role)
    assert {field for field in ("hosted_uri", "rn", "key") if f'"{field}"'.encode() in body} == kept


@pytest.mark.parametrize(
    "text",
    [
        orjson.dumps({"artifact_path": "fi:a", **HOSTED}).decode(),
        ' {"physical_path": "a", "\\u006bey": "cb/k"}',
        orjson.dumps({"meta": {"digest": orjson.dumps({"sid": 1, **HOSTED}).decode(), "artifact_path": "x"}}).decode(),
    ],
)
def test_json_held_in_text_is_cut_when_it_describes_something(text: str) -> None:
    cut = orjson.loads(encode({"text": text}, "exec"))["text"]
    assert not {"hosted_uri", "rn", "key"} & _fields(orjson.loads(cut))


def _fields(value: object) -> set[str]:
    match value:
        case dict():
            return set(value) | {field for item in value.values() for field in _fields(item)}
        case list():
            return {field for item in value for field in _fields(item)}
        case str() if value.startswith("{"):
            return _fields(orjson.loads(value))
        case _:
            return set()


@pytest.mark.parametrize("text", ['{"key": 1}', '{"rows": [{"rn": 2}]}', "key: value", '{"key": '])
def test_a_users_own_json_is_left_alone(text: str) -> None:
    assert orjson.loads(encode({"text": text}, "exec"))["text"] == text


def test_a_files_own_text_is_never_cut() -> None:
    text = orjson.dumps({"artifact_path": "x", **HOSTED}).decode()
    assert orjson.loads(encode({"text": Verbatim(text), "row": HOSTED}, "exec")) == {
        "text": text,
        "row": {"title": "t"},
    }


def test_a_block_is_cut_before_it_is_spliced() -> None:
    body = orjson.dumps({"text": "x", "meta": HOSTED})
    assert cut_block(body, "runtime") == body
    assert orjson.loads(cut_block(body, "editor"))["meta"].keys() == {"rn", "title"}


@pytest.mark.parametrize("role", ["runtime", "exec"])
def test_pieces_go_out_as_they_are_and_what_is_around_them_is_cut(role: str) -> None:
    result = {"one": Pieces([b'"a', b'b"']), "row": HOSTED, "many": [1, Pieces([b"[", b"2]"])]}
    made = encode_in_pieces(result, role)
    assert isinstance(made, list)
    assert [one for one in made if one in (b'"a', b'b"', b"[", b"2]")] == [b'"a', b'b"', b"[", b"2]"]
    assert orjson.loads(b"".join(made)) == {
        "one": "ab",
        "row": HOSTED if role == "runtime" else {"title": "t"},
        "many": [1, [2]],
    }


def test_what_is_no_json_stays_none_beside_pieces() -> None:
    with pytest.raises(TypeError):
        encode_in_pieces({"one": Pieces([b"1"]), "other": object()}, "exec")


@pytest.mark.parametrize("count", [0, 1, ITEMS_AT_ONCE, 2 * ITEMS_AT_ONCE + 1])
def test_a_long_list_is_the_list_cut_to_the_role(count: int) -> None:
    made = LongList("exec")
    for number in range(count):
        made.add({**HOSTED, "n": number})
    assert made.count == count
    assert orjson.loads(b"".join(made.whole().pieces)) == [{"title": "t", "n": number} for number in range(count)]
