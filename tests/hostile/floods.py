"""Attacks by how much is asked: more than can be served, or than anybody reads, by more clients than there is room."""

from __future__ import annotations

import itertools
import select
import socket
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from random import Random

from sidecar.core import limits
from tests.daemon_process import ROLES, eventually
from tests.hostile.arena import HONEST, Arena
from tests.hostile.guard import Wrong
from tests.hostile.talker import Asked, Talker, request
from tests.rpc_client import frame

ALL_EVENTS = ["sources", "artifacts", "timeline", "notices"]


def flood(arena: Arena, chance: Random) -> None:
    """One of them; which one goes round, so that a long run has them all."""
    FLOODS[(arena.number + chance.randrange(len(FLOODS)) * arena.quick) % len(FLOODS)](arena, chance)


def _size(arena: Arena, long: int, quick: int) -> int:
    return quick if arena.quick else long


def pipelined(arena: Arena, chance: Random) -> None:
    """A hundred thousand requests at once, and each gets its answer."""
    talker = arena.talker(chance.choice(ROLES))
    # Attacks before this one left thousands of sources; all of them in each answer would be another attack.
    some = {"selector": "1-20"}
    asked: list[Asked] = [("workspace/status", {}), ("artifact/resolve", {"paths": [HONEST]}), ("sources/list", some)]
    talker.ask([*itertools.islice(itertools.cycle(asked), _size(arena, 100_000, 2000))], keep=False)


def unread(arena: Arena, chance: Random) -> None:
    """Requests for as long as the daemon takes them, by clients that read nothing."""
    for role in chance.choices(ROLES, k=4):
        arena.talker(role).send(b"".join(_status(at) for at in range(_size(arena, 50_000, 3000))))


def unread_and_large(arena: Arena, chance: Random) -> None:
    """Large answers that nobody reads."""
    turn = arena.begin()
    arena.workspace.write(f"{turn}/files/large.txt", "large words " * 300_000)
    arena.workspace.write(f"{turn}/files/large.png", b"\x89PNG\r\n\x1a\n" + chance.randbytes(2 << 20))
    paths = [f"{turn}/files/large.txt", f"{turn}/files/large.png"]
    one = {"jsonrpc": "2.0", "method": "artifact/read", "params": {"paths": paths, "max_bytes": 4 << 20}}
    for _ in range(_size(arena, 20, 3)):
        arena.talker("exec").send(b"".join(frame({**one, "id": at}) for at in range(_size(arena, 200, 10))))
    arena.talker("exec").ask([("artifact/read", one["params"])] * 5)


def deaf_listeners(arena: Arena, chance: Random) -> None:
    """Those who want to hear everything and read nothing, while much happens."""
    turn = arena.begin()
    for role in chance.choices(ROLES, k=_size(arena, 60, 10)):
        arena.talker(role, events=ALL_EVENTS)
    runtime = arena.talker("runtime", events=ALL_EVENTS)
    for at in range(_size(arena, 60, 4)):
        blocks = [
            {"type": "react.note", "text": f"{at} {'y' * 300}", "path": f"ar:{turn}.note.{at}.{one}"}
            for one in range(100)
        ]
        arena.workspace.write(f"{turn}/files/{at}.txt", f"{at}")
        runtime.ask([("timeline/append", {"blocks": blocks}), ("workspace/sync", {})])


def many_request_ids(arena: Arena, chance: Random) -> None:
    """More answers to be remembered than are remembered; the same ones asked for again."""
    turn = arena.begin()
    runtime = arena.talker("runtime")
    name = chance.getrandbits(40)

    def append(at: int) -> Asked:
        block = {"type": "react.note", "text": f"{at}", "path": f"ar:{turn}.note.{at}"}
        return ("timeline/append", {"blocks": [block], "request_id": f"{name}-{at}"})

    asked = [append(at) for at in range(_size(arena, 20_000, 500))]
    first = runtime.ask(asked)
    again = runtime.ask(asked[-300:])
    if [one["result"] for one in again] != [one["result"] for one in first[-300:]]:
        raise Wrong("a request that was repeated got another answer")


def many_streams(arena: Arena, chance: Random) -> None:
    """Streams that are opened and never flushed."""
    chunk = "[[S:" + "1," * 400
    arena.talker("exec").ask([
        ("citations/stream", {"stream_id": f"s{at}", "chunk": chunk}) for at in range(_size(arena, 10_000, 500))
    ])  # fmt: skip


