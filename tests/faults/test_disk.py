"""Disks that are full, broken or from the future, and two daemons that want the same one."""

from __future__ import annotations

import asyncio
import json
import os
import random
import resource
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any

import psutil
import pytest

from tests.conftest import has_failed
from tests.daemon_process import PROJECT, START_CEILING, Workspace, environment, eventually, short_folder
from tests.faults.confined import resize, why_no_mount, with_tiny_state
from tests.faults.ledger import Ledger
from tests.faults.whole_deaths import append, inventory, make_files, merge
from tests.rpc_client import Client, HungUpError, RpcError, frame, initialize_params, unframe

BIG = "x" * 100_000


def note(client: Client, text: str) -> int:
    """Append one block; its index."""
    answer = client.call("timeline/append", {"blocks": [{"type": "react.note", "text": text}]})
    index: int = answer["blocks"][0]["index"]
    return index


def texts(client: Client) -> list[str]:
    """The notes in the timeline, in order."""
    told: list[str] = []
    since = 0
    while page := client.call("timeline/blocks", {"since": since, "limit": 20})["blocks"]:
        told += [block["text"] for block in page if block["type"] == "react.note"]
        since += len(page)
    return told


def append_until_refused(client: Client, most: int = 200) -> tuple[list[str], RpcError]:
    """Append large blocks until one is refused; what was acknowledged, and the refusal."""
    acknowledged: list[str] = []
    for at in range(most):
        text = f"{at} {BIG}"
        try:
            note(client, text)
        except RpcError as error:
            return acknowledged, error
        acknowledged.append(text)
    raise AssertionError(f"{most} large blocks found room")


@pytest.fixture
def tiny(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Workspace]:
    """A workspace whose state folder is a disk of four megabytes."""
    if reason := why_no_mount():
        print(f"skipped: {reason}")
        pytest.skip(reason)
    workspace = with_tiny_state(tmp_path / "w", size="4m")
    yield workspace.start()
    workspace.clean_up(failed=has_failed(request))


def test_a_full_disk_refuses_changes_answers_readers_and_goes_on_once_there_is_room(tiny: Workspace) -> None:
    client = tiny.connect("runtime")
    client.call("turn/begin", {"turn_id": "turn_1"})
    tiny.write("turn_1/files/early.txt", "early")
    client.call("workspace/sync")
    acknowledged, refusal = append_until_refused(client)
    assert refusal.kind == "journal_unavailable"
    assert acknowledged, "nothing found room, so nothing was filled"
    revision = client.call("workspace/status")["revision"]

    assert texts(client) == acknowledged
    assert client.call("artifact/fetch", {"path": "turn_1/files/early.txt"})["ret"]["text"] == "early"
    assert client.refused("sources/merge", {"rows": [{"url": f"https://e.org/?{BIG}"}]}).kind == "journal_unavailable"
    assert client.call("workspace/status")["revision"] == revision, "what was refused left a trace"

    resize(tiny, "64m")
    index = note(client, "there is room again")
    assert texts(client) == [*acknowledged, "there is room again"]
    assert index == client.call("workspace/status")["counts"]["blocks"] - 1, "refused blocks took no number"
    merged = client.call("sources/merge", {"rows": [{"url": "https://e.org/"}]})
    assert merged["added"] == [2], "a refused row took no number"
    tiny.write("turn_1/files/late.txt", "late")
    assert client.call("workspace/sync")["artifacts"] == ["fi:turn_1.files/late.txt"]


def test_a_disk_that_fails_ends_the_daemon_with_70_and_the_next_one_has_everything(workspace: Workspace) -> None:
    client = workspace.connect("runtime")
    client.call("turn/begin", {"turn_id": "turn_1"})
    workspace.incidents_expected = 1
    daemon = workspace.daemon
    assert daemon is not None
    # A file that may not grow answers neither "full" nor anything else that SQLite could roll back from.
    _, hard = resource.prlimit(daemon.pid, resource.RLIMIT_FSIZE)
    resource.prlimit(daemon.pid, resource.RLIMIT_FSIZE, (1_000_000, hard))
    acknowledged, refusal = append_until_refused(client)
    assert refusal.kind == "journal_unavailable"
    assert daemon.wait(20) == 70
    client.drop()
    workspace.daemon = None
    again = workspace.start().connect("runtime")
    assert texts(again) == acknowledged
    note(again, "it goes on")


def test_a_view_that_cannot_be_written_costs_only_the_view(workspace: Workspace) -> None:
    client = workspace.connect("runtime")
    client.call("turn/begin", {"turn_id": "turn_1"})
    (workspace.out_dir / "timeline.json").unlink(missing_ok=True)
    (workspace.out_dir / "timeline.json").mkdir()
    (workspace.out_dir / "timeline.json" / "in the way").touch()
    with suppress(RpcError):
        client.call("timeline/flush")
    note(client, "nothing else is wrong")
    assert texts(client) == ["nothing else is wrong"]


