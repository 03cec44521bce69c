"""What a case as data cannot say: crowds, huge and nameless files, folders that go away, and the daemon's own end."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.daemon_process import PROJECT, Workspace, environment, eventually
from tests.rpc_client import Client

MIB = 1024 * 1024
MakeWorkspace = Callable[..., Workspace]


def sparse(path: Path, size: int) -> None:
    """A file that says it has this many bytes and takes no room."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("wb") as file:
        file.truncate(size)


def resolved(client: Client, path: str) -> dict[str, object]:
    [answer] = client.call("artifact/resolve", {"paths": [path]})["results"]
    return answer["artifact"]


# Crowds


@pytest.mark.rule("sources.concurrent-merges-get-different-sids")
async def test_clients_that_merge_at_once_get_different_numbers_without_a_gap(workspace: Workspace) -> None:
    clients = [await workspace.connect_async(role) for role in ("runtime", "renderer") * 4]
    asked = [
        client.ask("sources/merge", {"rows": [{"url": f"https://example.com/{number}/{turn}"}]})
        for turn in range(50)
        for number, client in enumerate(clients)
    ]
    answers = await asyncio.gather(*asked)
    given = sorted(sid for answer in answers for sid in answer["result"]["added"])
    assert given == list(range(1, 401))
    for client in clients:
        await client.close()


@pytest.mark.rule("watch.bursts-lose-nothing", "search.is-bounded")
def test_ten_thousand_files_in_a_hundred_folders_are_all_found(workspace: Workspace) -> None:
    runtime = workspace.connect("runtime")
    runtime.ceiling = 60
    for folder in range(100):
        place = workspace.out_dir / f"turn_{folder % 7}/files/deep/{folder}"
        place.mkdir(parents=True)
        for number in range(100):
            (place / f"{number}.txt").write_text(f"{folder}/{number}")
        (Path(os.fsdecode(os.fsencode(place) + b"/n\xff.txt"))).write_text("no name")
    answer = runtime.call("workspace/sync", {"since": 0})
    assert len(answer["artifacts"]) == len(set(answer["artifacts"])) == 10_000
    assert answer["sources"] == list(range(1, 10_001))
    searched = runtime.call("artifact/search", {"root": "", "content_regex": "never there"})
    assert searched["truncated"] is True
    assert searched["hits"] == []


@pytest.mark.rule("search.is-bounded")
def test_a_large_file_is_found_by_name_and_not_searched(workspace: Workspace) -> None:
    exec_ = workspace.connect("exec")
    workspace.write("turn_1/files/small.txt", "needle")
    workspace.write("turn_1/files/large.txt", "needle\n" + "x" * 1_000_001)
    found = exec_.call("artifact/search", {"root": "", "content_regex": "needle"})
    assert [hit["path"] for hit in found["hits"]] == ["turn_1/files/small.txt"]
    assert len(exec_.call("artifact/search", {"root": "", "name_regex": r"\.txt$"})["hits"]) == 2


@pytest.mark.rule("citations.sixty-four-streams-at-most")
def test_a_connection_has_sixty_four_streams_and_gets_one_back_at_flush(workspace: Workspace) -> None:
    exec_ = workspace.connect("exec")
    for number in range(64):
        exec_.call("citations/stream", {"stream_id": str(number), "chunk": "["})
    assert exec_.refused("citations/stream", {"stream_id": "one more", "chunk": "["}).kind == "too_large"
    exec_.call("citations/stream", {"stream_id": "0", "flush": True})
    assert exec_.call("citations/stream", {"stream_id": "one more", "chunk": "a"})["text"] == "a"
    workspace.connect("exec").call("citations/stream", {"stream_id": "another's", "chunk": "["})


# Sizes


@pytest.mark.rule("watch.oversize-is-never-hashed")
def test_a_file_over_the_hashing_limit_is_there_without_a_hash(workspace: Workspace) -> None:
    runtime = workspace.connect("runtime", events=["notices"])
    sparse(workspace.out_dir / "turn_1/files/huge.bin", 2048 * MIB + 1)
    runtime.call("workspace/sync")
    artifact = resolved(runtime, "turn_1/files/huge.bin")
    assert artifact["size_bytes"] == 2048 * MIB + 1
    assert "sha256" not in artifact
    assert runtime.event("notice/posted")["notice"]["code"] == "oversize"


@pytest.mark.rule("kept.false-is-told-and-gone-once-deleted", "kept.versions-up-to-64-mib")
def test_bytes_that_are_not_kept_say_so_and_are_gone_once_deleted(workspace: Workspace) -> None:
    runtime = workspace.connect("runtime")
    runtime.ceiling = 30
    sparse(workspace.out_dir / "turn_1/files/kept.bin", 64 * MIB)
    sparse(workspace.out_dir / "turn_1/files/large.bin", 64 * MIB + 1)
    runtime.call("workspace/sync")
    assert resolved(runtime, "turn_1/files/large.bin")["kept"] is False
    assert resolved(runtime, "turn_1/files/kept.bin").get("kept", True) is True
    for name in ("kept.bin", "large.bin"):
        (workspace.out_dir / "turn_1/files" / name).unlink()
    answer = runtime.call("artifact/rehost", {"paths": ["turn_1/files/kept.bin", "turn_1/files/large.bin"]})
    assert [(row["path"], row["origin"]) for row in answer["rehosted"]] == [("turn_1/files/kept.bin", "kept")]
    assert answer["missing"] == [{"path": "turn_1/files/large.bin", "reason": "gone"}]


