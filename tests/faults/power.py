"""Power cuts: many disks as they may look after one, and a daemon that wakes on each."""

from __future__ import annotations

import asyncio
import gc
import random
import shutil
import tempfile
from contextlib import redirect_stderr, redirect_stdout
from copy import deepcopy
from dataclasses import dataclass, field
from io import StringIO
from pathlib import Path
from unittest.mock import patch

from sidecar.__main__ import main
from sidecar.stores.folder_store import FolderStore
from tests.faults.ledger import Ledger, Said
from tests.faults.lost_power import cuts
from tests.faults.mortal import everything, inventory
from tests.faults.power_life import Recording
from tests.faults.power_scenes import SECRET_TURN
from tests.faults.promises import (
    answers_again,
    hosted_is_there,
    next_number_is_new,
    no_half_version,
    saved_is_there,
    served_whole,
    store_of,
)
from tests.server.inside import Inside, awake

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
        acknowledged = {name: owed.ledger.until(at) for name, owed in recording.owed.items()}
        found.images += 1
        found.owed += sum(map(len, acknowledged.values()))
        try:
            _is_sound(recording, acknowledged, chance)
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


def _is_sound(recording: Recording, acknowledged: dict[str, list[Said]], chance: random.Random) -> None:
    """Look at the image that stands in the place of the disk. Raises AssertionError, or what a daemon dies of."""
    if recording.secret:
        erased = any("erased" in said for said in acknowledged[""])
        if not erased and chance.random() < 0.5:
            erased = _erase_again(recording)
        if erased:
            assert not (told := _holding(recording.place, recording.secret)), f"it was erased, and is in {told}"
    for name, said in acknowledged.items():
        asyncio.run(_wakes(recording, name, said))
    if recording.secret and erased:
        assert not (told := _holding(recording.place, recording.secret)), f"it came back, and is in {told}"


def _erase_again(recording: Recording) -> bool:
    """Somebody runs the command once more, as its help says; whether it is to be gone then."""
    place, same = recording.place, patch("sidecar.console.erase.whereabouts", lambda _: recording.places[""])
    with (
        same,
        tempfile.TemporaryDirectory() as sockets,
        redirect_stdout(StringIO()),
        redirect_stderr(StringIO()) as said,
    ):
        folders = [*("--out-dir", f"{place}/out"), *("--state-dir", f"{place}/state"), *("--socket-dir", sockets)]
        code = main(["erase", "--turn", SECRET_TURN, "--files", "--yes", *folders])
    assert code == 0, f"erase ended with {code}: {said.getvalue()}"
    return True


def _holding(place: Path, words: bytes) -> list[str]:
    return [str(path.relative_to(place)) for path in place.rglob("*") if path.is_file() and words in path.read_bytes()]


async def _wakes(recording: Recording, name: str, acknowledged: list[Said]) -> None:
    """Wake in this folder of the image, and compare with what was acknowledged."""
    ledger = Ledger()
    for said in acknowledged:
        ledger.note(said)
    shared, place = recording.place / recording.shared, recording.place / name
    store = FolderStore(str(shared / "store")) if recording.shared else store_of(place)
    index = str(shared / "index.db") if recording.shared else ""
    # A disk after a power cut is the same disk, not a copy of it: its folders have the inodes that they had.
    with patch("sidecar.server.assembly.whereabouts", lambda _: recording.places[name]):
        async with awake(place, store=store, index=index) as inside:
            await _is_whole(recording, name, inside, ledger, acknowledged)


async def _is_whole(recording: Recording, name: str, inside: Inside, ledger: Ledger, acknowledged: list[Said]) -> None:
    place, store = recording.place / name, inside.assembly.hosting.store
    assert isinstance(store, FolderStore)
    if not recording.may_be_damaged:
        assert not [*(place / "state").glob("*.damaged-*")], "the journal was found damaged"
    ledger.check(await everything(inside))
    await inside.sync()
    ledger.check(inventory(inside))
    if not recording.secret:
        no_half_version(inside, recording.owed[name].whole)
    hosted_is_there(inside, store, but=SECRET_TURN)
    await saved_is_there(inside, but=SECRET_TURN)
    await served_whole(inside)
    await answers_again(inside, [said["asked"] for said in acknowledged if "asked" in said])
    await next_number_is_new(inside, ledger.numbers)
    if inside.workspace.durable_turn_id:
        await inside.ask("turn/end", {"turn_id": inside.workspace.durable_turn_id})
