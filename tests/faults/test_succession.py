"""The writer of a conversation dies while a turn ends; who goes on finds each turn whole or not at all."""

from __future__ import annotations

import random
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.conversation.fifty import CONVERSATION, Agent, known
from tests.daemon_process import Workspace, eventually

LEASE = "1.5"
PARTS = {"turn.log", "conv.timeline.v1", "conv:sources_pool", "chat:user", "chat:assistant", "conv.artifacts.stream"}
DELAYS = (0.0, 0.004, 0.008, 0.015, 0.03, 0.06)


@pytest.fixture
def shared(tmp_path: Path) -> dict[str, str]:
    return {
        "store": str(tmp_path / "shared" / "store"),
        "index": str(tmp_path / "shared" / "index.db"),
        "lease_seconds": LEASE,
        **CONVERSATION,
    }


def saved_kinds(client: Any, turn: str) -> set[str]:
    """The kinds that the index has of a turn, each with a blob that can be read, where it has one."""
    items = client.call("conversation/recent", {"turn_ids": [turn], "limit": 100, "with_payload": True})["items"]
    stored = {"turn.log", "conv.timeline.v1", "conv:sources_pool", "conv.artifacts.stream"}
    assert [one["kind"] for one in items if one["kind"] in stored and "payload" not in one] == []
    return {one["kind"] for one in items}


def is_saved(client: Any) -> bool:
    return not client.call("workspace/status")["conversation_store"].get("unsaved")


def die_while_a_turn_ends(workspace: Workspace, agent: Agent, number: int, delay: float) -> bool:
    """Kill the daemon `delay` seconds after a turn was asked to end. Answers whether the end was acknowledged."""
    killer = threading.Timer(delay, workspace.kill9)
    original = agent.runtime.call

    def call(method: str, params: dict[str, Any] | None = None) -> Any:
        if method == "turn/end":
            killer.start()
        return original(method, params)

    agent.runtime.call = call  # type: ignore[method-assign]
    try:
        agent.turn(number)
    except Exception:  # noqa: BLE001 - however the connection breaks
        acknowledged = False
    else:
        acknowledged = True
    killer.join()
    return acknowledged


@pytest.mark.rule("store.a-turn-is-saved-whole-or-not-at-all", "store.a-successor-takes-over")
@pytest.mark.parametrize("delay", DELAYS)
def test_a_successor_finds_each_turn_whole_or_not_at_all(
    make_workspace: Callable[..., Workspace], shared: dict[str, str], delay: float
) -> None:
    first = make_workspace(settings=shared).start()
    agent = Agent(first)
    agent.run(1, 3)
    die_while_a_turn_ends(first, agent, 4, delay)
    second = make_workspace(settings=shared).start()
    runtime = second.connect("runtime", ceiling=60)
    for number in (1, 2, 3):
        assert saved_kinds(runtime, f"turn_{number}") >= PARTS
    last = saved_kinds(runtime, "turn_4")
    assert last == set() or last >= PARTS
    resolved = runtime.call("artifact/resolve", {"paths": ["ar:turn_4.assistant.completion"]})["results"]
    assert resolved[0]["found"] == bool(last)
    eventually(lambda: runtime.call("workspace/status")["conversation_store"]["lease"] == "writer", ceiling=30)
    runtime.close()
    successor = Agent(second)
    successor.turn(5)
    blocks = known(second, successor.every_path)["resolved"]
    assert all(one["found"] for one in blocks)
    successor.runtime.close()


@pytest.mark.rule("store.a-turn-is-saved-whole-or-not-at-all")
def test_who_was_killed_saves_again_what_was_not_saved(
    make_workspace: Callable[..., Workspace], shared: dict[str, str]
) -> None:
    chance = random.Random(7)
    workspace = make_workspace(settings=shared).start()
    for number in range(1, 9):
        agent = Agent(workspace)
        die_while_a_turn_ends(workspace, agent, number, chance.uniform(0, 0.08))
        workspace.start()
        runtime = workspace.connect("runtime", ceiling=60)
        ended = runtime.call("timeline/blocks", {"path": f"ar:turn_{number}.user.prompt"})["blocks"]
        assert ended  # it was acknowledged before the end was asked for
        status = runtime.call("workspace/status")
        if status.get("turn_id") == f"turn_{number}":
            runtime.call("turn/end", {"turn_id": f"turn_{number}", "completion": {"text": "again"}})
        eventually(lambda client=runtime: is_saved(client), ceiling=30)
        assert saved_kinds(runtime, f"turn_{number}") >= PARTS
        runtime.close()


@pytest.mark.rule("store.a-successor-takes-over")
def test_who_comes_back_with_work_that_nobody_saved_reads_on_and_says_so(
    make_workspace: Callable[..., Workspace], shared: dict[str, str]
) -> None:
    first = make_workspace(settings=shared).start()
    agent = Agent(first)
    agent.run(1, 2)
    agent.runtime.call("turn/begin", {"turn_id": "turn_lost", "prompt": "nobody will save this"})
    first.kill9()
    second = make_workspace(settings=shared).start()
    runtime = second.connect("runtime", ceiling=60)
    eventually(lambda: runtime.call("workspace/status")["conversation_store"]["lease"] == "writer", ceiling=30)
    Agent(second).turn(3)
    runtime.close()
    second.stop()
    first.start()
    runtime = first.connect("runtime", ceiling=60)
    eventually(lambda: runtime.call("workspace/status")["conversation_store"]["lease"] == "diverged", ceiling=30)
    found = runtime.call("artifact/resolve", {"paths": ["ar:turn_lost.user.prompt"]})["results"]
    assert found[0]["found"]
    refused = runtime.refused("turn/begin", {"turn_id": "turn_4"})
    assert refused.kind == "not_permitted"
    runtime.close()
