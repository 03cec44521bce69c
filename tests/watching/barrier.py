"""Random nested writes, each followed by a sync of one connection and a question of another."""

from __future__ import annotations

import random

from tests.daemon_process import Workspace
from tests.rpc_client import CEILING
from tests.watching.trial import resolved
from tests.watching.writers import sha256


def random_writes(workspace: Workspace, count: int, chance: random.Random, *, ceiling: float = CEILING) -> list[str]:
    """Write a file, old or new, often in new folders; sync; ask. What was not known then, or not in the end."""
    clients = [workspace.connect(role, ceiling=ceiling) for role in ("runtime", "renderer", "exec")]
    folders = ["turn_0/files"]
    known: dict[str, str] = {}
    missing: list[str] = []
    for trial in range(count):
        match chance.randrange(4):
            case 0:
                folders.append(f"turn_{trial}/files/new/a{trial}/b/c")
            case 1 if folders[-1].count("/") < 30:
                folders.append(f"{chance.choice(folders[-20:])}/deeper{trial}")
            case _:
                pass
        again = known and chance.random() < 0.3
        path = chance.choice([*known]) if again else f"{folders[-1]}/f{trial}.txt"
        content = f"trial {trial:6}"
        workspace.write(path, content)
        known[path] = sha256(content.encode())
        syncing, asking = chance.sample(clients, 2)
        syncing.call("workspace/sync")
        (artifact,) = resolved(asking, [path])
        if artifact is None or artifact["sha256"] != known[path]:
            missing.append(f"trial {trial}: {path}")
    states = [artifact and artifact["sha256"] for artifact in resolved(clients[0], known)]
    missing += [f"in the end: {path}" for path, state in zip(known, states, strict=True) if state != known[path]]
    return missing
