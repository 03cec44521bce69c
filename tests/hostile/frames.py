"""Attacks by bytes that are no messages, or not those that were announced, and by messages that nobody should send."""

from __future__ import annotations

import json
from collections.abc import Callable
from random import Random
from time import monotonic, sleep
from typing import Any

from protocol import errors
from sidecar.core import limits
from tests.hostile.arena import Arena
from tests.hostile.guard import Wrong
from tests.hostile.talker import Message, must_be_listed, request
from tests.rpc_client import frame, initialize_params

STATUS = b"{}"


def _length(text: str | int) -> bytes:
    return f"Content-Length: {text}\r\n\r\n".encode()


Make = Callable[[Random], bytes]
# After these nothing more is read: one error without an id, and the end.
FATAL: dict[str, Make] = {
    "a gigabyte is announced": lambda chance: _length(1 << 30) + b"x" * chance.randrange(100_000),
    "5,000 digits": lambda chance: _length("9" * 5000),
    "digits that overflow": lambda chance: _length(chance.choice((2**31, 2**32, 2**63, 2**64, 2**64 + 2, 10**11))),
    "less than nothing": lambda chance: _length(chance.choice(("-1", "-0", "+5", "0x10", "1e3", "5 5", "", " ",
    "\u0665", "5\0"))),
    "garbage": lambda chance: b"\xff" + chance.randbytes(chance.choice((5, 5000, 300_000))) + b"\n" * 5000,
    "NUL": lambda chance: b"\0" * chance.choice((4096, 100_000)),
    "a header without end": lambda chance: b"X-A: " + b"y" * 500_000,
    "many headers": lambda chance: b"X-Nothing: 1\r\n" * 50_000,
    "two lengths": lambda chance: b"Content-Length: 2\r\ncontent-length: 20\r\n\r\n{}",
    "no length": lambda chance: b"Content-Type: x\r\n\r\n{}",
    "a line that is none": lambda chance: b"GET / HTTP/1.1\r\n\r\n",
    "a header that is folded": lambda chance: b"Content-Length:\r\n 5\r\n\r\n{}",
    "a tower of values": lambda chance: frame(b"[" + b"1," * 1_500_000 + b"1]"),
}  # fmt: skip
# One error without an id each, and the talk goes on.
TAKEN: dict[str, Make] = {
    "no JSON": lambda chance: frame(chance.choice((b"{nonsense", b"\xff\xfe", b"", b"nan", b"{'a':1}", b'{"a":1}}',
    b"\xef\xbb\xbf{}"))),
    "no object": lambda chance: frame(chance.choice((b"5", b"[]", b"null", b'"x"', b"true", b"[{}]"))),
    "deep": lambda chance: frame((b"[" * (depth := chance.choice((2000, 10_000, 300_000)))) + b"]" * depth),
    "deep objects": lambda chance: frame(b'{"a":' * (depth := chance.choice((2000, 10_000,
    100_000))) + b"1" + b"}" * depth),
    "a batch": lambda chance: frame(b"[" + b",".join([b'{"jsonrpc":"2.0","id":1,"method":"x"}'] * chance.choice((1,
    1000))) + b"]"),
    "a number of 5,000 digits": lambda chance: frame(b'{"jsonrpc":"2.0","id":%b,"method":"x"}' % (b"9" * 5000)),
    "no version": lambda chance: frame({"id": None, "method": "workspace/status"}),
    "an id of another type": lambda chance: frame(
        {"jsonrpc": "2.0", "id": chance.choice((None, 1.5, [], {}, True, "")), "method": "workspace/status"}
    ),
}  # fmt: skip
# Half of something, and then the end of the stream.
HALVES: dict[str, Make] = {
    "a promise": lambda chance: _length(1000) + b'{"jsonrpc"',
    "a header": lambda chance: b"Content-Le",
    "a large promise": lambda chance: _length(60_000_000) + b"x" * 3_000_000,
    "nothing": lambda chance: b"",
}