# Who may have the workspace


def test_a_state_folder_inside_out_dir_is_refused(make_workspace: Callable[..., Workspace]) -> None:
    workspace = make_workspace()
    workspace.state_dir = workspace.out_dir / "state"
    assert workspace.serve().wait(START_CEILING) == 64
    assert "state_dir" in workspace.tail()
    assert [*workspace.out_dir.iterdir()] == []


def test_a_state_folder_that_a_link_leads_into_out_dir_is_refused(make_workspace: Callable[..., Workspace]) -> None:
    workspace = make_workspace()
    workspace.state_dir.symlink_to(workspace.out_dir)
    assert workspace.serve().wait(START_CEILING) == 64
    assert [*workspace.out_dir.iterdir()] == []


def test_a_journal_of_a_newer_version_is_refused_and_left_alone(make_workspace: Callable[..., Workspace]) -> None:
    workspace = make_workspace().start()
    workspace.connect("runtime").call("turn/begin", {"turn_id": "turn_1"})
    assert workspace.stop() == 0
    database = workspace.state_dir / "journal.db"
    with sqlite3.connect(database) as connection:
        connection.execute("PRAGMA user_version=99")
    connection.close()
    before = database.read_bytes()
    assert workspace.serve().wait(START_CEILING) == 65
    assert "schema 99" in workspace.tail()
    assert database.read_bytes() == before


def test_a_journal_that_is_no_journal_is_put_aside_and_reported(make_workspace: Callable[..., Workspace]) -> None:
    workspace = make_workspace()
    workspace.state_dir.mkdir(mode=0o700)
    (workspace.state_dir / "journal.db").write_bytes(b"this is no database" * 1000)
    client = workspace.start().connect("runtime")
    client.call("turn/begin", {"turn_id": "turn_1"})
    kept = [path.name for path in workspace.state_dir.iterdir() if path.name.startswith("journal.db.damaged-")]
    assert len(kept) == 1
    assert "damaged" in workspace.tail()


def test_two_workspaces_do_not_share_a_journal(make_workspace: Callable[..., Workspace]) -> None:
    first, second = make_workspace().start(), make_workspace()
    first.connect("runtime").call("turn/begin", {"turn_id": "turn_1"})
    second.state_dir = first.state_dir
    assert second.serve().wait(START_CEILING) == 75
    assert "held by another process" in second.tail()


def daemons_of(workspace: Workspace) -> list[psutil.Process]:
    found: list[psutil.Process] = []
    for process in psutil.process_iter():
        with suppress(psutil.Error):
            words = process.cmdline()
            if "serve" in words and str(workspace.out_dir) in words:
                found.append(process)
    return found


