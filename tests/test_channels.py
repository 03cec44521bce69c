"""A connection is known by the name that the kernel has for it, and only the runtime says whose it is."""

from __future__ import annotations

import asyncio
import socket
from dataclasses import dataclass

import pytest

import sidecar.channels
from sidecar.channels import Channels
from sidecar.core.errors import NotFound, NotPermitted
from tests.daemon_process import Workspace
from tests.rpc_client import Client


@dataclass
class Line:
    role: str = "exec"
    channel: str = "a"
    call: str = ""


def test_a_connection_without_a_name_is_not_found() -> None:
    channels = Channels()
    channels.join(Line(channel=""))
    with pytest.raises(NotFound):
        channels.free("")


@pytest.mark.parametrize("role", ["runtime", "editor"])
def test_who_needs_no_call_or_may_have_none_is_not_bound(role: str) -> None:
    channels = Channels()
    channels.join(Line(role=role))
    with pytest.raises(NotFound):
        channels.free("a")


def test_a_name_that_two_have_is_nobodys_until_one_leaves() -> None:
    channels, one, other = Channels(), Line(), Line()
    channels.join(one)
    channels.join(other)
    with pytest.raises(NotPermitted):
        channels.free("a")
    channels.leave(one)
    assert channels.free("a") is other


def test_a_name_is_forgotten_with_its_connection() -> None:
    channels, line = Channels(), Line()
    channels.join(line)
    channels.leave(line)
    channels.leave(line)
    with pytest.raises(NotFound):
        channels.free("a")


async def test_a_connection_may_be_spoken_of_before_it_is_let_in() -> None:
    channels, line = Channels(), Line()
    waiting = asyncio.create_task(channels.arrival("a"))
    await asyncio.sleep(0)
    assert not waiting.done()
    channels.join(line)
    await asyncio.wait_for(waiting, 5)
    assert channels.free("a") is line


async def test_nobody_waits_long_for_a_connection_that_does_not_come(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sidecar.channels, "ARRIVAL_SECONDS", 0.0)
    channels = Channels()
    await channels.arrival("a")
    with pytest.raises(NotFound):
        channels.free("a")


def named(workspace: Workspace, role: str = "exec") -> tuple[Client, str]:
    """A connection whose socket the kernel named, and that name."""
    link = socket.socket(socket.AF_UNIX)
    link.bind("")
    link.connect(str(workspace.socket(role)))
    client = Client.over(link)
    workspace._clients.append(client)
    return client, link.getsockname()[1:].decode()


@pytest.mark.rule("roles.a-channel-is-bound-by-the-runtime")
def test_the_runtime_binds_a_connection_by_its_name_before_anything_was_said_on_it(workspace: Workspace) -> None:
    workspace.write("turn_1/files/a.txt", "one")
    runtime = workspace.connect("runtime")
    runtime.call("turn/begin", {"turn_id": "turn_2"})
    program, name = named(workspace)
    call = {"tool_call_id": "tc_1", "tool_id": "exec", "params": {}}
    runtime.call("call/begin", {**call, "channel": name})
    program.initialize()
    read = {"paths": ["turn_1/files/a.txt"], "tool_call_id": "tc_1"}
    assert program.call("artifact/read", read)["blocks"][1]["text"] == "one"
    stranger = workspace.connect("exec", tool_call_id="tc_1")
    assert stranger.refused("artifact/read", read).kind == "not_permitted"
    program.close()
    workspace._clients.remove(program)
    assert runtime.refused("call/begin", {**call, "tool_call_id": "tc_2", "channel": name}).kind == "not_found"


@pytest.mark.rule("roles.a-channel-is-bound-by-the-runtime")
def test_what_a_program_says_of_itself_binds_nothing(workspace: Workspace) -> None:
    runtime = workspace.connect("runtime")
    runtime.call("turn/begin", {"turn_id": "turn_1"})
    program, name = named(workspace)
    program.initialize(tool_call_id="tc_1")
    call = {"tool_call_id": "tc_1", "tool_id": "exec", "params": {}, "channel": name}
    assert program.refused("call/begin", call).kind == "not_permitted"
