"""What a turn leaves behind is saved at its end, whole or not at all, and again when something of it changes later."""

from __future__ import annotations

import json
import random
import re
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from sidecar.core.conversation_names import spelled
from sidecar.core.index_rows import INDEX_ONLY
from sidecar.stores.location import StoreSettings
from sidecar.stores.objects import open_configured
from tests.conversation.shelf import SCOPE, STORED, Shelf, have_turn, of_kind
from tests.daemon_process import Workspace, eventually
from tests.faulty_front import Answer, FaultyFront, Hang
from tests.radosgw import Radosgw
from tests.rpc_client import HungUpError, RpcError

LONG = 30.0
EVERYTHING = sorted([*STORED, "chat:user", "chat:assistant"])
LAYOUT = "cb/tenants/acme/projects/inn/conversation/registered/ann/c-1/turn_1/artifact-"


@pytest.fixture
def shelf(workspace: Workspace) -> Iterator[Shelf]:
    shelf = Shelf.of(workspace)
    yield shelf
    shelf.close()


def on_s3(front: FaultyFront, bucket: str, prefix: str) -> dict[str, str]:
    return {"store": f"s3://{bucket}/{prefix}", "store_endpoint_url": front.url}


# What is saved ------------------------------------------------------------------------------------------------------


@pytest.mark.rule("store.turn-log-is-saved")
def test_the_log_of_a_turn_is_saved_with_its_blocks(workspace: Workspace, shelf: Shelf) -> None:
    runtime = workspace.connect("runtime")
    ended = have_turn(runtime, 1)
    blocks = runtime.call("timeline/blocks", {"turn_id": "turn_1"})["blocks"]
    log = shelf.payload("turn_1", "turn.log")
    assert log["blocks"] == blocks
    assert log["indexes"] == list(range(len(blocks)))
    assert [file["physical_path"] for file in log["files"]] == ["turn_1/files/report.md"]
    (version,) = log["files"][0]["versions"]
    assert version["told"]
    assert version["hosted_uri"].endswith(version["key"])
    assert (log["turn_id"], log["status"], log["blocks_count"]) == ("turn_1", "completed", len(blocks))
    row = shelf.row("turn_1", "turn.log")
    assert json.loads(row.text) == {
        name: log[name] for name in ("turn_id", "ts", "end_ts", "sources_used", "blocks_count", "tokens")
    }
    assert set(row.tags) == {"kind:turn.log", "artifact:turn.log", "turn:turn_1"}
    assert of_kind(ended["saved"], "turn.log")["message_id"] == row.message_id


@pytest.mark.rule("store.timeline-snapshot-is-saved")
def test_the_timeline_is_saved_with_a_compact_pool(workspace: Workspace, shelf: Shelf) -> None:
    runtime = workspace.connect("runtime")
    have_turn(runtime, 1)
    page = {"url": "https://example.com", "title": "Page", "text": "w" * 900}
    runtime.call("sources/merge", {"rows": [page]})
    have_turn(runtime, 2)
    timeline = shelf.payload("turn_2", "conv.timeline.v1")
    blocks = runtime.call("timeline/blocks")["blocks"]
    assert timeline["blocks"] == blocks
    assert timeline["next_block"] == shelf.next_block() == len(blocks)
    assert timeline["turn_ids"] == ["turn_1", "turn_2"]
    compact = {"sid": 2, "title": "Page", "url": "https://example.com", "text": "w" * 500}
    assert compact in timeline["sources_pool"]
    assert timeline["max_sid"] == max(row["sid"] for row in timeline["sources_pool"])
    text = json.loads(shelf.row("turn_2", "conv.timeline.v1").text)
    assert (text["blocks_count"], text["turn_ids"]) == (len(blocks), ["turn_1", "turn_2"])