@pytest.mark.timeout(180)
def test_ten_doors_at_once_give_exactly_one_daemon(make_workspace: Callable[..., Workspace]) -> None:
    workspace = make_workspace()
    hello = frame({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": initialize_params({})})

    def through_a_door(_: int) -> tuple[dict[str, Any], subprocess.Popen[bytes]]:
        door = subprocess.Popen(
            [sys.executable, "-m", "sidecar", "connect", *workspace.arguments, "--role", "exec"],
            cwd=PROJECT,
            env=environment(),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        assert door.stdin is not None
        assert door.stdout is not None
        door.stdin.write(hello)
        door.stdin.flush()
        said = bytearray()
        while (message := unframe(said)) is None:
            said += os.read(door.stdout.fileno(), 65536) or _gave_up(door)
        return message["result"]["capabilities"]["experimental"]["artifact_sidecar"], door

    try:
        with ThreadPoolExecutor(10) as pool:
            welcomes = [*pool.map(through_a_door, range(10))]
        assert len({welcome["conversation_id"] for welcome, _ in welcomes}) == 1
        assert len(daemons_of(workspace)) == 1
        for _, door in welcomes:
            door.communicate(timeout=20)
            assert door.returncode == 0
    finally:
        for process in daemons_of(workspace):
            process.terminate()
            process.wait(20)


def _gave_up(door: subprocess.Popen[bytes]) -> bytes:
    raise AssertionError(f"the door closed before it was answered, with {door.wait(5)}")


async def _work_until_the_end(workspace: Workspace, ledger: Ledger) -> None:
    """Clients work; after a while the daemon is asked to end under all of them."""
    assert workspace.daemon is not None
    clients = [await workspace.connect_async(role) for role in ("runtime", "renderer", "exec")]
    await clients[0].call("turn/begin", {"turn_id": "turn_1"})
    works = zip((append, merge, make_files), clients, strict=True)
    tasks = [
        asyncio.create_task(work(client, workspace, f"end-{at}", random.Random(at), ledger))
        for at, (work, client) in enumerate(works)
    ]
    while ledger.acknowledged < 60:
        done, _ = await asyncio.wait(tasks, timeout=0.001, return_when=asyncio.FIRST_COMPLETED)
        assert not done, [task.exception() for task in done]
    workspace.daemon.send_signal(signal.SIGTERM)
    async with asyncio.timeout(10):
        for task in tasks:
            try:
                await task
            except (HungUpError, ConnectionError):
                pass
            except RpcError as error:
                assert error.kind == "shutting_down"  # noqa: PT017 - either end is right, another kind is not
    for client in clients:
        await client.drop()


def test_sigterm_in_the_middle_of_work_keeps_everything_acknowledged(workspace: Workspace) -> None:
    ledger = Ledger()
    daemon = workspace.daemon
    assert daemon is not None
    asyncio.run(_work_until_the_end(workspace, ledger))
    assert daemon.wait(20) == 0
    workspace.daemon = None
    view = json.loads((workspace.out_dir / "timeline.json").read_bytes())
    workspace.start()
    found = inventory(workspace.connect("runtime"))
    ledger.check(found)
    assert [block.get("text", "") for block in view["blocks"]] == found["blocks"], "the view was not brought up to date"


# A timeline that somebody else wrote


def test_a_foreign_timeline_alone_is_a_start_and_its_hosting_counts_for_nothing(
    make_workspace: Callable[..., Workspace],
) -> None:
    workspace = make_workspace()
    hosted = {"hosted_uri": "s3://stranger/secret", "rn": "ef:stranger", "key": "stranger/secret"}
    told = {
        "version": 1,
        "blocks": [
            {"type": "user.prompt", "turn_id": "t7", "path": "ar:t7.user.prompt", "text": "hello", "ts": "2026-01-01"},
            {
                "type": "react.tool.result", "turn_id": "t7", "path": "fi:t7.files/a.md", "mime": "text/markdown",
                "text": "# a", "meta": {"tool_call_id": "c1", "artifact_path": "fi:t7.files/a.md", **hosted},
            },
        ],
        "sources_pool": [{"sid": 4, "url": "https://e.org/", "title": "E", **hosted}],
        "turn_ids": ["t7"],
    }  # fmt: skip
    workspace.write("timeline.json", json.dumps(told))
    workspace.write("t7/files/b.txt", "there already")
    client = workspace.start().connect("runtime")
    client.call("workspace/sync")
    assert client.call("artifact/fetch", {"path": "ar:t7.user.prompt"})["ret"]["text"] == "hello"
    (row, file) = client.call("sources/list")["rows"]
    assert (row["sid"], file["sid"], file["artifact_path"]) == (4, 5, "fi:t7.files/b.txt")
    assert client.call("artifact/rehost", {"paths": ["fi:t7.files/a.md"]})["rehosted"][0]["origin"] == "inline"
    everything = json.dumps(
        [
            client.call("sources/list"),
            client.call("timeline/blocks"),
            client.call("artifact/resolve", {"paths": ["fi:t7.files/a.md"]}),
            client.call("artifact/read", {"paths": ["fi:t7.files/a.md"]}),
        ]
    )
    assert "stranger" not in everything
    workspace.kill9()
    again = workspace.start().connect("runtime")
    assert [row["sid"] for row in again.call("sources/list")["rows"]][:2] == [4, 5]


# Secrets


def test_another_process_of_the_same_uid_reads_neither_environment_nor_memory() -> None:
    """Root reads everything, so root becomes somebody else for this."""
    nobody = 65534
    become: dict[str, Any] = {"user": nobody, "group": nobody, "extra_groups": []} if os.geteuid() == 0 else {}
    workspace = Workspace(short_folder())
    words = [sys.executable, "-m", "sidecar", "serve", *workspace.arguments]
    if become:
        try:
            subprocess.run([*words[:3], "--version"], cwd="/", env=environment(), check=True, **become)
        except (PermissionError, subprocess.CalledProcessError):
            reason = "root reads everything, and nobody else may run the Python of these tests"
            print(f"skipped: {reason}")
            pytest.skip(reason)
        for path in (workspace.folder, workspace.out_dir, workspace.socket_dir):
            os.chown(path, nobody, nobody)
    daemon = subprocess.Popen(
        words, cwd="/", env=environment(MY_SECRET="hush"), stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL, **become
    )
    try:
        eventually(workspace.answers, ceiling=START_CEILING)
        for name in ("environ", "mem", "maps"):
            peek = [sys.executable, "-S", "-c", f"open('/proc/{daemon.pid}/{name}', 'rb').read(1)"]
            peeked = subprocess.run(peek, cwd="/", capture_output=True, text=True, check=False, **become)
            assert "PermissionError" in peeked.stderr, f"{name}: {peeked}"
    finally:
        daemon.terminate()
        assert daemon.wait(20) == 0
