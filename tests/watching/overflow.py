"""A daemon that stands still while files appear: the kernel's queue of events overflows, and says nothing of it."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from time import monotonic

from tests.daemon_process import Workspace, eventually
from tests.watching.deeds import Files
from tests.watching.trial import Deed, Outcome, hear, judge

OVERFLOW = "files_made_while_the_daemon_is_stopped"


@contextmanager
def stopped(workspace: Workspace) -> Iterator[None]:
    """SIGSTOP, and SIGCONT whatever happens."""
    assert workspace.daemon is not None
    workspace.daemon.send_signal(signal.SIGSTOP)
    try:
        yield
    finally:
        workspace.daemon.send_signal(signal.SIGCONT)


def make_while_stopped(workspace: Workspace, prefix: str, size: int) -> Files:
    """`size` files in a hundred folders that are watched already when the daemon stops."""
    for folder in range(100):
        workspace.write(f"{prefix}_{folder % 5}/files/f{folder}/first.txt", f"first of {prefix} {folder}")
    client = workspace.connect("runtime", ceiling=60.0)
    client.call("workspace/sync")
    eventually(lambda: client.call("workspace/status")["watcher"]["state"] == "ok", ceiling=60.0)
    with stopped(workspace):
        return Deed.begin(workspace, "many_files_in_a_hundred_folders", prefix, size).files()


def through_a_stop(workspace: Workspace, way: str, prefix: str, size: int) -> Outcome:
    """Make them, go on, and see by `way` what became of them."""
    client = workspace.connect("runtime", ceiling=60.0, events=["artifacts"] if way == "events" else [])
    files = make_while_stopped(workspace, prefix, size)
    if way == "events":
        outcome = hear(client, lambda: files)
        client.drop()
        return outcome
    over = monotonic()
    client.call("workspace/sync")
    seconds = monotonic() - over
    outcome = judge(client, files)
    outcome.seconds = seconds
    return outcome
