"""What is filmed for power cuts: ordinary work, and what a disk sees more rarely. The first scene is the usual one."""

from __future__ import annotations

import asyncio
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

from sidecar.stores.whereabouts import whereabouts
from tests.daemon_process import PROJECT, environment
from tests.faults.disk_shim import Change, read_log, recording
from tests.faults.lost_power import Disk
from tests.faults.power_life import Owed, RecordedWorkspace, Recording, work

SECRET_TURN, SECRET = "turn_secret", b"rhubarb that nobody else knows of"
FREE_PAGES = slice(36, 40)  # of SQLite's header: a count that its own check finds wrong, and that no row depends on


def record(scene: str, folder: Path, seed: int, *, acknowledgements: int = 24) -> Recording:
    """Play a scene on a disk below `folder`, and take away what it left: images stand in the same place."""
    disk = folder / "disk"
    disk.mkdir()
    recorded = _PLAYS[scene](disk, seed, acknowledgements)
    recorded.places.update((name, whereabouts(str(disk / name / "state"))) for name in recorded.owed)
    shutil.rmtree(disk)
    return recorded


def _ordinary(disk: Path, seed: int, enough: int) -> Recording:
    """Two lives from the very first opening, with a quiet end between them and a violent one at the end."""
    owed = Owed()
    with _ended(RecordedWorkspace(disk)) as workspace:
        workspace.write("turn_0/files/first.txt", "there already")
        before = Disk(disk)
        for life, end in enumerate((workspace.stop, workspace.kill9)):
            workspace.start()
            asyncio.run(work(workspace, f"{seed}-{life}", seed + life, owed, enough=enough))
            end()
    return Recording(disk, before, _filmed(workspace), workspace.written, {"": owed})


def _rescue(disk: Path, seed: int, enough: int) -> Recording:
    """A journal that SQLite finds broken is put aside, and all of it is rescued."""
    return _after(disk, seed, enough, _break_structure, may_be_damaged=True)


def _migration(disk: Path, seed: int, enough: int) -> Recording:
    """A journal of the schema before this one is copied and lifted."""
    return _after(disk, seed, enough, _make_older)


def _break_structure(database: Path) -> None:
    content = bytearray(database.read_bytes())
    content[FREE_PAGES] = (77).to_bytes(4, "big")
    database.write_bytes(content)


def _make_older(database: Path) -> None:
    """As the first version left it: the rows alone."""
    with closing(sqlite3.connect(database, isolation_level=None)) as older:
        for (name,) in older.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall():
            if name != "journal":
                older.execute(f"DROP TABLE {name}")
        older.execute("PRAGMA user_version = 1")


def _after(
    disk: Path, seed: int, enough: int, harm: Callable[[Path], None], *, may_be_damaged: bool = False
) -> Recording:
    """A life that nobody films, something done to its journal, and a short one that opens what is there."""
    owed = Owed()
    with _ended(RecordedWorkspace(disk)) as workspace:
        workspace.start()
        asyncio.run(work(workspace, f"{seed}-0", seed, owed, enough=enough, turns=1))
        workspace.stop()
        harm(workspace.state_dir / "journal.db")
        workspace.forget()
        before = Disk(disk)
        workspace.start()
        asyncio.run(work(workspace, f"{seed}-1", seed + 1, owed, enough=2, turns=0))
        workspace.kill9()
    filmed = _filmed(workspace)
    return Recording(disk, before, filmed, workspace.written, {"": owed}, may_be_damaged=may_be_damaged)


def _erasure(disk: Path, seed: int, enough: int) -> Recording:
    """A turn is erased, and then what is needed no more; all the rest is owed, and the words of that turn are not."""
    owed = Owed()
    with _ended(RecordedWorkspace(disk)) as workspace:
        workspace.start()
        asyncio.run(work(workspace, f"{seed}-0", seed, owed, enough=enough, turns=1))
        _play_secret(workspace)
        asyncio.run(work(workspace, f"{seed}-1", seed + 1, owed, enough=4, turns=1))
        workspace.stop()
        workspace.forget()
        before = Disk(disk)
        _command(workspace, "erase", "--turn", SECRET_TURN, "--files", "--yes")
        owed.ledger.note({"erased": SECRET_TURN})
        _command(workspace, "gc")
    return Recording(disk, before, _filmed(workspace), workspace.written, {"": owed}, secret=SECRET)


