"""Power cuts: many disks as they may look after one, and a daemon that wakes on each."""

from __future__ import annotations

import asyncio
import gc
import random
import shutil
from copy import deepcopy
from dataclasses import dataclass, field
from pathlib import Path

from tests.faults.ledger import Ledger, Said
from tests.faults.lost_power import cuts
from tests.faults.mortal import inventory
from tests.faults.power_life import Recording
from tests.faults.promises import (
    answers_again,
    hosted_is_there,
    next_number_is_new,
    no_half_version,
    saved_is_there,
    served_whole,
    store_of,
)
from tests.server.inside import awake

BETWEEN_COLLECTIONS = 50


@dataclass(slots=True)
class Cuts:
    """What became of the images of one recording. `faults` says of each bad one: after which change, and what."""

    images: int = 0
    owed: int = 0
    faults: list[str] = field(default_factory=list[str])


def cut_power(recording: Recording, folder: Path, *, images: int, seed: int) -> Cuts:
    """Lose the power `images` times in what was recorded, and wake up each time."""
    chance = random.Random(seed)
    disk, found, done = deepcopy(recording.before), Cuts(), 0
    written = iter([*recording.written])
    next_written = next(written, None)
    gc.freeze()  # so that no daemon's start looks through what we hold
    for cut in cuts(recording.changes, images, chance):
        for change in recording.changes[done:cut]:
            while next_written is not None and next_written.at < change.at:
                disk.put(next_written.path, next_written.data, next_written.nodes)
                next_written = next(written, None)
            disk.advance(change)
        done = cut
        at = recording.changes[cut].at if cut < len(recording.changes) else 2**63
        mine = chance.randrange(2**32)
        image = recording.place
        disk.image(image, random.Random(mine))
        acknowledged = recording.ledger.until(at)
        found.images += 1
        found.owed += len(acknowledged)
        try:
            asyncio.run(_wakes(image, acknowledged, recording.whole))
        except Exception as fault:  # noqa: BLE001 - whatever it is, it is a finding
            found.faults.append(
                f"after change {cut} of {len(recording.changes)}: {type(fault).__name__}: {fault}"[:600]
            )
            disk.image(folder / f"bad-{len(found.faults)}", random.Random(mine))  # as it was, to be looked at
        finally:
            shutil.rmtree(image)
        if found.images % BETWEEN_COLLECTIONS == 0:
            gc.unfreeze()  # each daemon freezes what it loaded, for it means to live long
            gc.collect()
            gc.freeze()
    gc.unfreeze()
    return found


async def _wakes(image: Path, acknowledged: list[Said], whole: set[str]) -> None:
    """Wake on this disk, and compare with what was acknowledged. Raises AssertionError, or what a daemon dies of."""
    ledger = Ledger()
    for said in acknowledged:
        ledger.note(said)
    store = store_of(image)
    async with awake(image, store=store) as inside:
        assert not [*(image / "state").glob("*.damaged-*")], "the journal was found damaged"
        ledger.check(inventory(inside))
        await inside.sync()
        ledger.check(inventory(inside))
        no_half_version(inside, whole)
        hosted_is_there(inside, store)
        await saved_is_there(inside)
        await served_whole(inside)
        await answers_again(inside, [said["asked"] for said in acknowledged if "asked" in said])
        await next_number_is_new(inside, ledger.numbers)
        if inside.workspace.durable_turn_id:
            await inside.ask("turn/end", {"turn_id": inside.workspace.durable_turn_id})