@pytest.mark.rule("store.full-pool-is-saved")
def test_the_pool_is_saved_in_full(workspace: Workspace, shelf: Shelf) -> None:
    runtime = workspace.connect("runtime")
    have_turn(runtime, 1)
    runtime.call("sources/merge", {"rows": [{"url": "https://example.com", "text": "w" * 900, "odd": [1]}]})
    have_turn(runtime, 2)
    pool = shelf.payload("turn_2", "conv:sources_pool")
    assert pool["sources_pool"] == runtime.call("sources/list")["rows"]
    assert pool["sources_pool_count"] == len(pool["sources_pool"]) == 3


@pytest.mark.rule("store.artifact-stream-is-saved")
@pytest.mark.rule("store.timeline-text-stream-is-saved")
def test_what_was_shown_is_saved_as_streams(workspace: Workspace, shelf: Shelf) -> None:
    have_turn(workspace.connect("runtime"), 1)
    made, said = (shelf.payload("turn_1", f"conv.{name}.stream")["items"] for name in ("artifacts", "timeline_text"))
    assert [(one["artifact_path"], one["text"]) for one in made] == [("fi:turn_1.files/report.md", "# Report 1\n")]
    assert [one["text"] for one in said] == ["Looking at 1"]
    assert {"conversation", "stream"} <= set(shelf.row("turn_1", "conv.artifacts.stream").tags)


def test_a_stream_that_shows_nothing_is_not_saved(workspace: Workspace, shelf: Shelf) -> None:
    runtime = workspace.connect("runtime")
    runtime.call("turn/begin", {"turn_id": "turn_1", "prompt": "?", "conversation": {"conversation_id": "c-1"}})
    ended = runtime.call("turn/end", {"turn_id": "turn_1"})
    assert [one["kind"] for one in ended["saved"]] == ["turn.log", "conv.timeline.v1", "conv:sources_pool", "chat:user"]


def test_what_was_said_is_found_in_rows_of_its_own(workspace: Workspace, shelf: Shelf) -> None:
    have_turn(workspace.connect("runtime"), 1)
    asked, answered = shelf.row("turn_1", "chat:user"), shelf.row("turn_1", "chat:assistant")
    assert (asked.role, asked.text, asked.hosted_uri) == ("user", "Question 1", INDEX_ONLY)
    assert (answered.role, answered.text, answered.key) == ("assistant", "Answer 1", "")


@pytest.mark.rule("store.blobs-have-the-fixed-layout")
def test_records_lie_where_the_seed_says(workspace: Workspace, shelf: Shelf) -> None:
    have_turn(workspace.connect("runtime"), 1)
    for kind in STORED:
        row = shelf.row("turn_1", kind)
        stamp = r"\d{4}-\d\d-\d\dT\d\d-\d\d-\d\d-[0-9a-f]{12}"
        assert spelled(row.key).startswith(LAYOUT)
        assert re.fullmatch(f"{LAYOUT}{stamp}-{kind}.json", spelled(row.key))
        assert row.hosted_uri.startswith("file://")
        record = shelf.record("turn_1", kind)
        assert record["meta"]["message_id"] == row.message_id
        assert (record["user_id"], record["turn_id"], record["text"]) == ("ann", "turn_1", row.text)
    assert sorted(shelf.blobs("turn_1")) == sorted(row.key for row in shelf.rows("turn_1") if row.key)


@pytest.mark.rule("store.range-summary-is-index-only")
def test_a_summary_is_a_row_without_a_blob(workspace: Workspace, shelf: Shelf) -> None:
    runtime = workspace.connect("runtime")
    for number in (1, 2, 3):
        have_turn(runtime, number)
    plan = runtime.call("timeline/plan_compaction", {"keep_recent_tokens": 20})
    summary = {"cut": plan["cut"], "summary": "There were reports.", "embedding": [0.5, 0.25]}
    compacted = runtime.call("timeline/compact", summary)
    assert "saving_pending" not in [said["code"] for said in compacted["notices"]]
    (row,) = shelf.rows(kind="conv.range.summary")
    assert (row.text, row.hosted_uri, row.key, row.has_embedding) == ("There were reports.", INDEX_ONLY, "", True)
    assert f"turn:{row.turn_id}" in row.tags
    assert compacted["path"] == f"su:{row.turn_id}.conv.range.summary"
    log = shelf.payload(row.turn_id, "turn.log")
    assert log["blocks"][-1]["type"] == "conv.range.summary", "no turn is open: everything is saved at once"
    timeline = shelf.payload("turn_3", "conv.timeline.v1")
    assert timeline["indexes"][0] == plan["cut"], "what is left to a summary is in logs alone"


