"""What programs were and made is archived at the end of a turn: the same contents make the same bytes."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from sidecar.core.conversation_names import spelled
from tests.conversation.shelf import CONVERSATION, Shelf
from tests.daemon_process import Workspace, eventually
from tests.faulty_front import FaultyFront
from tests.radosgw import Radosgw

EXECUTIONS = "cb/tenants/acme/projects/inn/executions/registered/ann/c-1/turn_1/exec_tc_1/"
CODE = "print('hello')\n"
LONG = 30.0


@pytest.fixture
def shelf(workspace: Workspace) -> Iterator[Shelf]:
    shelf = Shelf.of(workspace)
    yield shelf
    shelf.close()


def run_program(workspace: Workspace, client: Any, turn: str = "turn_1", *, code: bool = True) -> None:
    """A turn with one call that has a program, makes two files for everybody and one for nobody; not ended."""
    client.call("turn/begin", {"turn_id": turn, "conversation": CONVERSATION, "prompt": "Run it"})
    client.call("call/begin", {"tool_call_id": "tc_1", "tool_id": "exec", "params": {}})
    if code:
        told = {"type": "react.tool.code", "path": f"fi:{turn}.code.tc_1", "mime": "text/x-python", "text": CODE}
        client.call("timeline/append", {"blocks": [{**told, "meta": {"tool_call_id": "tc_1", "lang": "python"}}]})
    workspace.write("executed_programs/exec_tc_1/main.py", CODE)
    workspace.write("executed_programs/exec_tc_1/lib/tools.py", "X = 1\n")
    workspace.write("executed_programs/exec_tc_1/__pycache__/tools.pyc", b"\0")
    workspace.write("executed_programs/exec_tc_9/main.py", "of nobody here")
    workspace.write(f"{turn}/files/out/rows.csv", "n\n1\n")
    workspace.write(f"{turn}/files/all.bin", bytes(range(256)) * 64)
    workspace.write(f"{turn}/files/scratch.txt", "for nobody")
    internal = {"path": f"{turn}/files/scratch.txt", "visibility": "internal"}
    client.call("call/end", {"tool_call_id": "tc_1", "expect": [internal]})


def check_archives(shelf: Shelf) -> None:
    (execution,) = shelf.payload("turn_1", "turn.log")["executions"]
    assert (execution["exec_id"], execution["tool_call_id"]) == ("exec_tc_1", "tc_1")
    keys = [key for key in shelf.stored() if "/executions/" in key]
    assert [spelled(key) for key in keys] == [f"{EXECUTIONS}out.zip", f"{EXECUTIONS}pkg.zip"]
    out, pkg = (shelf.zipped(key) for key in keys)
    manifests = json.loads(out.pop("manifest.json")), json.loads(pkg.pop("manifest.json"))
    assert out == {
        "turn_1/files/all.bin": bytes(range(256)) * 64,
        "turn_1/files/out/rows.csv": b"n\n1\n",
    }
    assert pkg == {
        "executed_programs/exec_tc_1/lib/tools.py": b"X = 1\n",
        "executed_programs/exec_tc_1/main.py": CODE.encode(),
        "main.py": CODE.encode(),
    }
    for name, manifest, contents in zip(("out", "pkg"), manifests, (out, pkg), strict=True):
        assert manifest == {part: execution[name][part] for part in ("dir", "files", "file_count", "left_out")}
        assert (manifest["dir"], manifest["file_count"], manifest["left_out"]) == (name, len(contents), [])
        assert {file["path"]: file["size"] for file in manifest["files"]} == {k: len(v) for k, v in contents.items()}
        assert execution[name]["url"].endswith(f"/exec_tc_1/{name}.zip")
    assert all({"key", "url", "rn", "sha256", "mime", "kind"} <= file.keys() for file in manifests[0]["files"])


@pytest.mark.rule("store.executions-are-zipped")
def test_a_program_and_what_it_made_are_archived(workspace: Workspace, shelf: Shelf) -> None:
    runtime = workspace.connect("runtime")
    run_program(workspace, runtime)
    runtime.call("turn/end", {"turn_id": "turn_1"})
    check_archives(shelf)


@pytest.mark.rule("store.executions-are-zipped")
def test_they_are_archived_in_a_real_s3_as_well(
    make_workspace: Callable[..., Workspace], front: FaultyFront, bucket: str, s3: Radosgw
) -> None:
    from sidecar.stores.location import StoreSettings
    from sidecar.stores.objects import open_configured

    settings = {"store": f"s3://{bucket}/executions", "store_endpoint_url": s3.http}
    workspace = make_workspace(settings=settings).start()
    shelf = Shelf.of(workspace, open_configured(StoreSettings(uri=settings["store"], endpoint_url=s3.http)))
    runtime = workspace.connect("runtime")
    run_program(workspace, runtime)
    runtime.call("turn/end", {"turn_id": "turn_1"})
    check_archives(shelf)
    shelf.close()


def test_equal_programs_make_equal_archives(make_workspace: Callable[..., Workspace]) -> None:
    packed: list[bytes] = []
    for _ in range(2):
        workspace = make_workspace().start()
        shelf = Shelf.of(workspace)
        runtime = workspace.connect("runtime")
        run_program(workspace, runtime)
        runtime.call("turn/end", {"turn_id": "turn_1"})
        packed.append(shelf.bytes_at(next(key for key in shelf.stored() if key.endswith("/pkg.zip"))))
        shelf.close()
    assert packed[0] == packed[1]


def test_a_turn_without_a_program_has_no_archive(workspace: Workspace, shelf: Shelf) -> None:
    runtime = workspace.connect("runtime")
    runtime.call("turn/begin", {"turn_id": "turn_1", "conversation": CONVERSATION})
    runtime.call("call/begin", {"tool_call_id": "tc_1", "tool_id": "web", "params": {}})
    workspace.write("turn_1/files/page.html", "<p>x</p>")
    runtime.call("call/end", {"tool_call_id": "tc_1"})
    runtime.call("turn/end", {"turn_id": "turn_1"})
    assert shelf.payload("turn_1", "turn.log")["executions"] == []
    assert not [key for key in shelf.stored() if "/executions/" in key]


def test_nobody_who_does_not_want_them_gets_archives(make_workspace: Callable[..., Workspace]) -> None:
    workspace = make_workspace(options=("--no-persist-executions",)).start()
    shelf = Shelf.of(workspace)
    runtime = workspace.connect("runtime")
    run_program(workspace, runtime)
    runtime.call("turn/end", {"turn_id": "turn_1"})
    assert shelf.payload("turn_1", "turn.log")["executions"] == []
    assert not [key for key in shelf.stored() if "/executions/" in key]
    shelf.close()


def test_what_an_archive_cannot_hold_is_listed(workspace: Workspace, shelf: Shelf) -> None:
    runtime = workspace.connect("runtime")
    run_program(workspace, runtime, code=False)
    for number in range(2100):
        workspace.write(f"executed_programs/tc_1/part_{number:04}.py", "x")
    runtime.ceiling = 30
    runtime.call("turn/end", {"turn_id": "turn_1"})
    (execution,) = shelf.payload("turn_1", "turn.log")["executions"]
    pkg = execution["pkg"]
    assert pkg["file_count"] == 2000
    assert len(pkg["left_out"]) == 102
    assert {one["reason"] for one in pkg["left_out"]} == {"too_much"}


def test_a_turn_that_is_saved_again_keeps_its_archives(workspace: Workspace, shelf: Shelf) -> None:
    runtime = workspace.connect("runtime")
    run_program(workspace, runtime)
    runtime.call("turn/end", {"turn_id": "turn_1"})
    before = shelf.payload("turn_1", "turn.log")["executions"]
    workspace.write("executed_programs/exec_tc_1/lib/more.py", "Y = 2\n")
    change = shelf.row("turn_1", "turn.log").change
    runtime.call("timeline/append", {"blocks": [{"type": "note", "turn_id": "turn_1", "text": "late"}]})
    eventually(lambda: shelf.row("turn_1", "turn.log").change > change, ceiling=LONG)
    after = shelf.payload("turn_1", "turn.log")["executions"]
    assert after[0]["out"] == before[0]["out"], "what it made is the same, and is not archived again"
    assert after[0]["pkg"]["file_count"] == before[0]["pkg"]["file_count"] + 1
    packed = shelf.zipped(next(key for key in shelf.stored() if key.endswith("/pkg.zip")))
    assert packed["executed_programs/exec_tc_1/lib/more.py"] == b"Y = 2\n"