def cancelled(arena: Arena, chance: Random) -> None:
    """Requests that are cancelled at once, before and after, again and again: one answer each all the same."""
    talker = arena.talker("exec")
    stream, count = bytearray(), _size(arena, 1500, 300)  # a page takes a tenth of a second of a processor
    slow = [
        ("workspace/sync", {}),
        ("artifact/search", {"root": "", "content_regex": "(a|b|c)*z"}),
        ("assets/pull", {"content": "![" * 3000 + "]", "mime": "text/markdown"}),
        ("artifact/read", {"paths": [HONEST]}),
    ]
    for number in range(10_000, 10_000 + count):
        method, params = chance.choice(slow)
        stream += frame({"jsonrpc": "2.0", "id": number, "method": method, "params": params})
        for _ in range(chance.choice((0, 1, 1, 3))):
            aim = chance.randrange(10_000, number + 3)
            stream += frame({"jsonrpc": "2.0", "method": "$/cancelRequest", "params": {"id": aim}})
    said = talker.exchange(bytes(stream), answers=count, keep=False)
    talker.asked += count
    numbers = sorted(message["id"] for message in said if "method" not in message)
    if numbers != [*range(10_000, 10_000 + count)]:
        raise Wrong(f"{len(numbers)} answers, {len({*numbers})} of them different")


def many_pulls(arena: Arena, chance: Random) -> None:
    """The same page and different ones, pulled by everybody at once; the files in them brought back at once."""
    turn = arena.begin()
    paths = [f"{turn}/files/{at}.txt" for at in range(40)]
    for path in paths:
        arena.workspace.write(path, path * 50)
    runtime = arena.talker("runtime")
    runtime.ask([("workspace/sync", {})])
    for path in paths:
        (arena.out / path).unlink()
    page = "".join(f"<a href='{path}'>x</a><img src='../{path}'>" for path in paths) * 20
    clients = [arena.talker(role) for role in ("exec", "renderer") * 4]
    pull = [("assets/pull", {"content": page + "x" * at, "mime": "text/html"}) for at in range(8)]
    together(
        clients,
        [[*pull, ("artifact/rehost", {"paths": paths}), ("artifact/read", {"paths": chance.sample(paths, 9)})]]
        * len(clients),
        times=_size(arena, 6, 1),
    )


def many_searches(arena: Arena, chance: Random) -> None:
    """Everybody searches through everything."""
    turn = arena.begin()
    for at in range(_size(arena, 300, 40)):
        arena.workspace.write(f"{turn}/files/{at}.txt", f"{'ab' * 200}\n" * 200)
    search: Asked = (
        "artifact/search",
        {"root": "", "content_regex": "(a|b)*c?", "max_hits": 1000, "context_lines": 20},
    )
    clients = [arena.talker(role) for role in ("exec", "editor") * 3]
    together(clients, [[search] * _size(arena, 20, 2)] * len(clients), times=1)


def many_syncs(arena: Arena, chance: Random) -> None:
    """Everybody has everything looked at, while files appear."""
    turn = arena.begin()
    clients = [arena.talker(role) for role in ROLES * 3]
    for at in range(_size(arena, 30, 2)):
        for number in range(30):
            arena.workspace.write(f"{turn}/files/{at}/{number}.txt", f"{at} {number}")
        together(clients, [[("workspace/sync", {})] * 20] * len(clients), times=1)


def many_documents(arena: Arena, chance: Random) -> None:
    """More documents, and longer ones, than one editor may have open; changes to each."""
    editor = arena.talker("editor", events=ALL_EVENTS)
    text = "see [[S:1]] and fi:turn_0.files/honest.txt\n" * chance.choice((100, 5000))
    for at in range(_size(arena, 2500, 100)):
        uri = f"untitled:{at}"
        document = {"uri": uri, "languageId": "markdown", "version": 1, "text": text}
        opened = frame({"jsonrpc": "2.0", "method": "textDocument/didOpen", "params": {"textDocument": document}})
        change = {"textDocument": {"uri": uri, "version": 2}, "contentChanges": [{"text": text + "x"}]}
        editor.exchange(
            opened + frame({"jsonrpc": "2.0", "method": "textDocument/didChange", "params": change}), answers=0
        )
        if not at % 50:
            editor.ask([("textDocument/documentLink", {"textDocument": {"uri": uri}}), ("workspace/status", {})])