def test_a_summary_told_in_a_turn_is_a_row_at_once_and_the_turn_is_still_open(
    workspace: Workspace, shelf: Shelf
) -> None:
    runtime = workspace.connect("runtime")
    for number in (1, 2):
        have_turn(runtime, number)
    blocks = shelf.next_block()
    runtime.call("turn/begin", {"turn_id": "turn_3", "prompt": "?"})
    plan = runtime.call("timeline/plan_compaction", {"keep_recent_tokens": 1})
    runtime.call("timeline/compact", {"cut": plan["cut"], "summary": "Reports."})
    assert [row.text for row in shelf.rows(kind="conv.range.summary")] == ["Reports."]
    assert shelf.rows("turn_3", "turn.log") == []
    assert shelf.next_block() == blocks


def test_vectors_come_from_the_caller_and_what_waits_for_one_says_so(workspace: Workspace, shelf: Shelf) -> None:
    ended = have_turn(workspace.connect("runtime"), 1, embeddings={"chat:user": [1.0, 0.0]})
    waiting = {one["kind"] for one in ended["saved"] if one.get("needs_embedding")}
    assert waiting == {"conv.timeline.v1", "conv:sources_pool", "chat:assistant"}
    assert {row.kind for row in shelf.rows("turn_1") if row.has_embedding} == {"chat:user"}


def test_a_vector_that_fits_into_no_index_costs_no_row(workspace: Workspace, shelf: Shelf) -> None:
    runtime = workspace.connect("runtime")
    have_turn(runtime, 1, embeddings={"chat:user": [1.0, 0.0]})
    with pytest.raises(RpcError, match="vectors here have 2 numbers, and this has 3"):
        have_turn(runtime, 2, embeddings={"chat:user": [1.0, 0.0, 0.0]})
    ended = runtime.call("turn/end", {"turn_id": "turn_2", "completion": {"text": "Answer 2"}})
    assert of_kind(ended["saved"], "chat:user")["needs_embedding"]
    assert shelf.kinds("turn_2") == EVERYTHING


# When it is saved ---------------------------------------------------------------------------------------------------


def test_a_repeated_request_is_answered_with_what_is_saved(workspace: Workspace, shelf: Shelf) -> None:
    runtime = workspace.connect("runtime")
    first = have_turn(runtime, 1, request_id="once")
    again = {"turn_id": "turn_1", "completion": {"text": "Answer 1"}, "request_id": "once"}
    assert runtime.call("turn/end", again)["saved"] == first["saved"]
    change = shelf.index.standing(SCOPE).change
    workspace.restart()
    assert workspace.connect("runtime").call("turn/end", again)["saved"] == first["saved"]
    assert shelf.index.standing(SCOPE).change == change, "nothing was saved again"


def test_a_turn_that_another_one_ended_is_saved_as_well(workspace: Workspace, shelf: Shelf) -> None:
    runtime = workspace.connect("runtime")
    have_turn(runtime, 1)
    runtime.call("turn/begin", {"turn_id": "turn_2", "prompt": "Never mind"})
    runtime.call("turn/begin", {"turn_id": "turn_3", "prompt": "Something else"})
    eventually(lambda: shelf.rows("turn_2", "turn.log"), ceiling=LONG)
    assert shelf.payload("turn_2", "turn.log")["status"] == "abandoned"
    assert shelf.row("turn_2", "chat:user").text == "Never mind"
    assert shelf.rows("turn_3") == []


