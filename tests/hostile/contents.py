"""Attacks by what files are: too large, too many, too deep, oddly called, or made to burst when something looks in."""

from __future__ import annotations

import gzip
import io
import os
import struct
import subprocess
import sys
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path
from random import Random

from tests.daemon_process import PROJECT, environment, eventually
from tests.hostile.arena import Arena
from tests.hostile.guard import Wrong
from tests.hostile.links import TRUNCATER, reads
from tests.hostile.talker import Asked, must_be_listed, request
from tests.rpc_client import frame

KIB, MIB, GIB = 1 << 10, 1 << 20, 1 << 30


def _look_at_all(arena: Arena, chance: Random, paths: list[str]) -> None:
    """Sync, and everything that reads, by a program and by an editor."""
    clients = (arena.talker("exec"), arena.talker(chance.choice(("editor", "renderer"))))
    for client in clients:
        client.ask([("workspace/sync", {}), ("artifact/list", {}), ("workspace/outline", {})])
        for path in paths:
            client.ask(reads(path))


def _see_in_editor(arena: Arena, path: str, text: str) -> None:
    """Hover over a reference, and all that is shown of it."""
    editor = arena.talker("editor")
    uri = f"file://{arena.out}/x.md"
    document = {"uri": uri, "languageId": "markdown", "version": 1, "text": f"{text}\n![x]({path}) fi:{path}"}
    opened = frame({"jsonrpc": "2.0", "method": "textDocument/didOpen", "params": {"textDocument": document}})
    editor.exchange(opened, answers=0)
    at = {"textDocument": {"uri": uri}, "position": {"line": text.count("\n") + 1, "character": 8}}
    editor.ask(
        [
            ("textDocument/hover", at),
            ("textDocument/definition", at),
            ("textDocument/documentLink", {"textDocument": {"uri": uri}}),
        ]
    )


def huge(arena: Arena, chance: Random) -> None:
    """Files of a tebibyte, or of ten gigabytes in one line, that need no room: they are all hole."""
    turn = arena.begin()
    sizes = (1 << 40, 1 << 40, 10 * GIB, (1 << 43) - 1, 2 * GIB + 1, 200 * MIB, 65 * MIB)
    paths: list[str] = []
    for at in range(1 if arena.quick else chance.choice((1, 3))):
        name = chance.choice(("a.txt", "a.html", "a.png", "a.json", "a.md", "a.css", "a.pdf", "a.zip", "a"))
        path = arena.workspace.write(
            f"{turn}/files/{at}/{name}", chance.choice((b"", b"<img src='x'>", b"{", b"[[S:1]]"))
        )
        os.truncate(path, 1 << 40 if arena.quick else chance.choice(sizes))
        paths.append(str(path.relative_to(arena.out)))
    view = arena.out / chance.choice(("context.json", "sources_pool.json", "turn_0/files/other.json"))
    view.write_text("{")
    os.truncate(view, chance.choice(sizes))
    _look_at_all(arena, chance, paths)
    _see_in_editor(arena, paths[0], "")
    runtime = arena.talker("runtime")
    runtime.ask([
        ("artifact/patch", {"path": paths[0], "patch": "@@ -1 +1 @@\n-x\n+y\n"}),
        ("call/end", {"tool_call_id": f"tc_{turn}", "expect": paths}),
        ("artifact/link", {"path": paths[0]}),
        ("timeline/flush", {}),
    ])  # fmt: skip
    for path in paths:
        if arena.quick or (arena.out / path).stat().st_size > 2 * GIB:
            continue
        (arena.out / path).unlink()  # or gigabytes of nothing would really be hosted
    runtime.ask([("turn/end", {"turn_id": turn}), ("turn/begin", {"turn_id": f"{turn}b", "rehost": paths})])


def growing(arena: Arena, chance: Random) -> None:
    """A file that is a tebibyte and nothing in turns while it is looked at; at rest it is what it is."""
    turn = arena.begin()
    path = arena.workspace.write(f"{turn}/files/a.txt", "x")
    words = [sys.executable, "-c", TRUNCATER, str(path), "", str(os.getpid())]
    name = str(path.relative_to(arena.out))
    client = arena.talker("exec")
    with subprocess.Popen(words, cwd=PROJECT, env=environment(), stdout=subprocess.PIPE) as changer:
        assert changer.stdout is not None
        changer.stdout.readline()
        for _ in range(3 if arena.quick else 10):
            client.ask([("workspace/sync", {}), *reads(name)])
        changer.kill()
    path.write_bytes(b"at rest")

    def is_read() -> bool:
        client.ask([("workspace/sync", {})])
        answer = client.ask([("artifact/fetch", {"path": name})])[0]["result"]["ret"]
        return answer is not None and answer["text"] == "at rest"

    eventually(is_read, ceiling=60)


