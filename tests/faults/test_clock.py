"""The clock on the wall is set back and forth under a daemon: order, leases and the ends of things do not go by it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import has_failed
from tests.daemon_process import Workspace, eventually
from tests.faults.confined import set_clock, with_a_clock
from tests.faults.test_disk import note, texts
from tests.rpc_client import Client

DAY = 86_400
JUMPS = (30 * DAY, -400 * DAY)
PATIENCE = 60.0
pytestmark = pytest.mark.rule("time.the-clock-on-the-wall-decides-nothing")


@pytest.fixture
def clocked(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Callable[..., Workspace]]:
    made: list[Workspace] = []

    def make(**arguments: Any) -> Workspace:
        made.append(with_a_clock(tmp_path / f"c{len(made)}", **arguments))
        return made[-1]

    yield make
    for workspace in made:
        workspace.clean_up(failed=has_failed(request))


def is_writer(client: Client) -> bool:
    return bool(client.call("workspace/status")["conversation_store"]["lease"] == "writer")


def is_saved(client: Client, name: str) -> bool:
    """Whether the index has its log: what a client reads of a turn may be known here alone."""
    return bool(client.call("conversation/recent", {"turn_ids": [name], "kinds": ["turn.log"]})["items"])


def turn(client: Client, workspace: Workspace, name: str) -> None:
    """A turn with all that it holds, saved."""
    client.call("turn/begin", {"turn_id": name, "prompt": f"what of {name}?"})
    client.call("call/begin", {"tool_call_id": f"tc_{name}", "tool_id": "exec", "params": {}})
    workspace.write(f"{name}/files/a.txt", name)
    made = client.call("call/end", {"tool_call_id": f"tc_{name}"})["artifacts"]
    assert [one["physical_path"] for one in made] == [f"{name}/files/a.txt"]
    note(client, name)
    client.call("turn/end", {"turn_id": name, "completion": {"text": f"this of {name}"}})
    eventually(lambda: is_saved(client, name), ceiling=PATIENCE)


@contextmanager
def events_of(workspace: Workspace) -> Iterator[Client]:
    client = workspace.connect("exec", ceiling=PATIENCE, events=["artifacts"])
    yield client
    client.drop()


def test_whatever_the_clock_says_order_and_numbers_stay_and_all_goes_on(clocked: Callable[..., Workspace]) -> None:
    workspace = clocked(settings={"lease_seconds": "1"}).start()
    client = workspace.connect("runtime", ceiling=PATIENCE)
    turn(client, workspace, "turn_first")
    asked = {"blocks": [{"type": "react.note", "turn_id": "turn_first", "text": "once"}], "request_id": "r1"}
    before = client.call("timeline/append", asked)
    names = ["turn_first"]
    for at, jump in enumerate(JUMPS):
        set_clock(workspace, jump)
        name = f"turn_{at}"
        turn(client, workspace, name)
        names.append(name)
        assert client.call("timeline/append", asked) == before, "a repeated request was done again"
        with events_of(workspace) as listener:
            workspace.write(f"{name}/files/late.txt", f"late {name}")
            told = [one["physical_path"] for one in listener.event("artifacts/changed")["artifacts"]]
            assert told == [f"{name}/files/late.txt"]
    noted = [text for text in texts(client) if text != "once"]
    assert noted == names
    sids = [row["sid"] for row in client.call("sources/list")["rows"]]
    assert sids == sorted(set(sids))
    assert 0 <= client.call("workspace/status")["uptime_seconds"] < DAY
    moments = [block["ts"] for block in client.call("timeline/blocks", {"limit": 200})["blocks"] if "ts" in block]
    assert len({datetime.fromisoformat(moment).year for moment in moments}) > 1, "the clock was never wrong"
    set_clock(workspace, -DAY)
    client.drop()
    workspace.restart()
    again = workspace.connect("runtime", ceiling=PATIENCE)
    assert [text for text in texts(again) if text != "once"] == names
    eventually(lambda: is_writer(again), ceiling=PATIENCE)
    turn(again, workspace, "turn_last")
    assert all(is_saved(again, name) for name in names)


def test_who_died_in_the_future_keeps_nobody_from_going_on(clocked: Callable[..., Workspace], tmp_path: Path) -> None:
    """A lease of seconds, taken by a clock that was a year ahead, is over in seconds."""
    shared = {
        "store": str(tmp_path / "shared" / "store"),
        "index": str(tmp_path / "shared" / "index.db"),
        "lease_seconds": "1",
        "conversation_id": "c1",
    }
    first, second = clocked(settings=shared), clocked(settings=shared)
    set_clock(first, 365 * DAY)
    client = first.start().connect("runtime", ceiling=PATIENCE)
    turn(client, first, "turn_1")
    client.drop()
    first.kill9()
    runtime = second.start().connect("runtime", ceiling=PATIENCE)
    eventually(lambda: is_writer(runtime), ceiling=PATIENCE)
    turn(runtime, second, "turn_2")
    assert texts(runtime) == ["turn_1", "turn_2"]


def test_a_daemon_that_nobody_asks_ends_after_its_time_and_not_when_the_clock_says_so(
    clocked: Callable[..., Workspace],
) -> None:
    workspace = clocked(options=("--idle-exit", "3")).start()
    daemon = workspace.daemon
    assert daemon is not None
    client = workspace.connect("runtime", ceiling=PATIENCE)
    set_clock(workspace, 30 * DAY)
    assert client.call("workspace/sync")["artifacts"] == []
    client.close()
    set_clock(workspace, -DAY)
    assert daemon.wait(PATIENCE) == 0
    workspace.daemon = None
