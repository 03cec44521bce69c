"""The world outside a daemon goes wrong: disks that only read or fail, watches that run out, folders that go."""

from __future__ import annotations

import random
import shutil
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.conftest import has_failed
from tests.daemon_process import Workspace, eventually
from tests.faults.chance import a_seed
from tests.faults.confined import (
    ConfinedWorkspace,
    remount,
    why_no_mount,
    why_no_watch_limit,
    with_few_inotifies,
    with_tiny_out_dir,
)
from tests.faults.disk_shim import failing, require_shim
from tests.faults.test_disk import note, texts
from tests.rpc_client import HungUpError, RpcError

Confine = Callable[..., Workspace]
PATIENCE = 60.0


@pytest.fixture
def confine(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Callable[..., Workspace]]:
    """Makes one workspace with surroundings of its own, started; skips where they are refused."""
    made: list[Workspace] = []

    def make(how: Callable[..., Workspace], *, refused: str = "", **arguments: object) -> Workspace:
        if refused:
            print(f"skipped: {refused}")
            pytest.skip(refused)
        made.append(how(tmp_path / "w", **arguments))
        return made[0].start()

    yield make
    for workspace in made:
        workspace.clean_up(failed=has_failed(request))


def test_a_daemon_does_not_start_on_a_state_folder_that_only_reads(tmp_path: Path) -> None:
    if reason := why_no_mount():
        print(f"skipped: {reason}")
        pytest.skip(reason)
    state = tmp_path / "w" / "state"
    state.mkdir(parents=True, mode=0o700)
    before = f'mount -t tmpfs -o ro,mode=700 none "{state}" && exec "$@"'
    workspace = ConfinedWorkspace(tmp_path / "w", namespace=["unshare", "-m"], before=before)
    code = workspace.serve().wait(60)
    workspace.clean_up(failed=False)
    assert code == 70
    assert "Read-only file system" in workspace.tail()
    assert "Traceback" not in workspace.tail()


def test_an_out_dir_that_turns_read_only_is_read_and_refuses_what_writes(confine: Confine) -> None:
    workspace = confine(with_tiny_out_dir, refused=why_no_mount(), size="16m")
    client = workspace.connect("runtime", ceiling=PATIENCE)
    client.call("turn/begin", {"turn_id": "turn_1"})
    path = "turn_1/files/a.txt"
    client.call("artifact/write", {"path": path, "kind": "file", "content": "one\n"})
    remount(workspace, workspace.out_dir, "ro")
    refusal = client.refused("artifact/write", {"path": path, "kind": "file", "content": "two\n"})
    assert refusal.kind == "store_unavailable"
    assert "read-only" in str(refusal.data["hint"]).lower(), refusal.data
    patch = "@@ -1 +1 @@\n-one\n+two\n"
    assert client.refused("artifact/patch", {"path": path, "patch": patch}).kind == "store_unavailable"
    assert client.call("artifact/fetch", {"path": path})["ret"]["text"] == "one\n"
    note(client, "the rest goes on")
    client.call("turn/end", {"turn_id": "turn_1"})
    remount(workspace, workspace.out_dir, "rw")
    client.call("turn/begin", {"turn_id": "turn_2"})
    client.call("artifact/write", {"path": "turn_2/files/b.txt", "kind": "file", "content": "again\n"})
    assert "the rest goes on" in texts(client)


@pytest.mark.parametrize("fault", ["EIO", "read-only from then on"])
def test_a_disk_that_fails_or_turns_read_only_costs_nothing_acknowledged(tmp_path: Path, fault: str) -> None:
    """It fails in the middle of work: the file system itself turns read-only after an error of the disk."""
    require_shim()
    folder, chance = tmp_path / "w", random.Random(a_seed())
    words = failing(folder / "state", fault, chance.randrange(60, 250))
    workspace = ConfinedWorkspace(folder, namespace=words, before='exec "$@"')
    acknowledged: list[str] = []
    refused = ""
    try:
        client = workspace.start().connect("runtime", ceiling=PATIENCE)
        for at in range(40):
            turn = f"turn_{at // 10}"
            if at % 10 == 0:
                client.call("turn/begin", {"turn_id": turn})
            note(client, f"{at}")
            acknowledged.append(f"{at}")
            client.call("artifact/write", {"path": f"{turn}/files/{at % 3}.txt", "kind": "file", "content": f"{at}\n"})
    except RpcError as refusal:
        refused = refusal.kind
    except HungUpError:
        pass  # it ended before the answer was written
    assert refused in ("", "journal_unavailable", "store_unavailable")
    assert workspace.daemon is not None
    if fault != "EIO":  # a single error may have hit a copy that nothing rests on
        assert len(acknowledged) < 60
        assert workspace.daemon.wait(30) == 70
        workspace.daemon = None
        assert "readonly" in workspace.tail() or "disk I/O error" in workspace.tail()
    workspace.clean_up(failed=True)
    workspace.unconfine()
    again = workspace.start().connect("runtime", ceiling=PATIENCE)
    told = texts(again)
    assert told[: len(acknowledged)] == acknowledged
    assert len(told) <= len(acknowledged) + 1
    again.call("turn/begin", {"turn_id": "turn_9"})
    note(again, "it goes on")
    workspace.clean_up(failed=True)


