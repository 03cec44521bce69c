"""Programs that write into OUT_DIR by themselves: new files, new contents, renames, deletions, now and then a burst."""

from __future__ import annotations

import hashlib
from itertools import count
from pathlib import Path

from tests.rpc_client import AsyncClient
from tests.soak.world import World

PERIOD = 1.0
SIZES = (100, 2_000, 2_000, 50_000, 300_000)
NAMES = 12  # of one turn; each is written again and again
BURST = 40
BURST_EACH = 60  # landings
SYNC_EACH = 5


def landed(world: World, path: str, size: int) -> str:
    """Write a file that never was before; its path."""
    target = world.workspace.out_dir / path
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_bytes(_content(world, size))
    world.accounts.counts["file written"] += 1
    return path


async def lander(world: World) -> None:
    """Lands at a steady rate. What was there before a sync, and nobody touched since, goes into the ledger after it."""
    async with world.client("exec") as client:
        fresh: dict[str, str] = {}
        for number in count(1):
            if not await world.beat(PERIOD):
                return
            turn = world.turn or (world.recent[-1] if world.recent else None)
            if turn is None:
                continue
            _land(world, turn, fresh)
            if number % BURST_EACH == 0:
                for part in range(BURST):
                    _write(world, f"{turn}/files/burst/{number}_{part}.txt", 1000, fresh)
            if number % SYNC_EACH == 0:
                told, fresh = fresh, {}
                await _synced(world, client, told)


async def _synced(world: World, client: AsyncClient, told: dict[str, str]) -> None:
    """What was complete before a sync resolves after it, with its own hash."""
    synced = await world.ask(client, "workspace/sync")
    if synced is None or not told:
        return
    paths = [path for path in told if path not in synced["unsettled"]]
    resolved = await world.ask(client, "artifact/resolve", {"paths": paths})
    for path, result in zip(paths, resolved["results"] if resolved is not None else (), strict=False):
        if not result["found"] or result["artifact"].get("sha256") != told[path]:
            world.accounts.surprised("sync", ValueError(f"{path} was {told[path]} before it: {result}"))
            continue
        logical = result["artifact"]["artifact_path"]
        world.ledger.files[logical].add(told[path])
        world.paths.append(logical)


def _land(world: World, turn: str, fresh: dict[str, str]) -> None:
    folder = f"{turn}/files/landed"
    name = f"{folder}/{world.chance.randrange(NAMES):02d}.txt"
    match world.chance.randrange(10):
        case 0:
            _delete(world, name, fresh)
        case 1:
            _rename(world, name, f"{folder}/renamed_{world.chance.randrange(NAMES):02d}.txt", fresh)
        case 2:
            _write(world, f"{folder}/deep/{world.chance.randrange(3)}/x.json", 200, fresh)
        case _:
            _write(world, name, world.chance.choice(SIZES), fresh)


def _write(world: World, name: str, size: int, fresh: dict[str, str]) -> None:
    """All at once by a rename, so that no other state of it is there for anybody to see."""
    target = world.workspace.out_dir / name
    target.parent.mkdir(parents=True, exist_ok=True)
    content = _content(world, size)
    aside = world.workspace.folder / "arriving"
    aside.write_bytes(content)
    aside.rename(target)
    fresh[name] = hashlib.sha256(content).hexdigest()
    world.accounts.counts["file written"] += 1


def _delete(world: World, name: str, fresh: dict[str, str]) -> None:
    target = world.workspace.out_dir / name
    if target.exists():
        known = name not in fresh  # of what was synced at least once every byte can come back
        target.unlink()
        fresh.pop(name, None)
        world.accounts.counts["file deleted"] += 1
        if known:
            world.absent.append("fi:" + name.replace("/", ".", 1))


def _rename(world: World, name: str, onto: str, fresh: dict[str, str]) -> None:
    target = world.workspace.out_dir / name
    if target.exists():
        target.rename(world.workspace.out_dir / onto)
        fresh.pop(name, None)
        fresh[onto] = hashlib.sha256((world.workspace.out_dir / onto).read_bytes()).hexdigest()
        world.accounts.counts["file renamed"] += 1


def _content(world: World, size: int) -> bytes:
    """Text that nobody wrote before, so that nothing is found to be known already."""
    head = world.chance.randbytes(16).hex().encode()
    return (head + b" a line of what a program made\n" * (size // 30 + 1))[: max(size, 33)]


def first_files(out_dir: Path) -> None:
    """What is there from the start on."""
    (out_dir / "probe.md").write_bytes(b"# Probe\n\n" + b"A line that is read again and again.\n" * 54)
