"""What the runtime saves of its own: a blob, a row, or both; and what is refused."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import pytest

from sidecar.core.errors import NotPermitted, TooLarge
from sidecar.core.index_rows import INDEX_ONLY, Filters
from tests.conversation.inside import inside
from tests.daemon_process import Workspace
from tests.rpc_client import Client, RpcError


def record_at(uri: str) -> dict[str, Any]:
    return json.loads(Path(unquote(urlsplit(uri).path)).read_bytes())


def blobs(workspace: Workspace) -> list[Path]:
    return sorted(path for path in (workspace.state_dir / "store").rglob("*.json") if path.is_file())


def talk(workspace: Workspace) -> Client:
    runtime = workspace.connect("runtime")
    runtime.call("turn/begin", {"turn_id": "turn_1", "prompt": "Hello"})
    return runtime


def saved(runtime: Client, **params: Any) -> dict[str, Any]:
    return runtime.call("conversation/save", {"kind": "my.note", **params})


def unsaved(runtime: Client, **params: Any) -> RpcError:
    return runtime.refused("conversation/save", {"kind": "my.note", **params})


def listed(client: Client, **params: Any) -> list[dict[str, Any]]:
    return client.call("conversation/recent", {"kinds": ["my.note"], **params})["items"]


@pytest.mark.rule("store.tags-name-artifact-and-turn")
def test_what_is_saved_is_a_blob_and_a_row_that_is_found_by_kind_turn_and_tag(workspace: Workspace) -> None:
    runtime = talk(workspace)
    answer = saved(runtime, content={"plan": ["soup"]}, tags=["mine", "mine", "turn:turn_1"])
    (item,) = listed(runtime, with_payload=True)
    assert item["message_id"] == answer["message_id"]
    assert item["tags"] == ["artifact:my.note", "turn:turn_1", "mine"]
    assert item["payload"] == {"plan": ["soup"]}
    assert item["text"] == '{"plan":["soup"]}'
    record = record_at(answer["hosted_uri"])
    assert (record["payload"], record["meta"]["message_id"]) == ({"plan": ["soup"]}, answer["message_id"])
    assert [one["message_id"] for one in listed(runtime, tags=["mine", "turn:turn_1"])] == [answer["message_id"]]
    assert listed(runtime, tags=["mine", "theirs"]) == []
    assert listed(runtime, turn_ids=["turn_2"]) == []


def test_a_text_alone_is_the_content_as_well(workspace: Workspace) -> None:
    runtime = talk(workspace)
    saved(runtime, content_str="soup \0 of the day")
    (item,) = listed(runtime, with_payload=True)
    assert (item["text"], item["payload"]) == ("soup � of the day", {"text": "soup \0 of the day"})


@pytest.mark.rule("store.index-only-writes-no-blob")
def test_index_only_writes_a_row_and_no_blob(workspace: Workspace) -> None:
    runtime = talk(workspace)
    before = blobs(workspace)
    answer = saved(runtime, content={"a": 1}, content_str="soup", index_only=True)
    assert answer["hosted_uri"] == "index_only"
    assert "rn" not in answer
    assert blobs(workspace) == before
    (item,) = listed(runtime, with_payload=True)
    assert (item["text"], item["missing"]) == ("soup", "no_blob")


@pytest.mark.rule("store.store-only-writes-no-row")
def test_store_only_writes_a_blob_and_no_row(workspace: Workspace) -> None:
    runtime = talk(workspace)
    answer = saved(runtime, content={"a": 1}, store_only=True)
    assert record_at(answer["hosted_uri"])["payload"] == {"a": 1}
    assert listed(runtime) == []
    assert unsaved(runtime, content={}, store_only=True, index_only=True).code == -32602


@pytest.mark.rule("store.embeddings-come-from-the-caller")
def test_what_is_saved_has_a_vector_only_when_the_caller_brings_one_also_later(workspace: Workspace) -> None:
    runtime = talk(workspace)
    bare = saved(runtime, content_str="soup")
    assert runtime.call("conversation/search", {"embedding": [0.0, 1.0]})["hits"] == []
    later = {"message_id": bare["message_id"], "embedding": [0.0, 2.0]}
    assert saved(runtime, **later) == bare
    (hit,) = runtime.call("conversation/search", {"embedding": [0.0, 1.0]})["hits"]
    assert (hit["message_id"], hit["similarity"]) == (bare["message_id"], 1.0)
    assert unsaved(runtime, **later | {"message_id": "artifact-x"}).kind == "not_found"
    assert unsaved(runtime, kind="other", **later).kind == "not_found"


@pytest.mark.rule("store.wrong-vector-dimension-is-refused")
def test_a_vector_of_another_length_is_refused_wherever_it_comes(workspace: Workspace) -> None:
    runtime = talk(workspace)
    first = saved(runtime, content_str="soup", embedding=[0.0, 1.0])
    before = blobs(workspace)
    for method, params in [
        ("conversation/save", {"kind": "my.note", "content_str": "fish", "embedding": [1.0]}),
        ("conversation/save", {"kind": "my.note", "message_id": first["message_id"], "embedding": [1.0, 0, 0]}),
        ("conversation/search", {"embedding": [1.0, 0, 0]}),
        ("conversation/search", {"embedding": [0.0, 0]}),
    ]:
        failure = runtime.refused(method, params)
        assert failure.code == -32602
        assert failure.data["faults"][0]["where"] == "embedding"
    assert len(listed(runtime)) == 1
    assert blobs(workspace) == before


@pytest.mark.rule("store.wrong-vector-dimension-is-refused")
def test_at_the_end_of_a_turn_it_is_refused_before_anything_ends(workspace: Workspace) -> None:
    runtime = talk(workspace)
    saved(runtime, content_str="soup", embedding=[0.0, 1.0])
    ending = {"turn_id": "turn_1", "completion": {"text": "soup"}}
    for vectors, wrong in (
        ({"turn.log": [1.0, 0, 0]}, "embeddings.turn.log"),
        ({"turn.log": [1.0, 0], "chat.assistant": [1.0]}, "embeddings.chat.assistant"),
    ):
        failure = runtime.refused("turn/end", {**ending, "embeddings": vectors})
        assert (failure.code, failure.data["faults"][0]["where"]) == (-32602, wrong)
    assert runtime.call("workspace/status")["turn_id"] == "turn_1"
    ended = runtime.call("turn/end", {**ending, "embeddings": {"turn.log": [1.0, 0]}})
    assert [one.get("needs_embedding") for one in ended["saved"] if one["kind"] == "turn.log"] == [None]


def test_what_the_daemon_writes_itself_is_refused(workspace: Workspace) -> None:
    runtime = talk(workspace)
    for kind in ("conv.timeline.v1", "conv:sources_pool", "turn.log", "turn.log.reaction", "conv.thinking.stream"):
        assert unsaved(runtime, kind=kind, content={}).kind == "not_permitted"


def test_a_save_is_of_the_turn_it_names_else_of_the_open_one_else_of_none(workspace: Workspace) -> None:
    runtime = workspace.connect("runtime")
    saved(runtime, content_str="before")
    runtime.call("turn/begin", {"turn_id": "turn_1"})
    saved(runtime, content_str="during")
    runtime.call("turn/end", {"turn_id": "turn_1"})
    saved(runtime, content_str="after", turn_id="turn_1")
    assert [item["turn_id"] for item in listed(runtime)] == ["turn_1", "turn_1", ""]
    assert unsaved(runtime, content_str="x", turn_id="turn_9").kind == "unknown_turn"


@pytest.mark.rule("turns.feedback-of-an-unknown-turn-is-refused")
def test_feedback_of_an_unknown_turn_is_refused(workspace: Workspace) -> None:
    runtime = talk(workspace)
    asked = {"turn_id": "turn_9", "reaction": "ok", "text": "", "origin": "user"}
    assert runtime.refused("turn/feedback", asked).kind == "unknown_turn"


def test_a_repeated_request_saves_once_over_a_restart_too(make_workspace: Callable[..., Workspace]) -> None:
    workspace = make_workspace().start()
    runtime = talk(workspace)
    first = saved(runtime, content_str="soup", request_id="s-1")
    assert saved(runtime, content_str="soup", request_id="s-1") == first
    assert unsaved(runtime, content_str="fish", request_id="s-1").kind == "stale"
    workspace.restart()
    runtime = workspace.connect("runtime")
    assert saved(runtime, content_str="soup", request_id="s-1") == first
    assert len(listed(runtime)) == 1


async def test_a_save_that_a_kill_left_unanswered_is_found_again(tmp_path: Path) -> None:
    async with inside(tmp_path) as one:
        await one.tell({"type": "user.prompt", "text": "Hello"})
        first = await one.save(text="soup", turn_id="turn_1", mark="r-1")
        blobs = one.blobs()
        assert await one.save(text="soup", turn_id="turn_1", mark="r-1") == first
        assert await one.save(text="soup", turn_id="turn_1", mark="r-2") != first
        assert len(one.blobs()) == len(blobs) + 1
        rows = await one.archive.ask(one.archive.index.rows, one.archive.scope, Filters(kinds=("my.note",)))
        assert len(rows) == 2


async def test_who_lost_the_lease_saves_nothing(tmp_path: Path) -> None:
    async with inside(tmp_path) as one, inside(tmp_path) as other:
        with pytest.raises(NotPermitted):
            await other.save(text="soup")
        await one.save(text="soup")
        index, scope = one.archive.index, one.archive.scope
        await one.archive.ask(index.release, scope, one.lease.holder)
        await other.archive.ask(index.claim, scope, "somebody", "somebody", seconds=60)
        with pytest.raises(NotPermitted):
            await one.save(text="too late")
        assert len(one.blobs()) == 1
        assert not one.lease.mine


async def test_what_nests_too_deep_to_be_written_is_refused(tmp_path: Path) -> None:
    content: dict[str, Any] = {}
    for _ in range(300):
        content = {"in": content}
    async with inside(tmp_path) as one:
        with pytest.raises(TooLarge):
            await one.save(content=content)


async def test_the_text_of_a_long_content_is_json_still(tmp_path: Path) -> None:
    async with inside(tmp_path) as one:
        answer = await one.save(content={"rows": [{"n": n, "text": "soup " * 20} for n in range(5000)]})
        found = await one.archive.ask(one.archive.index.row, one.archive.scope, answer["message_id"])
        assert found is not None
        assert 60_000 < len(found.text) < 70_000
        assert json.loads(found.text)["rows"][1]["n"] == 1


async def test_an_index_only_row_names_no_blob(tmp_path: Path) -> None:
    async with inside(tmp_path) as one:
        answer = await one.save(text="soup", places="index_only")
        found = await one.archive.ask(one.archive.index.row, one.archive.scope, answer["message_id"])
        assert found is not None
        assert (found.hosted_uri, found.key, found.rn) == (INDEX_ONLY, "", "")


async def test_what_people_said_has_their_role(tmp_path: Path) -> None:
    async with inside(tmp_path) as one:
        for kind, role in [("chat:user", "user"), ("chat:assistant", "assistant"), ("my.note", "artifact")]:
            answer = await one.save(kind=kind, text="soup")
            found = await one.archive.ask(one.archive.index.row, one.archive.scope, answer["message_id"])
            assert found is not None
            assert found.role == role