# Crowds of files ------------------------------------------------------------------------------------------------------


def crowds(arena: Arena, chance: Random) -> None:
    """One of them, in turns."""
    arena.begin()
    (arena.out / arena.turn / "files").mkdir(parents=True)
    CROWDS[arena.number % len(CROWDS)](arena, chance)
    client = arena.talker("exec")
    client.ask([
        ("workspace/sync", {}), ("artifact/list", {}), ("workspace/outline", {}), ("workspace/status", {}),
        ("artifact/search", {"root": "", "name_regex": "."}), ("artifact/search", {"root": arena.turn,
        "content_regex": "x"}),
        ("workspace/changes", {"since": 0}),
    ])  # fmt: skip
    # 200,000 files at most are numbered, hosted and saved by then: it may take minutes, while others are served.
    end: list[Asked] = [("turn/end", {"turn_id": arena.turn}), ("timeline/flush", {})]
    arena.talker("runtime").ask(end, ceiling=600)
    arena.talker("editor").ask([("workspace/symbol", {"query": "a"}), ("workspace/outline", {})])


MILLION = 12  # the attack with a million names


def many(arena: Arena, chance: Random) -> None:
    """Names without number in one folder; a million of them the last time, as all that follows knows of them."""
    count = 3000 if arena.quick else 1_000_000 if arena.number == MILLION else 30_000
    folder = arena.out / arena.turn / chance.choice(("files/many", "attachments", "other"))
    folder.mkdir(parents=True)
    here = os.open(folder, os.O_RDONLY)
    for at in range(count):
        os.close(os.open(f"{at}", os.O_WRONLY | os.O_CREAT, 0o644, dir_fd=here))
    os.close(here)


def deep(arena: Arena, chance: Random) -> None:
    """A folder in a folder, 1,500 times: further down than any path reaches."""
    here = os.open(arena.out / arena.turn / "files", os.O_RDONLY)
    name = chance.choice(("d", "x" * 200, "é" * 100))
    for at in range(300 if arena.quick else 1500):
        os.mkdir(name, dir_fd=here)
        below = os.open(name, os.O_RDONLY, dir_fd=here)
        os.close(here)
        here = below
        if not at % 50:
            os.close(os.open("a.txt", os.O_WRONLY | os.O_CREAT, 0o644, dir_fd=here))
    os.close(here)


def oddly_called(arena: Arena, chance: Random) -> None:
    """Names of any bytes at all, and names that look like ours."""
    here = os.fsencode(arena.out / arena.turn / "files")
    pieces = (b"\xff", b"\n", b"\x1b[2J", "\u202e".encode(), b"\xc0\xae", b"..", b" ", b"\\", b"\x7f", b"a",
    b".part-", b".md", b".png",
              b":", b"|", b"%2e", b"$(x)", b"`", b"'", b'"', b"\xed\xa0\x80", "\ufeff".encode(), b"\r", b"-rf",
              b"CON", "é".encode())  # fmt: skip
    for _ in range(100 if arena.quick else 1000):
        name = b"".join(chance.choices(pieces, k=chance.choice((1, 3, 10)))) + b"x" * chance.choice((0, 0, 0, 240))
        if name in (b".", b".."):
            continue
        at = os.path.join(here, name[:255])
        if chance.random() < 0.2 and not os.path.isfile(at):
            os.makedirs(at, exist_ok=True)
        elif not os.path.isdir(at):
            Path(os.fsdecode(at)).write_bytes(b"x")
    for name in (
        ".part-",
        ".part-0",
        ".part-0123456789abcdef",
        ".part-" + "a" * 32,
        ".artifact-sidecar",
        "timeline.json",
        ".git",
    ):
        path = arena.out / arena.turn / "files" / name
        if not path.is_dir():  # by chance it is one of those above
            path.write_text("{}")


def many_folders(arena: Arena, chance: Random) -> None:
    """More folders than are watched."""
    top = arena.out / arena.turn / "files"
    for at in range(300 if arena.quick else 25_000):
        (top / f"{at % 100}" / f"{at}").mkdir(parents=True)


CROWDS = (many, deep, oddly_called, many_folders)


# What bursts ----------------------------------------------------------------------------------------------------------


def _zip(inner: dict[str, bytes]) -> bytes:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in inner.items():
            archive.writestr(name, content)
    return packed.getvalue()


