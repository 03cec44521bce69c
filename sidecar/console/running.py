"""`exec`: a program runs as one call of a turn, with a channel of its own, in a sandbox where there can be one."""

from __future__ import annotations

import argparse
import os
import secrets
import shutil
import socket
import sys
import tempfile
import uuid
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import artifact_client
from artifact_client import Client, ConnectionLost, RpcError

from sidecar.console import leftovers, sandbox
from sidecar.console.output import complain, say, say_json, size, table
from sidecar.console.place import Place
from sidecar.console.program import NO_START, Ended, Order, run
from sidecar.console.sandbox import View, within

USAGE, NO_INPUT, UNAVAILABLE, NO_PERMISSION = 64, 66, 69, 77
MISSING = 1  # the program is content, and what it was expected to make is not there
LONG = 600.0  # seconds that the end of a call or of a turn may take


class Unfit(Exception):  # noqa: N818 - said to a person
    """The program was not run at all, and this is the exit code."""

    def __init__(self, code: int, sentence: str) -> None:
        super().__init__(sentence)
        self.code = code


def exec(place: Place, asked: argparse.Namespace) -> int:  # noqa: A001 - the command is called so
    """Run the program and answer its exit code; 124 when its time was up, 125 to 127 when it could not be started.

    A program that ended with 0 without making what was expected of it answers 1.
    """
    try:
        _check(asked)
        with folders(place, asked.work_dir) as view, place.client() as client:
            return _within_turn(place, asked, view, client, left=leftovers.finish(client, view.out_dir))
    except Unfit as unfit:
        complain(str(unfit))
        return unfit.code


def _check(asked: argparse.Namespace) -> None:
    if asked.command[:1] == ["--"]:
        del asked.command[0]
    if not asked.command:
        raise Unfit(USAGE, "no program: give its command line after --")
    if asked.timeout is not None and asked.timeout <= 0:
        raise Unfit(USAGE, "--timeout is a number of seconds above 0")


# Where it runs, and what it sees.


@contextmanager
def folders(place: Place, work_dir: str | None) -> Generator[View]:
    """OUT_DIR, a folder to work in, and the Python client; what is ours alone is gone afterwards."""
    out_dir = os.path.realpath(place.settings.out_dir)
    protected = tuple(os.path.realpath(path) for path in (place.settings.state_dir, place.folder))
    own = os.path.realpath(tempfile.mkdtemp(prefix=leftovers.PREFIX))
    lock = -1
    try:
        lock = leftovers.hold(own)
        work = os.path.realpath(work_dir or os.path.join(own, "work"))
        client = os.path.join(own, "client")
        os.mkdir(client)
        shutil.copy(artifact_client.__file__, client)
        if not work_dir:
            os.mkdir(work)
        elif not os.path.isdir(work):
            raise Unfit(USAGE, f"--work-dir {work} is no folder")
        for other in (out_dir, *protected):
            if within(work, other) or within(other, work):
                raise Unfit(USAGE, f"--work-dir {work} and {other} must lie outside of each other")
        yield View(out_dir, work, client, protected)
    finally:
        shutil.rmtree(own, ignore_errors=True)
        if lock >= 0:
            os.close(lock)


def _isolation(asked: argparse.Namespace, view: View) -> str:
    """`bwrap` or `none`. Says so when a program runs without a sandbox that it could have had."""
    if asked.sandbox == "none":
        return "none"
    why = sandbox.obstacle(view)
    if not why:
        return "bwrap"
    if asked.sandbox == "bwrap":
        raise Unfit(UNAVAILABLE, f"there is no sandbox: {why}")
    complain(f"the program runs WITHOUT a sandbox, and sees all that you see: {why}")
    return "none"


# As which call.


def _within_turn(place: Place, asked: argparse.Namespace, view: View, client: Client, *, left: frozenset[str]) -> int:
    """Run it in the open turn, or in one that begins and ends with it. Turns that are `left` have nobody else."""
    isolation = _isolation(asked, view)
    current = client.call("workspace/status").get("turn_id")
    if asked.turn is None and current is None:
        raise Unfit(NO_INPUT, "no turn is open: begin one first, or give --turn ID for one of its own")
    if asked.turn is None or asked.turn == current:
        one = _Run(view, isolation, str(current), _call_id(asked), own_turn=current in left)
        return _call(place, asked, one, client)
    if current in left:
        _change(client, "turn/end", {"turn_id": current, "status": "failed"})
    elif current is not None:
        raise Unfit(NO_PERMISSION, f"turn {current} is open; leave --turn out to run in it, or end it first")
    client.call("turn/begin", {"turn_id": asked.turn})
    code = NO_START
    try:
        code = _call(place, asked, _Run(view, isolation, asked.turn, _call_id(asked), own_turn=True), client)
    finally:
        _change(client, "turn/end", {"turn_id": asked.turn, "status": "failed" if code else "completed"})
    return code