def broken(arena: Arena, chance: Random) -> None:
    """Honest requests, some taken faults between them, a fatal one; what comes behind it is not answered."""
    talker = arena.dial(chance.choice(("exec", "exec", "renderer", "editor", "runtime")))
    greeted = chance.random() < 0.8
    if greeted:
        talker.greet()
    stream, honest, taken = b"", list[int](), 0
    for number in range(1000, 1000 + chance.choice((0, 3, 40))):
        stream += request(number, chance.choice(("workspace/status", "sources/list")), STATUS)
        honest.append(number)
        if chance.random() < 0.2:
            stream += chance.choice([*TAKEN.values()])(chance)
            taken += 1
    fatal = chance.random() < 0.7
    name = chance.choice([*(FATAL if fatal else HALVES)])
    stream += (FATAL if fatal else HALVES)[name](chance)
    if fatal:
        stream += request(5000, "workspace/status", STATUS) * chance.choice((0, 3))
    said = talker.drain(stream)
    talker.asked += len(honest) + taken + fatal
    answers = [message for message in said if "method" not in message]
    numbers = [message["id"] for message in answers if message["id"] is not None]
    # Who is closed is told why; requests that were under way then end without an answer, but none has two.
    if len(numbers) != len({*numbers}) or not {*numbers} <= {*honest} or (not fatal and len(numbers) < len(honest)):
        raise Wrong(f"{name}: answers to {numbers[:50]} instead of {honest[:50]}")
    nobody = [message for message in answers if message["id"] is None]
    if len(nobody) != taken + fatal or (fatal and nobody[-1]["error"]["code"] != errors.INVALID_REQUEST):
        raise Wrong(f"{name}: {len(nobody)} errors without an id, {taken} were taken, {fatal} fatal: {nobody[-3:]}")
    for message in answers:
        must_be_listed(message, name)


def hanging(arena: Arena, chance: Random) -> None:
    """Sixty that begin something and never end it, some a byte at a time: each is told so and closed."""
    pieces = (b"Content-Le", _length(100) + b"{", b"X: ", _length(50_000_000) + b"x" * 1_000_000, b"\r")
    talkers = [arena.dial("exec") for _ in range(60)]
    for talker in talkers:
        if chance.random() < 0.5:
            talker.greet()
        talker.send(chance.choice(pieces))
    slow = [arena.dial("renderer").greet() for _ in range(10)]
    drip, at, until = b"X-Slow: " + b"y" * 3000, 0, monotonic() + limits.FRAME_SECONDS + 3
    while monotonic() < until:
        for talker in slow:
            talker.send(drip[at : at + 1])
        at += 1
        sleep(0.1)  # the attack itself
    for talker in [*talkers, *slow]:
        said = talker.drain(last=False)
        errors = [message for message in said if message.get("id") is None and "error" in message]
        if len(errors) != 1 or "longer than" not in errors[0]["error"]["message"]:
            raise Wrong(f"it was not told why it was closed: {said[-2:]}")


# Whole messages that make no sense ------------------------------------------------------------------------------------


def _junk(chance: Random, depth: int = 3) -> Any:
    """Any JSON value."""
    ways = 11 if depth else 9
    match chance.randrange(ways):
        case 0:
            return chance.choice((None, True, False))
        case 1:
            return chance.choice((0, -1, 2**31, 2**53, 2**63, 2**64 - 1, -(2**63)))
        case 2:
            return chance.choice((0.5, 1e308, -1e-308, 1.0))
        case 3 | 4:
            return chance.choice(("", "x", "\0", "turn_0", "..", "é" * 50, "x" * 5000, "2.0", "file:///", "1"))
        case 5 | 6:
            return chance.choice(METHODS)
        case 7 | 8:
            return chance.choice(("turn_0/files/honest.txt", "fi:turn_0.files/honest.txt", "so:sources_pool[1]"))
        case 9:
            return [_junk(chance, depth - 1) for _ in range(chance.randrange(4))]
        case _:
            return {str(chance.choice(KEYS)): _junk(chance, depth - 1) for _ in range(chance.randrange(5))}