def _deflated(size: int) -> bytes:
    """Raw deflate data that would come to a thousand times its size in nothing."""
    packer = zlib.compressobj(9, zlib.DEFLATED, -15)
    mebibyte = packer.compress(bytes(MIB)) + packer.flush(zlib.Z_FULL_FLUSH)
    return mebibyte * (size // len(mebibyte)) + packer.flush()


def _burst(name: bytes, size: int) -> bytes:
    """An archive of so many bytes with one entry, of gigabytes."""
    body = _deflated(size)
    facts = struct.pack("<HHHHHIIIHH", 20, 0, 8, 0, 0x21, 0, len(body), 2**32 - 2, len(name), 0)
    local = b"PK\3\4" + facts + name + body
    central = b"PK\1\2" + struct.pack("<H", 20) + facts + struct.pack("<HHHII", 0, 0, 0, 0, 0) + name
    return local + central + b"PK\5\6" + struct.pack("<HHHHIIH", 0, 0, 1, 1, len(central), len(local), 0)


def _png(width: int, height: int, data: bytes) -> bytes:
    def chunk(kind: bytes, body: bytes) -> bytes:
        return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))

    head = struct.pack(">IIBBBBB", width, height, 8, 6, 0, 0, 0)
    text = chunk(b"zTXt", b"x\0\0" + zlib.compress(data))
    return (
        b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + text + chunk(b"IDAT", zlib.compress(data)) + chunk(b"IEND", b"")
    )


