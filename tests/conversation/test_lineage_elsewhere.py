"""What was made of what is known to every daemon of a conversation, whichever of them saw it being made."""

from __future__ import annotations

import json
import socket
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.daemon_process import Workspace, eventually
from tests.rpc_client import Client

pytestmark = pytest.mark.rule("store.a-conversation-is-resumed-from-the-store")

IDENTITY = {"tenant": "acme", "project": "inn", "user_id": "ann", "conversation_id": "c-1"}
MENU, OUT, TWO = "fi:turn_1.user.attachments/menu.txt", "fi:turn_1.files/out.md", "fi:turn_2.files/two.md"
RECORD, PAGE = "ar:turn_1.context.artifact.draft", "ar:turn_1.context.artifact.page"
PATHS = (MENU, OUT, TWO, RECORD, PAGE, "fi:turn_1.files/page.md", "fi:turn_2.files/blind.md", "so:sources_pool[2]")
Make = Callable[..., Workspace]


@pytest.fixture
def shared(tmp_path: Path) -> dict[str, str]:
    return {"store": str(tmp_path / "store"), "index": str(tmp_path / "index.db"), **IDENTITY}


def program(daemon: Workspace) -> tuple[Client, str]:
    """A connection as the program of a call has it, and the name that the kernel gave it."""
    end = socket.socket(socket.AF_UNIX)
    end.bind("")
    end.connect(str(daemon.socket("exec")))
    client = Client.over(end)
    daemon._clients.append(client)
    client.initialize()
    return client, end.getsockname()[1:].decode()


def record(name: str, kind: str, value: Any, **more: Any) -> dict[str, Any]:
    return {"type": "context.artifact", "artifact_id": name, "artifact_kind": kind, "value": value, **more}


def have_two_turns(first: Workspace, runtime: Client) -> None:
    """Calls with and without a channel of their own, and records with and without a call."""
    attached = [{"name": "menu.txt", "text": "menu"}]
    runtime.call("turn/begin", {"turn_id": "turn_1", "prompt": "Cook", "attachments": attached})
    runtime.call("sources/merge", {"rows": [{"url": f"https://example.com/{n}", "title": str(n)} for n in range(3)]})
    watched, channel = program(first)
    params = {"from": MENU}
    runtime.call("call/begin", {"tool_call_id": "k1", "tool_id": "t", "params": params, "channel": channel})
    watched.call("artifact/fetch", {"path": "so:sources_pool[2,3]"})
    first.write("turn_1/files/out.md", "made [[S:3]]")
    runtime.call("call/end", {"tool_call_id": "k1"})
    first.write("turn_1/files/page.md", "a page")
    runtime.call("workspace/sync")
    draft = record("draft", "inline", "words", content_lineage=[MENU], sources_used=[2])
    page = record("page", "file", {"path": "page.md"}, content_lineage=[RECORD, OUT], meta={"tool_call_id": "k1"})
    runtime.call("timeline/append", {"blocks": [draft, page]})
    runtime.call("turn/end", {"turn_id": "turn_1", "completion": {"text": "Done."}})
    runtime.call("turn/begin", {"turn_id": "turn_2", "prompt": "More"})
    watched, channel = program(first)
    runtime.call("call/begin", {"tool_call_id": "k2", "tool_id": "t", "params": {}, "channel": channel})
    watched.call("artifact/read", {"paths": [OUT], "tool_call_id": "k2"})
    first.write("turn_2/files/two.md", "two")
    runtime.call("call/end", {"tool_call_id": "k2"})
    runtime.call("turn/end", {"turn_id": "turn_2", "completion": {"text": "Done."}})


def have_a_blind_call(first: Workspace, runtime: Client) -> None:
    runtime.call("turn/begin", {"turn_id": "turn_3", "prompt": "Blindly"})
    runtime.call("call/begin", {"tool_call_id": "k3", "tool_id": "t", "params": {"from": TWO}})
    first.write("turn_2/files/blind.md", "who knows")
    runtime.call("call/end", {"tool_call_id": "k3"})
    runtime.call("turn/end", {"turn_id": "turn_3", "completion": {"text": "Done."}})


def saved(runtime: Client) -> None:
    def is_saved() -> bool:
        status = runtime.call("workspace/status")
        return not status["store"].get("waiting") and not status["conversation_store"].get("unsaved")

    eventually(is_saved, ceiling=30)


def lineage(client: Client, paths: Sequence[str] = PATHS) -> dict[str, tuple[list[str], bool]]:
    """Every answer about every path; edges of one distance come in any order."""

    def asked() -> Iterator[tuple[str, tuple[list[str], bool]]]:
        for path in paths:
            for direction in ("up", "down"):
                params = {"path": path, "direction": direction, "depth": 5}
                answer = client.call("artifact/lineage", params)
                edges = sorted(json.dumps(edge, sort_keys=True) for edge in answer["edges"])
                yield f"{direction} {path}", (edges, answer["complete"])

    return dict(asked())


def ends(answer: tuple[list[str], bool]) -> set[tuple[str, str]]:
    return {(json.loads(edge)["from"], json.loads(edge)["to"]) for edge in answer[0]}


@pytest.mark.rule("lineage.what-a-call-used-went-into-what-it-made")
def test_lineage_is_the_same_for_who_reads_along_and_for_who_goes_on(
    make_workspace: Make, shared: dict[str, str]
) -> None:
    first = make_workspace(settings=shared).start()
    runtime = first.connect("runtime")
    have_two_turns(first, runtime)
    saved(runtime)
    second = make_workspace(settings=shared).start()
    reader = second.connect("runtime")
    # Until the call that is blind comes, everything is known.
    up = reader.call("artifact/lineage", {"path": TWO, "direction": "up", "depth": 5})
    assert up["complete"]
    assert {edge["how"] for edge in up["edges"]} == {"declared", "observed"}
    have_a_blind_call(first, runtime)
    saved(runtime)
    before = lineage(runtime)
    assert before[f"up {TWO}"][1]
    assert not before["up fi:turn_2.files/blind.md"][1]
    assert {(RECORD, PAGE), (MENU, OUT), (OUT, TWO), (TWO, "fi:turn_2.files/blind.md")} <= ends(before[f"down {MENU}"])
    eventually(lambda: reader.call("artifact/resolve", {"paths": ["tc:turn_3.k3.call"]})["results"][0]["found"])
    assert lineage(reader) == before
    reader.close()
    second.stop()
    runtime.close()
    first.stop()
    third = make_workspace(settings=shared).start()
    assert lineage(third.connect("runtime")) == before
    third.restart()
    assert lineage(third.connect("runtime")) == before


def test_what_an_older_daemon_saved_is_not_said_to_be_all(make_workspace: Make, shared: dict[str, str]) -> None:
    first = make_workspace(settings=shared).start()
    runtime = first.connect("runtime")
    have_two_turns(first, runtime)
    saved(runtime)
    runtime.close()
    first.stop()
    for blob in Path(shared["store"]).glob("**/turn_*/*-turn.log.json"):
        kept = json.loads(blob.read_text())
        kept["payload"].pop("made_of", None)
        for call in kept["payload"]["calls"]:
            call.pop("uses", None)
            call.pop("watched", None)
        blob.write_text(json.dumps(kept))
    second = make_workspace(settings=shared).start()
    made = (OUT, TWO, RECORD, PAGE)
    answers = lineage(second.connect("runtime"), made)
    for path in made:
        assert not answers[f"up {path}"][1], path
