"""Blocks read and parsed where that costs least: a few short ones at once, all others in a hand."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import orjson

from sidecar.core.standing import changes_since, with_changes
from sidecar.looking import Looker
from sidecar.workspace import Workspace


async def recall(workspace: Workspace, looker: Looker, numbers: Sequence[int]) -> list[dict[str, Any]]:
    """These blocks, in this order, as they were told."""
    bodies = workspace.bodies_now(numbers)
    if bodies is not None:
        return [orjson.loads(body) for body in bodies]
    asked = [*numbers]  # what is told meanwhile was not asked for
    return await looker.off_loop(lambda: [orjson.loads(body) for body in workspace.bodies_in_turn(asked)])


async def recall_as_they_stand(workspace: Workspace, looker: Looker, numbers: Sequence[int]) -> list[dict[str, Any]]:
    """The same with what was said of them since: that they are hidden, hosted, or stand elsewhere."""
    asked = [*numbers]
    blocks = await recall(workspace, looker, asked)
    timeline, artifacts = workspace.timeline, workspace.artifacts
    return [
        with_changes(block, changes_since(timeline, artifacts, number))
        for number, block in zip(asked, blocks, strict=True)
    ]