@dataclass(frozen=True, slots=True)
class _Run:
    """One run of the program."""

    view: View
    isolation: str
    turn_id: str
    tool_call_id: str
    own_turn: bool  # it was begun for a program alone, of ours or of one that was killed

    def note(self) -> None:
        """Write down what would be left open if we were killed."""
        begun = leftovers.Begun(self.view.out_dir, self.turn_id, self.own_turn, self.tool_call_id)
        leftovers.note(os.path.dirname(self.view.client), begun)


def _call_id(asked: argparse.Namespace) -> str:
    return asked.tool_call_id or f"exec_{secrets.token_hex(6)}"


def _call(place: Place, asked: argparse.Namespace, one: _Run, client: Client) -> int:
    """The call around the program; what it made is told when it has ended, however it ended."""
    channel, name = place.channel()
    with channel:
        begun = {
            "tool_call_id": one.tool_call_id,
            "tool_id": "exec",
            "turn_id": one.turn_id,
            "params": {"command": asked.command, "isolation": one.isolation},
            "channel": name,
        }
        client.call("call/begin", begun)
        one.note()
        ended = Ended(NO_START, problem="it was not run to its end")
        try:
            sys.stdout.flush()
            ended = run(_order(asked, one, channel), channel.close)
        finally:
            told = _end_call(asked, one, ended, client)
    if ended.problem:
        complain(f"the program could not be started: {ended.problem}")
    if ended.timed_out:
        complain(f"the program was ended after {asked.timeout:g} seconds")
    if told is None:
        return NO_START
    _report(asked, one, ended, told)
    return MISSING if ended.code == 0 and told["missing"] else ended.code


def _order(asked: argparse.Namespace, one: _Run, channel: socket.socket) -> Order:
    return Order(
        asked.command,
        _environment(one, channel.fileno()),
        one.view.work_dir,
        channel.fileno(),
        view=one.view if one.isolation == "bwrap" else None,
        timeout=asked.timeout,
        stdout=2 if asked.json else None,  # stdout is for the JSON alone
    )


def _environment(one: _Run, channel: int) -> dict[str, str]:
    """A short one in the sandbox, else ours; in both what a program needs to know of its call, and no other way in."""
    if one.isolation == "bwrap":
        # A client whose channel has ended must not start a second daemon in there.
        base = {**sandbox.environment(one.view), "ARTIFACT_SIDECAR_COMMAND": "false"}
        paths = [one.view.client]
    else:
        base = {name: value for name, value in os.environ.items() if not name.startswith("ARTIFACT_SIDECAR_")}
        paths = [one.view.client, *filter(None, [os.environ.get("PYTHONPATH")])]
    return {
        **base,
        "OUT_DIR": one.view.out_dir,
        "WORK_DIR": one.view.work_dir,
        "PYTHONPATH": os.pathsep.join(paths),
        "ARTIFACT_SIDECAR_FD": str(channel),
        "ARTIFACT_SIDECAR_TURN_ID": one.turn_id,
        "ARTIFACT_SIDECAR_TOOL_CALL_ID": one.tool_call_id,
    }


def _end_call(asked: argparse.Namespace, one: _Run, ended: Ended, client: Client) -> dict[str, Any] | None:
    """What it made and what is missing; None when the daemon does not say."""
    said: dict[str, Any] = {"result": {"exit_code": ended.code, "isolation": one.isolation}}
    if ended.problem or ended.timed_out:
        why = ended.problem or f"it was ended after {asked.timeout:g} seconds"
        said["error"] = {"code": "timed_out" if ended.timed_out else "not_started", "message": why}
    try:
        return _change(client, "call/end", {"tool_call_id": one.tool_call_id, "expect": asked.expect, **said})
    except RpcError as refusal:
        complain(f"what the program made is not told: {refusal}")
        return None


def _change(client: Client, method: str, params: dict[str, Any]) -> Any:
    """A change that is made once, although the daemon may end and another follow it meanwhile."""
    params = {**params, "request_id": uuid.uuid4().hex}
    try:
        return client.call(method, params, timeout=LONG)
    except ConnectionLost:
        return client.call(method, params, timeout=LONG)


# What is told.


def _report(asked: argparse.Namespace, one: _Run, ended: Ended, told: dict[str, Any]) -> None:
    if asked.json:
        known = {"turn_id": one.turn_id, "tool_call_id": one.tool_call_id, "isolation": one.isolation}
        say_json({**known, "exit_code": ended.code, "timed_out": ended.timed_out, **told})
        return
    rows: list[tuple[object, ...]] = [
        (made["physical_path"], "made", size(made.get("size_bytes")), made["mime"], made.get("sid"))
        for made in told["artifacts"]
    ]
    rows += [(path, "missing", None, None, None) for path in told["missing"]]
    rows += [(path, "still open", None, None, None) for path in told["unsettled"]]
    if rows:
        table(("file", "", "size", "type", "source"), rows)
    else:
        say(f"no files were made: those count that lie below $OUT_DIR/{one.turn_id}/files/")
