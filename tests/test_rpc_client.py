"""The tests' own client notices what it must: unread messages, second answers, silence."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Iterator

import pytest

from tests.rpc_client import Client, HungUpError, RpcError, UnreadError, frame, unframe

Pair = tuple[Client, socket.socket]


@pytest.fixture
def pair() -> Iterator[Pair]:
    ours, theirs = socket.socketpair()
    client = Client.over(ours)
    client.ceiling = 0.5
    yield client, theirs
    client.drop()
    theirs.close()


def say(theirs: socket.socket, *messages: object) -> None:
    theirs.sendall(b"".join(map(frame, messages)))


def answer(id_: int, **answer: object) -> dict[str, object]:
    return {"jsonrpc": "2.0", "id": id_, **answer}


def test_frames_are_read_however_they_arrive() -> None:
    whole = frame({"a": "é"}) + frame({"b": 2})
    buffer, read = bytearray(), []
    for byte in whole:
        buffer.append(byte)
        if (message := unframe(buffer)) is not None:
            read.append(message)
    assert read == [{"a": "é"}, {"b": 2}]


def test_answers_are_matched_by_id_in_any_order(pair: Pair) -> None:
    client, theirs = pair
    first, second = client.ask("a"), client.ask("b")
    say(theirs, answer(second, result="B"), answer(first, result="A"))
    assert (client.answer(first), client.answer(second)) == ("A", "B")


def test_an_error_is_raised_with_its_kind(pair: Pair) -> None:
    client, theirs = pair
    say(theirs, answer(1, error={"code": -32803, "message": "no", "data": {"kind": "not_found"}}))
    with pytest.raises(RpcError) as caught:
        client.call("a")
    assert caught.value.kind == "not_found"


def test_an_unread_message_fails_the_close(pair: Pair) -> None:
    client, theirs = pair
    say(theirs, {"jsonrpc": "2.0", "method": "sources/added", "params": {}}, answer(1, result=None))
    with pytest.raises(UnreadError, match="sources/added"):
        client.close()


def test_a_second_answer_fails_at_once(pair: Pair) -> None:
    client, theirs = pair
    say(theirs, answer(1, result=1), answer(1, result=1), answer(2, result=2))
    client.ask("a")
    with pytest.raises(AssertionError, match="second answer"):
        client.call("b")


def test_an_answer_to_nobody_is_raised_where_one_is_waited_for(pair: Pair) -> None:
    client, theirs = pair
    say(theirs, {"jsonrpc": "2.0", "id": None, "error": {"code": -32700, "message": "no JSON"}})
    with pytest.raises(RpcError, match="32700"):
        client.call("a")


def test_silence_ends_at_the_ceiling(pair: Pair) -> None:
    client, _ = pair
    with pytest.raises(TimeoutError):
        client.call("a")


def test_the_end_of_the_connection_is_told_from_silence(pair: Pair) -> None:
    client, theirs = pair
    theirs.close()
    with pytest.raises(HungUpError):
        client.call("a")


def test_what_is_sent_is_what_the_protocol_asks_for(pair: Pair) -> None:
    client, theirs = pair

    def serve() -> None:
        buffer = bytearray()
        while (message := unframe(buffer)) is None:
            buffer.extend(theirs.recv(4096))
        say(theirs, answer(message["id"], result=message))

    thread = threading.Thread(target=serve)
    thread.start()
    assert json.loads(json.dumps(client.call("a", {"x": 1}))) == answer(1, method="a", params={"x": 1})
    thread.join()