def test_what_becomes_of_a_turn_later_is_saved_under_the_same_ids(workspace: Workspace, shelf: Shelf) -> None:
    runtime = workspace.connect("runtime")
    have_turn(runtime, 1)
    before = {row.kind: row for row in shelf.rows("turn_1")}
    late = {"type": "react.notes", "turn_id": "turn_1", "text": "It came late"}
    runtime.call("timeline/append", {"blocks": [late]})
    eventually(lambda: shelf.row("turn_1", "turn.log").change > before["turn.log"].change, ceiling=LONG)
    eventually(lambda: len(shelf.blobs("turn_1")) == len(STORED), ceiling=LONG)
    after = {row.kind: row for row in shelf.rows("turn_1")}
    assert {kind: row.message_id for kind, row in after.items()} == {k: row.message_id for k, row in before.items()}
    assert shelf.payload("turn_1", "turn.log")["blocks"][-1]["text"] == "It came late"
    assert sorted(shelf.blobs("turn_1")) == sorted(row.key for row in after.values() if row.key)
    assert after["chat:user"].change == before["chat:user"].change, "what did not change is not written"
    assert shelf.next_block() == len(runtime.call("timeline/blocks")["blocks"])


def test_turns_that_nobody_began_are_saved_with_the_next_one_that_ends(workspace: Workspace, shelf: Shelf) -> None:
    runtime = workspace.connect("runtime")
    runtime.call("timeline/append", {"blocks": [{"type": "note", "turn_id": "turn_0", "text": "from elsewhere"}]})
    have_turn(runtime, 1)
    log = shelf.payload("turn_0", "turn.log")
    assert (log["status"], log["end_ts"], log["indexes"]) == ("", None, [0])
    assert shelf.next_block() == len(runtime.call("timeline/blocks")["blocks"])


def test_without_a_store_rows_are_written_and_with_one_later_the_rest(
    make_workspace: Callable[..., Workspace], tmp_path: Path
) -> None:
    workspace = make_workspace(settings={"store": "none"}).start()
    saved = have_turn(workspace.connect("runtime"), 1)["saved"]
    assert [one["kind"] for one in saved] == ["chat:user", "chat:assistant"]
    shelf = Shelf.of(workspace)
    assert shelf.next_block() == 0
    workspace.stop()
    workspace.settings["ARTIFACT_SIDECAR_STORE"] = str(workspace.state_dir / "store")
    workspace.start()
    eventually(lambda: shelf.kinds("turn_1") == EVERYTHING, ceiling=LONG)
    assert shelf.payload("turn_1", "turn.log")["turn_id"] == "turn_1"
    eventually(shelf.next_block, ceiling=LONG)
    shelf.close()


def test_reactions_that_were_there_before_are_told_in_the_log(workspace: Workspace, shelf: Shelf) -> None:
    from sidecar.core.conversation_kinds import REACTION, tags_of
    from sidecar.core.index_rows import IndexRow

    runtime = workspace.connect("runtime")
    have_turn(runtime, 1)
    said = {"text": "good", "reaction": "ok", "origin": "user", "confidence": 1.0, "ts": "2026-01-01T00:00:00Z"}
    tags = tags_of(REACTION, "turn_2", "origin:user")
    row = IndexRow(
        message_id="r-1", kind=REACTION, turn_id="turn_2", ts=5.0, text=json.dumps(said), tags=tags, origin="user"
    )
    shelf.index.react(SCOPE, row, alone=True)
    have_turn(runtime, 2)
    log = shelf.payload("turn_2", "turn.log")
    assert [one["text"] for one in log["turn_log"]["feedbacks"]] == ["good"]
    assert json.loads(shelf.row("turn_2", "turn.log").text)["feedback"]["count"] == 1


# Whole or not at all ------------------------------------------------------------------------------------------------


