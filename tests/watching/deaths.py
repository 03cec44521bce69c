"""A daemon that dies while files appear, and another one that takes its place."""

from __future__ import annotations

from tests.daemon_process import Workspace, eventually
from tests.watching.trial import Deed, Outcome, judge


def through_a_death(workspace: Workspace, prefix: str, *, at: int) -> Outcome:
    """2,000 files; the daemon is killed when about `at` of them are there, and started again while more are made."""
    deed = Deed.begin(workspace, "many_files_in_a_hundred_folders", prefix, 2000)
    folder = workspace.out_dir
    eventually(lambda: deed.is_over or len(list(folder.glob(f"{prefix}_*/files/*/*"))) >= at, ceiling=30.0)
    workspace.restart()
    client = workspace.connect("runtime")
    client.ceiling = 30.0
    files = deed.files()
    client.call("workspace/sync")
    return judge(client, files)
