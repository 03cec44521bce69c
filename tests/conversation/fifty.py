"""A conversation of fifty turns, of every kind of thing a turn leaves behind, and what each of its paths must answer.

`known` is what a daemon says of everything there is; two daemons of one conversation must say the same.
"""

from __future__ import annotations

import base64
from typing import Any

from tests.conversation.script import PICTURE
from tests.daemon_process import Workspace

CONVERSATION = {"tenant": "acme", "project": "inn", "user_id": "ann:1", "conversation_id": "c|fifty"}
TURNS = 50
COMPACTED = (20, 40)  # the turns in which the beginning of the timeline is left to a summary
RATED = (3, 7, 50)
MAKES_NO_DIFFERENCE = frozenset({"on_disk", "kept", "origin", "missing"})


class Agent:
    """Drives a conversation turn by turn, and remembers the bytes of every external file."""

    def __init__(self, workspace: Workspace) -> None:
        self.workspace = workspace
        self.runtime = workspace.connect("runtime", ceiling=60)
        self.files: dict[str, bytes] = {}
        self.paths: list[str] = []

    def run(self, first: int = 1, last: int = TURNS) -> None:
        for number in range(first, last + 1):
            self.turn(number)

    def turn(self, number: int) -> dict[str, Any]:
        """One turn; answers what its end answered."""
        turn = f"turn_{number}"
        self._begin(turn, number)
        self._make(turn, number)
        if number % 5 == 0:
            self._patch(turn, number)
        if number % 7 == 0:
            shown = {"paths": [f"fi:turn_{number - 1}.files/notes.md"], "replacement": "not needed any more"}
            self.runtime.call("artifact/hide", shown)
        if number in COMPACTED:
            plan = self.runtime.call("timeline/plan_compaction", {"keep_recent_tokens": 400})
            told = self.runtime.call("timeline/compact", {"cut": plan["cut"], "summary": f"Until then, fi:{turn}."})
            self.paths.append(told["path"])
        answer = f"Done with {number} [[S:{number}]]."
        ended = self.runtime.call("turn/end", {"turn_id": turn, "completion": {"text": answer}})
        self.paths += [f"ar:{turn}.user.prompt", f"ar:{turn}.assistant.completion", f"so:sources_pool[{number}]"]
        self.paths += [f"tc:{turn}.tc_{number}.{leaf}" for leaf in ("call", "result")]
        if number in RATED:
            rating = {"turn_id": turn, "reaction": "not_ok", "text": f"rated {number}", "origin": "user"}
            self.runtime.call("turn/feedback", rating)
        return ended

    def _begin(self, turn: str, number: int) -> None:
        begun: dict[str, Any] = {"turn_id": turn, "prompt": f"Do the thing number {number}, bitte schön"}
        if number == 1:
            begun["conversation"] = CONVERSATION
        if number % 4 == 1:
            begun["attachments"] = [
                {"name": "menu (1).csv", "text": f"dish,price\nsoup,{number}\n", "summary": "what is on offer"},
                {"name": "dot.png", "base64": base64.b64encode(PICTURE).decode()},
            ]
            self.files[f"{turn}/attachments/menu (1).csv"] = f"dish,price\nsoup,{number}\n".encode()
            self.files[f"{turn}/attachments/dot.png"] = PICTURE
        self.runtime.call("turn/begin", begun)
        row = {"url": f"https://example.com/{number}", "title": f"Page {number}", "text": "words " * number}
        self.runtime.call("sources/merge", {"rows": [row]})

    def _make(self, turn: str, number: int) -> None:
        """A program makes two files, one of them large and no text; the agent writes a note and shows a display."""
        call = {"tool_call_id": f"tc_{number}", "tool_id": "exec.run", "params": {"code": f"make({number})"}}
        self.runtime.call("call/begin", call)
        self._write(f"{turn}/files/out/rows.csv", f"n\n{number}\n".encode())
        self._write(f"{turn}/files/all.bin", bytes([number]) * 70_000)
        self.workspace.write(f"{turn}/files/scratch.txt", "for nobody")
        internal = {"path": f"{turn}/files/scratch.txt", "visibility": "internal"}
        self.runtime.call("call/end", {"tool_call_id": f"tc_{number}", "result": "ok", "expect": [internal]})
        note = f"# Notes {number}\n\nSee [[S:1]].\n"
        self.runtime.call("artifact/write", {"path": "notes.md", "content": note, "kind": "file"})
        self.files[f"{turn}/files/notes.md"] = note.encode()
        page = {"path": "page.html", "content": f"<p>{number}</p>", "kind": "display", "channel": "canvas"}
        self.runtime.call("artifact/write", page)
        self.paths += [f"fi:{turn}.files/page.html"]

    def _patch(self, turn: str, number: int) -> None:
        patch = f"@@ -1,3 +1,3 @@\n-# Notes {number}\n+# Better notes {number}\n \n See [[S:1]].\n"
        assert self.runtime.call("artifact/patch", {"path": "notes.md", "patch": patch})["ok"]
        self.files[f"{turn}/files/notes.md"] = f"# Better notes {number}\n\nSee [[S:1]].\n".encode()

    def _write(self, path: str, content: bytes) -> None:
        self.workspace.write(path, content)
        self.files[path] = content

    @property
    def every_path(self) -> list[str]:
        logical = [
            path.replace("/attachments/", ".user.attachments/").replace("/files/", ".files/") for path in self.files
        ]
        return [*self.paths, *(f"fi:{path}" for path in logical)]


def known(workspace: Workspace, paths: list[str]) -> dict[str, Any]:
    """All that a daemon says of a conversation, without what differs because the files lie elsewhere."""
    runtime = workspace.connect("runtime", ceiling=60)
    blocks: list[dict[str, Any]] = []
    since = 0
    while True:
        page = runtime.call("timeline/blocks", {"since": since})
        blocks += page["blocks"]
        if page["next_since"] == since or not page["blocks"]:
            break
        since = page["next_since"]
    answer = {
        "blocks": blocks,
        "sources": runtime.call("sources/list")["rows"],
        "resolved": [_same(one) for one in runtime.call("artifact/resolve", {"paths": paths})["results"]],
        "fetched": {path: _same(runtime.call("artifact/fetch", {"path": path})) for path in paths},
        "versions": {
            path: [_same(one) for one in runtime.call("artifact/versions", {"path": path})["versions"]]
            for path in paths
            if path.startswith("fi:")
        },
        "rendered": runtime.call("timeline/render", {"as": "text", "include_announce": False})["text"],
    }
    runtime.close()
    return answer


def _same(value: Any) -> Any:
    match value:
        case dict():
            # A slice of the pool is made when it is asked for.
            is_slice = str(value.get("artifact_path", "")).startswith("so:")
            left_out = MAKES_NO_DIFFERENCE | ({"ts"} if is_slice else set())
            return {key: _same(item) for key, item in value.items() if key not in left_out}
        case list():
            return [_same(item) for item in value]
        case _:
            return value