@pytest.mark.rule("store.a-turn-is-saved-whole-or-not-at-all")
@pytest.mark.timeout(600)
def test_a_daemon_killed_at_any_moment_leaves_each_turn_whole_or_not_there(
    make_workspace: Callable[..., Workspace],
) -> None:
    chance = random.Random(4)
    workspace = make_workspace(settings={"log_level": "warning"}).start()
    shelf = Shelf.of(workspace)
    unfinished = 0
    for number in range(1, 31):
        killer = threading.Timer(chance.uniform(0.0, 0.12), workspace.kill9)
        original = workspace.connect("runtime")
        _turn_until_killed(original, number, killer)
        killer.join()
        found = shelf.kinds(f"turn_{number}")
        assert found in ([], EVERYTHING), found
        unfinished += not found
        for row in shelf.rows():
            assert not row.key or shelf.store.head(row.key) is not None, "a row names a blob that is there"
        workspace.start()
    assert unfinished > 0, "some were killed before their turn was saved"
    runtime = workspace.connect("runtime")
    if turn := runtime.call("workspace/status").get("turn_id"):
        runtime.call("turn/end", {"turn_id": turn})
    ended = {row["turn_id"] for row in runtime.call("timeline/blocks")["blocks"]}
    eventually(lambda: {row.turn_id for row in shelf.rows(kind="turn.log")} == ended, ceiling=LONG)
    blocks = len(runtime.call("timeline/blocks")["blocks"])
    eventually(lambda: shelf.next_block() == blocks, ceiling=LONG)
    told = sorted(index for turn in ended for index in shelf.payload(turn, "turn.log")["indexes"])
    assert told == list(range(blocks)), "every block is in one log, and in one only"
    shelf.close()


def _turn_until_killed(client: Any, number: int, killer: threading.Timer) -> None:
    call = client.call

    def watched(method: str, params: Any = None) -> Any:
        if method == "turn/end":
            killer.start()
        return call(method, params)

    client.call = watched
    try:
        have_turn(client, number)
    except (HungUpError, OSError):
        pass  # its daemon is gone


@pytest.fixture
def faulty(
    make_workspace: Callable[..., Workspace], front: FaultyFront, bucket: str, s3: Radosgw, tmp_path: Path
) -> Iterator[tuple[Workspace, Shelf]]:
    """A workspace whose store is a real one behind a front that fails when told to; the shelf looks past the front."""
    workspace = make_workspace(settings=on_s3(front, bucket, tmp_path.name)).start()
    beside = open_configured(StoreSettings(uri=f"s3://{bucket}/{tmp_path.name}", endpoint_url=s3.http))
    shelf = Shelf.of(workspace, beside)
    yield workspace, shelf
    shelf.close()


@pytest.mark.timeout(180)
def test_a_store_that_hangs_delays_the_end_a_little_and_the_save_goes_on(
    faulty: tuple[Workspace, Shelf], front: FaultyFront
) -> None:
    workspace, shelf = faulty
    runtime = workspace.connect("runtime")
    runtime.ceiling = 60
    have_turn(runtime, 1)
    front.behave(Hang(), method="PUT")
    ended = have_turn(runtime, 2, request_id="twice")
    assert ended["saved"] == []
    codes = [said["code"] for said in ended["notices"]]
    assert "saving_pending" in codes
    assert shelf.rows("turn_2") == []
    front.heal()
    eventually(lambda: shelf.kinds("turn_2") == EVERYTHING, ceiling=90)
    again = {"turn_id": "turn_2", "completion": {"text": "Answer 2"}, "request_id": "twice"}
    assert {one["kind"] for one in runtime.call("turn/end", again)["saved"]} == set(EVERYTHING)


@pytest.mark.timeout(180)
def test_a_store_that_fails_says_why_and_nothing_of_the_turn_is_there(
    faulty: tuple[Workspace, Shelf], front: FaultyFront
) -> None:
    workspace, shelf = faulty
    runtime = workspace.connect("runtime")
    runtime.ceiling = 60
    front.behave(Answer(403, "AccessDenied"), method="PUT", path="conversation")
    ended = have_turn(runtime, 1)
    (pending,) = (said for said in ended["notices"] if said["code"] == "saving_pending")
    assert pending["reason"] == "denied"
    assert shelf.rows("turn_1") == []
    front.heal()
    eventually(lambda: shelf.kinds("turn_1") == EVERYTHING, ceiling=90)
    assert {spelled(row.key).rpartition("/")[0] for row in shelf.rows("turn_1") if row.key} == {
        LAYOUT.rpartition("/")[0]
    }


