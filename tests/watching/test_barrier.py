"""`workspace/sync` is a barrier: what was complete before it was asked for is there when it answers."""

from __future__ import annotations

import asyncio
import random

import pytest

from tests.daemon_process import Workspace
from tests.faults.chance import a_seed
from tests.watching.barrier import random_writes

TRIALS = 200


@pytest.mark.timeout(600)
def test_a_file_written_before_a_sync_of_another_connection_is_there_after_it(workspace: Workspace) -> None:
    seed = a_seed()
    assert random_writes(workspace, TRIALS, random.Random(seed), ceiling=60.0) == [], f"seed {seed}"


def test_the_answer_of_a_sync_names_what_this_connection_has_not_heard_of(workspace: Workspace) -> None:
    first, second = workspace.connect("runtime"), workspace.connect("exec")
    workspace.write("turn_1/files/a.txt", "a")
    assert first.call("workspace/sync")["artifacts"] == ["fi:turn_1.files/a.txt"]
    workspace.write("turn_1/files/b.txt", "b")
    assert first.call("workspace/sync")["artifacts"] == ["fi:turn_1.files/b.txt"]
    answer = second.call("workspace/sync")
    assert (answer["artifacts"], answer["sources"]) == (["fi:turn_1.files/a.txt", "fi:turn_1.files/b.txt"], [1, 2])
    assert first.call("workspace/sync", {"since": 0})["sources"] == [1, 2]


async def test_any_number_of_syncs_at_once_are_all_barriers(workspace: Workspace) -> None:
    clients = [await workspace.connect_async("exec") for _ in range(8)]
    synced = 0

    async def work(at: int) -> None:
        nonlocal synced
        for trial in range(15):
            path = f"turn_{at}/files/t{trial}/a.txt"
            await asyncio.to_thread(workspace.write, path, f"{at} {trial}")
            await clients[at].call("workspace/sync")
            (result,) = (await clients[(at + 1) % 8].call("artifact/resolve", {"paths": [path]}))["results"]
            assert result["found"], path
            synced += 1

    await asyncio.gather(*(work(at) for at in range(8)))
    assert synced == 120
    for client in clients:
        await client.close()
