"""A conversation written by one daemon goes on with another, on a machine that has nothing of it."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.conversation.fifty import CONVERSATION, TURNS, Agent, known
from tests.daemon_process import Workspace, eventually
from tests.radosgw import Radosgw
from tests.rpc_client import Client

pytestmark = [pytest.mark.rule("store.a-conversation-is-resumed-from-the-store"), pytest.mark.timeout(300)]

IDENTITY = CONVERSATION  # as settings name it


def settle(agent: Agent) -> None:
    """Everything external is hosted, and what became known of it is saved."""

    def done() -> bool:
        status = agent.runtime.call("workspace/status")
        return not status["store"].get("waiting") and not status["conversation_store"].get("unsaved")

    eventually(done, ceiling=60)


def bring_back(runtime: Client, agent: Agent, second: Workspace) -> None:
    """Every file comes out of the store, byte by byte."""
    brought = runtime.call("artifact/rehost", {"paths": sorted(agent.files)})
    assert brought["missing"] == []
    # Bytes that several files share come once, and are kept from then on.
    origins = [one["origin"] for one in brought["rehosted"]]
    assert set(origins) <= {"store", "kept"}
    assert origins.count("store") == len(set(agent.files.values()))
    assert {path: (second.out_dir / path).read_bytes() for path in agent.files} == agent.files


def check(first: Workspace, agent: Agent, second: Workspace) -> None:
    """The second daemon knows what the first one knew, and gives back every file byte by byte."""
    paths = agent.every_path
    assert len(paths) > TURNS * 8
    settle(agent)
    before = known(first, paths)
    agent.runtime.close()
    first.stop()
    second.start()
    runtime = second.connect("runtime", ceiling=60)
    bring_back(runtime, agent, second)
    after = known(second, paths)
    assert all(one["found"] for one in after["resolved"])
    for part in before:
        assert after[part] == before[part], part
    turns = runtime.call("conversation/fetch", {"limit": 100})["turns"]
    assert [turn["turn_id"] for turn in turns] == [f"turn_{number}" for number in range(1, TURNS + 1)]
    assert [one["text"] for one in turns[6]["feedbacks"]] == ["rated 7"]
    assert [one["turn_id"] for one in runtime.call("conversation/reactions")["reactions"]] == [
        "turn_50",
        "turn_7",
        "turn_3",
    ]
    again = Agent(second)
    again.turn(TURNS + 1)
    sids = [row["sid"] for row in again.runtime.call("sources/list")["rows"]]
    assert len(set(sids)) == len(sids)
    assert max(sids) > max(row["sid"] for row in before["sources"])
    again.runtime.close()
    runtime.close()


def test_with_the_folder_and_the_index_copied(make_workspace: Callable[..., Workspace], tmp_path: Path) -> None:
    here, there = tmp_path / "here", tmp_path / "there"
    first = make_workspace(settings={"store": str(here / "store"), "index": str(here / "index.db")}).start()
    agent = Agent(first)
    agent.run()
    settle(agent)
    # The copy is made of files at rest: the daemon has ended in order and begins once more, to be asked.
    agent.runtime.close()
    first.stop()
    shutil.copytree(here, there)
    first.start()
    agent.runtime = first.connect("runtime")
    second = make_workspace(settings={"store": str(there / "store"), "index": str(there / "index.db"), **IDENTITY})
    check_copied(first, agent, second, there)


def check_copied(first: Workspace, agent: Agent, second: Workspace, there: Path) -> None:
    """As `check`, where a folder store names its own place in `hosted_uri`."""
    paths = agent.every_path
    before = known(first, paths)
    agent.runtime.close()
    first.stop()
    here = there.parent / "here"
    shutil.rmtree(here)  # nothing may be read from where it was
    second.start()
    runtime = second.connect("runtime", ceiling=60)
    bring_back(runtime, agent, second)
    after = known(second, paths)
    assert all(one["found"] for one in after["resolved"])
    assert after["rendered"] == before["rendered"]
    assert len(after["blocks"]) == len(before["blocks"])
    runtime.close()


def test_with_postgresql_and_s3_shared(
    make_workspace: Callable[..., Workspace], postgres_database: str, s3: Radosgw, bucket: str
) -> None:
    shared = {
        "store": f"s3://{bucket}/{Path(postgres_database).name}",
        "store_endpoint_url": s3.http,
        "index": postgres_database,
    }
    first = make_workspace(settings=shared).start()
    agent = Agent(first)
    agent.run()
    check(first, agent, make_workspace(settings={**shared, **IDENTITY}))
