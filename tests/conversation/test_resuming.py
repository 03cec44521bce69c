"""Two daemons of one conversation, each with an OUT_DIR and a state of its own, over one index and one store."""

from __future__ import annotations

import os
import shutil
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from sidecar.__main__ import main
from tests.daemon_process import Workspace, eventually
from tests.radosgw import Radosgw
from tests.rpc_client import Client

IDENTITY = {"tenant": "acme", "project": "inn", "user_id": "ann", "conversation_id": "c-1"}
SOON = {"lease_seconds": "2"}
Make = Callable[..., Workspace]


@pytest.fixture(params=["sqlite and a folder", "postgresql and s3"])
def shared(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[dict[str, str]]:
    """The settings of every daemon of the conversation."""
    if request.param.startswith("sqlite"):
        yield {"store": str(tmp_path / "store"), "index": str(tmp_path / "index.db"), **IDENTITY}
        return
    s3: Radosgw = request.getfixturevalue("s3")
    yield {
        "store": f"s3://{s3.make_bucket()}/here",
        "store_endpoint_url": s3.http,
        "index": request.getfixturevalue("postgres_database"),
        **IDENTITY,
    }


@pytest.fixture
def local(tmp_path: Path) -> dict[str, str]:
    return {"store": str(tmp_path / "store"), "index": str(tmp_path / "index.db"), **IDENTITY}


def have_turn(client: Client, number: int) -> None:
    """A turn in which the agent cites a page and writes a file, which is hosted."""
    turn = f"turn_{number}"
    client.call("turn/begin", {"turn_id": turn, "prompt": f"Question {number}"})
    client.call("sources/merge", {"rows": [{"url": f"https://example.com/{number}", "title": f"Page {number}"}]})
    client.call("artifact/write", {"path": "report.md", "content": f"# Report {number}\n", "kind": "file"})
    client.call("turn/end", {"turn_id": turn, "completion": {"text": f"Answer {number} [[S:1]]."}})


def settled(client: Client) -> None:
    """Everything is hosted, and what became known of it is saved."""

    def is_settled() -> bool:
        status = client.call("workspace/status")
        return not status["store"].get("waiting") and not status["conversation_store"].get("unsaved")

    eventually(is_settled, ceiling=30)


def lease_of(client: Client) -> str:
    return client.call("workspace/status")["conversation_store"]["lease"]


def becomes(client: Client, lease: str) -> None:
    eventually(lambda: lease_of(client) == lease, ceiling=30)


def found(client: Client, *paths: str) -> list[bool]:
    return [one["found"] for one in client.call("artifact/resolve", {"paths": list(paths)})["results"]]


def record(client: Client, path: str) -> dict[str, Any]:
    return client.call("artifact/resolve", {"paths": [path]})["results"][0]["artifact"]


def texts(client: Client, turn: str) -> list[Any]:
    return [block.get("text") for block in client.call("timeline/blocks", {"turn_id": turn})["blocks"]]


@pytest.mark.rule("store.one-writer-per-conversation", "store.a-second-daemon-serves-reads")
def test_a_second_daemon_serves_reads_and_says_who_writes(make_workspace: Make, shared: dict[str, str]) -> None:
    first = make_workspace(settings=shared).start()
    writer = first.connect("runtime")
    have_turn(writer, 1)
    settled(writer)
    second = make_workspace(settings=shared).start()
    reader = second.connect("runtime")
    status = reader.call("workspace/status")["conversation_store"]
    assert (status["lease"], status["state"]) == ("reader", "ok")
    assert status["held_by"].endswith(":out")
    assert found(reader, "ar:turn_1.user.prompt", "fi:turn_1.files/report.md", "so:sources_pool[1]") == [True] * 3
    assert texts(reader, "turn_1") == texts(writer, "turn_1")
    brought = reader.call("artifact/rehost", {"paths": ["fi:turn_1.files/report.md"]})
    assert [one["origin"] for one in brought["rehosted"]] in (["store"], ["inline"])
    assert (second.out_dir / "turn_1/files/report.md").read_text() == "# Report 1\n"
    for method, params in CHANGES:
        refused = reader.refused(method, params)
        assert refused.kind == "not_permitted", method
        assert refused.data["about"] == "c-1"
        assert status["held_by"] in refused.data["hint"]
    reader.call("artifact/read", {"paths": ["fi:turn_1.files/report.md"]})
    reader.call("timeline/announce", {"blocks": []})
    reader.call("workspace/sync")
    assert texts(reader, "turn_1") == texts(writer, "turn_1")


CHANGES: tuple[tuple[str, dict[str, Any]], ...] = (
    ("turn/begin", {"turn_id": "turn_9"}),
    ("turn/end", {"turn_id": "turn_1"}),
    ("call/begin", {"tool_call_id": "tc_9", "tool_id": "x", "turn_id": "turn_1", "params": {}}),
    ("call/end", {"tool_call_id": "tc_9"}),
    ("artifact/write", {"path": "a.txt", "content": "a", "kind": "file"}),
    ("artifact/patch", {"path": "fi:turn_1.files/report.md", "patch": "new"}),
    ("artifact/hide", {"paths": ["ar:turn_1.user.prompt"], "replacement": "gone"}),
    ("artifact/read", {"paths": ["ar:turn_1.user.prompt"], "tool_call_id": "tc_9"}),
    ("assets/pull", {"content": "<p>", "tool_call_id": "tc_9"}),
    ("sources/merge", {"rows": [{"url": "https://example.com/9"}]}),
    ("timeline/append", {"blocks": [{"type": "note", "text": "x"}]}),
    ("timeline/compact", {"cut": 1, "summary": "x"}),
)


@pytest.mark.rule("store.news-reaches-readers")
def test_a_reader_follows_and_its_editors_hear_of_it(make_workspace: Make, shared: dict[str, str]) -> None:
    first = make_workspace(settings=shared).start()
    writer = first.connect("runtime")
    have_turn(writer, 1)
    second = make_workspace(settings=shared).start()
    editor = second.connect("editor", events=["timeline", "sources", "artifacts"])
    have_turn(writer, 2)
    eventually(lambda: {"timeline/appended", "sources/added", "artifacts/changed"} <= set(editor.heard()), ceiling=20)
    assert found(editor, "ar:turn_2.assistant.completion", "so:sources_pool[3]") == [True, True]
    editor.forget_events()
    settled(writer)
    reader = second.connect("runtime")
    eventually(lambda: "key" in record(reader, "turn_2/files/report.md"), ceiling=20)
    begun = {"turn_id": "turn_3"}
    writer.call("turn/begin", begun)
    writer.call("artifact/hide", {"paths": ["ar:turn_2.assistant.completion"], "replacement": "never mind"})
    writer.call("turn/end", begun)
    eventually(
        lambda: "never mind" in reader.call("timeline/render", {"as": "text"})["text"],
        ceiling=20,
    )
    assert texts(reader, "turn_2") == texts(writer, "turn_2")
    editor.forget_events()


@pytest.mark.rule("store.a-successor-takes-over")
def test_a_successor_takes_over_when_the_writer_is_gone(make_workspace: Make, shared: dict[str, str]) -> None:
    first = make_workspace(settings={**shared, **SOON}).start()
    writer = first.connect("runtime")
    have_turn(writer, 1)
    settled(writer)
    second = make_workspace(settings={**shared, **SOON}).start()
    successor = second.connect("runtime")
    assert lease_of(successor) == "reader"
    second.write("turn_1/files/late.txt", "seen by a reader")
    successor.call("workspace/sync")
    pulled = successor.call("assets/pull", {"content": '<img src="turn_1/files/late.txt">'})
    assert [one["physical_path"] for one in pulled["present"]] == ["turn_1/files/late.txt"]
    assert "sid" not in record(successor, "turn_1/files/late.txt"), "only a writer gives numbers"
    first.kill9()
    becomes(successor, "writer")
    eventually(lambda: record(successor, "turn_1/files/late.txt").get("sid") == 3)
    have_turn(successor, 2)
    first.start()
    former = first.connect("runtime")
    becomes(former, "reader")
    eventually(lambda: found(former, "ar:turn_2.assistant.completion") == [True], ceiling=20)
    assert former.call("sources/list")["rows"] == successor.call("sources/list")["rows"]


@pytest.mark.rule("store.a-successor-takes-over")
def test_a_clean_end_gives_the_lease_up_at_once(make_workspace: Make, shared: dict[str, str]) -> None:
    first = make_workspace(settings=shared).start()
    have_turn(first.connect("runtime"), 1)
    second = make_workspace(settings=shared).start()
    successor = second.connect("runtime")
    assert lease_of(successor) == "reader"
    first.stop()
    have_turn(successor, 2)  # thirty seconds have not passed
    assert lease_of(successor) == "writer"


def test_a_daemon_that_is_started_again_has_its_own_lease_at_once(make_workspace: Make, local: dict[str, str]) -> None:
    first = make_workspace(settings=local).start()
    have_turn(first.connect("runtime"), 1)
    first.restart()
    again = first.connect("runtime")
    assert lease_of(again) == "writer"
    have_turn(again, 2)


def test_a_conversation_that_was_taken_in_is_soon_saved(make_workspace: Make, local: dict[str, str]) -> None:
    first = make_workspace(settings=local).start()
    writer = first.connect("runtime")
    have_turn(writer, 1)
    settled(writer)
    first.stop()
    settled(make_workspace(settings=local).start().connect("runtime"))


@pytest.mark.rule("store.a-conversation-is-resumed-from-the-store", "store.pool-is-loaded-at-turn-start")
def test_a_turn_that_names_a_saved_conversation_has_all_of_it(make_workspace: Make, shared: dict[str, str]) -> None:
    first = make_workspace(settings=shared).start()
    writer = first.connect("runtime")
    have_turn(writer, 1)
    settled(writer)
    rows = writer.call("sources/list")["rows"]
    writer.close()
    first.stop()
    places = {name: value for name, value in shared.items() if name not in IDENTITY}
    second = make_workspace(settings=places).start()
    runtime = second.connect("runtime")
    runtime.call("turn/begin", {"turn_id": "turn_2", "conversation": IDENTITY, "prompt": "And now?"})
    assert runtime.call("sources/list")["rows"] == rows
    merged = runtime.call("sources/merge", {"rows": [{"url": "https://example.com/new"}]})
    assert merged["added"] == [len(rows) + 1]
    assert found(runtime, "ar:turn_1.user.prompt", "ar:turn_2.user.prompt") == [True, True]
    assert runtime.refused("turn/begin", {"turn_id": "turn_1"}).kind == "not_permitted"


def test_a_workspace_with_something_of_its_own_takes_no_saved_conversation_in(
    make_workspace: Make, local: dict[str, str]
) -> None:
    first = make_workspace(settings=local).start()
    have_turn(first.connect("runtime"), 1)
    first.stop()
    places = {name: value for name, value in local.items() if name not in IDENTITY}
    second = make_workspace(settings=places).start()
    runtime = second.connect("runtime")
    runtime.call("sources/merge", {"rows": [{"url": "https://example.com/own"}]})
    refused = runtime.refused("turn/begin", {"turn_id": "turn_2", "conversation": IDENTITY})
    assert refused.kind == "not_permitted"
    assert "--conversation-id" in refused.data["hint"]


def test_a_start_that_was_killed_goes_on_where_it_was(make_workspace: Make, local: dict[str, str]) -> None:
    first = make_workspace(settings=local).start()
    writer = first.connect("runtime")
    for number in range(1, 20):
        have_turn(writer, number)
    settled(writer)
    before = [texts(writer, f"turn_{number}") for number in range(1, 20)]
    first.stop()
    second = make_workspace(settings=local)
    for _ in range(3):
        daemon = second.serve()
        eventually(lambda: (second.state_dir / "journal.db").exists() or None, ceiling=30)
        daemon.send_signal(signal.SIGKILL)
        daemon.wait()
    second.start()
    reader = second.connect("runtime")
    assert [texts(reader, f"turn_{number}") for number in range(1, 20)] == before


def test_without_its_index_an_empty_workspace_takes_no_change(make_workspace: Make, local: dict[str, str]) -> None:
    """The conversation may go on elsewhere, and nobody can say whether it does."""
    first = make_workspace(settings=local).start()
    have_turn(first.connect("runtime"), 1)
    first.stop()
    index = Path(local["index"])
    away = index.with_name("away")
    moved = {name: index.with_name(index.name + name) for name in ("", "-wal", "-shm")}
    os.rename(index, away)
    index.mkdir()  # what stands there now is no index
    second = make_workspace(settings=local).start()
    runtime = second.connect("runtime")
    assert lease_of(runtime) == "unknown"
    refused = runtime.refused("turn/begin", {"turn_id": "turn_2"})
    assert (refused.kind, refused.data["about"]) == ("store_unavailable", "index")
    second.write("turn_1/files/mine.txt", "mine")
    runtime.call("workspace/sync")
    assert runtime.call("artifact/list")["artifacts"] == []
    index.rmdir()
    os.rename(away, moved[""])
    becomes(runtime, "writer")
    assert found(runtime, "ar:turn_1.user.prompt") == [True]
    have_turn(runtime, 2)


def test_a_workspace_with_a_journal_goes_on_without_its_index(make_workspace: Make, local: dict[str, str]) -> None:
    first = make_workspace(settings=local).start()
    have_turn(first.connect("runtime"), 1)
    first.stop()
    index = Path(local["index"])
    away = index.with_name("away")
    os.rename(index, away)
    index.mkdir()
    first.start()
    runtime = first.connect("runtime")
    assert lease_of(runtime) == "unknown"
    runtime.call("turn/begin", {"turn_id": "turn_2"})
    runtime.call("turn/end", {"turn_id": "turn_2"})
    assert runtime.call("workspace/status")["conversation_store"]["unsaved"]
    index.rmdir()
    os.rename(away, index)
    becomes(runtime, "writer")
    settled(runtime)
    second = make_workspace(settings=local).start()
    assert found(second.connect("runtime"), "ar:turn_1.user.prompt") == [True]


@pytest.mark.rule("store.one-writer-per-conversation")
def test_work_that_others_went_on_without_is_read_and_never_saved(make_workspace: Make, local: dict[str, str]) -> None:
    first = make_workspace(settings={**local, **SOON}).start()
    writer = first.connect("runtime")
    have_turn(writer, 1)
    settled(writer)
    writer.call("turn/begin", {"turn_id": "turn_lost", "prompt": "nobody saves this"})
    first.kill9()
    second = make_workspace(settings={**local, **SOON}).start()
    successor = second.connect("runtime")
    becomes(successor, "writer")
    have_turn(successor, 2)
    settled(successor)
    first.start()
    former = first.connect("runtime")
    becomes(former, "diverged")
    assert found(former, "ar:turn_lost.user.prompt", "ar:turn_2.user.prompt") == [True, False]
    refused = former.refused("turn/end", {"turn_id": "turn_lost"})
    assert refused.kind == "not_permitted"
    assert "--state-dir" in refused.data["hint"]
    first.restart()
    former = first.connect("runtime")
    assert lease_of(former) == "diverged"
    notices = [one for one in former.call("workspace/changes", {"since": 0})["changes"] if one["kind"] == "notice"]
    assert len(notices) == 1


def test_work_that_nobody_went_on_without_goes_on(make_workspace: Make, local: dict[str, str]) -> None:
    """Another daemon had the lease meanwhile, and did nothing with it."""
    first = make_workspace(settings={**local, **SOON}).start()
    writer = first.connect("runtime")
    have_turn(writer, 1)
    settled(writer)
    writer.call("turn/begin", {"turn_id": "turn_2"})
    first.kill9()
    second = make_workspace(settings={**local, **SOON}).start()
    becomes(second.connect("runtime"), "writer")
    second.stop()
    first.start()
    former = first.connect("runtime")
    becomes(former, "writer")
    former.call("turn/end", {"turn_id": "turn_2", "completion": {"text": "still here"}})
    settled(former)


def test_another_index_gets_all_of_it(make_workspace: Make, local: dict[str, str], tmp_path: Path) -> None:
    """A workspace moves to an index that has nothing of it, as from a file to a server."""
    first = make_workspace(settings=local).start()
    runtime = first.connect("runtime")
    for number in (1, 2, 3):
        have_turn(runtime, number)
    settled(runtime)
    before = runtime.call("timeline/blocks")["blocks"]
    runtime.close()
    first.stop()
    moved = {**local, "index": str(tmp_path / "moved.db")}
    first.settings["ARTIFACT_SIDECAR_INDEX"] = moved["index"]
    first.start()
    runtime = first.connect("runtime")
    assert lease_of(runtime) == "writer"
    settled(runtime)
    runtime.close()
    first.stop()
    second = make_workspace(settings=moved).start()
    assert second.connect("runtime").call("timeline/blocks")["blocks"] == before


def test_a_log_that_is_lost_leaves_placeholders_and_is_told(make_workspace: Make, local: dict[str, str]) -> None:
    first = make_workspace(settings=local).start()
    runtime = first.connect("runtime")
    for number in (1, 2, 3):
        have_turn(runtime, number)
    settled(runtime)
    before = runtime.call("timeline/blocks")["blocks"]
    runtime.close()
    first.stop()
    (lost,) = Path(local["store"]).glob("**/turn_2/*-turn.log.json")
    lost.unlink()
    second = make_workspace(settings=local).start()
    runtime = second.connect("runtime")
    after = runtime.call("timeline/blocks")["blocks"]
    of_lost = [number for number, block in enumerate(before) if block["turn_id"] == "turn_2"]
    assert [number for number, block in enumerate(after) if block["meta"].get("lost")] == of_lost
    assert [after[number] for number in range(len(after)) if number not in of_lost] == [
        before[number] for number in range(len(before)) if number not in of_lost
    ]
    notices = [one for one in runtime.call("workspace/changes", {"since": 0})["changes"] if one["kind"] == "notice"]
    assert len(notices) == 1
    have_turn(runtime, 4)
    assert found(runtime, "ar:turn_3.user.prompt", "ar:turn_4.user.prompt") == [True, True]


def copied(of: Workspace, to: Workspace) -> Workspace:
    """The same state and files in another place, as somebody leaves them who copies folders by hand."""
    for mine, its in ((of.state_dir, to.state_dir), (of.out_dir, to.out_dir)):
        shutil.copytree(mine, its, dirs_exist_ok=True)
    return to


@pytest.mark.rule("store.one-writer-per-conversation")
def test_of_a_workspace_and_its_copy_one_writes(make_workspace: Make, local: dict[str, str]) -> None:
    first = make_workspace(settings=local).start()
    runtime = first.connect("runtime")
    have_turn(runtime, 1)
    settled(runtime)
    runtime.close()
    first.stop()
    second = copied(first, make_workspace(settings=local))
    writer = first.start().connect("runtime")
    writer.call("turn/begin", {"turn_id": "turn_2"})
    reader = second.start().connect("runtime")
    becomes(reader, "reader")
    assert reader.refused("turn/begin", {"turn_id": "turn_3"}).kind == "not_permitted"
    assert lease_of(writer) == "writer"
    writer.call("turn/end", {"turn_id": "turn_2"})


@pytest.mark.rule("store.one-writer-per-conversation")
def test_a_copy_takes_in_what_was_saved_after_it_was_made(make_workspace: Make, local: dict[str, str]) -> None:
    first = make_workspace(settings=local).start()
    runtime = first.connect("runtime")
    have_turn(runtime, 1)
    settled(runtime)
    runtime.close()
    first.stop()
    second = copied(first, make_workspace(settings=local))
    runtime = first.start().connect("runtime")
    have_turn(runtime, 2)
    settled(runtime)
    told = runtime.call("timeline/blocks")["blocks"]
    rows = runtime.call("sources/list")["rows"]
    runtime.close()
    first.stop()
    runtime = second.start().connect("runtime")
    becomes(runtime, "writer")
    known = runtime.call("timeline/blocks")["blocks"]
    assert [(one["type"], one.get("text")) for one in known] == [(one["type"], one.get("text")) for one in told]
    assert [(row["sid"], row.get("url")) for row in runtime.call("sources/list")["rows"]] == [
        (row["sid"], row.get("url")) for row in rows
    ]
    have_turn(runtime, 3)
    settled(runtime)


@pytest.mark.xfail(strict=True, reason="a workspace that had loaded a turn keeps it when another one erases it")
def test_what_was_erased_is_gone_from_a_workspace_that_had_loaded_it(
    make_workspace: Make, local: dict[str, str]
) -> None:
    first, second = make_workspace(settings=local).start(), make_workspace(settings=local)
    runtime = first.connect("runtime")
    have_turn(runtime, 1)
    have_turn(runtime, 2)
    settled(runtime)
    runtime.close()
    reader = second.start().connect("runtime")
    assert found(reader, "ar:turn_1.user.prompt") == [True]
    reader.close()
    second.stop()
    first.stop()
    assert main(["erase", "--turn", "turn_1", "--yes", *first.arguments, *options_of(local)]) == 0
    reader = second.start().connect("runtime")
    settled(reader)
    assert texts(reader, "turn_1") == [None] * len(texts(reader, "turn_1"))


def options_of(settings: dict[str, str]) -> list[str]:
    return ["--store", settings["store"], "--index", settings["index"]]