def test_without_a_single_watcher_files_are_found_by_looking_and_status_says_so(confine: Confine) -> None:
    workspace = confine(with_few_inotifies, refused=why_no_watch_limit(), instances=0)
    client = workspace.connect("runtime", ceiling=PATIENCE, events=["artifacts"])
    client.call("workspace/sync")
    watcher = eventually(
        lambda: (w := client.call("workspace/status")["watcher"])["state"] != "ok" and w, ceiling=PATIENCE
    )
    assert watcher["state"] in ("polling", "degraded")
    assert watcher["reason"]
    workspace.write("turn_1/files/a.txt", "found by looking")
    told = client.event("artifacts/changed")["artifacts"]
    assert [one["physical_path"] for one in told] == ["turn_1/files/a.txt"]
    client.drop()


def test_a_folder_whose_watch_is_lost_again_and_again_is_still_told_of(
    make_workspace: Callable[..., Workspace],
) -> None:
    """A watch belongs to a folder and goes with it; the next one of that name needs another."""
    workspace = make_workspace().start()
    client = workspace.connect("runtime", ceiling=PATIENCE, events=["artifacts"])
    for at in range(15):
        workspace.write("turn_1/files/f/a.txt", f"{at}")
        while not any(
            one["physical_path"] == "turn_1/files/f/a.txt" and one["on_disk"]
            for one in client.event("artifacts/changed")["artifacts"]
        ):
            pass
        shutil.rmtree(workspace.out_dir / "turn_1" / "files" / "f")
        if at % 2:
            (workspace.out_dir / "turn_1" / "files" / "f").mkdir()
    client.drop()


def test_an_out_dir_that_is_removed_is_lost_and_one_that_is_made_again_is_taken(
    make_workspace: Callable[..., Workspace],
) -> None:
    workspace = make_workspace().start()
    client = workspace.connect("runtime", ceiling=PATIENCE, events=["artifacts"])
    workspace.write("turn_1/files/a.txt", "one")
    client.call("workspace/sync")
    shutil.rmtree(workspace.out_dir)
    eventually(lambda: client.call("workspace/status")["watcher"]["state"] == "lost", ceiling=PATIENCE)
    client.call("turn/begin", {"turn_id": "turn_1"})
    refusal = client.refused("artifact/write", {"path": "b.txt", "kind": "file", "content": "two"})
    assert refusal.kind == "store_unavailable"
    note(client, "goes on without it")
    assert not workspace.out_dir.exists(), "nobody but its owner makes OUT_DIR"
    workspace.out_dir.mkdir()
    eventually(lambda: client.call("workspace/status")["watcher"]["state"] == "ok", ceiling=PATIENCE)
    assert client.call("artifact/rehost", {"paths": ["turn_1/files/a.txt"]})["rehosted"][0]["origin"] == "kept"
    client.forget_events()
    workspace.write("turn_1/files/c.txt", "three")
    while not any(
        one["physical_path"] == "turn_1/files/c.txt" for one in client.event("artifacts/changed")["artifacts"]
    ):
        pass
    client.drop()


@pytest.mark.rule("rehost.brings-a-deleted-file-back")
def test_a_folder_that_is_removed_while_files_are_on_their_way_into_it_is_made_again(
    make_workspace: Callable[..., Workspace],
) -> None:
    """A program that tidies up is no fault of a disk: nobody is told that it is full."""
    workspace = make_workspace().start()
    client = workspace.connect("runtime", ceiling=PATIENCE)
    client.call("turn/begin", {"turn_id": "turn_1"})
    paths = [f"turn_1/files/deep/er/{at}.txt" for at in range(8)]
    for path in paths:
        workspace.write(path, path)
    client.call("workspace/sync")
    over, files = threading.Event(), workspace.out_dir / "turn_1" / "files"

    def tidy_up() -> None:
        while not over.wait(0.1):
            shutil.rmtree(files / "deep", ignore_errors=True)

    tidying = threading.Thread(target=tidy_up)
    tidying.start()
    try:
        for at in range(60):
            answer = client.call("artifact/rehost", {"paths": paths})
            assert answer["missing"] == []
            written = {"path": "deep/er/said.txt", "kind": "file", "content": f"{at}"}
            assert client.call("artifact/write", written)["artifact"]["on_disk"]
    finally:
        over.set()
        tidying.join()
    assert len(client.call("artifact/rehost", {"paths": paths})["rehosted"]) == len(paths)
    client.drop()
