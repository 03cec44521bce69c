"""The outside of messages, as the door reads it without parsing and as the daemon parses it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from unittest.mock import patch

import orjson

from sidecar.server import envelopes, parsing
from tests.fuzzing.draw import Draw
from tests.fuzzing.target import Target, worded

SMALL = 48  # bytes above which the door reads a message as it reads large ones, here
DEEP = 200  # levels above which one of two parsers may give up before the other


def check(data: bytes) -> None:
    draw = Draw(data)
    is_large, most = draw.flag(), 1 + draw.number(20)
    body = draw.rest()
    theirs = parsed(body)
    counted(body, theirs, most)
    with patch.object(envelopes, "LARGE_BYTES", SMALL if is_large else envelopes.LARGE_BYTES):
        seen = envelopes.members(body)
    if isinstance(theirs, dict):
        assert seen.get("method") == theirs.get("method")
        assert envelopes.number_of(seen) == envelopes.checked(theirs.get("id"))
    told(draw)


def parsed(body: bytes) -> object:
    """What the daemon reads in it; None also for what is no JSON, and for what is nested too deep to be compared."""
    if body.count(b"[") + body.count(b"{") > DEEP:
        return None
    try:
        return orjson.loads(body)
    except orjson.JSONDecodeError:
        return None


def counted(body: bytes, value: object, most: int) -> None:
    """Values are counted as they stand between the texts, without parsing."""
    if value is None:
        parsing.has_more_values(body, most)
        return
    separators = 0
    inside = escaped = False
    for byte in body:
        if inside:
            escaped, inside = byte == ord("\\") and not escaped, byte != ord('"') or escaped
        elif byte == ord('"'):
            inside = True
        else:
            separators += byte in b",[{"
    assert parsing.has_more_values(body, most) == (separators > most)
    with patch.object(envelopes, "MOST_VALUES", most):
        assert envelopes._has_too_many_values(body) == (separators > most)
    if separators <= most:
        assert values_in(value) <= most + 1
        assert parsing.parse(body, most) == value


def values_in(value: Any) -> int:
    inner = list(value.values()) if isinstance(value, dict) else value if isinstance(value, list) else []
    return 1 + sum(map(values_in, inner))


def told(draw: Draw) -> None:
    """What the daemon says is known by its kind and its id, wherever in a stream it stands."""
    number, value = (parsed(text.encode("utf-8", "replace")) for text in draw.texts(2))
    if not isinstance(number, int | str) or isinstance(number, bool) or envelopes.checked(number) is None:
        number = 7
    for kind, message in (
        (envelopes.RESULT, {"id": number, "result": value}),
        (envelopes.REFUSAL, {"id": number, "error": value}),
        (envelopes.NOTE, {"method": "a/b", "params": value}),
        (envelopes.QUESTION, {"id": number, "method": "a/b", "params": value}),
    ):
        body = orjson.dumps({"jsonrpc": "2.0", **message})
        expected = None if kind == envelopes.NOTE else number
        assert envelopes.told(b"x" + body + b'"result":', 1, 1 + len(body)) == (kind, expected)
    assert orjson.loads(envelopes.written(number)) == number
    words = draw.text().encode("utf-8", "replace").decode()
    whole = envelopes.refusal(number, "bad_path", words, about=words, hint="")
    answer = orjson.loads(whole.partition(b"\r\n\r\n")[2])
    assert (answer["id"], answer["error"]["message"], answer["error"]["data"]["about"]) == (number, words, words)


def seeds() -> Iterator[bytes]:
    for text in (
        '{"jsonrpc":"2.0","id":1,"method":"artifact/read","params":{"path":"fi:turn_1.files/a","id":2,"method":"x"}}',
        '{"params":{"a":[1,2,{"id":3}],"t":"\\"id\\":4"},"method":"a","id":"x"}',
        '{"id":1,"id":2,"\\u0069d":3,"method":"a","params":[],"method":"b","x":"yyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyy"}',
        '{"jsonrpc":"2.0","id":18446744073709551616,"result":{"revision":3}}', '{"id":1.0}', '{"id":-0}', '{"id":""}',
        ' {"id": null , "method" : "a"}\n', '[{"id":1}]', '{"a":"\\\\","b":"\\\\\\"","c":[[],[{}],","]}', '"a,b"',
        '"x"\xff{"result":1}', '12\xff[1,2,"\\"result\\":"]',
    ):  # fmt: skip
        yield text.encode("latin-1") + b"\5\1"


TARGET = Target(
    "envelopes",
    "the door finds the method and the id that the daemon parses, members in any order and twice; values are counted"
    " right without parsing; what is told is known by its kind",
    check,
    (*worded(
        '{ } [ ] , : " \\ \\" \\\\ \\u0069d \\ud800 "id" "method" "params" "result" "error" "jsonrpc":"2.0", "id":1,'
        ' null true 1.0 -0 1e400 NaN 18446744073709551615 -9223372036854775809 "x" "" {"id": {"params":{ }} },',
        '"params":[',
        " ", "\n", "\t", "\0", "\x7f",
    ), b"\xff"),
    seeds,
    longest=700,
)  # fmt: skip
