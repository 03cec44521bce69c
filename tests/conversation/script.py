"""A conversation of five turns, as an agent loop drives it: what is said, made, patched, compacted and brought back.

The script knows what every file must hold at the end, byte for byte, and keeps all that the runtime was told of
hosting, so that a test can look for it where it must not be.
"""

from __future__ import annotations

import base64
import json
import shutil
from typing import Any

import orjson

from tests.daemon_process import Workspace, eventually

PICTURE = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg=="
)
MENU = "dish,price\nsoup,4\nfish,11\n"
ROWS = "day,guests\nmon,12\ntue,9\nwed,30\n"
PATCH = "@@ -2,2 +2,2 @@\n mon,12\n-tue,9\n+tue,19\n"
PATCHED = "day,guests\nmon,12\ntue,19\nwed,30\n"
REPORT = "# Guests\n\nWednesday is the day [[S:1]], see [[S:3]].\n"
ARCHIVE = bytes(range(256)) * 512
HOSTING = ("hosted_uri", "rn", "key")

EXPECTED: dict[str, bytes] = {
    "turn_1/attachments/menu.csv": MENU.encode(),
    "turn_1/attachments/menu-2.csv": b"dish,price\n",
    "turn_1/attachments/dot.png": PICTURE,
    "turn_2/files/out/rows.csv": ROWS.encode(),
    "turn_2/files/again/rows.csv": ROWS.encode(),
    "turn_2/files/all.bin": ARCHIVE,
    "turn_3/files/out/rows.csv": PATCHED.encode(),
    "turn_3/files/report.md": REPORT.encode(),
}
INTERNAL = "turn_2/files/scratch.txt"