def test_who_does_not_hold_the_lease_writes_nothing(workspace: Workspace, shelf: Shelf) -> None:
    runtime = workspace.connect("runtime")
    have_turn(runtime, 1)
    # Somebody else takes over, as if this daemon had slept for longer than its lease.
    holder = shelf.index.standing(SCOPE).holder
    shelf.index.release(SCOPE, holder)
    shelf.index.claim(SCOPE, "somebody else", "another daemon", seconds=600)
    runtime.call("timeline/append", {"blocks": [{"type": "react.notes", "turn_id": "turn_1", "text": "late"}]})
    change = shelf.index.standing(SCOPE).change
    runtime.call("workspace/sync")
    refused = workspace.log
    eventually(lambda: "nothing was saved: another daemon writes" in refused.read_text(), ceiling=LONG)
    assert shelf.index.standing(SCOPE).change == change
    assert {row.change for row in shelf.rows("turn_1", "turn.log")} <= {change}


@pytest.mark.rule("store.saved-contents-are-cut-to-the-role")
def test_what_was_answered_for_nobody_to_see_has_no_row(workspace: Workspace, shelf: Shelf) -> None:
    runtime = workspace.connect("runtime")
    runtime.call("turn/begin", {"turn_id": "turn_1", "prompt": "Hello"})
    secret = {
        "type": "assistant.completion",
        "path": "ar:turn_1.assistant.completion",
        "text": "a secret",
        "meta": {"visibility": "internal"},
    }
    runtime.call("timeline/append", {"blocks": [secret]})
    runtime.call("turn/end", {"turn_id": "turn_1"})
    assert "chat:assistant" not in shelf.kinds("turn_1")
    assert workspace.connect("editor").call("conversation/search", {"query": "secret"})["hits"] == []


@pytest.mark.rule("store.accounting-files-have-their-place")
def test_a_place_where_no_accounts_can_be_written_keeps_no_turn_from_being_saved(
    make_workspace: Callable[..., Workspace], tmp_path: Path
) -> None:
    store = tmp_path / "store"
    store.mkdir()
    store.joinpath("accounting").write_text("a file in the way")
    workspace = make_workspace(settings={"store": str(store)}).start()
    runtime = workspace.connect("runtime")
    runtime.call("turn/begin", {"turn_id": "turn_1", "prompt": "Hello"})
    ended = runtime.call("turn/end", {"turn_id": "turn_1"})
    assert [one["kind"] for one in ended["saved"]] == ["turn.log", "conv.timeline.v1", "conv:sources_pool", "chat:user"]
    assert len(list(store.rglob("*.json"))) == 3


@pytest.mark.rule("store.a-conversation-is-resumed-from-the-store")
def test_a_conversation_keeps_the_user_type_that_it_was_begun_with(
    make_workspace: Callable[..., Workspace], tmp_path: Path
) -> None:
    shared = {"store": str(tmp_path / "store"), "index": str(tmp_path / "index.db"), "conversation_id": "c-1"}
    first = make_workspace(settings=shared).start()
    runtime = first.connect("runtime")
    runtime.call("turn/begin", {"turn_id": "turn_1", "prompt": "Hello"})
    first.write("turn_1/files/a.bin", bytes(range(256)))
    runtime.call("turn/end", {"turn_id": "turn_1"})
    runtime.close()
    first.stop()
    second = make_workspace(settings={**shared, "user_type": "privileged"}).start()
    runtime = second.connect("runtime")
    assert runtime.call("workspace/status")["conversation"]["user_type"] == "registered"
    assert runtime.call("artifact/rehost", {"paths": ["turn_1/files/a.bin"]})["missing"] == []