def _play_secret(workspace: RecordedWorkspace) -> None:
    client, said = workspace.connect("runtime", ceiling=60.0), SECRET.decode()
    client.call("turn/begin", {"turn_id": SECRET_TURN, "prompt": said})
    client.call("call/begin", {"tool_call_id": "tc_secret", "tool_id": "exec", "params": {"code": said}})
    for version in ("first", "second"):
        workspace.write(f"{SECRET_TURN}/files/a.txt", f"{said}, {version}")
        client.call("workspace/sync")
    client.call("call/end", {"tool_call_id": "tc_secret", "result": {"said": said}})
    client.call("turn/end", {"turn_id": SECRET_TURN, "completion": {"text": said}})
    client.close()


def _command(workspace: RecordedWorkspace, *words: str) -> None:
    """A command under the same eyes as a daemon; what it says last is acknowledged when it has ended."""
    program = [sys.executable, "-m", "sidecar", *words, *workspace.arguments]
    film = recording(workspace.disk, workspace.changes)
    ran = subprocess.run(
        [*film, *program], cwd=PROJECT, env=environment(), capture_output=True, text=True, check=False, timeout=120
    )
    assert ran.returncode == 0, ran.stderr


def _shared(disk: Path, seed: int, enough: int) -> Recording:
    """Two daemons with a conversation each, at work at once on one index and one store."""
    shared = {"index": str(disk / "shared" / "index.db"), "store": str(disk / "shared" / "store")}
    owed = {name: Owed() for name in ("a", "b")}
    places = {name: RecordedWorkspace(disk, name, settings=shared) for name in owed}

    async def both(life: int, more: int, turns: int) -> None:
        await asyncio.gather(
            *(
                work(place, f"{seed}-{name}{life}", seed + life, owed[name], enough=more, turns=turns)
                for name, place in places.items()
            )
        )

    with _ended(*places.values()):
        for place in places.values():
            place.start()
        asyncio.run(both(0, 2, 1))  # so that the folders which they share are there
        for place in places.values():
            place.stop()
            place.forget()
        before = Disk(disk)
        for place in places.values():
            place.start()
        asyncio.run(both(1, enough // 2, 2))
        for place in places.values():
            place.kill9()
    written = sorted((one for place in places.values() for one in place.written), key=lambda one: one.at)
    return Recording(disk, before, _filmed(*places.values()), written, owed, shared="shared")


class _ended:  # noqa: N801 - read as a word of the sentence that it begins
    """Workspaces that are cleaned up however it ends."""

    def __init__(self, *workspaces: RecordedWorkspace) -> None:
        self._workspaces = workspaces

    def __enter__(self) -> RecordedWorkspace:
        return self._workspaces[0]

    def __exit__(self, *_: object) -> None:
        for workspace in self._workspaces:
            workspace.clean_up(failed=True)


def _filmed(*workspaces: RecordedWorkspace) -> list[Change]:
    """The changes of all of them in the order of their moments. Syncs keep numbers that no other program's have."""
    changes = [
        change._replace(number=change.number * len(workspaces) + at)
        for at, workspace in enumerate(workspaces)
        for change in read_log(workspace.changes)
    ]
    return sorted(changes, key=lambda change: change.at)


_PLAYS: dict[str, Callable[[Path, int, int], Recording]] = {
    "ordinary work": _ordinary,
    "a rescued journal": _rescue,
    "a lifted journal": _migration,
    "an erased turn": _erasure,
    "two daemons on one index": _shared,
}
SCENES = tuple(_PLAYS)
