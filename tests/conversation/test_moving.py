"""A workspace that is given another store and index takes what it has there."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.conversation.fifty import CONVERSATION, Agent
from tests.daemon_process import Workspace, eventually

pytestmark = [pytest.mark.rule("store.another-index-gets-everything"), pytest.mark.timeout(240)]


def test_earlier_turns_are_saved_to_the_index_and_the_store_that_come_later(
    make_workspace: Callable[..., Workspace], tmp_path: Path
) -> None:
    workspace = make_workspace().start()
    agent = Agent(workspace)
    agent.run(1, 3)
    agent.runtime.close()
    workspace.stop()
    later = {"store": str(tmp_path / "later"), "index": str(tmp_path / "later.db")}
    workspace.settings |= {f"ARTIFACT_SIDECAR_{name.upper()}": value for name, value in later.items()}
    workspace.start()
    again = Agent(workspace)
    again.files, again.paths = agent.files, agent.paths
    again.turn(4)
    eventually(lambda: not again.runtime.call("workspace/status")["conversation_store"].get("unsaved"), ceiling=30)
    again.runtime.close()
    workspace.stop()
    elsewhere = make_workspace(settings={**later, **CONVERSATION}).start()
    runtime = elsewhere.connect("runtime", ceiling=60)
    assert all(one["found"] for one in runtime.call("artifact/resolve", {"paths": again.every_path})["results"])
    brought = runtime.call("artifact/rehost", {"paths": sorted(again.files)})
    assert brought["missing"] == []
    assert {path: (elsewhere.out_dir / path).read_bytes() for path in again.files} == again.files
    runtime.close()


def test_who_goes_back_to_a_former_index_goes_on_there(
    make_workspace: Callable[..., Workspace], tmp_path: Path
) -> None:
    workspace = make_workspace(settings={"index": str(tmp_path / "a.db")})
    for number, index in enumerate(("a.db", "b.db", "a.db"), start=1):
        workspace.settings["ARTIFACT_SIDECAR_INDEX"] = str(tmp_path / index)
        workspace.start()
        agent = Agent(workspace)
        agent.turn(number)
        assert agent.runtime.call("workspace/status")["conversation_store"]["lease"] == "writer"
        rows = agent.runtime.call("conversation/recent", {"kinds": ["turn.log"]})["items"]
        assert [row["turn_id"] for row in rows] == [f"turn_{one}" for one in range(number, 0, -1)]
        agent.runtime.close()
        workspace.stop()
