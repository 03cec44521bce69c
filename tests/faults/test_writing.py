"""Disks that are full while something is written or patched: a clear refusal, nothing lost, and it goes on."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conftest import has_failed
from tests.daemon_process import Workspace
from tests.faults.confined import resize, seen_by_the_daemon, why_no_mount, with_tiny_out_dir, with_tiny_state
from tests.faults.test_disk import append_until_refused
from tests.rpc_client import Client

BIG = "x" * 1_500_000
PATH = "turn_1/files/a.txt"


@pytest.fixture(autouse=True)
def _mounts() -> None:
    if reason := why_no_mount():
        print(f"skipped: {reason}")
        pytest.skip(reason)


@pytest.fixture
def tiny_state(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Workspace]:
    """A workspace whose journal has four megabytes."""
    workspace = with_tiny_state(tmp_path / "w", size="4m")
    yield workspace.start()
    workspace.clean_up(failed=has_failed(request))


@pytest.fixture
def tiny_out(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Workspace]:
    """A workspace whose OUT_DIR has one megabyte, in the daemon's own eyes only."""
    workspace = with_tiny_out_dir(tmp_path / "w", size="1m")
    yield workspace.start()
    workspace.clean_up(failed=has_failed(request))


def begun(workspace: Workspace) -> Client:
    client = workspace.connect("runtime")
    client.call("turn/begin", {"turn_id": "turn_1"})
    return client


@pytest.mark.rule("write.whole-or-not-at-all")
def test_a_full_out_dir_refuses_a_file_and_keeps_what_is_there(tiny_out: Workspace) -> None:
    client = begun(tiny_out)
    client.call("artifact/write", {"path": PATH, "kind": "file", "content": "small\n"})
    for method, params in (
        ("artifact/write", {"path": PATH, "kind": "file", "content": BIG}),
        ("artifact/write", {"path": "b/c/d.txt", "kind": "file", "content": BIG}),
        ("artifact/patch", {"path": PATH, "patch": f"@@ -1 +1,2 @@\n small\n+{BIG}\n"}),
    ):
        refusal = client.refused(method, params)
        assert refusal.kind == "store_unavailable"
        assert "space" in str(refusal.data["hint"])
    found = seen_by_the_daemon(tiny_out)
    found.pop("timeline.json", None)
    assert found == {PATH: 6}
    assert client.call("artifact/fetch", {"path": PATH})["ret"]["text"] == "small\n"
    patched = client.call("artifact/patch", {"path": PATH, "patch": "@@ -1 +1 @@\n-small\n+large\n"})
    assert (patched["ok"], patched["artifact"]["version"]) == (True, 2)
    display = client.call("artifact/write", {"path": "b.md", "kind": "display", "content": BIG})["artifact"]
    assert display["size_bytes"] == len(BIG)


@pytest.mark.rule("write.whole-or-not-at-all", "patch.all-hunks-or-none")
def test_a_full_journal_takes_a_write_back(tiny_state: Workspace) -> None:
    client = begun(tiny_state)
    client.call("artifact/write", {"path": PATH, "kind": "file", "content": "small\n"})
    append_until_refused(client)
    shown = "y" * 100_000  # too long a text for what is left of the journal
    before = {path: path.read_bytes() for path in tiny_state.out_dir.rglob("*") if path.is_file()}
    for method, params in (
        ("artifact/write", {"path": PATH, "kind": "file", "content": shown}),
        ("artifact/write", {"path": "new.txt", "kind": "file", "content": shown}),
        ("artifact/write", {"path": "new.txt", "kind": "display", "content": shown}),
        ("artifact/patch", {"path": PATH, "patch": f"@@ -1 +1,2 @@\n small\n+{shown}\n"}),
    ):
        assert client.refused(method, params).kind == "journal_unavailable"
    after = {path: path.read_bytes() for path in tiny_state.out_dir.rglob("*") if path.is_file()}
    view = tiny_state.out_dir / "timeline.json"
    assert {**after, view: b""} == {**before, view: b""}
    client.call("workspace/sync")
    assert len(client.call("artifact/versions", {"path": PATH})["versions"]) == 1

    resize(tiny_state, "64m")
    assert client.call("artifact/write", {"path": PATH, "kind": "file", "content": shown})["artifact"]["version"] == 2