METHODS = (
    "workspace/status", "workspace/sync", "workspace/changes", "artifact/resolve", "artifact/list", "artifact/read",
    "artifact/fetch", "artifact/search", "sources/list", "citations/replace", "citations/stream", "assets/pull",
    "turn/begin",
    "call/begin", "timeline/append", "timeline/blocks", "timeline/render", "conversation/save", "initialize",
    "textDocument/hover",
    "textDocument/completion", "workspace/executeCommand", "workspace/symbol", "no/method", "$/nothing", "",
    "initialized",
    "textDocument/didOpen", "textDocument/didChange", "workspace/didChangeConfiguration",
    "window/workDoneProgress/create",
    "notebookDocument/didOpen", "textDocument/semanticTokens/full", "$/setTrace", "workspace/didChangeWorkspaceFolders",
)  # fmt: skip
KEYS = (
    "path", "paths", "textDocument", "position", "uri", "text", "mime", "limit", "cursor", "since", "workDoneToken",
    "_meta",
    "request_id", "turn_id", "blocks", "rows", "line", "character", "command", "arguments", "content",
    "partialResultToken",
    "contentChanges", "range", "version", "", "__proto__", "jsonrpc", "id", "token", "value",
)  # fmt: skip


def odd_talk(arena: Arena, chance: Random) -> None:
    """Whole messages with senseless params and ids; cancels, answers, progress and ends that nobody asked for."""
    talker = arena.dial(chance.choice(("exec", "renderer", "editor", "runtime")))
    talker.greet(**chance.choice(({}, {"events": ["sources", "artifacts", "timeline", "notices"]})))
    stream, expected, at_once = bytearray(), list[object](), set[object]()
    for _ in range(chance.choice((20, 200))):
        number = chance.choice(
            (
                chance.getrandbits(62),
                -chance.getrandbits(60),
                f"id {chance.getrandbits(80)}",
                "x" * 5000 + str(len(stream)),
            )
        )
        message: Message = {"jsonrpc": "2.0", "method": chance.choice(METHODS)}
        match chance.randrange(8):
            case 0:  # an answer that nobody waits for
                message = {"jsonrpc": "2.0", "id": number, chance.choice(("result", "error")): _junk(chance)}
            case 1:
                named = chance.choice([*expected, 1, 1.0, None, True, "x", []])
                message |= {"method": "$/cancelRequest", "params": chance.choice(({"id": named}, named, {}))}
            case 2:
                method = chance.choice(("window/workDoneProgress/cancel", "$/progress", "$/logTrace", "no/such"))
                message |= {"method": method, "params": {"token": _junk(chance), "value": _junk(chance)}}
            case _ if number not in at_once:
                expected.append(number)
                at_once.add(number)
                message |= {"id": number, "params": _junk(chance) if chance.random() < 0.3 else _likely(chance)}
        stream += frame(message)
    ends = chance.choice(("", "", "shutdown", "exit", "exit before shutdown"))
    if ends == "shutdown":
        expected += ["the end", "after it"]
        stream += frame({"jsonrpc": "2.0", "id": "the end", "method": "shutdown"})
        stream += frame({"jsonrpc": "2.0", "id": "after it", "method": "workspace/status"})
    talker.asked += len(expected)
    said = talker.exchange(bytes(stream), answers=len(expected)) if expected else []
    answers = [message for message in said if "method" not in message]
    if sorted(map(str, (message["id"] for message in answers))) != sorted(map(str, expected)):
        raise Wrong(f"other answers than were asked for: {json.dumps(answers)[:500]}")
    for message in answers:
        must_be_listed(message, bytes(stream)[:300].decode("utf-8", "replace"))
    if ends.startswith("exit"):
        arena.tell(talker, "exit", {})
        talker.drain(last=False)


def _likely(chance: Random) -> Message:
    """Params that are nearly right."""
    document = {"textDocument": {"uri": chance.choice(("file:///x.md", "artifact-sidecar:/x?version=1", "", "x"))}}
    position = {"position": {"line": chance.choice((0, -1, 2**31, 2**40)), "character": chance.choice((0, 2**31, -5))}}
    return chance.choice((
        {"paths": ["turn_0/files/honest.txt"]}, {"path": _junk(chance, 0)}, {**document, **position}, {**document,
        "position": _junk(chance)},
        initialize_params({}), {"text": "[[S:1]]", "mime": _junk(chance, 0)}, {"since": _junk(chance, 0)},
        {"workDoneToken": _junk(chance)},
        {"root": "", "name_regex": _junk(chance, 0)}, {"blocks": [_junk(chance)]}, {"rows": [_junk(chance)]},
        {"command": _junk(chance, 0)},
        {"command": "artifact-sidecar.open", "arguments": _junk(chance)}, {"stream_id": _junk(chance, 0),
        "chunk": _junk(chance, 0)},
    ))  # fmt: skip
