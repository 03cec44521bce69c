"""What an `exec` that was killed left behind: its folder, its programs, its call and perhaps its turn.

A folder of each is held by a lock as long as its owner lives, however that ends, and says what the owner had begun. The
next `exec` finishes it: nobody else can know that the call will never be ended by whoever began it.
"""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import stat
import tempfile
from contextlib import suppress
from dataclasses import asdict, dataclass

from artifact_client import Client, RpcError

from sidecar.console.program import end_all_with

PREFIX, LOCK, BEGUN = "artifact-sidecar-exec-", "held", "begun.json"
KILLED = {"code": "killed", "message": "the command that ran the program was killed"}


@dataclass(frozen=True, slots=True)
class Begun:
    """What must be ended by whoever began it: a call, and the turn if it was begun for the program alone."""

    out_dir: str
    turn_id: str
    own_turn: bool
    tool_call_id: str = ""


def hold(own: str) -> int:
    """Hold the folder as long as we live, however we end. It gets its name when it is held: who sees it can ask it."""
    unnamed = os.path.join(own, "unheld")
    lock = os.open(unnamed, os.O_CREAT | os.O_RDWR, 0o600)
    fcntl.flock(lock, fcntl.LOCK_EX)
    os.rename(unnamed, os.path.join(own, LOCK))
    return lock


def note(own: str, begun: Begun) -> None:
    """Write down what was begun, for whoever cleans up after us. Whole or not at all."""
    path = os.path.join(own, BEGUN)
    with open(path + ".new", "w", encoding="utf-8") as file:
        json.dump(asdict(begun), file)
    os.replace(path + ".new", path)


def finish(client: Client, out_dir: str) -> frozenset[str]:
    """Remove the folders of those who were killed, end what their programs left running, and end their calls.

    Answers the turns that they had begun for themselves, and that may still be open. What was begun in another
    workspace that is still there is left to the next one in there.
    """
    turns: set[str] = set()
    with suppress(OSError), os.scandir(tempfile.gettempdir()) as entries:
        for entry in entries:
            own = os.path.realpath(entry.path)
            # Ourselves we may be what such a program left running, and live on what is in there.
            if entry.name.startswith(PREFIX) and not any(own in value for value in os.environ.values()):
                with suppress(OSError):  # held by one that runs, another user's, or gone by now
                    turns |= _finish_if_left(entry.path, own, client, out_dir)
    return frozenset(turns)


def _finish_if_left(path: str, own: str, client: Client, out_dir: str) -> set[str]:
    told = os.lstat(path)
    if not stat.S_ISDIR(told.st_mode) or told.st_uid != os.geteuid():
        return set()
    lock = os.open(os.path.join(own, LOCK), os.O_RDWR | os.O_NOFOLLOW)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        end_all_with(own)
        begun = _begun(own)
        if begun is not None and begun.out_dir != out_dir and os.path.isdir(begun.out_dir):
            return set()
        here = begun is not None and begun.out_dir == out_dir
        if begun is not None and here and begun.tool_call_id:
            with suppress(RpcError):  # it is over, or its whole turn is
                client.call("call/end", {"tool_call_id": begun.tool_call_id, "error": KILLED})
        shutil.rmtree(own, ignore_errors=True)
        return {begun.turn_id} if begun is not None and here and begun.own_turn else set()
    finally:
        os.close(lock)


def _begun(own: str) -> Begun | None:
    try:
        with open(os.path.join(own, BEGUN), encoding="utf-8") as file:
            return Begun(**json.load(file))
    except (OSError, ValueError, TypeError):
        return None
