"""Large messages: counted before they are parsed."""

from __future__ import annotations

import gc
import json
import time
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sidecar.server.parsing import TooManyValues, has_more_values, parse
from tests.server.joined import Workbench, framed, join, service

TRICKY = st.text(alphabet='a",[{}]\\:\n', max_size=12)
JSON = st.recursive(
    st.none() | st.integers() | TRICKY,
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(TRICKY, inner, max_size=5),
    max_leaves=30,
)


def structure(value: Any) -> int:
    """Commas and opening brackets outside of texts, counted on the value itself."""
    match value:
        case dict() | list():
            inner = value.values() if isinstance(value, dict) else value
            return 1 + max(0, len(value) - 1) + sum(map(structure, inner))
        case _:
            return 0


def texts(value: Any) -> int:
    match value:
        case dict():
            return len(value) + sum(map(texts, value.values()))
        case list():
            return sum(map(texts, value))
        case _:
            return isinstance(value, str)


@given(JSON)
def test_what_stands_in_texts_is_not_counted(value: Any) -> None:
    body, count = json.dumps(value).encode(), structure(value)
    assert not has_more_values(body, max(count, texts(value)))
    assert count == 0 or has_more_values(body, count - 1)


@given(JSON, st.integers(1, 9))
def test_values_are_counted_in_pieces_as_in_the_whole(value: Any, piece: int) -> None:
    body = json.dumps(value).encode()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("sidecar.server.parsing.COUNTED_AT_ONCE", piece)
        count = structure(value)
        assert not has_more_values(body, max(count, texts(value)))
        assert count == 0 or has_more_values(body, count - 1)


@pytest.mark.parametrize("unit", [b"[],", b"{},", b"0,", b'"",', b'{"a":1},', b'"\\\\",'])
def test_a_message_of_very_many_values_is_refused_quickly(unit: bytes) -> None:
    body = b"[" + unit * (8_000_000 // len(unit)) + b"0]"
    began = time.thread_time()
    with pytest.raises(TooManyValues):
        parse(body, 100_000)
    assert time.thread_time() - began < 1


@pytest.mark.parametrize("text", ["x" * 2_000_000, "a,[{" * 500_000, '","' * 100_000, "\\" * 99_999])
def test_a_message_with_a_long_text_is_parsed(text: str) -> None:
    assert parse(json.dumps({"text": text}).encode(), 1000) == {"text": text}


def test_the_collector_rests_while_a_message_is_parsed() -> None:
    body, collections = b"[" + b"[]," * 100_000 + b"0]", []
    gc.callbacks.append(lambda phase, info: collections.append(phase))
    try:
        parsed = parse(body, 1_000_000)
    finally:
        gc.callbacks.pop()
    assert len(parsed) == 100_001  # type: ignore[arg-type]
    assert collections.count("start") <= 1  # with the collector it is a hundred


def test_the_collector_works_again_afterwards() -> None:
    with pytest.raises(orjson.JSONDecodeError):
        parse(b"[" * 10, 100)
    assert gc.isenabled()
    gc.disable()
    parse(b"[]", 100)
    enabled = gc.isenabled()
    gc.enable()
    assert not enabled


async def test_over_the_wire_such_a_message_ends_its_own_connection() -> None:
    made = service(Workbench(), message_values=10_000)
    attacker, other = await join(made), await join(made)
    await attacker.initialize()
    await other.initialize()
    attacker.ask(1, "test/echo")
    attacker.send_bytes(framed(b'{"jsonrpc":"2.0","id":2,"method":"test/echo","params":[' + b"[]," * 500_000 + b"0]}"))
    attacker.ask(3, "test/echo")
    said = await attacker.closed()
    assert [message["id"] for message in said] == [1, None]
    assert "values" in said[1]["error"]["message"]
    assert "result" in await other.call(1, "test/echo")
    await other.drop()
