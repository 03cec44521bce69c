"""Where the kernel watches only a few folders for us, changes are found by looking, and `status` says so."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conftest import has_failed
from tests.daemon_process import Workspace, eventually
from tests.faults.confined import why_no_watch_limit, with_few_watches
from tests.watching.trial import Deed, hear, judge

FOLDERS = 60


@pytest.fixture
def limited(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Workspace]:
    """A workspace whose daemon may watch twenty folders."""
    if reason := why_no_watch_limit():
        print(f"skipped: {reason}")
        pytest.skip(reason)
    workspace = with_few_watches(tmp_path / "w", watches=20)
    yield workspace.start()
    workspace.clean_up(failed=has_failed(request))


def test_a_sync_misses_nothing_beyond_the_limit(limited: Workspace) -> None:
    client = limited.connect("runtime")
    files = Deed.begin(limited, "one_file_in_each_new_folder_at_once", "turn_1", FOLDERS).files()
    client.call("workspace/sync")
    outcome = judge(client, files)
    assert outcome.is_clean, str(outcome)


def test_events_tell_of_everything_beyond_the_limit_and_status_says_why_they_are_late(limited: Workspace) -> None:
    client = limited.connect("runtime", events=["artifacts"])
    deed = Deed.begin(limited, "one_file_in_each_new_folder_at_once", "turn_1", FOLDERS)
    outcome = hear(client, lambda: deed.files() if deed.is_over else {})
    assert outcome.is_clean, str(outcome)
    watcher = eventually(lambda: (w := client.call("workspace/status")["watcher"])["state"] != "ok" and w)
    assert watcher["state"] in ("degraded", "polling")
    assert "watches no more folders" in watcher["reason"]
    client.drop()


def test_what_is_made_in_a_folder_that_is_not_watched_is_told_soon(limited: Workspace) -> None:
    client = limited.connect("runtime", events=["artifacts"])
    for at in range(FOLDERS):
        limited.write(f"turn_{at}/files/a.txt", f"{at}")
    client.call("workspace/sync")
    eventually(lambda: client.call("workspace/status")["watcher"]["state"] != "ok")
    client.forget_events()
    for at in range(FOLDERS):
        limited.write(f"turn_{at}/files/b.txt", f"b {at}")
    left = {f"turn_{at}/files/b.txt" for at in range(FOLDERS)}
    while left:
        left -= {artifact["physical_path"] for artifact in client.event("artifacts/changed")["artifacts"]}
    client.drop()
