"""An export holds every file in its latest version, the timeline and the sources, and is the same bytes each time."""

from __future__ import annotations

import hashlib
import json
import shutil
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.console.conftest import Run
from tests.daemon_process import Workspace

pytestmark = pytest.mark.rule("cli.export-and-gc")


def filled(workspace: Workspace) -> Workspace:
    """Three files of one call: one that stays, one that is changed and deleted, one that nobody is to see."""
    runtime = workspace.connect("runtime")
    rows = [{"url": "https://example.com/a", "title": "A page", "source_type": "web"}]
    runtime.call("turn/begin", {"turn_id": "turn_1", "prompt": "Sum it up"})
    (sid,) = runtime.call("sources/merge", {"rows": rows})["added"]
    runtime.call("call/begin", {"tool_call_id": "tc_1", "tool_id": "demo.write", "params": {}})
    workspace.write("turn_1/files/stays.txt", "stays\n")
    workspace.write("turn_1/files/gone.txt", "first\n")
    runtime.call("workspace/sync")
    workspace.write("turn_1/files/gone.txt", "second\n")
    workspace.write("turn_1/files/größe 1%.txt", "measured\n")
    workspace.write("turn_1/files/inner.txt", "inner words\n")
    runtime.call("call/end", {"tool_call_id": "tc_1", "expect": [{"path": "inner.txt", "visibility": "internal"}]})
    text = f"As [[S:{sid}]] says."
    runtime.call("artifact/write", {"path": "answer.md", "content": text, "kind": "file", "sources_used": [sid]})
    runtime.call("turn/end", {"turn_id": "turn_1", "completion": {"text": text}})
    (workspace.out_dir / "turn_1/files/gone.txt").unlink()
    runtime.call("workspace/sync")
    return workspace


def contents(path: Path) -> dict[str, bytes]:
    with zipfile.ZipFile(path) as archive:
        assert archive.testzip() is None
        return {name: archive.read(name) for name in archive.namelist()}


@pytest.fixture
def target(tmp_path: Path) -> Path:
    return tmp_path / "it.zip"


def test_latest_versions_travel_with_their_timeline(workspace: Workspace, command: Run, target: Path) -> None:
    code, out, err = command(filled(workspace), "export", "--zip", str(target))
    assert (code, err) == (0, "")
    assert "4 files" in out
    found = contents(target)
    files = {name: body for name, body in found.items() if name.startswith("turn_1/")}
    assert files == {
        "turn_1/files/answer.md": b"As [[S:1]] says.",
        "turn_1/files/gone.txt": b"second\n",
        "turn_1/files/größe 1%.txt": b"measured\n",
        "turn_1/files/stays.txt": b"stays\n",
    }
    assert not (workspace.out_dir / "turn_1/files/gone.txt").exists()
    manifest = json.loads(found["manifest.json"])
    listed = {one["path"]: one for one in manifest["files"]}
    assert listed.keys() == files.keys()
    for path, body in files.items():
        assert listed[path]["sha256"] == hashlib.sha256(body).hexdigest()
        assert (listed[path]["size_bytes"], listed[path]["turn_id"]) == (len(body), "turn_1")
    assert listed["turn_1/files/stays.txt"]["mime"] == "text/plain"
    timeline = json.loads(found["timeline.json"])
    assert any(block.get("text") == "Sum it up" for block in timeline["blocks"])
    assert json.loads(found["sources_pool.json"])["sources_pool"][0]["sid"] == 1
    assert all(b"hosted_uri" not in body and b"inner words" not in body for body in found.values())


def test_what_is_internal_travels_when_asked_for(workspace: Workspace, command: Run, target: Path) -> None:
    code, _, _ = command(filled(workspace), "export", "--zip", str(target), "--internal")
    found = contents(target)
    assert (code, found["turn_1/files/inner.txt"]) == (0, b"inner words\n")
    listed = {one["path"]: one["visibility"] for one in json.loads(found["manifest.json"])["files"]}
    assert listed["turn_1/files/inner.txt"] == "internal"


def test_the_same_workspace_is_the_same_bytes(workspace: Workspace, command: Run, tmp_path: Path) -> None:
    filled(workspace)
    one, two = tmp_path / "one.zip", tmp_path / "two.zip"
    assert command(workspace, "export", "--ro-crate", str(one))[0] == 0
    workspace.restart()
    assert command(workspace, "export", "--ro-crate", str(two))[0] == 0
    assert one.read_bytes() == two.read_bytes()


def test_what_stands_there_is_replaced_only_by_force(workspace: Workspace, command: Run, target: Path) -> None:
    target.write_bytes(b"mine")
    code, _, err = command(filled(workspace), "export", "--zip", str(target))
    assert (code, target.read_bytes()) == (64, b"mine")
    assert "--force" in err
    assert command(workspace, "export", "--zip", str(target), "--force")[0] == 0
    assert "manifest.json" in contents(target)
    assert [path.name for path in target.parent.glob(".*.part")] == []


def test_an_archive_does_not_hold_itself(workspace: Workspace, command: Run) -> None:
    code, _, err = command(workspace, "export", "--zip", str(workspace.out_dir / "turn_1/files/it.zip"))
    assert code == 64
    assert "inside OUT_DIR" in err


def test_bytes_that_only_the_store_has_come_from_there(
    make_workspace: Callable[..., Workspace], command: Run, target: Path, tmp_path: Path
) -> None:
    workspace = filled(make_workspace(options=["--store", str(tmp_path / "hosted")]).start())
    shutil.rmtree(workspace.state_dir / "kept")
    assert command(workspace, "export", "--zip", str(target))[0] == 0
    assert contents(target)["turn_1/files/gone.txt"] == b"second\n"


def test_bytes_that_are_nowhere_are_named(make_workspace: Callable[..., Workspace], command: Run, target: Path) -> None:
    workspace = filled(make_workspace(options=["--store", "none"]).start())
    gone = workspace.write("turn_2/files/gone.bin", b"\0\1\2")
    command(workspace, "sync")
    gone.unlink()
    shutil.rmtree(workspace.state_dir / "kept")
    code, _, err = command(workspace, "export", "--zip", str(target))
    assert code == 0
    assert "turn_2/files/gone.bin is not in the archive" in err
    found = contents(target)
    assert found["turn_1/files/gone.txt"] == b"second\n"  # the timeline itself holds it
    assert [one["path"] for one in json.loads(found["manifest.json"])["missing"]] == ["turn_2/files/gone.bin"]


def test_a_crate_describes_what_made_each_file(workspace: Workspace, command: Run, target: Path) -> None:
    assert command(filled(workspace), "export", "--ro-crate", str(target))[0] == 0
    found = contents(target)
    graph: dict[str, dict[str, Any]] = {
        one["@id"]: one for one in json.loads(found["ro-crate-metadata.json"])["@graph"]
    }
    parts = {part["@id"] for part in graph["./"]["hasPart"]}
    packed = {name for name in found if name != "ro-crate-metadata.json"}
    assert parts == {name.replace("%", "%25").replace(" ", "%20") for name in packed}
    for name in packed:
        entity = graph[name.replace("%", "%25").replace(" ", "%20")]
        assert entity["sha256"] == hashlib.sha256(found[name]).hexdigest()
        assert entity["contentSize"] == str(len(found[name]))
    action = graph["#call-tc_1"]
    assert action["instrument"] == {"@id": "#tool-demo.write"}
    assert {"@id": "turn_1/files/stays.txt"} in action["result"]
    assert graph["turn_1/files/answer.md"]["citation"] == [{"@id": "https://example.com/a"}]
    assert graph["https://example.com/a"]["name"] == "A page"
