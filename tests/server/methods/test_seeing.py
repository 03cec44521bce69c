"""Who sees which visibility."""

from __future__ import annotations

from pathlib import Path

import orjson
import pytest

from sidecar.core.artifacts import Artifact
from sidecar.core.paths import FilePath
from sidecar.server.methods.seeing import may_see, sees_named
from tests.server.inside import Inside, awake

EVERYBODY = {"runtime", "renderer", "exec", "editor"}


@pytest.mark.parametrize(
    ("visibility", "roles"),
    [("external", EVERYBODY), ("internal", EVERYBODY - {"editor"}), ("pending", {"runtime", "exec"})],
)
def test_a_visibility_is_for_these_roles(visibility: str, roles: set[str]) -> None:
    artifact = Artifact(FilePath("turn_1", "files", "a"))
    artifact.visibility = visibility
    assert {role for role in EVERYBODY if may_see(role, artifact)} == roles


PATCH = "--- a/n.txt\n+++ b/n.txt\n@@ -1,2 +1,2 @@\n one\n-two\n+a secret\n"
RESULT = "tc:turn_1.c1.result"


async def told_to_an_editor(inside: Inside) -> bytes:
    return orjson.dumps([
        await inside.ask("timeline/blocks", role="editor"),
        await inside.ask("timeline/render", {"as": "text"}, role="editor"),
        await inside.ask("artifact/fetch", {"path": RESULT}, role="editor"),
        await inside.ask("artifact/read", {"paths": [RESULT]}, role="editor"),
    ])  # fmt: skip


async def test_what_an_artifact_left_in_calls_goes_when_it_becomes_internal(tmp_path: Path) -> None:
    async with awake(tmp_path) as inside:
        await inside.begin()
        await inside.ask("call/begin", {"tool_call_id": "c1", "tool_id": "x", "params": {}})
        inside.write("turn_1/files/n.txt", "one\ntwo\n")
        await inside.ask("call/end", {"tool_call_id": "c1", "expect": [{"path": "n.txt", "description": "a plan"}]})
        await inside.ask("artifact/patch", {"path": "n.txt", "patch": PATCH})
        before = await told_to_an_editor(inside)
        assert all(words in before for words in (b"n.txt", b"a plan", b"a secret"))
        await inside.ask("call/begin", {"tool_call_id": "c2", "tool_id": "x", "params": {}})
        await inside.ask("call/end", {"tool_call_id": "c2", "expect": [{"path": "n.txt", "visibility": "internal"}]})
        after = await told_to_an_editor(inside)
        assert not any(words in after for words in (b"n.txt", b"a plan", b"a secret"))
        assert b"a secret" in orjson.dumps(await inside.ask("timeline/blocks"))
    async with awake(tmp_path) as inside:
        assert await told_to_an_editor(inside) == after


async def test_what_an_open_call_patched_is_shown_once_its_file_may_be_seen(tmp_path: Path) -> None:
    async with awake(tmp_path) as inside:
        await inside.begin()
        await inside.ask("call/begin", {"tool_call_id": "c1", "tool_id": "x", "params": {}})
        inside.write("turn_1/files/n.txt", "one\ntwo\n")
        await inside.sync()
        await inside.ask("artifact/patch", {"path": "n.txt", "patch": PATCH})
        assert b"a secret" not in await told_to_an_editor(inside)
        await inside.ask("call/end", {"tool_call_id": "c1", "expect": ["n.txt"]})
        assert b"a secret" in await told_to_an_editor(inside)


async def test_a_path_may_be_named_when_some_of_it_may_be_shown(tmp_path: Path) -> None:
    async with awake(tmp_path) as inside:
        secret = {"visibility": "internal"}
        blocks = [
            {"type": "x", "turn_id": "t", "path": "ar:t.a", "text": "x", "meta": meta} for meta in (secret, secret, {})
        ]
        await inside.ask("timeline/append", {"blocks": blocks[:2]})
        assert not sees_named("editor", inside.workspace, "ar:t.a")
        await inside.ask("timeline/append", {"blocks": blocks[2:]})
        named = {name: sees_named("editor", inside.workspace, name) for name in ("ar:t.a", "ar:t.b", 0, 2, 9)}
        assert named == {"ar:t.a": True, "ar:t.b": True, 0: False, 2: True, 9: True}
