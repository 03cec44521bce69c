"""The Python client against a real daemon, over each of its ways."""

from __future__ import annotations

import os
import shlex
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import artifact_client
import pytest
from artifact_client import Client, MissingSources, RpcError, dial_command, dial_socket

from tests.daemon_process import PROJECT, Workspace, environment

CLIENT = str(Path(artifact_client.__file__).parent)
FETCH = "from artifact_client import fetch_ctx; print(fetch_ctx('fi:turn_1.files/a.txt')['ret']['text'])"


@pytest.fixture
def exec_client(workspace: Workspace, monkeypatch: pytest.MonkeyPatch) -> Workspace:
    """A workspace with two files, and the functions of the module pointed at its exec socket."""
    workspace.write("turn_1/files/a.txt", "one")
    workspace.write("turn_1/files/b.md", "two")
    monkeypatch.setenv("ARTIFACT_SIDECAR_SOCKET", str(workspace.socket("exec")))
    artifact_client.close()
    assert artifact_client.sync(timeout=10)["sources"] == [1, 2]
    return workspace


@pytest.fixture(autouse=True)
def hang_up() -> object:
    yield
    artifact_client.close()


@pytest.mark.rule("client.fetch-ctx-returns-raw-rows")
@pytest.mark.usefixtures("exec_client")
def test_fetch_ctx_gives_the_raw_rows_of_a_pool_path() -> None:
    answer = artifact_client.fetch_ctx("so:sources_pool[1-2]")
    assert answer.keys() == {"ret", "err"}
    assert answer["err"] is None
    assert [(row["sid"], row["physical_path"]) for row in answer["ret"]] == [
        (1, "turn_1/files/a.txt"),
        (2, "turn_1/files/b.md"),
    ]
    with pytest.warns(MissingSources, match="7"):
        assert len(artifact_client.fetch_ctx("so:sources_pool[2,7]")["ret"]) == 1


@pytest.mark.usefixtures("exec_client")
def test_fetch_ctx_tells_in_err_what_it_cannot_give() -> None:
    for path, code in (("fi:turn_1.files/none", "not_found"), ("xx:what", "bad_path"), ("fi:../x", "unsafe_path")):
        answer = artifact_client.fetch_ctx(path)
        assert answer["ret"] is None
        assert answer["err"]["code"] == code
        assert answer["err"].keys() == {"code", "message", "details"}


@pytest.mark.usefixtures("exec_client")
def test_the_functions_work_as_they_say() -> None:
    (found,) = artifact_client.resolve("fi:turn_1.files/a.txt")
    assert found["artifact"]["physical_path"] == "turn_1/files/a.txt"
    assert artifact_client.read(["turn_1/files/a.txt"])["status"]["missing"] == []
    assert [row["sid"] for row in artifact_client.sources("2")["rows"]] == [2]
    assert artifact_client.call("citations/extract", {"text": "[[S:1]]"}) == {"sids": [1]}


def test_a_deleted_file_comes_back(exec_client: Workspace) -> None:
    path = exec_client.out_dir / "turn_1/files/a.txt"
    path.unlink()
    assert artifact_client.rehost("fi:turn_1.files/a.txt")["missing"] == []
    assert path.read_text() == "one"


@pytest.mark.usefixtures("exec_client")
def test_a_refusal_has_its_kind() -> None:
    with pytest.raises(RpcError) as refused:
        artifact_client.call("turn/begin", {"turn_id": "turn_2"})
    assert refused.value.kind == "not_permitted"
    with pytest.raises(RpcError, match="unknown") as misspelt:
        artifact_client.call("artifact/fetch", {"path": "fi:a", "unknown": 1})
    assert misspelt.value.code == -32602


def test_events_come_to_those_who_asked(workspace: Workspace) -> None:
    with Client(lambda: dial_socket(str(workspace.socket("editor"))), events=["sources"]) as editor:
        editor.call("workspace/status")
        workspace.write("turn_1/files/a.txt", "one")
        method, params = next(editor.events(timeout=5))
    assert method == "sources/added"
    assert [row["sid"] for row in params["rows"]] == [1]


@pytest.mark.rule("client.three-transports")
@pytest.mark.parametrize("way", ["socket", "descriptor", "command", "out_dir"])
def test_every_way_leads_to_the_daemon(workspace: Workspace, way: str) -> None:
    workspace.write("turn_1/files/a.txt", "one")
    variables = environment()
    variables["PYTHONPATH"] += os.pathsep + CLIENT
    folders = ("--state-dir", str(workspace.state_dir), "--socket-dir", str(workspace.socket_dir))
    passed: tuple[int, ...] = ()
    with socket.socket(socket.AF_UNIX) as link:
        match way:
            case "socket":
                variables["ARTIFACT_SIDECAR_SOCKET"] = str(workspace.socket("exec"))
            case "descriptor":
                link.connect(str(workspace.socket("exec")))
                passed = (link.fileno(),)
                variables["ARTIFACT_SIDECAR_FD"] = str(link.fileno())
            case "command":
                door = [sys.executable, "-m", "sidecar", "connect", "--out-dir", str(workspace.out_dir), *folders]
                variables["ARTIFACT_SIDECAR_COMMAND"] = shlex.join(door)
            case _:
                variables |= {
                    "OUT_DIR": str(workspace.out_dir),
                    "ARTIFACT_SIDECAR_STATE_DIR": str(workspace.state_dir),
                    "ARTIFACT_SIDECAR_SOCKET_DIR": str(workspace.socket_dir),
                }
        done = subprocess.run(
            [sys.executable, "-c", FETCH],
            cwd=PROJECT,
            env=variables,
            pass_fds=passed,
            capture_output=True,
            text=True,
            timeout=30,
            check=False,
        )
    assert (done.stdout, done.stderr) == ("one\n", "")


@pytest.mark.rule("client.three-transports")
def test_a_descriptor_serves_one_program_after_another(workspace: Workspace) -> None:
    workspace.write("turn_1/files/a.txt", "one")
    with socket.socket(socket.AF_UNIX) as link:
        link.connect(str(workspace.socket("exec")))
        variables = {**environment(), "ARTIFACT_SIDECAR_FD": str(link.fileno())}
        variables["PYTHONPATH"] += os.pathsep + CLIENT
        run = [sys.executable, "-c", FETCH]
        for _ in range(3):
            done = subprocess.run(run, env=variables, pass_fds=[link.fileno()], capture_output=True, check=False)
            assert (done.stdout, done.stderr) == (b"one\n", b"")


def test_a_client_finds_the_next_daemon(make_workspace: Callable[..., Workspace]) -> None:
    workspace = make_workspace().start()
    with Client(lambda: dial_socket(str(workspace.socket("exec")))) as client:
        for _ in range(2):
            client.call("workspace/sync")
            workspace.restart()
        assert client.call("workspace/status")["out_dir"] == str(workspace.out_dir)


def test_a_client_and_its_own_door_find_the_next_daemon(make_workspace: Callable[..., Workspace]) -> None:
    workspace = make_workspace().start()
    command = [sys.executable, "-m", "sidecar", "connect", *workspace.arguments, "--role", "runtime"]
    with Client(lambda: dial_command(command)) as client:
        client.call("turn/begin", {"turn_id": "turn_1"})
        link = client._link
        workspace.restart()
        assert client.call("workspace/status")["turn_id"] == "turn_1"
        assert client._link is link, "the door stayed and found it"