class Conversation:
    """The agent loop. Each turn is a method; `finish` says what stands where."""

    def __init__(self, workspace: Workspace) -> None:
        self.workspace = workspace
        self.runtime = workspace.connect("runtime")
        self.secrets: set[str] = set()  # every uri, handle and key that the runtime got to see
        self.rendered: list[str] = []
        self.digests: list[str] = []

    def ask(self, method: str, params: dict[str, Any] | None = None) -> Any:
        answer = self.runtime.call(method, params)
        self._note_secrets(answer)
        return answer

    def first_turn(self) -> None:
        """The user attaches a table twice and a picture."""
        begun = self.ask(
            "turn/begin",
            {
                "turn_id": "turn_1",
                "conversation": {"tenant": "acme", "project": "inn", "user_id": "ann", "conversation_id": "c-1"},
                "prompt": "What sells on which day?",
                "attachments": [
                    {"name": "menu.csv", "text": MENU, "summary": "what is on offer"},
                    {"name": "menu.csv", "text": "dish,price\n"},
                    {"name": "dot.png", "base64": base64.b64encode(PICTURE).decode()},
                ],
            },
        )
        assert [one["sid"] for one in begun["attachments"]] == [1, 2, 3]
        self.ask("turn/end", {"turn_id": "turn_1", "completion": {"text": "Soup sells [[S:1]]."}})

    def second_turn(self) -> None:
        """A program makes files: two of one name, one too large to show, one for nobody's eyes."""
        self.ask("turn/begin", {"turn_id": "turn_2", "prompt": "Count the guests"})
        self.ask("call/begin", {"tool_call_id": "tc_count", "tool_id": "exec", "params": {"code": "count()"}})
        for path, content in EXPECTED.items():
            if path.startswith("turn_2/"):
                self.workspace.write(path, content)
        self.workspace.write(INTERNAL, "for nobody")
        ended = self.ask(
            "call/end",
            {"tool_call_id": "tc_count", "result": "ok", "expect": [{"path": INTERNAL, "visibility": "internal"}]},
        )
        assert len(ended["artifacts"]) == 4
        assert ended["missing"] == []
        self._render()
        self.ask("turn/end", {"turn_id": "turn_2", "completion": {"text": "Counted, see fi:turn_2.files/out/rows.csv"}})

    def third_turn(self) -> None:
        """A file of the turn before is patched, which makes it this turn's; a report is written."""
        self.ask("turn/begin", {"turn_id": "turn_3", "prompt": "Tuesday was 19"})
        patched = self.ask("artifact/patch", {"path": "fi:turn_2.files/out/rows.csv", "patch": PATCH})
        assert patched["ok"]
        assert [said["code"] for said in patched["notices"]] == ["protocol_violation.path_rewritten"]
        written = self.ask("artifact/write", {"path": "report.md", "content": REPORT, "kind": "file"})
        assert written["artifact"]["sources_used"] == [1, 3]
        self._render()
        self.ask("turn/end", {"turn_id": "turn_3", "completion": {"text": "Patched."}})

    def fourth_turn(self) -> None:
        """What came before is compacted; every path of it still resolves."""
        self.ask("turn/begin", {"turn_id": "turn_4", "prompt": "Go on"})
        plan = self.ask("timeline/plan_compaction", {"keep_recent_tokens": 50})
        assert plan["cut"] is not None
        assert set(plan["covered_turn_ids"]) >= {"turn_1", "turn_2"}
        self.rendered.append(plan["text"])
        self.rendered.append(json.dumps(plan["digest"]))
        before = sum(len(one.get("text") or "") for one in self.ask("timeline/render")["messages"])
        compacted = self.ask("timeline/compact", {"cut": plan["cut"], "summary": "Guests were counted. [[S:1]]"})
        after = sum(len(one.get("text") or "") for one in self.ask("timeline/render")["messages"])
        assert after < before
        assert compacted["path"].endswith(".conv.range.summary")
        self._render()
        old = [
            "ar:turn_1.user.prompt",
            "tc:turn_2.tc_count.result",
            compacted["path"],
            *(f"fi:{path.replace('/', '.', 1)}" for path in EXPECTED if path.startswith("turn_2/")),
        ]
        assert all(one["found"] for one in self.ask("artifact/resolve", {"paths": old})["results"])
        self.ask("turn/end", {"turn_id": "turn_4"})

    def forget_everything_here(self) -> None:
        """OUT_DIR is emptied and nothing is kept: what is still known is in the journal and in the store."""
        eventually(lambda: self._all_hosted())
        self.runtime.drop()
        self.workspace.stop()
        for entry in self.workspace.out_dir.iterdir():
            shutil.rmtree(entry) if entry.is_dir() else entry.unlink()
        shutil.rmtree(self.workspace.state_dir / "kept")
        self.workspace.start()
        self.runtime = self.workspace.connect("runtime")

    def fifth_turn(self) -> None:
        """A fresh OUT_DIR gets back all that the turns made."""
        begun = self.ask("turn/begin", {"turn_id": "turn_5", "prompt": "Where were we?", "rehost": "all"})
        # What is internal was never hosted, and is still there because the timeline holds its text.
        origins = {one["physical_path"]: one["origin"] for one in begun["rehosted"]}
        assert origins == {**dict.fromkeys(EXPECTED, "store"), INTERNAL: "inline"}, begun
        assert begun["missing"] == []
        self._render()
        self._read_as_program()
        self.ask("turn/end", {"turn_id": "turn_5", "completion": {"text": "All is back."}})

    def finish(self) -> dict[str, bytes]:
        """What stands in OUT_DIR, views aside. Everything was read, and every digest is noted."""
        blocks = self.ask("timeline/blocks")["blocks"]
        for block in blocks:
            if block["type"] == "user.attachment.meta" or block.get("path", "").startswith("tc:"):
                self.digests.append(block["text"])
            if (block.get("meta") or {}).get("digest"):
                self.digests.append(block["meta"]["digest"])
        self.runtime.close()
        out = self.workspace.out_dir
        files = {path.relative_to(out).as_posix(): path for path in out.rglob("*") if path.is_file()}
        return {name: path.read_bytes() for name, path in files.items() if "/" in name and name != INTERNAL}

    def _all_hosted(self) -> bool:
        artifacts = self.ask("artifact/list")["artifacts"]
        return all("key" in one for one in artifacts if one["visibility"] == "external" and one["on_disk"])

    def _render(self) -> None:
        self.rendered.append(self.ask("timeline/render", {"as": "text", "include_sources": True})["text"])
        self.rendered.append(json.dumps(self.ask("timeline/render", {"as": "messages"})["messages"]))
        self.rendered.append(self.ask("sources/render")["text"])
        self.rendered.append((self.workspace.out_dir / "timeline.json").read_text()) if self._has_view() else None

    def _has_view(self) -> bool:
        return (self.workspace.out_dir / "timeline.json").exists()

    def _read_as_program(self) -> None:
        """A program and an editor ask for everything there is."""
        for role in ("exec", "editor", "renderer"):
            client = self.workspace.connect(role)
            paths = [*EXPECTED, "ar:turn_1.user.prompt", "tc:turn_2.tc_count.result", "so:sources_pool[1-99]"]
            client.call("artifact/resolve", {"paths": paths})
            client.call("artifact/read", {"paths": paths})
            client.call("artifact/list")
            client.call("sources/list")
            for path in paths:
                client.call("artifact/fetch", {"path": path})
            if role == "exec":
                client.call("artifact/rehost", {"paths": [*EXPECTED]})
            client.close()

    def _note_secrets(self, answer: Any) -> None:
        match answer:
            case dict():
                for key, value in answer.items():
                    if key in HOSTING and isinstance(value, str):
                        self.secrets.add(value)
                    else:
                        self._note_secrets(value)
            case list():
                for item in answer:
                    self._note_secrets(item)


def told_to(record: bytes, role: str) -> list[str]:
    """Every body that a client of this role was sent, from the daemon's recording."""
    lines = [orjson.loads(line) for line in record.splitlines()]
    return [orjson.dumps(line["body"]).decode() for line in lines if line["role"] == role and line["way"] == "out"]
