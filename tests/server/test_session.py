"""What a door remembers: requests under way, the greeting, documents, half streams, questions."""

from __future__ import annotations

import json
from typing import Any

import pytest

from protocol.errors import REQUEST_FAILED, Refused
from protocol.methods import REQUESTS
from sidecar.server import session
from sidecar.server.envelopes import NOTE, QUESTION, REFUSAL, RESULT, frame
from sidecar.server.session import Flight, Session
from tests.rpc_client import unframe


def messages(data: bytes) -> list[dict[str, Any]]:
    buffer, found = bytearray(data), []
    while (message := unframe(buffer)) is not None:
        found.append(message)
    assert buffer == b""
    return found


def greeted(**options: Any) -> Session:
    known = Session()
    known.begin_life()
    known.greet(1, {"params": {"initializationOptions": options}}, b"hello")
    known.be_greeted(accepted=True)
    return known


def send(known: Session, method: str, params: dict[str, Any]) -> bytes:
    """Send one message; its frame."""
    message = {"method": method, "params": params}
    sent = frame(json.dumps(message).encode())
    known.note(method, message, sent)
    return sent


# Requests under way


def test_what_was_answered_is_not_failed_and_the_rest_is_in_order() -> None:
    flight = Flight()
    flight.begin([(0, 1, "a"), (0, "two", "b"), (0, None, "a notification"), (0, 3, "c"), (0, -4, "d")])
    flight.end([3, 99, None])
    flight.take_back([(0, 1, "a"), (0, None, "x")])
    failed = [(told["id"], told["error"]["data"]["about"]) for told in messages(flight.fail())]
    assert failed == [("two", "b"), (-4, "d")]
    assert flight.fail() == b""


def test_two_requests_under_one_id_get_two_answers() -> None:
    flight = Flight()
    flight.begin([(0, 1, "a"), (0, 1, "b"), (0, 1, "c")])
    flight.end([1])
    assert [told["error"]["data"]["about"] for told in messages(flight.fail())] == ["a", "b"]


def test_ids_of_other_types_are_other_ids() -> None:
    flight = Flight()
    flight.begin([(0, 1, "a"), (0, "1", "b")])
    flight.end(["1"])
    assert [told["id"] for told in messages(flight.fail())] == [1]


def test_requests_that_nobody_can_answer_do_not_pile_up() -> None:
    flight = Flight()
    flight.begin([(0, number, "a") for number in range(session.FLIGHT + 5)])
    assert len(messages(flight.fail())) == session.FLIGHT


def test_a_failed_request_is_refused_in_the_protocols_words() -> None:
    (told,) = messages(session.failed("x", "timeline/append"))
    assert told["error"]["code"] == REQUEST_FAILED
    refused = Refused.model_validate(told["error"]["data"])
    assert (refused.kind, refused.about) == ("shutting_down", "timeline/append")
    assert "request_id" in refused.hint


def test_only_what_takes_a_request_id_is_to_be_repeated_with_one() -> None:
    (told,) = messages(session.failed(1, "workspace/sync"))
    hint = told["error"]["data"]["hint"]
    assert "request_id" not in hint
    assert "ask again" in hint
    takes = {method for method, request in REQUESTS.items() if "request_id" in request.params.model_fields}
    assert takes == session.REPEATABLE


def test_a_session_that_was_to_be_shut_down_is() -> None:
    assert messages(session.failed(4, "shutdown")) == [{"jsonrpc": "2.0", "id": 4, "result": None}]


# The greeting


def test_a_greeting_is_repeated_with_what_followed_it() -> None:
    known = greeted(events=["sources"])
    assert (known.hello, known.wants_events, known.awaited) == (b"hello", True, None)
    sent = send(known, "initialized", {})
    known.begin_life()
    assert (known.awaited, known.retelling()) == (1, sent)


@pytest.mark.parametrize("options", [None, [], {}, {"events": []}, {"events": None}])
def test_a_client_that_names_no_events_wants_none(options: object) -> None:
    for params in ({"initializationOptions": options}, options):
        known = Session()
        known.greet(1, {"params": params}, b"hello")
        assert not known.wants_events


def test_a_refused_greeting_is_forgotten() -> None:
    known = Session()
    known.greet(1, {}, b"hello")
    assert known.unanswered_greeting
    known.be_greeted(accepted=False)
    assert (known.hello, known.awaited, known.greeted, known.unanswered_greeting) == (None, None, False, False)
    known.begin_life()
    assert known.awaited is None


def test_a_session_ends_in_two_steps() -> None:
    known = Session()
    known.announce("initialized")
    assert (known.closing, known.over) == (False, False)
    known.announce("shutdown")
    assert (known.closing, known.over) == (True, False)
    known.announce("exit")
    assert known.over