@pytest.mark.rule("wire.inline-content-is-capped-and-says-so")
def test_long_text_and_large_pictures_are_cut_and_say_where_the_rest_is(workspace: Workspace) -> None:
    exec_ = workspace.connect("exec")
    workspace.write("turn_1/files/long.txt", "0123456789\n" * 30_000)
    workspace.write("turn_1/files/large.png", b"\x89PNG\r\n\x1a\n" + bytes(4 * MIB))
    text = exec_.call("artifact/fetch", {"path": "turn_1/files/long.txt"})["ret"]
    assert len(text["text"].encode()) <= 256 * 1024
    assert (text["truncated"], text["size_bytes"]) == (True, 330_000)
    assert text["physical_path"] == "turn_1/files/long.txt"
    picture = exec_.call("artifact/fetch", {"path": "turn_1/files/large.png"})["ret"]
    assert "base64" not in picture
    assert (picture["truncated"], picture["physical_path"]) == (True, "turn_1/files/large.png")


@pytest.mark.rule("watch.limits-bound-files-folders-and-depth")
def test_a_file_too_deep_is_counted_and_not_registered(workspace: Workspace) -> None:
    runtime = workspace.connect("runtime")
    workspace.write("turn_1/files/" + "d/" * 70 + "deep.txt", "x")
    workspace.write("turn_1/files/shallow.txt", "x")
    answer = runtime.call("workspace/sync", {"since": 0})
    assert answer["artifacts"] == ["fi:turn_1.files/shallow.txt"]
    assert answer["truncated"] is True
    assert runtime.call("workspace/status")["watcher"]["over_limit"] >= 1


@pytest.mark.rule("sources.merge-is-bounded", "sources.long-inline-base64-is-dropped", "render.pool-is-never-truncated")
def test_a_merge_is_bounded_and_the_rendered_pool_is_not(workspace: Workspace) -> None:
    runtime = workspace.connect("runtime")
    rows = [{"url": f"https://example.com/{number}"} for number in range(1001)]
    assert runtime.refused("sources/merge", {"rows": rows}).code == -32602
    assert runtime.refused("sources/merge", {"rows": [{"text": "x" * 262_144}]}).kind == "too_large"
    runtime.call("sources/merge", {"rows": rows[:1000]})
    [fits, dropped] = runtime.call(
        "sources/merge", {"rows": [{"title": "a", "base64": "A" * 4000}, {"title": "b", "base64": "A" * 4001}]}
    )["rows"]
    assert ("base64" in fits, "base64" in dropped) == (True, False)
    lines = runtime.call("sources/render")["text"].splitlines()
    assert (lines[0], len(lines)) == ("SOURCES POOL (1002 sources)", 1003)


# Names and folders


@pytest.mark.rule("paths.non-utf8-names-are-no-artifacts")
def test_a_name_that_is_no_utf8_is_told_once_and_stops_nothing(workspace: Workspace) -> None:
    runtime = workspace.connect("runtime", events=["notices"])
    folder = workspace.out_dir / "turn_1/files"
    folder.mkdir(parents=True)
    Path(os.fsdecode(os.fsencode(folder) + b"/caf\xe9.txt")).write_text("x")
    runtime.call("workspace/sync")
    assert runtime.event("notice/posted")["notice"]["code"] == "name_not_utf8"
    workspace.write("turn_1/files/after.txt", "x")
    assert runtime.call("workspace/sync")["artifacts"] == ["fi:turn_1.files/after.txt"]
    assert runtime.heard() == []


@pytest.mark.rule("watch.out-dir-renamed-away-is-survived")
def test_out_dir_renamed_away_and_back_loses_nothing(workspace: Workspace) -> None:
    runtime = workspace.connect("runtime")
    workspace.write("turn_1/files/before.txt", "x")
    runtime.call("workspace/sync")
    away = workspace.folder / "away"
    workspace.out_dir.rename(away)
    eventually(lambda: runtime.call("workspace/status")["watcher"]["state"] == "lost")
    assert resolved(runtime, "turn_1/files/before.txt")["sid"] == 1
    (away / "turn_1/files/meanwhile.txt").write_text("y")
    away.rename(workspace.out_dir)
    eventually(lambda: runtime.call("workspace/status")["watcher"]["state"] == "ok")
    assert runtime.call("workspace/sync", {"since": 0})["sources"] == [1, 2]
    workspace.write("turn_2/files/after.txt", "z")
    assert runtime.call("workspace/sync", {"since": 0})["sources"] == [1, 2, 3]


