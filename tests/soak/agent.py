"""The agent loop: turn after turn of all that a runtime does, at a steady rate.

What a turn leaves behind does not depend on how many there were before, so that what is kept grows with turns alone.
"""

from __future__ import annotations

import base64
import shutil
from itertools import count
from typing import Any

from tests.rpc_client import AsyncClient
from tests.soak.lander import landed
from tests.soak.world import TURNS_ON_DISK, World

STEP = 1.2  # seconds between two steps of a turn, of which there are about twenty
CALLS = 4
TURNS_TO_COMPACT = 5
CONVERSATION = {"tenant": "soak", "project": "soak", "user_id": "ann", "conversation_id": "c-1"}
REPORT = "# Report {turn}\n\nIt is so [[S:1]], see [[S:{sid}]].\n\n" + "One more line of the report.\n" * 40
PATCH = "@@ -1,3 +1,3 @@\n-# Report {turn}\n+# Report {turn}, mended\n \n It is so [[S:1]], see [[S:{sid}]].\n"
PAGE = "<html><body><img src='{turn}/attachments/dot.png'><a href='fi:{turn}.files/report.md'>x</a></body></html>"


async def agent(world: World) -> None:
    async with world.client("runtime", events=["timeline"]) as runtime:
        for number in count(1):
            loop = AgentTurn(world, runtime, number)
            if not await loop.run():
                return


