"""One client's requests: exactly one answer each, whatever is asked and however it ends.

The rows of `ABUSE` are what a stock server of the library we build on answers wrongly, late or not at all.
"""

from __future__ import annotations

import asyncio
import gc
import json
import logging
import sys
import threading
from typing import Any

import orjson
import pytest
from pydantic import ConfigDict

from sidecar.core.errors import NotFound, Stale
from sidecar.server.caller import Caller, Later
from sidecar.server.parsing import LARGE_BYTES, TooManyValues, parse
from tests.server.joined import CEILING, Remote, Row, Text, Workbench, framed, join, service, until

HOVER = {"textDocument": {"uri": "file:///a"}, "position": {"line": "x"}}
NESTED = {"jsonrpc": "2.0", "id": 1, "method": "test/echo", "params": {"jsonrpc": "1.0"}}
ODD = {"type_name": "bad name!", "a-b": 1, "class": {"jsonrpc": "2.0", "id": 3}, "_0": None, "": [{"x": {}}]}


def request(number: object = 1, method: object = "test/echo", **more: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": number, "method": method, **more}


def without(message: dict[str, Any], key: str) -> dict[str, Any]:
    return {k: v for k, v in message.items() if k != key}


# stimulus, the message after `initialize`, the id of the answer, its error number or None
ABUSE: list[tuple[str, object, object, int | None]] = [
    ("malformed JSON", b"{", None, -32700),
    ("an empty body", b"", None, -32700),
    ("bad UTF-8", b'{"jsonrpc":"2.0","id":1,"method":"\xff"}', None, -32700),
    ("not a number in JSON", b'{"jsonrpc":"2.0","id":NaN,"method":"test/echo"}', None, -32700),
    ("nested too deep", b"[" * 5000, None, -32700),
    ("a bare number", b"5", None, -32600),
    ("a batch", [request()], None, -32600),
    ("an empty batch", [], None, -32600),
    ("jsonrpc missing", without(request(), "jsonrpc"), 1, -32600),
    ("jsonrpc 1.0", request() | {"jsonrpc": "1.0"}, 1, -32600),
    ("jsonrpc missing and no good id", {"id": {}, "method": "x"}, None, -32600),
    ("neither method nor result", {"jsonrpc": "2.0", "id": 4}, 4, -32600),
    ("a method that is a number", request(method=5), 1, -32600),
    ("a method that is null", request(method=None), 1, -32600),
    ("id null", request(None), None, -32600),
    ("id float", request(1.5), None, -32600),
    ("id empty", request(""), None, -32600),
    ("id true", request(True), None, -32600),
    ("id list", request([1]), None, -32600),
    ("id beyond 64 bits", request(2**70), None, -32600),
    ("id zero", request(0), 0, None),
    ("id negative", request(-7), -7, None),
    ("id text", request("a\u00e9\n"), "a\u00e9\n", None),
    ("invalid params of an LSP request", request(method="workspace/executeCommand", params={}), 1, -32602),
    ("an unknown command", request(method="workspace/executeCommand", params={"command": "x"}), 1, -32602),
    ("no params", request(), 1, None),
    ("params null", request(params=None), 1, None),
    ("params a list", request(params=[1]), 1, -32602),
    ("params a number", request(params=5), 1, -32602),
    ("an unknown param", request(params={"txet": "a"}), 1, -32602),
    ("a param of another type", request(params={"text": 5}), 1, -32602),
    ("an extra top-level member", request(extra={"a": 1}), 1, None),
    ("a nested dict with the key jsonrpc", NESTED, 1, -32602),
    ("an unknown request", request(method="test/nothing"), 1, -32601),
    ("an unknown request of LSP", request(method="textDocument/hover", params=HOVER), 1, -32601),
    ("a request of the server's own", request(method="client/registerCapability", params={}), 1, -32601),
    ("a notification sent as a request", request(method="initialized", params={}), 1, -32601),
    ("a second initialize", request(method="initialize", params={"capabilities": {}}), 1, -32600),
    ("a result that is no JSON", request(method="test/unserialisable"), 1, -32603),
    ("a handler that fails", request(method="test/fails"), 1, -32603),
    ("an async handler that fails", request(method="test/fails_later"), 1, -32603),
    ("a handler that ends the process", request(method="test/exits"), 1, -32603),
    ("an async handler that ends the process", request(method="test/exits_later"), 1, -32603),
    ("a handler that cancels itself", request(method="test/cancels_itself"), 1, -32603),
    ("a refusal", request(method="test/refuses"), 1, -32803),
    ("a stale change", request(method="test/stale"), 1, -32801),
    ("a method of another role", request(method="test/runtime_only"), 1, -32803),
    ("an answer that is too large", request(method="test/huge"), 1, -32803),
]

IGNORED: list[tuple[str, object]] = [
    ("an unknown notification", {"jsonrpc": "2.0", "method": "test/nothing", "params": {"a": 1}}),
    ("an unknown $/ notification", {"jsonrpc": "2.0", "method": "$/nothing"}),
    ("a request of ours sent as a notification", {"jsonrpc": "2.0", "method": "test/echo", "params": {"text": "a"}}),
    ("a cancel of an unknown id", {"jsonrpc": "2.0", "method": "$/cancelRequest", "params": {"id": 99}}),
    ("a cancel without params", {"jsonrpc": "2.0", "method": "$/cancelRequest"}),
    ("a cancel of an odd id", {"jsonrpc": "2.0", "method": "$/cancelRequest", "params": {"id": {"a": 1}}}),
    ("a cancel of an unknown progress", {"jsonrpc": "2.0", "method": "window/workDoneProgress/cancel", "params": {}}),
    ("an answer nobody asked for", {"jsonrpc": "2.0", "id": 4, "result": 1}),
    ("an error nobody asked for", {"jsonrpc": "2.0", "id": "s:1", "error": {"code": 1, "message": "x"}}),
    ("a broken didOpen", {"jsonrpc": "2.0", "method": "textDocument/didOpen", "params": {"textDocument": 5}}),
    ("a notebook", {"jsonrpc": "2.0", "method": "notebookDocument/didOpen", "params": {}}),
    ("a trace setting", {"jsonrpc": "2.0", "method": "$/setTrace", "params": {"value": "verbose"}}),
]


def fails(caller: Caller, params: Text) -> object:
    raise RuntimeError("the secret of the house")


async def fails_later(caller: Caller, params: Text) -> object:
    await asyncio.sleep(0)
    raise RuntimeError("the secret of the house")


def exits(caller: Caller, params: Text) -> object:
    sys.exit(3)


async def exits_later(caller: Caller, params: Text) -> object:
    await asyncio.sleep(0)
    sys.exit(3)


async def cancels_itself(caller: Caller, params: Text) -> object:
    raise asyncio.CancelledError


def refuses(caller: Caller, params: Text) -> object:
    raise NotFound("fi:turn_1.files/a", "list the artifacts")


def stale(caller: Caller, params: Text) -> object:
    raise Stale("fi:turn_1.files/a", expected="aa", actual="bb")


class Anything(Text):
    """Params that take whatever comes."""

    model_config = ConfigDict(extra="allow")


HANDLERS = {
    "test/fails": fails, "test/fails_later": fails_later, "test/exits": exits, "test/exits_later": exits_later,
    "test/cancels_itself": cancels_itself, "test/refuses": refuses, "test/stale": stale,
    "test/unserialisable": lambda caller, params: {"a": {1, 2}},
    "test/runtime_only": lambda caller, params: 1,
    "test/huge": lambda caller, params: "x" * 2_000_000,
    "test/whole": lambda caller, params: params.model_dump(exclude_defaults=True),
}  # fmt: skip
ROWS = {"test/runtime_only": Row(asked_by=frozenset({"runtime"})), "test/whole": Row(params=Anything)}


async def ready(bench: Workbench, **arguments: Any) -> Remote:
    remote = await join(service(bench, handlers=HANDLERS, rows=ROWS, message_bytes=1_000_000, **arguments))
    await remote.initialize()
    return remote


async def still_answers(remote: Remote) -> None:
    assert (await remote.call("after", "test/echo", {"text": "b"}))["result"]["text"] == "b"


@pytest.mark.rule("wire.one-answer-per-request", "faults.garbage-is-answered-or-ended")
@pytest.mark.parametrize(("message", "number", "code"), [row[1:] for row in ABUSE], ids=[row[0] for row in ABUSE])
async def test_every_request_gets_exactly_one_answer(message: object, number: object, code: int | None) -> None:
    remote = await ready(Workbench())
    remote.send(message)
    answer = await remote.receive()
    assert answer["id"] == number
    assert type(answer["id"]) is type(number)
    assert (answer["error"]["code"] if "error" in answer else None) == code
    await still_answers(remote)
    await remote.drop()


@pytest.mark.parametrize("message", [row[1] for row in IGNORED], ids=[row[0] for row in IGNORED])
async def test_what_needs_no_answer_gets_none(message: object) -> None:
    remote = await ready(Workbench())
    remote.send(message)
    await still_answers(remote)
    await remote.drop()


@pytest.mark.rule("faults.nested-jsonrpc-keys-are-data")
async def test_params_reach_the_handler_as_they_were_sent() -> None:
    remote = await ready(Workbench())
    assert (await remote.call(1, "test/whole", ODD))["result"] == ODD
    await remote.drop()


async def test_params_make_no_classes() -> None:
    remote = await ready(Workbench())
    before = len(tuple.__subclasses__())
    for number in range(30):
        await remote.call(number, "test/whole", {f"k{n}": {f"a{number}_{n}": {}} for n in range(50)})
    assert len(tuple.__subclasses__()) == before
    await remote.drop()


# Failures


async def failure(remote: Remote, method: str, params: object = None) -> dict[str, Any]:
    error = (await remote.call(1, method, params))["error"]
    await remote.drop()
    return error


@pytest.mark.rule("faults.an-internal-error-shows-an-incident-only")
@pytest.mark.parametrize("method", ["test/fails", "test/fails_later"])
async def test_an_incident_tells_the_client_its_number_and_the_log_the_rest(
    method: str, caplog: pytest.LogCaptureFixture
) -> None:
    error = await failure(await ready(Workbench()), method)
    incident = error["data"]["incident"]
    assert len(incident) == 8
    assert incident in error["message"]
    assert "secret" not in json.dumps(error)
    assert "Traceback" not in json.dumps(error)
    assert any(incident in record.getMessage() and record.exc_info for record in caplog.records)


async def test_a_refusal_says_its_kind_what_it_is_about_and_what_would_work() -> None:
    error = await failure(await ready(Workbench()), "test/refuses")
    assert error["data"] == {"kind": "not_found", "about": "fi:turn_1.files/a", "hint": "list the artifacts"}


async def test_a_stale_change_says_both_states() -> None:
    error = await failure(await ready(Workbench()), "test/stale")
    assert {"kind": "stale", "expected": "aa", "actual": "bb"}.items() <= error["data"].items()


@pytest.mark.rule("roles.default-deny")
async def test_another_roles_method_is_not_permitted_before_its_params_are_looked_at() -> None:
    error = await failure(await ready(Workbench()), "test/runtime_only", {"nonsense": 1})
    assert (error["data"]["kind"], error["data"]["about"]) == ("not_permitted", "test/runtime_only")


async def test_wrong_params_are_named_by_place_and_never_repeated() -> None:
    error = await failure(await ready(Workbench()), "test/echo", {"text": ["hush-hush"], "path": 1})
    assert [fault["where"] for fault in error["data"]["faults"]] == ["text", "path"]
    assert "hush" not in json.dumps(error)


async def test_a_method_that_is_not_known_is_named_in_the_refusal() -> None:
    error = await failure(await ready(Workbench()), "test/nothing")
    assert error["message"] == "there is no method `test/nothing`"
    assert len((await failure(await ready(Workbench()), "x" * 5000))["message"]) < 200


async def test_wrong_params_of_lsp_are_named_in_its_own_spelling() -> None:
    params = {"arguments": 5}
    error = await failure(await ready(Workbench()), "workspace/executeCommand", params)
    assert "command" in {fault["where"] for fault in error["data"]["faults"]}


# Ids


async def test_an_id_under_way_cannot_be_used_again() -> None:
    bench = Workbench()
    remote = await ready(bench)
    remote.ask(1, "test/wait")
    again = await remote.call(1, "test/echo")
    assert again["error"]["code"] == -32600
    bench.gate.set()
    assert "result" in await remote.answer()
    await remote.drop()


async def test_an_id_is_free_again_after_its_answer() -> None:
    remote = await ready(Workbench())
    for _ in range(3):
        assert "result" in await remote.call(1, "test/echo")
    await remote.drop()


async def test_the_text_1_and_the_number_1_are_two_ids() -> None:
    bench = Workbench()
    remote = await ready(bench)
    remote.ask(1, "test/wait", {"text": "number"})
    remote.ask("1", "test/wait", {"text": "text"})
    bench.gate.set()
    answers = [await remote.answer(), await remote.answer()]
    assert {(type(a["id"]), a["result"]["text"]) for a in answers} == {(int, "number"), (str, "text")}
    await remote.drop()


async def test_a_client_cannot_answer_its_own_request() -> None:
    bench = Workbench()
    remote = await ready(bench)
    remote.ask(1, "test/wait", {"text": "mine"})
    remote.send({"jsonrpc": "2.0", "id": 1, "result": "forged"})
    await still_answers(remote)
    bench.gate.set()
    assert (await remote.answer())["result"] == {"text": "mine"}
    await remote.drop()


# Cancelling


@pytest.mark.rule("wire.cancel-is-answered")
async def test_a_cancelled_request_is_answered_as_cancelled() -> None:
    bench = Workbench()
    remote = await ready(bench)
    remote.ask(1, "test/wait")
    await until(bench.entered.is_set)
    remote.tell("$/cancelRequest", {"id": 1})
    assert (await remote.answer())["error"]["code"] == -32800
    assert bench.cancelled == 1
    await remote.drop()


async def test_a_request_cancelled_before_it_began_is_answered_and_never_runs() -> None:
    bench = Workbench()
    remote = await ready(bench, seconds_at_once=CEILING)
    remote.ask(1, "test/wait")
    remote.tell("$/cancelRequest", {"id": 1})  # in the same write, so the task has not taken a step
    assert (await remote.answer())["error"]["code"] == -32800
    assert bench.callers == []
    await remote.drop()


@pytest.mark.rule("wire.cancel-is-answered")
async def test_a_cancel_counts_even_when_the_handler_swallows_it() -> None:
    entered = asyncio.Event()

    async def stubborn(caller: Caller, params: Text) -> object:
        entered.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            return "done all the same"

    bench = Workbench()
    remote = await join(service(bench, handlers={"test/stubborn": stubborn}))
    await remote.initialize()
    remote.ask(1, "test/stubborn")
    await until(entered.is_set)
    remote.tell("$/cancelRequest", {"id": 1})
    assert (await remote.answer())["error"]["code"] == -32800
    await remote.drop()


async def test_a_thread_can_see_that_its_request_was_cancelled() -> None:
    seen, entered = asyncio.Event(), asyncio.Event()

    async def threaded(caller: Caller, params: Text) -> object:
        loop = asyncio.get_running_loop()

        def work() -> None:
            loop.call_soon_threadsafe(entered.set)
            while not caller.cancelled:
                pass
            loop.call_soon_threadsafe(seen.set)

        return await asyncio.to_thread(work)

    remote = await join(service(Workbench(), handlers={"test/threaded": threaded}))
    await remote.initialize()
    remote.ask(1, "test/threaded")
    await until(entered.is_set)
    remote.tell("$/cancelRequest", {"id": 1})
    assert (await remote.answer())["error"]["code"] == -32800
    await until(seen.is_set)
    await remote.drop()


@pytest.mark.parametrize("name", [True, 1.0, None, [1], "1"])
async def test_a_cancel_of_something_like_the_id_does_nothing(name: object) -> None:
    bench = Workbench()
    remote = await ready(bench)
    remote.ask(1, "test/wait")
    remote.tell("$/cancelRequest", {"id": name})
    await still_answers(remote)
    bench.gate.set()
    assert "result" in await remote.answer()
    await remote.drop()


@pytest.mark.rule("wire.a-cancel-ends-only-its-own-request")
async def test_a_cancel_reaches_its_own_clients_request_only() -> None:
    bench = Workbench()
    made = service(bench)
    one, two = await join(made), await join(made)
    for remote in (one, two):
        await remote.initialize()
        remote.ask(1, "test/wait")
    await until(lambda: len(bench.callers) == 2)
    one.tell("$/cancelRequest", {"id": 1})
    assert "error" in await one.answer()
    bench.gate.set()
    assert "result" in await two.answer()
    for remote in (one, two):
        await remote.drop()


# Order and room


async def test_plain_handlers_answer_in_the_order_in_which_they_were_asked() -> None:
    remote = await ready(Workbench())
    remote.send_bytes(b"".join(_frame(request(n, params={"text": str(n)})) for n in range(300)))
    answers = [await remote.answer() for _ in range(300)]
    assert [answer["id"] for answer in answers] == list(range(300))
    assert [answer["result"]["text"] for answer in answers] == [str(n) for n in range(300)]
    await remote.drop()


async def test_a_slow_request_holds_up_no_later_one() -> None:
    bench = Workbench()
    remote = await ready(bench)
    remote.ask(1, "test/wait")
    await still_answers(remote)
    bench.gate.set()
    assert (await remote.answer())["id"] == 1
    await remote.drop()


async def test_requests_beyond_the_limit_wait_and_are_answered() -> None:
    bench = Workbench()
    remote = await ready(bench, in_flight=4)
    for number in range(20):
        remote.ask(number, "test/wait")
    await until(lambda: len(bench.callers) == 4)
    await still_waiting(remote)
    assert len(bench.callers) == 4
    bench.gate.set()
    assert sorted([(await remote.answer())["id"] for _ in range(20)]) == list(range(20))
    await remote.drop()


async def still_waiting(remote: Remote) -> None:
    """Give the loop turns enough to do what it should not do."""
    for _ in range(50):
        await asyncio.sleep(0)


async def test_requests_at_the_limit_can_be_cancelled() -> None:
    bench = Workbench()
    remote = await ready(bench, in_flight=4)
    for number in range(4):
        remote.ask(number, "test/wait")
    remote.tell("$/cancelRequest", {"id": 2})
    assert (await remote.answer())["id"] == 2
    await remote.drop()


async def test_what_is_under_way_is_limited_by_bytes_too() -> None:
    bench = Workbench()
    remote = await ready(bench, bytes_in_flight=50_000)
    for number in range(6):
        remote.ask(number, "test/wait", {"text": "x" * 20_000})
    await until(lambda: len(bench.callers) == 3)
    await still_waiting(remote)
    assert len(bench.callers) == 3
    bench.gate.set()
    assert {(await remote.answer())["id"] for _ in range(6)} == set(range(6))
    await remote.drop()


# Life cycle


@pytest.mark.rule("wire.before-initialize-is-refused")
@pytest.mark.parametrize("method", ["test/echo", "shutdown", "textDocument/hover", "test/nothing"])
async def test_initialize_comes_first(method: str) -> None:
    remote = await join(service(Workbench()))
    assert (await remote.call(1, method))["error"]["code"] == -32002
    await remote.initialize()
    await still_answers(remote)
    await remote.drop()


async def test_an_initialize_that_failed_may_be_tried_again() -> None:
    remote = await join(service(Workbench()))
    assert (await remote.call(1, "initialize", {"capabilities": 5}))["error"]["code"] == -32602
    await remote.initialize()
    await still_answers(remote)
    await remote.drop()


async def test_a_request_sent_with_initialize_in_one_write_is_served() -> None:
    remote = await join(service(Workbench()))
    remote.ask(1, "initialize", {})
    remote.ask(2, "test/echo")
    assert ["result" in await remote.answer(), "result" in await remote.answer()] == [True, True]
    await remote.drop()


@pytest.mark.parametrize("method", ["test/echo", "shutdown", "initialize", "test/nothing"])
async def test_after_shutdown_nothing_is_asked_any_more(method: str) -> None:
    remote = await ready(Workbench())
    assert (await remote.call(1, "shutdown"))["result"] is None
    assert (await remote.call(2, method))["error"]["code"] == -32600
    await remote.drop()


async def test_what_was_under_way_at_shutdown_is_answered() -> None:
    bench = Workbench()
    remote = await ready(bench)
    remote.ask(1, "test/wait")
    await remote.call(2, "shutdown")
    bench.gate.set()
    assert "result" in await remote.answer()
    await remote.drop()


@pytest.mark.rule("wire.shutdown-ends-the-session-only", "wire.lsp-life-cycle")
@pytest.mark.parametrize("in_order", [[], ["shutdown"]], ids=["alone", "after shutdown"])
async def test_exit_ends_this_session_and_no_other(in_order: list[str]) -> None:
    made = service(Workbench())
    one, two = await join(made), await join(made)
    await one.initialize()
    await two.initialize()
    for method in in_order:
        await one.call(1, method)
    one.tell("exit")
    assert await one.closed() == []
    await still_answers(two)
    await two.drop()


# The envelope


@pytest.mark.rule("wire.every-request-takes-tokens-and-meta")
async def test_every_request_may_carry_tokens_and_meta() -> None:
    remote = await ready(Workbench())
    params = {"text": "a", "workDoneToken": 5, "partialResultToken": "p", "_meta": {"trace": "x"}}
    assert (await remote.call(1, "test/echo", params))["result"]["text"] == "a"
    await remote.drop()


@pytest.mark.rule("wire.meta-is-at-most-4-kib")
@pytest.mark.parametrize("extra", [{"_meta": {"a": "x" * 5000}}, {"_meta": 5}, {"workDoneToken": {}}])
async def test_an_envelope_out_of_bounds_is_refused(extra: dict[str, Any]) -> None:
    error = await failure(await ready(Workbench()), "test/echo", extra)
    assert error["code"] == -32602


# The log


async def test_each_request_leaves_one_line_without_contents(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    made = service(Workbench(), handlers=HANDLERS, rows=ROWS)
    remote = await join(made)
    await remote.initialize()
    await remote.call(1, "test/echo", {"text": "contents", "path": "fi:turn_1.files/a b"})
    await remote.call(2, "test/refuses")
    await remote.call(3, "test/\nforged method=x")
    made.log.flush()
    lines = "\n".join(r.getMessage() for r in caplog.records if r.name == "sidecar.request").split("\n")
    assert [line.split(" ")[3] for line in lines] == [
        "method=initialize", "method=test/echo", "method=test/refuses", "method='test/\\nforged\\x20method=x'",
    ]  # fmt: skip
    assert "about='fi:turn_1.files/a\\x20b'" in lines[1]
    assert "outcome=not_found" in lines[2]
    assert "contents" not in caplog.text
    await remote.drop()


async def test_the_library_below_logs_nothing(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    remote = await ready(Workbench())
    remote.tell("textDocument/didOpen", {"textDocument": 5})
    await remote.call(1, "workspace/executeCommand", {"command": "x"})
    await remote.call(2, "shutdown")
    assert [record.name for record in caplog.records if record.name.startswith("pygls")] == []
    await remote.drop()


def _frame(message: object) -> bytes:
    body = json.dumps(message).encode()
    return b"Content-Length: %d\r\n\r\n%b" % (len(body), body)


async def test_an_answer_that_waits_for_durability_is_given_once_it_is_there() -> None:
    durable = [asyncio.get_running_loop().create_future() for _ in range(3)]
    waiting = iter(durable)

    def change(_: Caller, params: Text) -> Later:
        return Later(next(waiting), {"text": params.text})

    remote = await join(service(Workbench(), handlers={"test/change": change}))
    await remote.initialize()
    for number, text in enumerate("abc"):
        remote.ask(number, "test/change", {"text": text})
    assert (await remote.call(9, "test/echo"))["id"] == 9  # nobody waits for them
    durable[1].set_result(None)
    assert await remote.answer() == {"jsonrpc": "2.0", "id": 1, "result": {"text": "b"}}
    durable[0].set_exception(NotFound("a"))
    assert (await remote.answer())["error"]["data"]["kind"] == "not_found"
    remote.tell("$/cancelRequest", {"id": 2})
    assert (await remote.answer())["error"]["code"] == -32800
    assert durable[2].cancelled()
    await remote.drop()


async def test_an_answer_may_come_in_pieces() -> None:
    def encode(result: object, _: str) -> bytes | list[bytes]:
        return [b'{"text":', b'"' + b"x" * 100_000 + b'"', b"}"] if result == "long" else orjson.dumps(result)

    def long(_: Caller, __: Text) -> str:
        return "long"

    remote = await join(service(Workbench(), handlers={"test/long": long}, encode=encode))
    await remote.initialize()
    assert (await remote.call(1, "test/long"))["result"] == {"text": "x" * 100_000}
    await remote.drop()


# Large messages


def large(number: int, **more: object) -> bytes:
    message = {"jsonrpc": "2.0", "id": number, "method": "test/echo", "params": {"text": "x" * LARGE_BYTES}}
    return framed({**message, **more})


async def spacious(bench: Workbench, **bounds: Any) -> Remote:
    remote = await join(service(bench, **bounds))
    await remote.initialize()
    return remote


@pytest.mark.rule("requests.large-ones-are-parsed-off-the-loop")
async def test_a_large_message_is_parsed_off_the_loop_while_others_are_answered(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    gate, parsers = threading.Event(), list[threading.Thread]()

    def held(body: bytes, most: int) -> object:
        parsers.append(threading.current_thread())
        assert gate.wait(CEILING)
        return parse(body, most)

    monkeypatch.setattr("sidecar.server.dispatch.parse", held)
    made = service(Workbench())
    remote, other = await join(made), await join(made)
    for one in (remote, other):
        await one.initialize()
    remote.send_bytes(large(1))
    remote.ask(2, "test/echo")
    await until(lambda: parsers)
    assert "result" in await other.call(1, "test/echo")
    gate.set()
    first = await remote.answer()
    assert (first["id"], len(first["result"]["text"])) == (1, LARGE_BYTES)
    assert (await remote.answer())["id"] == 2
    assert len(parsers) == 1
    assert threading.current_thread() not in parsers


async def test_a_large_message_that_is_no_json_is_answered_and_the_next_is_taken() -> None:
    remote = await spacious(Workbench())
    remote.send_bytes(framed(b"x" * LARGE_BYTES))
    assert (await remote.answer())["error"]["code"] == -32700
    assert "result" in await remote.call(1, "test/echo")


async def test_a_large_message_with_too_many_values_ends_its_connection() -> None:
    remote = await spacious(Workbench(), message_values=1000)
    remote.send_bytes(framed(b"[%b1]" % (b"1," * LARGE_BYTES)))
    assert "at most 1000 values" in (await remote.closed())[-1]["error"]["message"]


async def test_a_large_message_is_parsed_once_there_is_room_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    parsed = list[int]()

    def counted(body: bytes, most: int) -> object:
        parsed.append(len(body))
        return parse(body, most)

    monkeypatch.setattr("sidecar.server.dispatch.parse", counted)
    bench = Workbench()
    remote = await spacious(bench, in_flight=1)
    remote.ask(1, "test/wait")
    remote.send_bytes(large(2))
    await until(lambda: remote.connection._inbox)
    for _ in range(50):
        await asyncio.sleep(0.001)
    assert parsed == []  # what it says may need many times as much memory
    bench.gate.set()
    assert [(await remote.answer())["id"] for _ in range(2)] == [1, 2]
    assert len(parsed) == 1


async def test_a_client_that_goes_while_its_large_message_is_parsed_leaves_nothing_behind(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    gate, begun = threading.Event(), threading.Event()

    def fails(body: bytes, most: int) -> object:
        begun.set()
        assert gate.wait(CEILING)
        raise TooManyValues("at most none")

    monkeypatch.setattr("sidecar.server.dispatch.parse", fails)
    remote = await spacious(Workbench())
    remote.send_bytes(large(1))
    await until(begun.is_set)
    await remote.drop()
    gate.set()
    gc.collect()
    assert not [record for record in caplog.records if record.exc_info]