def large_messages(arena: Arena, chance: Random) -> None:
    """Messages as large as they may be."""
    size = _size(arena, 60 << 20, 6 << 20)
    kind = chance.choice(("text", "values", "strings", "base64"))
    params: dict[str, tuple[str, bytes]] = {
        "text": ("citations/extract", b'{"text":"%b"}' % (b"[[S:1]] " * (size // 8))),
        "values": ("artifact/resolve", b'{"paths":[%b"x"]}' % (b'"x",' * 400_000)),
        "strings": ("citations/replace", b'{"text":"%b"}' % (b"\\u0000" * (size // 6))),
        "base64": ("timeline/append", b'{"blocks":[{"type":"x","base64":"%b"}]}' % (b"A" * size)),
    }
    role = "runtime" if kind == "base64" else chance.choice(ROLES)
    arena.talker(role).ask_raw([params[kind]])


def hoards(arena: Arena, chance: Random) -> None:
    """Many that begin the longest messages and end none, or have the longest answers made and read none."""
    size, count = 60 << 20, _size(arena, 100, 30)
    head = b"Content-Length: %d\r\n\r\n" % size
    arena.forget_peak()
    before = arena.resident()
    others = [arena.talker(role) for role in ROLES if role != "exec"]
    hoarders = [arena.talker("exec") for _ in range(count)]
    for talker in hoarders:
        if chance.random() < 0.5:
            talker.send(head + b" " * (size - 1))
        else:
            text = b'{"text":"%b"}' % (b"\\u0000" * (size // 20))
            talker.send(request(1, "citations/replace", text) + request(2, "citations/replace", text))
    for other in others:
        other.ask([("workspace/status", {})])
    if (grown := arena.peak() - before) > 2 * limits.HELD_BYTES:
        raise Wrong(f"{count} clients made the daemon grow by {grown >> 20} MiB")
    for talker in hoarders:
        talker.close()
    eventually(lambda: arena.resident() - before < limits.HELD_BYTES // 8, ceiling=60)


FLOODS = (
    pipelined, unread, unread_and_large, deaf_listeners, many_request_ids, many_streams, cancelled, many_pulls,
    many_searches, many_syncs, many_documents, large_messages, hoards,
)  # fmt: skip


def together(clients: list[Talker], asked: list[list[Asked]], *, times: int) -> None:
    """All ask at once, and each is answered; what with is let go."""
    with ThreadPoolExecutor(len(clients)) as hands:
        for _ in range(times):
            for done in [hands.submit(client.ask, one, keep=False) for client, one in zip(clients, asked, strict=True)]:
                done.result()


def _status(number: int) -> bytes:
    return frame({"jsonrpc": "2.0", "id": number, "method": "workspace/status"})


def crowd(arena: Arena, chance: Random) -> None:
    """Connections beyond the limit are told so; when the crowd is gone there is room for others."""
    links: list[socket.socket] = []
    refused = 0
    for at in range(_size(arena, 2000, 400)):
        link = socket.socket(socket.AF_UNIX)
        link.setblocking(False)
        try:
            link.connect(str(arena.workspace.socket(chance.choice(ROLES))))
        except (BlockingIOError, ConnectionRefusedError):
            link.close()  # the backlog is full for the moment
            continue
        links.append(link)
        if at % 3:
            with suppress(OSError):
                link.send(chance.choice((b"", b"Content-", _status(1), b"\0" * 5000)))
    until = len(links) - limits.CONNECTIONS_PER_UID
    waiting = {link.fileno(): link for link in links}
    poll = select.poll()
    for number in waiting:
        poll.register(number, select.POLLIN)

    def turned_away() -> bool:
        nonlocal refused
        for number, _ in poll.poll(100):
            with suppress(OSError):
                said = waiting[number].recv(65536)
                arena.check("exec")(said)
                refused += b"close one" in said
            poll.unregister(number)
        return refused >= until

    if until > 0:
        eventually(turned_away, ceiling=60)
    for link in links:
        link.close()

    def there_is_room() -> bool:
        with suppress(Exception), arena.visitor("editor") as editor:
            return len(editor.ask([("workspace/status", {})])[0]["result"]["clients"]) < 10
        return False

    eventually(there_is_room, ceiling=60)
    arena.asked += len(links)
