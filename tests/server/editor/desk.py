"""An editor at its desk: one client of a real daemon with documents open, in the encoding of positions it asks for."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from tests.daemon_process import Workspace
from tests.rpc_client import Client

CEILING = 60.0
FULL: dict[str, Any] = {
    "textDocument": {
        "documentLink": {"tooltipSupport": True},
        "hover": {"contentFormat": ["markdown", "plaintext"]},
        "codeAction": {"codeActionLiteralSupport": {"codeActionKind": {"valueSet": ["quickfix"]}}},
    },
    "workspace": {"fileOperations": {"willRename": True}, "workspaceEdit": {"documentChanges": True}},
}


class Desk:
    """Documents by name; a name without a slash lies outside OUT_DIR. Positions are given as offsets in the text."""

    def __init__(self, workspace: Workspace, client: Client, encoding: str) -> None:
        self.workspace = workspace
        self.client = client
        self.encoding = encoding
        self.texts: dict[str, str] = {}
        self.versions: dict[str, int] = {}

    def uri(self, name: str) -> str:
        return f"file://{self.workspace.out_dir}/{name}" if "/" in name else f"file:///elsewhere/{name}"

    def open(self, text: str, name: str = "notes.md", language: str = "markdown") -> Desk:
        self.texts[name], self.versions[name] = text, 1
        document = {"uri": self.uri(name), "languageId": language, "version": 1, "text": text}
        self.client.notify("textDocument/didOpen", {"textDocument": document})
        return self

    def edit(self, old: str, new: str, name: str = "notes.md") -> None:
        """Replace the first `old` by an incremental change."""
        start = self.texts[name].index(old)
        change = {"range": self.range(start, start + len(old), name), "text": new}
        self.texts[name] = self.texts[name].replace(old, new, 1)
        self.versions[name] += 1
        which = {"uri": self.uri(name), "version": self.versions[name]}
        self.client.notify("textDocument/didChange", {"textDocument": which, "contentChanges": [change]})

    def close(self, name: str = "notes.md") -> None:
        self.client.notify("textDocument/didClose", {"textDocument": {"uri": self.uri(name)}})

    def ask(self, method: str, name: str = "notes.md", **params: Any) -> Any:
        return self.client.call(method, {"textDocument": {"uri": self.uri(name)}, **params})

    def on(self, method: str, word: str, name: str = "notes.md") -> Any:
        """Ask about the middle of the first `word`."""
        start = self.texts[name].index(word)
        return self.ask(method, name, position=self.position(start + len(word) // 2, name))

    def fixes(self, word: str, name: str = "notes.md") -> list[dict[str, Any]]:
        start = self.texts[name].index(word)
        place = self.range(start, start + len(word), name)
        return self.ask("textDocument/codeAction", name, range=place, context={"diagnostics": []})

    def diagnostics(self, name: str = "notes.md") -> list[tuple[str, str]]:
        """The next that is published for a document: each with its code and the text that it underlines."""
        return [(one["code"], self.slice(one["range"], name)) for one in self.published(name)]

    def published(self, name: str = "notes.md") -> list[dict[str, Any]]:
        while (told := self.client.event("textDocument/publishDiagnostics"))["uri"] != self.uri(name):
            pass
        return told["diagnostics"]

    # Positions, counted by the test itself

    def position(self, offset: int, name: str = "notes.md") -> dict[str, int]:
        before = self.texts[name][:offset]
        line = before.rpartition("\n")[2]
        return {"line": before.count("\n"), "character": self._units(line)}

    def range(self, start: int, end: int, name: str = "notes.md") -> dict[str, Any]:
        return {"start": self.position(start, name), "end": self.position(end, name)}

    def slice(self, place: dict[str, Any], name: str = "notes.md") -> str:
        """The text that a range covers; what is not on a character's edge matches no offset."""
        text = self.texts[name]
        offsets = {tuple(self.position(at, name).values()): at for at in range(len(text) + 1)}
        start, end = place["start"], place["end"]
        return text[offsets[start["line"], start["character"]] : offsets[end["line"], end["character"]]]

    def applied(self, edits: list[dict[str, Any]], name: str = "notes.md") -> str:
        """The document with edits made, the last first."""
        text = self.texts[name]
        for edit in sorted(
            edits, key=lambda one: (one["range"]["start"]["line"], one["range"]["start"]["character"]), reverse=True
        ):
            old = self.slice(edit["range"], name)
            start = next(at for at in range(len(text) + 1) if self.position(at, name) == edit["range"]["start"])
            text = f"{text[:start]}{edit['newText']}{text[start + len(old) :]}"
        return text

    def _units(self, text: str) -> int:
        return {"utf-8": len(text.encode()), "utf-16": len(text.encode("utf-16-le")) // 2, "utf-32": len(text)}[
            self.encoding
        ]


def sit_down(
    workspace: Workspace, *, encoding: str = "utf-16", capabilities: dict[str, Any] | None = None, **options: Any
) -> Desk:
    """Connect as an editor. Its diagnostics are published, and read or forgotten by the test."""
    client = workspace.dial("editor")
    client.ceiling = CEILING
    wanted = {**(FULL if capabilities is None else capabilities), "general": {"positionEncodings": [encoding]}}
    if capabilities is not None and "general" in capabilities:
        wanted["general"] = {**capabilities["general"], "positionEncodings": [encoding]}
    result = client.call(
        "initialize",
        {"processId": None, "rootUri": None, "capabilities": wanted, "initializationOptions": options},
    )
    client.notify("initialized", {})
    client.welcome = result["capabilities"]
    assert result["capabilities"]["positionEncoding"] == encoding
    return Desk(workspace, client, encoding)


@contextmanager
def desk_of(workspace: Workspace, **options: Any) -> Iterator[Desk]:
    """A desk whose client leaves at the end, without a look at what it was told and did not read."""
    desk = sit_down(workspace, **options)
    try:
        yield desk
    finally:
        desk.client.drop()


def story(workspace: Workspace) -> list[int]:
    """Two turns with a report each, an internal file, and two sources of the web, whose numbers are the answer."""
    runtime = workspace.connect("runtime", ceiling=CEILING)
    runtime.call("turn/begin", {"turn_id": "turn_1"})
    for name, content in {"report.md": "# One", "data.csv": "a,b", "plan (final).md": "plan"}.items():
        runtime.call("artifact/write", _write(f"fi:turn_1.files/{name}", content))
    runtime.call("artifact/write", _write("fi:turn_1.files/secret.md", "hidden", visibility="internal"))
    runtime.call("turn/end", {"turn_id": "turn_1"})
    runtime.call("turn/begin", {"turn_id": "turn_2"})
    runtime.call("artifact/write", _write("fi:turn_2.files/report.md", "# Two"))
    runtime.call("turn/end", {"turn_id": "turn_2"})
    rows = [
        {"url": "https://example.org/a?b=1", "title": "A *bold* [title](command:x)", "text": "What is <b>said</b>"},
        {"url": "command:workbench.action.quit", "title": "Trap"},
    ]
    merged = runtime.call("sources/merge", {"rows": rows})
    runtime.call("workspace/sync")
    runtime.forget_events()
    return [row["sid"] for row in merged["rows"]]


def _write(path: str, content: str, *, visibility: str = "external") -> dict[str, Any]:
    return {"path": path, "content": content, "kind": "file", "visibility": visibility}