class AgentTurn:
    """One turn from its begin to the reaction of its user."""

    def __init__(self, world: World, runtime: AsyncClient, number: int) -> None:
        self._world = world
        self._client = runtime
        self._number = number
        self._turn = f"turn_{number}"
        self._sid = 1

    async def run(self) -> bool:
        """False when the soak is over; the turn is ended nevertheless."""
        await self._begin()
        goes_on = True
        for step in (self._sources, *(self._call,) * CALLS, self._write, self._cite, self._look_back, self._compact):
            goes_on = goes_on and await self._world.beat(STEP * 2)
            if goes_on:
                await step()
            self._client.mail.notifications.clear()
        await self._end()
        return goes_on

    async def _ask(self, method: str, /, **params: Any) -> Any:
        return await self._world.ask(self._client, method, params)

    async def _begin(self) -> None:
        earlier = {"rehost": [self._world.absent[-1]]} if self._world.absent else {}
        attachments = [
            {"name": "note.txt", "text": f"What the user noted before {self._turn}.\n" * 20, "summary": "a note"},
            {"name": "note.txt", "text": "another"},
            {"name": "dot.png", "base64": base64.b64encode(self._world.chance.randbytes(3000)).decode()},
        ]
        begun = await self._ask(
            "turn/begin", turn_id=self._turn, prompt=f"Question {self._number}: how are the offers?" * 5,
            attachments=attachments, conversation=CONVERSATION, request_id=f"begin-{self._number}", **earlier,
        )  # fmt: skip
        if begun is not None:
            self._world.turn = self._turn
            self._world.recent.append(self._turn)
            for missing in begun["missing"]:
                self._world.accounts.surprised("turn/begin rehost", missing)
            self._world.paths.extend(one["artifact_path"] for one in begun["attachments"])

    async def _sources(self) -> None:
        """One new source, and two that everybody knows."""
        urls = [f"https://example.org/{self._number}", "https://example.org/known/1", "https://example.org/known/2"]
        rows = [{"url": url, "title": f"About {url}", "text": "What it says. " * 20} for url in urls]
        merged = await self._ask("sources/merge", rows=rows)
        if merged is not None:
            self._sid = merged["rows"][0]["sid"]
            self._world.ledger.sources |= {row["sid"]: row["url"] for row in merged["rows"]}

    async def _call(self) -> None:
        """A tool call whose program makes two files, one of them nobody's business; the agent takes notes."""
        call = f"tc_{self._number}_{self._world.accounts.counts['call/begin']}"
        await self._ask("call/begin", tool_call_id=call, tool_id="exec", params={"code": "print(1)\n" * 30})
        folder = f"{self._turn}/files/made"
        made = [
            landed(self._world, f"{folder}/{call}.{ending}", size) for ending, size in (("csv", 4000), ("log", 500))
        ]
        expect = [made[0], {"path": made[1], "visibility": "internal"}]
        ended = await self._ask("call/end", tool_call_id=call, result={"ok": True, "said": "made" * 50}, expect=expect)
        if ended is not None:
            for wrong in (*ended["missing"], *ended["unsettled"]):
                self._world.accounts.surprised("call/end", wrong)
            for artifact in ended["artifacts"]:
                self._world.ledger.files[artifact["artifact_path"]].add(artifact["sha256"])
                if artifact["visibility"] == "external":  # what everybody else may ask for
                    self._world.paths.append(artifact["artifact_path"])
        await self._append([f"{call} note {part}: " + "what I think of it. " * 10 for part in range(3)])

    async def _append(self, texts: list[str]) -> None:
        told = await self._ask("timeline/append", blocks=[{"type": "react.notes", "text": text} for text in texts])
        if told is not None:
            self._world.ledger.blocks |= {one["index"]: text for one, text in zip(told["blocks"], texts, strict=True)}

    async def _write(self) -> None:
        content, names = REPORT.format(turn=self._turn, sid=self._sid), {"turn": self._turn, "sid": self._sid}
        await self._ask(
            "artifact/write", path="report.md", content=content, kind="file", request_id=f"w-{self._number}"
        )
        await self._ask("artifact/write", path="shown.md", content=content, kind="display", channel="canvas")
        patched = await self._ask("artifact/patch", path="report.md", patch=PATCH.format(**names))
        if patched is not None and not patched["ok"]:
            self._world.accounts.surprised("artifact/patch", patched["error"])
        elif patched is not None:
            artifact = patched["artifact"]
            self._world.ledger.files[artifact["artifact_path"]].add(artifact["sha256"])
            self._world.paths.append(artifact["artifact_path"])
        await self._ask("artifact/hide", paths=["report.md", f"fi:{self._turn}.files/shown.md"], replacement="a draft")
        await self._ask("assets/pull", content=PAGE.format(turn=self._turn), mime="text/html")

    async def _cite(self) -> None:
        text = f"As [[S:1]] and [[S:{self._sid}]] say. " * 20
        await self._ask("citations/replace", text=text)
        await self._ask("citations/extract", text=text)
        stream = f"s-{self._number}"
        for at in range(0, len(text), 100):
            await self._ask("citations/stream", stream_id=stream, chunk=text[at : at + 100])
        await self._ask("citations/stream", stream_id=stream, flush=True)
        await self._ask("sources/render")

    async def _look_back(self) -> None:
        await self._ask("timeline/announce", blocks=[{"type": "react.notes", "text": "Mind the time."}])
        for form in ("messages", "text"):
            await self._ask("timeline/render", **{"as": form})
        saved = await self._ask(
            "conversation/save", kind="soak.note", content={"turn": self._turn, "words": "soup and fish"}
        )
        if saved is not None:
            self._world.ledger.saved.add(saved["message_id"])
        await self._ask("conversation/search", query="soup")
        await self._ask("conversation/recent", limit=20)
        await self._ask("conversation/fetch", limit=3)
        await self._ask("context/fetch", path="current_turn.files.report.md")

    async def _compact(self) -> None:
        if self._number % TURNS_TO_COMPACT:
            return
        plan = await self._ask("timeline/plan_compaction", keep_recent_tokens=3000)
        if plan is not None and plan["cut"] is not None:
            summary = f"Up to {self._turn} reports were written. [[S:1]]"
            await self._ask("timeline/compact", cut=plan["cut"], summary=summary)

    async def _end(self) -> None:
        vector = [self._world.chance.random() for _ in range(8)]
        ended = await self._ask(
            "turn/end", turn_id=self._turn, completion={"text": f"Answered [[S:{self._sid}]]. " * 10},
            embeddings={"chat:assistant": vector}, request_id=f"end-{self._number}",
        )  # fmt: skip
        self._world.turn = None
        if ended is not None:
            if any(one["kind"] == "turn.log" for one in ended["saved"]):
                self._world.ledger.turns.add(self._turn)
            else:
                self._world.accounts.surprised("turn/end", f"not saved in time: {ended['notices']}")
        said = f"reaction {self._number}"
        given = {"turn_id": self._turn, "reaction": "ok", "text": said, "origin": "user"}
        if await self._ask("turn/feedback", **given) is not None:
            self._world.ledger.reactions[self._turn] = said
        self._sweep()

    def _sweep(self) -> None:
        """Only the latest turns stay in OUT_DIR, also of what was brought back, as where a workspace is made anew."""
        while len(self._world.recent) > TURNS_ON_DISK:
            self._world.recent.popleft()
        for folder in self._world.workspace.out_dir.glob("turn_*"):
            if folder.name not in self._world.recent:
                shutil.rmtree(folder, ignore_errors=True)
