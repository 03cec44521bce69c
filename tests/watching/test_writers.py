"""No half file is ever registered, however slowly it is written and however often it is looked at meanwhile."""

from __future__ import annotations

import os
import random
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.daemon_process import Workspace, eventually
from tests.faults.chance import a_seed
from tests.watching.rhythms import BY, FOLDER, Way, halves, versions
from tests.watching.writers import PIECES, by_a_map, in_pieces, sha256


@pytest.fixture
def hands() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(32) as pool:
        yield pool


@pytest.mark.parametrize("way", BY)
def test_no_half_file_is_registered_however_it_is_seen(workspace: Workspace, way: Way) -> None:
    seed = a_seed()
    found = halves(workspace, way, random.Random(seed), ceiling=60.0)
    assert found.files == 18
    assert (found.half, found.missed) == ([], []), f"seed {seed}"


def test_a_sync_names_the_file_that_is_being_written_and_waits_for_nobody(workspace: Workspace) -> None:
    client = workspace.connect("runtime")
    path = workspace.write(f"{FOLDER}/whole.txt", "whole").with_name("open.txt")
    with path.open("wb") as file:
        file.write(b"half")
        file.flush()
        synced = client.call("workspace/sync")
        assert synced["unsettled"] == [f"{FOLDER}/open.txt"]
        assert synced["artifacts"] == ["fi:turn_1.files/whole.txt"]
        (result,) = client.call("artifact/resolve", {"paths": [f"{FOLDER}/open.txt"]})["results"]
        assert (result["found"], result["reason"]) == (False, "not_found")
    assert client.call("workspace/sync")["artifacts"] == ["fi:turn_1.files/open.txt"]


def test_a_change_made_through_shared_memory_is_found_by_a_sync(workspace: Workspace) -> None:
    client = workspace.connect("runtime")
    path = workspace.write(f"{FOLDER}/map.bin", b"\0" * sum(map(len, PIECES)))
    client.call("workspace/sync")
    by_a_map(path, 0.0)
    client.call("workspace/sync")
    assert versions(client, "map.bin")[-1] == sha256(path.read_bytes())


def test_a_file_of_the_same_size_and_time_is_still_another_version(workspace: Workspace) -> None:
    client = workspace.connect("runtime")
    path = workspace.write(f"{FOLDER}/a.txt", "one")
    client.call("workspace/sync")
    times = path.stat()
    path.write_bytes(b"two")
    os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))
    client.call("workspace/sync")
    assert versions(client, "a.txt") == [sha256(b"one"), sha256(b"two")]


def test_a_call_waits_for_its_own_slow_writer(workspace: Workspace, hands: ThreadPoolExecutor) -> None:
    client = workspace.connect("runtime")
    client.call("turn/begin", {"turn_id": "turn_1"})
    client.call("call/begin", {"tool_call_id": "tc_1", "tool_id": "exec", "params": {}})
    path = workspace.write(f"{FOLDER}/slow.txt", "")
    work = hands.submit(in_pieces, path, 0.2)
    eventually(lambda: path.stat().st_size > 0)
    ended = client.call("call/end", {"tool_call_id": "tc_1", "expect": ["slow.txt"]})
    (whole,) = work.result()
    assert [(a["physical_path"], a["sha256"]) for a in ended["artifacts"]] == [(f"{FOLDER}/slow.txt", whole)]
    assert (ended["unsettled"], ended["missing"]) == ([], [])


def test_a_call_ends_without_a_file_that_stays_open(workspace: Workspace) -> None:
    client = workspace.connect("runtime")
    client.call("turn/begin", {"turn_id": "turn_1"})
    client.call("call/begin", {"tool_call_id": "tc_1", "tool_id": "exec", "params": {}})
    path = workspace.write(f"{FOLDER}/open.txt", "")
    with path.open("wb") as file:
        file.write(b"half")
        file.flush()
        ended = client.call("call/end", {"tool_call_id": "tc_1"})
    assert ended["unsettled"] == [f"{FOLDER}/open.txt"]
    assert [said["code"] for said in ended["notices"]] == ["still_open"]
    assert ended["artifacts"] == []


def test_a_file_that_is_open_and_gone_is_not_unsettled(workspace: Workspace) -> None:
    client = workspace.connect("runtime")
    path = workspace.write(f"{FOLDER}/open.new")
    with path.open("wb") as file:
        file.write(b"half")
        file.flush()
        for _ in range(6):
            # The longer it is open the longer until it is asked again by itself.
            assert client.call("workspace/sync")["unsettled"] == [f"{FOLDER}/open.new"]
        path.unlink()
        assert client.call("workspace/sync")["unsettled"] == []