LAUGHS = b'<?xml version="1.0"?><!DOCTYPE l [<!ENTITY a "ha">' + b"".join(
    b'<!ENTITY %c "%b">' % (98 + at, b"&%c;" % (97 + at) * 10) for at in range(20)
) + b'<!ENTITY e SYSTEM "file:///etc/passwd">]>'  # fmt: skip
Burst = Callable[[Random, int], bytes]
BOMBS: dict[str, Burst] = {
    "a.zip": lambda chance, size: _zip({"a": bytes(size), "../../outside/secret.txt": b"x", "/etc/passwd": b"x"}),
    "b.zip": lambda chance, size: _zip({f"{at}.zip": _zip({"a": bytes(size // 16)}) for at in range(16)}),
    "a.gz": lambda chance, size: gzip.compress(bytes(size)),
    "a.svgz": lambda chance, size: gzip.compress(b"<svg>" + b" " * size),
    "a.png": lambda chance, size: _png(2**31 - 1, 2**31 - 1, bytes(size)),
    "c.png": lambda chance, size: _png(100_000, 100_000, b"")[:-24] + b"\0\x98\x96\x82IDATx\x9c" + _deflated(10**7),
    "c.pdf": lambda chance, size: b"%%PDF-1.7\n1 0 obj<</Filter/FlateDecode>>stream\nx\x9c%b" % _deflated(10**7),
    "c.xlsx": lambda chance, size: _burst(b"xl/worksheets/sheet1.xml", 10**7),
    "b.png": lambda chance, size: b"\x89PNG\r\n\x1a\n" + b"\xff" * 1000,
    "a.jpg": lambda chance, size: b"\xff\xd8\xff\xe0" + b"\xff\xff" * 30_000,
    "a.gif": lambda chance, size: b"GIF89a\xff\xff\xff\xff" + b"\x2c" * 50_000,
    "a.pdf": lambda chance, size: b"%%PDF-1.7\n1 0 obj<</Filter[/FlateDecode/FlateDecode]/Length 99>>stream\n%b" % (
        zlib.compress(zlib.compress(bytes(size)))
    ),
    "b.pdf": lambda chance, size: b"%PDF-1.4\n" + b"1 0 obj<</Kids[1 0 R]/Parent 1 0 R>>endobj\n" * 20_000,
    "a.xlsx": lambda chance, size: _zip({"xl/sharedStrings.xml": LAUGHS + b"<l>&t;</l>",
    "xl/workbook.xml": b" " * size}),
    "a.docx": lambda chance, size: _zip({"word/document.xml": LAUGHS + b"<l>&t;&e;</l>",
    "[Content_Types].xml": b"<" * size}),
    "a.svg": lambda chance, size: LAUGHS + b"<svg><image href='/etc/passwd'/>&t;&e;</svg>",
    "a.xml": lambda chance, size: LAUGHS + b"<l>&t;&e;</l>",
    "a.html": lambda chance, size: b"<object data='a.html'><embed src=a.html><iframe src=a.html>" * 2000,
    "a.md": lambda chance, size: b"[[S:1-999999999]]" * (size // 1000),
    "a.json": lambda chance, size: b'{"citations":%b' % (b'[{"sids":[1' + b",1" * (size // 100) + b"]}]}"),
    "a.yaml": lambda chance, size: b"a: &a [x,x]\n" + b"".join(b"b%d: &b%d [*a,*a]\n" % (at, at) for at in range(1000)),
    "a.txt": lambda chance, size: ("\u0130\u202e" * (size // 100)).encode() + b"\xff",
    "a.css": lambda chance, size: b"@import 'a.css';" * 20_000,
}  # fmt: skip


def bombs(arena: Arena, chance: Random) -> None:
    """What would be gigabytes, were it unpacked, with names in it that lead outside; every way to look into it."""
    turn = arena.begin()
    name = chance.choice([*BOMBS])
    content = BOMBS[name](chance, chance.choice((MIB, 10 * MIB if arena.quick else 60 * MIB)))
    path = f"{turn}/files/{name}"
    arena.workspace.write(path, content)
    _look_at_all(arena, chance, [path])
    _see_in_editor(arena, path, "")
    arena.talker("runtime").ask([
        ("call/end", {"tool_call_id": f"tc_{turn}", "expect": [path]}),
        ("timeline/render", {}),
        ("artifact/patch", {"path": path, "patch": "@@ -1,1 +1,1 @@\n-a\n+b\n"}),
        ("turn/end", {"turn_id": turn, "completion": {"text": f"see {path} [[S:1-999999999]]"}}),
    ])  # fmt: skip


PIECES = (
    "[[S:1-999999999]]", "<a href=turn_0/files/{at}>x</a>", "[x](turn_0/files/{at})\n", "<img src=../../{at}>", "![",
    "[", "<div>",
    "<style>a{{b:url(x(", "<!--", "<![CDATA[", "<script>", "@import url({at}.css);", "<svg><use href='#{at}'/>",
    "`" * 7, "*" * 9, "> ",
    "- ", "<a href='", "&#x{at};", "&amp", "\\(", "| a ", "<template>", "<math><mi>", "[^{at}]: x\n", "[{at}]: <",
    "<p a='{at}' b=\"",
    "<img srcset='a{at} 1x, ", "<link rel=stylesheet href=turn_0/files/{at}.css>", "data:image/png;base64,AAAA",
    "\0", "\u2028", "_*",
    "<table><tr><td>", "<noscript>", "<base href=/>", "@media(", "a{{b:c;}}", "/*", "url(", "\\", '"',
    "<svg:a xlink:href=", "![x](<", "$$",
)  # fmt: skip


def pages(arena: Arena, chance: Random) -> None:
    """Pages of a few pieces again and again, as content and as files, in every language that is read for references."""
    turn = arena.begin()
    chosen = chance.sample(PIECES, chance.choice((1, 1, 2, 4)))
    size = chance.choice((20 * KIB, 300 * KIB)) if arena.quick else chance.choice((100 * KIB, 2 * MIB, 10 * MIB))
    unit = "".join(chosen)
    page = "".join(unit.replace("{at}", str(at)) for at in range(size // len(unit) + 1))[:size]
    mime = chance.choice(("text/html", "text/markdown", "text/css", "image/svg+xml", "application/json"))
    ending = {"text/html": "html", "text/markdown": "md", "text/css": "css", "image/svg+xml": "svg"}.get(mime, "json")
    path = f"{turn}/files/page.{ending}"
    arena.workspace.write(path, page.encode())
    asked: list[Asked] = [
        ("assets/pull", {"content": page, "mime": mime}), ("assets/pull", {"path": path}),
        ("citations/extract", {"text": page, "mime": mime}), ("citations/replace", {"text": page, "mime": mime}),
        ("artifact/read", {"paths": [path]}), ("context/fetch", {"path": path}),
    ]  # fmt: skip
    arena.talker("exec").ask(asked)
    _see_in_editor(arena, path, page[: 500 * KIB])
    arena.talker("runtime").ask(
        [("call/end", {"tool_call_id": f"tc_{turn}", "expect": [path]}), ("timeline/render", {})]
    )


DEPTHS = (
    60, 100, 200, 245, 250, 253, 254, 255, 256, 260, 300, 500, 900, 990, 1000, 1020, 1024, 1030, 3000, 10_000, 100_000,
)  # fmt: skip


def deep_json(arena: Arena, chance: Random) -> None:
    """JSON of any depth, in params, in what runtimes leave in OUT_DIR, in contents that are read for citations."""
    turn = arena.begin()
    depth = chance.choice(DEPTHS)
    nested = b'{"a":' * depth + b"1" + b"}" * depth if chance.random() < 0.5 else b"[" * depth + b"]" * depth
    if chance.random() < 0.2:
        nested = b'[{"a":' * (depth // 2) + b"1" + b"}]" * (depth // 2)
    for name in ("timeline.json", "context.json", "sources_pool.json", f"{turn}/files/a.json", f"{turn}/files/b.json"):
        (arena.out / name).unlink(missing_ok=True)
        arena.workspace.write(name, b'{"blocks":%b,"sources_pool":[%b]}' % (nested, nested))
    quoted = b'"%b"' % nested.replace(b"\\", b"\\\\").replace(b'"', b'\\"')
    block = b'{"type":"react.note","text":"x","turn_id":"%b",' % turn.encode()
    called = f"d_{turn}".encode()
    asked: list[tuple[str, bytes]] = [
        ("call/begin", b'{"tool_call_id":"%b","tool_id":"x","params":{"x":%b}}' % (called, nested)),
        ("timeline/append", b'{"blocks":[%b"meta":{"x":%b}}]}' % (block, nested)),
        ("timeline/append", b'{"blocks":[%b"extra":%b}]}' % (block, nested)),
        ("timeline/append", b'{"blocks":[{"type":"react.tool.call","mime":"application/json","text":%b}]}' % quoted),
        ("timeline/announce", b'{"blocks":[%b"meta":{"x":%b}}]}' % (block, nested)),
        ("sources/merge", b'{"rows":[{"url":"https://e.org/%b","title":"x","extra":%b}]}' % (called, nested)),
        ("conversation/save", b'{"kind":"x","content":{"x":%b}}' % nested),
        ("artifact/write", b'{"path":"deep.json","kind":"display","content":%b,"mime":"application/json"}' % quoted),
        ("context/bind", b'{"tool_id":"x","params":{"x":%b},"fetch_context":[]}' % nested),
        ("workspace/status", b'{"_meta":{"x":%b}}' % nested),
        ("workspace/executeCommand", b'{"command":"artifact-sidecar.cite","arguments":[%b]}' % nested),
        ("completionItem/resolve", b'{"label":"x","data":%b}' % nested),
        ("initialize", b'{"capabilities":{"experimental":%b},"initializationOptions":%b}' % (nested, nested)),
        ("call/end", b'{"tool_call_id":"%b","result":%b}' % (called, nested)),
    ]
    greeting = arena.dial(chance.choice(("editor", "runtime")))
    deep_greeting = b'{"capabilities":{"experimental":%b,"general":%b},"initializationOptions":{"x":%b},"rootUri":null}'
    greeting.exchange(request(77, "initialize", deep_greeting % (nested, nested, nested)), answers=1)
    runtime = arena.talker("runtime")
    for method, params in asked:
        # What is nested too deeply to be read at all is answered without an id.
        runtime.asked += 1
        said = runtime.exchange(
            frame(b'{"jsonrpc":"2.0","id":77,"method":"%b","params":%b}' % (method.encode(), params)), answers=1
        )
        (answer,) = (one for one in said if "method" not in one)
        must_be_answered_once(answer, f"{method} at depth {depth}")
    for role in ("exec", "editor", "renderer", "runtime"):
        arena.talker(role).ask([
            ("workspace/sync", {}), ("artifact/read", {"paths": ["timeline.json", f"{turn}/files/a.json",
            "fi:deep.json"]}),
            ("artifact/fetch", {"path": "context.json"}), ("timeline/blocks", {"turn_id": turn}), ("timeline/render",
            {}),
            ("sources/list", {}), ("sources/render", {}), ("workspace/changes", {"since": 0}), ("artifact/lineage",
            {"path": f"{turn}/files/a.json", "direction": "up"}),
            ("assets/pull", {"path": f"{turn}/files/b.json"}), ("context/fetch",
            {"path": f"tc:{turn}.{called.decode()}.call"}),
            ("artifact/read", {"paths": [f"tc:{turn}.{called.decode()}.call", f"tc:{turn}.{called.decode()}.result"]}),
        ])  # fmt: skip
    runtime = arena.talker("runtime")
    runtime.ask([("timeline/plan_compaction", {}), ("turn/end", {"turn_id": turn}), ("timeline/flush", {})])
    runtime.ask(
        [
            ("turn/begin", {"turn_id": f"{turn}b"}),
            ("conversation/fetch", {"turn_ids": [turn]}),
            ("conversation/recent", {}),
        ]
    )


def must_be_answered_once(answer: dict[str, object], what: str) -> None:
    if answer.get("id") not in (77, None):
        raise Wrong(f"{what}: {answer}")
    must_be_listed(answer, what)
