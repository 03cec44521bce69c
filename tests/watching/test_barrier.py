"""`workspace/sync` is a barrier: what was complete before it was asked for is there when it answers."""

from __future__ import annotations

import asyncio
import random

from tests.daemon_process import Workspace
from tests.watching.writers import sha256

TRIALS = 200


def test_a_file_written_before_a_sync_of_another_connection_is_there_after_it(workspace: Workspace) -> None:
    seed = random.SystemRandom().randrange(2**32)
    print(f"seed {seed}")
    chance = random.Random(seed)
    clients = [workspace.connect(role) for role in ("runtime", "renderer", "exec")]
    folders = ["turn_0/files"]
    known: dict[str, str] = {}
    for trial in range(TRIALS):
        match chance.randrange(4):
            case 0:
                folders.append(f"turn_{trial}/files/new/a{trial}/b/c")
            case 1:
                folders.append(f"{chance.choice(folders)}/deeper{trial}")
            case _:
                pass
        again = known and chance.random() < 0.3
        path = chance.choice([*known]) if again else f"{folders[-1]}/f{trial}.txt"
        content = f"trial {trial:6}"
        workspace.write(path, content)
        known[path] = sha256(content.encode())
        syncing, asking = chance.sample(clients, 2)
        syncing.call("workspace/sync")
        (result,) = asking.call("artifact/resolve", {"paths": [path]})["results"]
        assert result["found"], f"seed {seed}, trial {trial}: {path}"
        assert result["artifact"]["sha256"] == known[path], f"seed {seed}, trial {trial}: {path}"
    paths = [*known]
    results = clients[0].call("artifact/resolve", {"paths": paths})["results"]
    assert [result["artifact"]["sha256"] for result in results] == [known[path] for path in paths]


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