# Documents


def document(uri: object) -> dict[str, Any]:
    return {"textDocument": {"uri": uri}}


def test_open_documents_are_told_again_with_all_their_changes() -> None:
    known = greeted()
    first, second = (send(known, "textDocument/didOpen", document(uri)) for uri in ("file:///a", "file:///b"))
    changes = [send(known, "textDocument/didChange", {**document("file:///a"), "version": n}) for n in range(3)]
    send(known, "textDocument/didChange", document("file:///never opened"))
    send(known, "textDocument/didOpen", document(7))
    assert known.retelling() == b"".join([first, *changes, second])
    send(known, "textDocument/didClose", document("file:///a"))
    assert known.retelling() == second


def test_a_document_that_is_opened_again_begins_anew() -> None:
    known = greeted()
    for version in range(2):
        last = send(known, "textDocument/didOpen", {**document("file:///a"), "version": version})
    assert known.retelling() == last


def test_documents_beyond_the_limit_are_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session, "DOCUMENTS_BYTES", 1000)
    known = greeted()
    small = send(known, "textDocument/didOpen", document("file:///small"))
    send(known, "textDocument/didOpen", document("file:///large"))
    send(known, "textDocument/didChange", {**document("file:///large"), "text": "x" * 1000})
    send(known, "textDocument/didChange", {**document("file:///large"), "text": "y"})
    assert known.retelling() == small
    again = send(known, "textDocument/didOpen", {**document("file:///next"), "text": "x" * 700})
    assert known.retelling() == small + again, "what was given up weighs nothing"


# Half streams


def stream(number: object, **params: Any) -> dict[str, Any]:
    return {"params": {"stream_id": number, "chunk": "[[S:", **params}}


def goes_on(known: Session, number: object, **params: Any) -> bool:
    """Whether the next chunk of a stream may be sent, as it then is."""
    message = stream(number, **params)
    if known.is_cut_off("citations/stream", message):
        return False
    known.note("citations/stream", message, b"")
    return True


def test_a_stream_that_its_daemon_took_with_it_is_refused_once_and_may_begin_again() -> None:
    known = greeted()
    assert goes_on(known, "s")
    assert goes_on(known, "s")
    known.begin_life()
    assert not goes_on(known, "s")
    assert goes_on(known, "s")
    assert goes_on(known, "s")


def test_a_stream_that_was_flushed_or_began_later_goes_on() -> None:
    known = greeted()
    assert goes_on(known, "flushed")
    assert goes_on(known, "flushed", flush=True)
    known.begin_life()
    assert goes_on(known, "flushed")
    assert goes_on(known, "new")
    assert not known.is_cut_off("artifact/fetch", stream("flushed"))
    assert goes_on(known, ["no id"])


def test_streams_do_not_pile_up() -> None:
    known = greeted()
    for number in range(session.STREAMS + 1):
        assert goes_on(known, str(number))
    known.begin_life()
    assert not goes_on(known, "1")
    assert goes_on(known, "0"), "the oldest was forgotten"


def test_the_refusal_of_a_stream_says_what_to_do() -> None:
    (told,) = messages(session.cut_off(1))
    assert told["error"]["data"]["about"] == "citations/stream"
    assert "again" in told["error"]["data"]["hint"]


# The daemon's questions


def test_a_late_answer_to_a_daemon_that_has_ended_is_for_nobody() -> None:
    known = greeted()
    known.hear([(QUESTION, "s:1"), (QUESTION, "s:2")])
    assert not known.answers_nobody("s:2")
    known.begin_life()
    known.hear([(QUESTION, "s:1")])
    assert known.answers_nobody("s:1"), "to the first daemon"
    assert not known.answers_nobody("s:1"), "to the second"
    assert not known.answers_nobody("s:2"), "nobody asked, and that is the daemon's affair"


def test_what_was_heard_settles_requests_and_says_whether_it_was_of_use() -> None:
    known = greeted()
    known.flight.begin([(0, 1, "a"), (0, 2, "b"), (0, 3, "c")])
    assert not known.hear([(NOTE, None), (REFUSAL, 1), (REFUSAL, None)])
    assert known.hear([(RESULT, 2), (REFUSAL, 9)])
    assert [told["id"] for told in messages(known.flight.fail())] == [3]


def test_the_methods_that_the_door_remembers_are_real_ones() -> None:
    ours = {method for method in session.SPECIAL if "/" in method and not method.startswith("textDocument/")}
    assert ours == {"citations/stream"}
    assert ours <= set(REQUESTS)
