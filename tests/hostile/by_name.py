"""Attacks by what things are called: hostile texts at every place of every method, and in every editor's request."""

from __future__ import annotations

from random import Random

from tests.daemon_process import ROLES
from tests.hostile.arena import Arena
from tests.hostile.asks import editor_asks, places
from tests.hostile.texts import hostile_text

SAMPLE = 60  # places of one attack


def texts(arena: Arena, chance: Random) -> None:
    """One text at sixty places, each asked for by a role that may and by one that may not; the open turn is its own."""
    turn = arena.begin()
    text = hostile_text(chance, arena.guard.aims(arena.workspace), str(arena.out))
    by_role: dict[str, list[tuple[str, object]]] = {role: [] for role in ROLES}
    for place in chance.sample(places(), SAMPLE):
        role = chance.choice(place.roles if chance.random() < 0.9 else ROLES)
        by_role[role].append(place.filled(text, turn=turn, call=f"tc_{turn}"))
    for role, asked in by_role.items():
        arena.talker(role).ask(asked)


def in_editors(arena: Arena, chance: Random) -> None:
    """A document under a hostile address that says hostile things, and everything that editors ask about it."""
    aims = arena.guard.aims(arena.workspace)
    text = hostile_text(chance, aims, str(arena.out))
    uri = chance.choice(
        (text, f"file://{arena.out}/{text}", f"artifact-sidecar:///{text}?version=1", f"untitled:{text}")
    )
    said = "\n".join(hostile_text(chance, aims, str(arena.out)) for _ in range(20))
    # Half a surrogate pair is no JSON: there is nothing then that an editor could do.
    uri, text, said = (one.encode("utf-8", "replace").decode() for one in (uri, text, said))
    role = chance.choice(("editor", "editor", "editor", *ROLES))
    editor = arena.talker(role, events=["sources", "artifacts", "timeline", "notices"])
    language = chance.choice(("markdown", "html", "plaintext", "python"))
    document = {"uri": uri, "languageId": language, "version": 1, "text": f"{text}\n[[S:1]] fi:{text}\n{said}"}
    editor.ask([("textDocument/didOpen", {})])  # a notification that is sent as a request is refused
    arena.tell(editor, "textDocument/didOpen", {"textDocument": document})
    change = {"textDocument": {"uri": uri, "version": 2}, "contentChanges": [{"text": f"{said}\n{text}"}]}
    asked = editor_asks(uri) + editor_asks(text)
    editor.ask(asked[: len(asked) // 2])
    arena.tell(editor, "textDocument/didChange", change)
    editor.ask(asked[len(asked) // 2 :])
    arena.tell(editor, "textDocument/didClose", {"textDocument": {"uri": uri}})
    editor.ask([("workspace/status", {})])


def selectors(arena: Arena, chance: Random) -> None:
    """Ranges, number sets, patterns and diffs that would take for ever, were they taken at their word."""
    turn = arena.begin()
    digits = chance.choice(
        ("999999999", "9" * 20, "9" * 5000, "18446744073709551616", "-1", "0", "1e9", "٣٣٣", "1_000")
    )
    count = chance.choice((1, 100, 1000))
    ranges = ",".join(f"{chance.choice(('1', '0', str(at), str(3 * at)))}-{digits}" for at in range(count))
    spread = ",".join(str(at * 2) for at in range(count * 4))
    token = chance.choice(
        ("[[S:%s]]", "[[S:%s", "【S:%s】", "[[S: %s ]]", "[[[S:%s]]]", "<sup>[[S:%s]]</sup>", "so:sources_pool[%s]")
    )
    cited = (token % chance.choice((ranges, spread, digits))) * chance.choice((1, 20, 20 if arena.quick else 200))
    cited = cited[: 4 << 20]
    bomb = chance.choice(
        ("(a+)+$", "(a|a)*b", "(x{1,1000}){1,1000}", "((((a*)*)*)*)*", "[" * 900, "(" * 999, "\\pL" * 300, ".*" * 400,
         "(?i)" + "s" * 900, "^(.?){500}.{500}$", "(?P<x>a)" * 100, "a{1000}" * 140, "\ud800", "\0", "(?=x)")
    )  # fmt: skip
    numbers = "".join(f"@@ -{digits},{digits} +1,{at} @@\n-x\n+y\n" for at in range(chance.choice((1, 200))))
    mime = chance.choice(("text/markdown", "text/html", "text/plain"))
    stream = f"s{chance.getrandbits(30)}"
    cut = chance.randrange(len(cited) + 1)
    asked = [
        ("sources/list", {"selector": spread[:60_000]}),
        ("sources/list", {"selector": ranges[:60_000]}),
        ("artifact/fetch", {"path": f"so:sources_pool[{ranges}]"[:65_000]}),
        ("artifact/fetch", {"path": f"so:sources_pool[{spread}]"[:65_000]}),
        (
            "artifact/lineage",
            {"path": f"so:sources_pool[{spread}]"[:16_000], "direction": chance.choice(("up", "down"))},
        ),
        ("artifact/resolve", {"paths": [cited[:16_000], f"so:sources_pool[{ranges}]"[:16_000]]}),
        ("citations/extract", {"text": cited, "mime": mime}),
        ("citations/replace", {"text": cited, "mime": mime}),
        ("citations/stream", {"stream_id": stream, "chunk": cited[:cut], "mime": mime}),
        ("citations/stream", {"stream_id": stream, "chunk": cited[cut:], "flush": True}),
        ("artifact/search", {"root": "", "content_regex": bomb}),
        ("artifact/search", {"root": "turn_0", "name_regex": bomb, "content_regex": bomb, "context_lines": 20}),
    ]
    arena.talker(chance.choice(("exec", "editor"))).ask(asked)
    changes = [
        ("artifact/write", {"path": "cited.md", "kind": chance.choice(("file", "display")), "content": cited}),
        ("artifact/patch", {"path": "cited.md", "patch": f"--- a/x\n+++ b/x\n{numbers}"}),
        ("artifact/patch", {"path": "cited.md", "patch": numbers}),
        ("timeline/append", {"blocks": [{"type": "react.note", "text": cited, "path": f"ar:{turn}.note.x"}]}),
        ("timeline/render", {}),
        ("turn/end", {"turn_id": turn, "completion": {"text": cited}}),
    ]
    runtime = arena.talker("runtime")
    for one in changes:  # together their answers would be more than may wait for one client
        runtime.ask([one])
