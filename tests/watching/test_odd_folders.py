"""What else a program can do to a folder: links, pipes, depths, names, whole folders that come and go."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from time import monotonic
from typing import Any

from tests.daemon_process import Workspace, eventually
from tests.rpc_client import Client
from tests.watching.trial import resolved

FILES = "turn_1/files"


def synced(client: Client, *paths: str) -> list[bool]:
    """Whether each of these is an artifact on disk after one sync."""
    client.call("workspace/sync")
    return [artifact is not None and artifact["on_disk"] for artifact in resolved(client, paths)]


def known(client: Client, *paths: str) -> list[dict[str, Any]]:
    """What stands at each of these paths."""
    found = resolved(client, paths)
    assert None not in found, f"{paths}: {found}"
    return [artifact or {} for artifact in found]


def told_of(client: Client, path: str) -> dict[str, Any]:
    """The artifact at `path` as an event tells it; other news is passed over."""
    while True:
        for artifact in client.event("artifacts/changed")["artifacts"]:
            if artifact["physical_path"] == path:
                return artifact


def noticed(client: Client, code: str) -> list[str]:
    """The names in the notices of this code that have arrived so far."""
    client.call("workspace/status")
    notices = [m["params"]["notice"] for m in client.mail.notifications if m["method"] == "notice/posted"]
    return [str(notice.get("name")) for notice in notices if notice["code"] == code]


@contextmanager
def busy(work: Callable[[], None]) -> Iterator[None]:
    """Do this again and again in another thread until the block ends."""
    over = threading.Event()

    def again() -> None:
        while not over.is_set():
            work()

    worker = threading.Thread(target=again)
    worker.start()
    try:
        yield
    finally:
        over.set()
        worker.join()


def test_a_link_to_everything_is_renamed_in_and_not_followed(workspace: Workspace) -> None:
    client = workspace.connect("runtime", events=["artifacts", "notices"])
    client.call("workspace/sync")
    aside = workspace.folder / "aside"
    (aside / "files").mkdir(parents=True)
    (aside / "files" / "root").symlink_to("/")
    (aside / "files" / "a.txt").write_text("honest")
    aside.rename(workspace.out_dir / "turn_1")
    workspace.write(f"{FILES}/b.txt", "honest too")
    began = monotonic()
    told_of(client, f"{FILES}/b.txt")
    assert monotonic() - began < 2.0, "the link held up honest news"
    assert synced(client, f"{FILES}/a.txt", f"{FILES}/b.txt") == [True, True]
    assert client.call("workspace/status")["counts"]["artifacts"] == 2
    assert noticed(client, "link_skipped") == [f"{FILES}/root"]
    client.drop()


def test_pipes_and_sockets_are_never_opened_and_hold_nothing_up(workspace: Workspace) -> None:
    client = workspace.connect("runtime", events=["notices"])
    workspace.write(f"{FILES}/a.txt", "honest")
    os.mkfifo(workspace.out_dir / FILES / "pipe")
    with socket.socket(socket.AF_UNIX) as listener:
        # The address of a socket is short, and the way to it is not.
        here = os.open(workspace.out_dir / FILES, os.O_PATH)
        listener.bind(f"/proc/self/fd/{here}/talk")
        os.close(here)
        assert synced(client, f"{FILES}/a.txt", f"{FILES}/pipe", f"{FILES}/talk") == [True, False, False]
    assert sorted(noticed(client, "special_skipped")) == [f"{FILES}/pipe", f"{FILES}/talk"]
    client.drop()


def test_a_name_that_is_not_utf8_is_reported_once_and_stops_nothing(workspace: Workspace) -> None:
    client = workspace.connect("runtime", events=["artifacts", "notices"])
    workspace.write(f"{FILES}/a.txt", "first")
    folder = os.fsencode(workspace.out_dir / FILES)
    for name in (b"caf\xe9.txt", b"caf\xe9.txt"):
        told_of(client, f"{FILES}/a.txt")
        os.close(os.open(folder + b"/" + name, os.O_WRONLY | os.O_CREAT))
        workspace.write(f"{FILES}/a.txt", f"changed {monotonic()}")
    told_of(client, f"{FILES}/a.txt")
    os.mkdir(folder + b"/d\xff")
    os.close(os.open(folder + b"/d\xff/inside.txt", os.O_WRONLY | os.O_CREAT))
    workspace.write(f"{FILES}/after.txt", "after")
    told_of(client, f"{FILES}/after.txt")
    client.call("workspace/sync")
    client.call("workspace/sync")
    assert len(noticed(client, "name_not_utf8")) == 2, "the file and the folder, each once"
    # A folder whose names end their watch three times in a minute rests for a while; no other trouble is allowed here.
    watcher = client.call("workspace/status")["watcher"]
    assert watcher["state"] == "ok" or "Unable to decode path" in watcher["reason"], watcher
    client.drop()


def test_a_tree_deeper_than_anybody_needs_costs_only_itself(workspace: Workspace) -> None:
    client = workspace.connect("runtime")
    workspace.write(f"{FILES}/honest.txt", "honest")
    try:
        at = os.open(workspace.out_dir / FILES, os.O_RDONLY)
        for _ in range(1500):
            os.mkdir("d", dir_fd=at)
            below = os.open("d", os.O_RDONLY, dir_fd=at)
            os.close(at)
            at = below
        os.close(os.open("deep.txt", os.O_WRONLY | os.O_CREAT, dir_fd=at))
        os.close(at)
        answer = client.call("workspace/sync")
        assert answer["artifacts"] == ["fi:turn_1.files/honest.txt"]
        assert answer["truncated"] is True
        assert client.call("workspace/status")["watcher"]["over_limit"] > 0
        workspace.write(f"{FILES}/later.txt", "later")
        assert client.call("workspace/sync")["artifacts"] == ["fi:turn_1.files/later.txt"]
    finally:
        # Python's own way of removing a tree calls itself once per level.
        subprocess.run(["rm", "-rf", str(workspace.out_dir / FILES / "d")], check=True)


def test_entries_that_vanish_while_they_are_looked_at_hide_no_others(workspace: Workspace) -> None:
    client = workspace.connect("runtime")
    folder = workspace.out_dir / FILES
    folder.mkdir(parents=True)

    def come_and_go() -> None:
        for at in range(20):
            (folder / f"gone_{at}" / "inner").mkdir(parents=True)
            (folder / f"gone_{at}" / "inner" / "a.txt").write_text("going")
            (folder / f"brief_{at}.txt").write_text("going")
        for at in range(20):
            shutil.rmtree(folder / f"gone_{at}")
            (folder / f"brief_{at}.txt").unlink()

    with busy(come_and_go):
        for at in range(100):
            workspace.write(f"{FILES}/stays_{at}/a.txt", f"stays {at}")
            assert synced(client, f"{FILES}/stays_{at}/a.txt") == [True]
    paths = [f"{FILES}/stays_{at}/a.txt" for at in range(100)]
    assert synced(client, *paths) == [True] * 100
    left = [a["physical_path"] for a in client.call("artifact/list")["artifacts"] if a["on_disk"]]
    assert sorted(left) == sorted(paths)


def test_a_folder_swapped_for_a_link_again_and_again_lets_nothing_in(workspace: Workspace) -> None:
    client = workspace.connect("runtime")
    outside = workspace.folder / "outside"
    outside.mkdir()
    (outside / "secret.txt").write_text("not yours")
    folder = workspace.out_dir / FILES
    (folder / "d").mkdir(parents=True)
    (folder / "d" / "inside.txt").write_text("ours")

    def swap() -> None:
        (folder / "d").rename(folder.parent / "kept")
        (folder / "d").symlink_to(outside)
        (folder / "d").unlink()
        (folder.parent / "kept").rename(folder / "d")

    with busy(swap):
        for _ in range(200):
            client.call("workspace/sync")
    assert synced(client, f"{FILES}/d/inside.txt", f"{FILES}/d/secret.txt") == [True, False]


def test_out_dir_renamed_away_is_lost_and_found_again(workspace: Workspace) -> None:
    client = workspace.connect("runtime", events=["artifacts"])
    workspace.write(f"{FILES}/a.txt", "one")
    assert synced(client, f"{FILES}/a.txt") == [True]
    told_of(client, f"{FILES}/a.txt")
    away = workspace.folder / "away"
    workspace.out_dir.rename(away)
    eventually(lambda: client.call("workspace/status")["watcher"]["state"] == "lost")
    assert synced(client, f"{FILES}/a.txt") == [False]
    (away / FILES / "b.txt").write_text("made meanwhile")
    away.rename(workspace.out_dir)
    assert synced(client, f"{FILES}/a.txt", f"{FILES}/b.txt") == [True, True]
    eventually(lambda: client.call("workspace/status")["watcher"]["state"] == "ok")
    workspace.write(f"{FILES}/c.txt", "after")
    assert told_of(client, f"{FILES}/c.txt")["sid"] == 3
    client.drop()


def test_another_folder_in_the_place_of_out_dir_is_out_dir(workspace: Workspace) -> None:
    client = workspace.connect("runtime", events=["artifacts"])
    workspace.write(f"{FILES}/a.txt", "one")
    assert synced(client, f"{FILES}/a.txt") == [True]
    other = workspace.folder / "other"
    (other / FILES).mkdir(parents=True)
    (other / FILES / "b.txt").write_text("of the other one")
    workspace.out_dir.rename(workspace.folder / "first")
    other.rename(workspace.out_dir)
    assert synced(client, f"{FILES}/a.txt", f"{FILES}/b.txt") == [False, True]
    workspace.write(f"{FILES}/c.txt", "by an event alone")
    told_of(client, f"{FILES}/c.txt")
    (workspace.folder / "first" / FILES / "d.txt").write_text("nobody's")
    assert synced(client, f"{FILES}/d.txt") == [False]
    client.drop()


def test_deleted_files_stay_artifacts_and_keep_their_numbers(workspace: Workspace) -> None:
    client = workspace.connect("runtime", events=["artifacts"])
    paths = [f"{FILES}/a.txt", f"{FILES}/deep/er/b.txt", "turn_2/files/c.txt"]
    for path in paths:
        workspace.write(path, path)
    client.call("workspace/sync")
    numbers = [artifact["sid"] for artifact in known(client, *paths)]
    (workspace.out_dir / paths[0]).unlink()
    shutil.rmtree(workspace.out_dir / FILES / "deep")
    shutil.rmtree(workspace.out_dir / "turn_2")
    gone: set[str] = set()
    while gone != set(paths):
        told = client.event("artifacts/changed")["artifacts"]
        gone |= {artifact["physical_path"] for artifact in told if not artifact["on_disk"]}
    for path in paths:
        workspace.write(path, f"{path} again")
    client.call("workspace/sync")
    after = known(client, *paths)
    assert [artifact["sid"] for artifact in after] == numbers
    assert [(artifact["on_disk"], artifact["version"]) for artifact in after] == [(True, 2)] * 3
    client.drop()


def test_a_folder_like_a_turns_that_was_there_at_the_first_opening_is_a_turns(
    make_workspace: Callable[..., Workspace],
) -> None:
    workspace = make_workspace()
    workspace.write("odd-name/files/a.txt", "early")
    workspace.write("logs/files/b.txt", "never a turn's")
    client = workspace.start().connect("runtime")
    client.call("workspace/sync")
    numbers = [artifact.get("sid") for artifact in known(client, "odd-name/files/a.txt", "logs/files/b.txt")]
    assert numbers == [1, None], "any file can be read, and only a turn's is a source"


def test_a_folder_like_a_turns_that_came_later_waits_for_its_turn(workspace: Workspace) -> None:
    client = workspace.connect("runtime", events=["artifacts"])
    workspace.write("odd-name/files/a.txt", "early")
    client.call("workspace/sync")
    (generic,) = known(client, "odd-name/files/a.txt")
    assert "sid" not in generic
    client.call("turn/begin", {"turn_id": "odd-name"})
    assert told_of(client, "odd-name/files/a.txt")["sid"] == 1
    client.drop()
