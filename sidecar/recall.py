"""Blocks as they were told, read and parsed where that costs least: a few short ones at once, all others in a hand."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import orjson

from sidecar.looking import Looker
from sidecar.workspace import Workspace


async def recall(workspace: Workspace, looker: Looker, numbers: Sequence[int]) -> list[dict[str, Any]]:
    """These blocks, in this order."""
    bodies = workspace.bodies_now(numbers)
    if bodies is not None:
        return [orjson.loads(body) for body in bodies]
    asked = [*numbers]
    return await looker.off_loop(lambda: [orjson.loads(body) for body in workspace.bodies_in_turn(asked)])