@pytest.mark.rule("view.timeline-json-is-kept-current", "view.timeline-json-is-written-whole")
def test_a_reader_of_timeline_json_sees_a_whole_and_soon_current_file(workspace: Workspace) -> None:
    runtime = workspace.connect("runtime")
    view = workspace.out_dir / "timeline.json"
    torn: list[str] = []
    over = threading.Event()

    def read_on() -> None:
        while not over.is_set():
            try:
                json.loads(view.read_text("utf-8"))
            except FileNotFoundError:
                continue
            except ValueError as fault:
                torn.append(str(fault))

    reader = threading.Thread(target=read_on)
    reader.start()
    for number in range(20):
        block = {"type": "note", "turn_id": "turn_1", "text": str(number) * 10_000}
        runtime.call("timeline/append", {"blocks": [block]})
        runtime.call("timeline/flush")
    over.set()
    reader.join()
    assert torn == []
    runtime.call("sources/merge", {"rows": [{"url": "https://example.com/at-rest", "title": "T"}]})
    eventually(lambda: json.loads(view.read_text("utf-8"))["sources_pool"] != [], ceiling=15)
    [row] = json.loads(view.read_text("utf-8"))["sources_pool"]
    assert (row["sid"], row["url"], row["title"]) == (1, "https://example.com/at-rest", "T")


# The daemon's own life


@pytest.mark.rule("cli.one-daemon-per-workspace")
def test_a_second_daemon_says_that_one_runs_and_ends(workspace: Workspace) -> None:
    second = workspace.serve()
    assert second.wait(30) != 0
    assert "serve" in workspace.tail()
    assert workspace.connect("exec").call("workspace/status")["counts"]["blocks"] == 0


@pytest.mark.rule("cli.sigterm-is-an-orderly-end")
def test_sigterm_ends_with_zero_and_everything_is_there_afterwards(make_workspace: MakeWorkspace) -> None:
    workspace = make_workspace().start()
    workspace.connect("runtime").call("sources/merge", {"rows": [{"title": "n"}]})
    assert workspace.stop() == 0
    assert not workspace.answers()
    assert workspace.start().connect("runtime").call("sources/list")["rows"][0]["title"] == "n"


@pytest.mark.rule("cli.idle-exit")
def test_a_daemon_without_clients_ends_by_itself(make_workspace: MakeWorkspace) -> None:
    workspace = make_workspace(options=["--idle-exit", "0.3"]).start()
    runtime = workspace.connect("runtime")
    runtime.call("turn/begin", {"turn_id": "turn_1"})
    runtime.call("call/begin", {"tool_call_id": "tc_1", "tool_id": "t", "params": {}})
    runtime.close()
    assert workspace.daemon is not None
    with pytest.raises(subprocess.TimeoutExpired):
        workspace.daemon.wait(1.5)  # a call is open: its files may still come
    runtime = workspace.connect("runtime")
    runtime.call("call/end", {"tool_call_id": "tc_1"})
    runtime.close()
    assert workspace.daemon.wait(5) == 0
    workspace.daemon = None


@pytest.mark.rule(
    "sockets.folder-is-named-by-the-real-path", "cli.the-door-starts-or-attaches", "cli.the-door-is-exec-by-default"
)
def test_ten_doors_at_once_reach_one_daemon_whatever_they_call_the_folder(make_workspace: MakeWorkspace) -> None:
    workspace = make_workspace()
    other_name = workspace.folder / "other"
    other_name.symlink_to(workspace.out_dir)
    names = [str(workspace.out_dir), str(other_name)] * 5
    doors = [door(workspace, name) for name in names]
    try:
        check_that_all_reach_one(doors)
    finally:
        arguments = [sys.executable, "-m", "sidecar", "stop", *workspace.arguments]
        subprocess.run(arguments, cwd=PROJECT, env=environment(), check=True, capture_output=True)
    eventually(lambda: not workspace.answers())


def check_that_all_reach_one(doors: list[subprocess.Popen[bytes]]) -> None:
    clients = [
        Client(process.stdout.fileno(), process.stdin.fileno(), hang_up=process.stdin.close, ceiling=30)
        for process in doors
        if process.stdin is not None and process.stdout is not None
    ]
    for client in clients:
        client.initialize()
    assert {client.welcome["role"] for client in clients} == {"exec"}
    assert len(clients[0].call("workspace/status")["clients"]) == len(doors)
    for client in clients:
        client.close()
    for process in doors:
        assert process.wait(5) == 0
        assert process.stdout is not None
        process.stdout.close()


def door(workspace: Workspace, out_dir: str) -> subprocess.Popen[bytes]:
    """`connect` without a role, as a sandboxed program starts it."""
    arguments = [out_dir if word == str(workspace.out_dir) else word for word in workspace.arguments]
    return subprocess.Popen(
        [sys.executable, "-m", "sidecar", "connect", *arguments],
        cwd=PROJECT,
        env=environment(),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
