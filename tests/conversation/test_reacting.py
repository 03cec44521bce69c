"""What people think of the turns reaches the agent: announced while its cache is warm, as blocks where it is cold."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.daemon_process import Workspace, eventually
from tests.rpc_client import Client

IDENTITY = {"tenant": "acme", "project": "inn", "user_id": "ann", "conversation_id": "c-rated"}
Make = Callable[..., Workspace]


@pytest.fixture
def local(tmp_path: Path) -> dict[str, str]:
    return {"store": str(tmp_path / "store"), "index": str(tmp_path / "index.db"), **IDENTITY}


def have_turn(client: Client, number: int) -> None:
    client.call("turn/begin", {"turn_id": f"turn_{number}", "prompt": f"Question {number}"})
    client.call("turn/end", {"turn_id": f"turn_{number}", "completion": {"text": f"Answer {number}"}})


def rate(client: Client, turn: str, text: str, origin: str = "user", **more: Any) -> None:
    asked = {"turn_id": turn, "reaction": "not_ok", "text": text, "origin": origin, **more}
    client.call("turn/feedback", asked)


def rendered(client: Client) -> str:
    return client.call("timeline/render", {"as": "text"})["text"]


def told(client: Client, turn: str) -> list[dict[str, Any]]:
    blocks = client.call("timeline/blocks", {"turn_id": turn})["blocks"]
    return [block for block in blocks if block["type"] == "turn.feedback"]


def saved(client: Client) -> None:
    eventually(lambda: not client.call("workspace/status")["conversation_store"].get("unsaved"), ceiling=30)


def test_while_the_cache_is_warm_it_is_announced_behind_what_the_runtime_announces(
    make_workspace: Make, local: dict[str, str]
) -> None:
    workspace = make_workspace(settings=local).start()
    runtime = workspace.connect("runtime", events=["notices"])
    have_turn(runtime, 1)
    runtime.call("timeline/announce", {"blocks": [{"type": "announce", "text": "Iteration 1/5"}]})
    rate(runtime, "turn_1", "too long\nand wrong")
    notice = runtime.event("notice/posted")["notice"]
    assert (notice["code"], notice["turn_id"], notice["reaction"]) == ("feedback_received", "turn_1", "not_ok")
    text = rendered(runtime)
    rows = text[text.index("[NEW USER FEEDBACKS]") :].splitlines()
    assert "Iteration 1/5" in text[: text.index("[NEW USER FEEDBACKS]")]
    assert rows[1].startswith("turn turn_1 | ")
    assert rows[1].endswith("| reaction=not_ok | origin=user | text=too long and wrong")
    assert told(runtime, "turn_1") == []
    rate(runtime, "turn_1", "on second thought, fine")
    assert "too long" not in rendered(runtime)
    have_turn(runtime, 2)
    assert told(runtime, "turn_1") == [], "this daemon's cache is still warm"
    runtime.forget_events()


@pytest.mark.rule("store.a-cold-start-injects-feedback-blocks")
def test_at_a_cold_start_it_becomes_blocks_that_are_saved(make_workspace: Make, local: dict[str, str]) -> None:
    first = make_workspace(settings=local).start()
    runtime = first.connect("runtime")
    have_turn(runtime, 1)
    have_turn(runtime, 2)
    rate(runtime, "turn_1", "no good")
    rate(runtime, "turn_2", "judged", "machine")
    saved(runtime)
    first.restart()
    runtime = first.connect("runtime")
    assert "no good" in rendered(runtime), "until a turn begins it is announced"
    have_turn(runtime, 3)
    (block,) = told(runtime, "turn_1")
    assert (block["path"], block["author"], block["text"]) == ("ar:turn_1.feedback.latest", "user", "no good")
    assert block["meta"]["reaction"] == "not_ok"
    (block,) = told(runtime, "turn_2")
    assert block["author"] == "system"
    text = rendered(runtime)
    assert "[USER FEEDBACK]" in text
    assert "[AUTO FEEDBACK]" in text
    assert "[NEW USER FEEDBACKS]" not in text
    saved(runtime)
    before = runtime.call("timeline/blocks")["blocks"]
    runtime.close()
    first.stop()
    second = make_workspace(settings=local).start()
    runtime = second.connect("runtime")
    assert runtime.call("timeline/blocks")["blocks"] == before
    have_turn(runtime, 4)
    assert len(told(runtime, "turn_1")) == len(told(runtime, "turn_2")) == 1, "what is known is not told again"


def test_a_reader_announces_what_is_said_elsewhere_and_tells_no_block(
    make_workspace: Make, local: dict[str, str]
) -> None:
    writer = make_workspace(settings=local).start().connect("runtime")
    have_turn(writer, 1)
    saved(writer)
    second = make_workspace(settings=local).start()
    reader = second.connect("runtime")
    rate(reader, "turn_1", "from elsewhere")
    eventually(lambda: "from elsewhere" in rendered(writer), ceiling=20)
    assert "from elsewhere" in rendered(reader)
    assert reader.refused("turn/begin", {"turn_id": "turn_2"}).kind == "not_permitted"
    assert told(reader, "turn_1") == []
