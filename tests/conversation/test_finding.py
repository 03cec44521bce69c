"""What a conversation holds, for those who ask: turns as people see them, the newest rows, what a search finds."""

from __future__ import annotations

import asyncio
import json
import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

import orjson
import pytest

from sidecar.conversation import finding
from sidecar.conversation.finding import Pick, Question
from sidecar.core.errors import BadSelector, StoreUnavailable
from sidecar.core.index_rows import Filters
from sidecar.ports import Index
from sidecar.server.wire import encode_in_pieces
from tests.conversation.inside import EVERYTHING, Inside, inside, row
from tests.daemon_process import Workspace
from tests.rpc_client import Client

TS = "2026-02-18T09:00:00Z"


def block(kind: str, text: str, path: str, turn_id: str = "turn_1", **meta: Any) -> dict[str, Any]:
    return {"type": kind, "text": text, "path": path, "turn_id": turn_id, "ts": TS, "meta": meta}


def talk(workspace: Workspace) -> Client:
    """A turn with everything in it that people may be shown, and some that they may not."""
    runtime = workspace.connect("runtime")
    attached = [{"name": "menu.csv", "text": "dish,price\n", "summary": "what is on offer"}]
    runtime.call("turn/begin", {"turn_id": "turn_1", "prompt": "What sells?", "attachments": attached})
    runtime.call(
        "timeline/append",
        {
            "blocks": [
                block("react.thinking", "hm", "ar:turn_1.react.thinking.0", hidden=True, title="Plan"),
                block("react.notes", "counting", "ar:turn_1.react.notes.tc_0", channel="timeline_text"),
                {"type": "stage.suggested_followups", "turn_id": "turn_1", "meta": {"items": ["And wine?"]}},
            ]
        },
    )
    runtime.call("call/begin", {"tool_call_id": "tc_1", "tool_id": "exec", "params": {}})
    workspace.write("turn_1/files/out/rows.csv", "day,guests\n")
    workspace.write("turn_1/files/scratch.txt", "zanzibar")
    internal = [{"path": "turn_1/files/scratch.txt", "visibility": "internal"}]
    runtime.call("call/end", {"tool_call_id": "tc_1", "result": "ok", "expect": internal})
    runtime.call("artifact/write", {"path": "shown.md", "content": "# Shown", "kind": "display", "channel": "canvas"})
    said = {"text": "Soup sells [[S:1]]."}
    runtime.call("turn/end", {"turn_id": "turn_1", "completion": said})
    return runtime


def fetched(client: Client, **params: Any) -> dict[str, Any]:
    return client.call("conversation/fetch", params)


def found(client: Client, **params: Any) -> list[tuple[str, str]]:
    return [(hit["turn_id"], hit["kind"]) for hit in client.call("conversation/search", params)["hits"]]


@pytest.mark.rule(
    "store.display-artifacts-are-no-files",
    "store.turn-log-blocks-are-not-listed",
    "store.hosted-files-are-no-conversation-artifacts",
)
def test_a_turn_is_shown_with_what_was_said_attached_and_made(workspace: Workspace) -> None:
    runtime = talk(workspace)
    (turn,) = fetched(runtime)["turns"]
    assert (turn["user"]["text"], turn["assistant"]["text"]) == ("What sells?", "Soup sells [[S:1]].")
    (menu,) = turn["attachments"]
    assert (menu["filename"], menu["summary"], menu["sid"]) == ("menu.csv", "what is on offer", 1)
    (rows,) = turn["files"]  # neither the display nor what is internal
    assert (rows["filename"], rows["physical_path"]) == ("out/rows.csv", "turn_1/files/out/rows.csv")
    assert set(rows) >= {"rn", "hosted_uri", "key"}
    assert [item["text"] for item in turn["thinking"]] == ["hm"]
    assert [item["text"] for item in turn["timeline_text"]] == ["counting"]
    assert (turn["followups"], turn["sources_used"], turn["feedbacks"]) == (["And wine?"], [1], [])
    assert "blocks" not in turn
    assert "artifacts" not in turn


def test_a_later_completion_of_a_turn_is_not_its_answer(workspace: Workspace) -> None:
    runtime = talk(workspace)
    late = block("assistant.completion", "No, fish.", "ar:turn_1.assistant.completion")
    runtime.call("timeline/append", {"blocks": [late]})
    assert fetched(runtime)["turns"][0]["assistant"]["text"] == "Soup sells [[S:1]]."


@pytest.mark.rule("store.thinking-is-synthesised")
def test_thinking_is_made_when_it_is_asked_for_and_never_saved(workspace: Workspace) -> None:
    runtime = talk(workspace)
    (turn,) = fetched(runtime, kinds=["conv.thinking.stream"])["turns"]
    (made,) = turn["artifacts"]
    assert (made["kind"], made["payload"]) == ("conv.thinking.stream", {"items": turn["thinking"]})
    assert "message_id" not in made
    assert runtime.call("conversation/recent", {"kinds": ["conv.thinking.stream"]})["items"] == []
    assert not list((workspace.state_dir / "store").rglob("*thinking*"))


def test_turns_come_in_pages_and_in_the_order_asked_for(workspace: Workspace) -> None:
    runtime = workspace.connect("runtime")
    names = [f"turn_{n}" for n in range(1, 6)]
    for name in names:
        runtime.call("turn/begin", {"turn_id": name, "prompt": name})
    assert [turn["turn_id"] for turn in fetched(runtime)["turns"]] == names
    seen, cursor = [], None
    for _ in range(3):
        page = fetched(runtime, limit=2, **({"cursor": cursor} if cursor else {}))
        seen += [turn["turn_id"] for turn in page["turns"]]
        cursor = page["next_cursor"]
    assert (seen, cursor) == (names, None)
    chosen = fetched(runtime, turn_ids=["turn_3", "turn_9", "turn_1"])
    assert [turn["turn_id"] for turn in chosen["turns"]] == ["turn_3", "turn_1"]
    assert chosen["missing"] == ["turn_9"]
    astray = {"turn_ids": ["turn_1"], "cursor": "turn_2"}
    assert runtime.refused("conversation/fetch", astray).kind == "bad_selector"


def test_feedback_is_shown_oldest_first_and_the_latest_is_listed(workspace: Workspace) -> None:
    runtime = talk(workspace)
    for ts, origin, reaction in [(20, "machine", "not_ok"), (30, "user", "neutral"), (10, "machine", "ok")]:
        given = {"turn_id": "turn_1", "reaction": reaction, "text": f"at {ts}", "origin": origin, "ts": ts}
        runtime.call("turn/feedback", given)
    (turn,) = fetched(runtime)["turns"]
    assert [one["text"] for one in turn["feedbacks"]] == ["at 10", "at 20", "at 30"]
    (latest,) = workspace.connect("editor").call("conversation/reactions")["reactions"]
    assert (latest["reaction"], latest["origin"], latest["text"]) == ("neutral", "user", "at 30")
    assert runtime.call("conversation/reactions", {"since": 30})["reactions"] == []
    assert runtime.call("conversation/reactions", {"turn_ids": ["turn_2"]})["reactions"] == []


@pytest.mark.rule("store.saved-contents-are-cut-to-the-role")
def test_an_editor_is_not_shown_what_is_internal_nor_where_things_lie(workspace: Workspace) -> None:
    runtime = talk(workspace)
    content = {
        "rows": [
            {"artifact_path": "fi:turn_1.files/scratch.txt", "text": "zanzibar"},
            {"artifact_path": "fi:turn_1.files/out/rows.csv", "rn": "ef:x", "hosted_uri": "s3://b/k", "key": "cb/k"},
        ],
        "held": json.dumps({"physical_path": "turn_1/files/scratch.txt", "text": "zanzibar"}),
        "title": "guests",
    }
    runtime.call("conversation/save", {"kind": "my.note", "content": content, "turn_id": "turn_1"})
    editor = workspace.connect("editor")
    everything = [
        fetched(
            editor, kinds=["my.note", "turn.log", "conv.timeline.v1", "conv:sources_pool", "conv.artifacts.stream"]
        ),
        editor.call("conversation/recent", {"with_payload": True, "limit": 100}),
        editor.call("conversation/search", {"query": "guests"}),
    ]
    told = json.dumps(everything)
    assert "zanzibar" not in told
    assert "scratch" not in told
    assert "hosted_uri" not in told
    assert '"key"' not in told
    (item,) = editor.call("conversation/recent", {"kinds": ["my.note"], "with_payload": True})["items"]
    assert item["payload"] == {
        "rows": [{"artifact_path": "fi:turn_1.files/out/rows.csv", "rn": "ef:x"}],
        "title": "guests",
    }
    assert found(runtime, query="zanzibar", kinds=["my.note"]) == [("turn_1", "my.note")]
    assert found(editor, query="zanzibar", kinds=["my.note"]) == []
    assert found(editor, query="guests", kinds=["my.note"]) == [("turn_1", "my.note")]
    assert (
        runtime.call("conversation/recent", {"kinds": ["my.note"], "with_payload": True})["items"][0]["payload"]
        == content
    )


def test_programs_and_renderers_do_not_ask_about_the_conversation(workspace: Workspace) -> None:
    for role in ("exec", "renderer"):
        client = workspace.connect(role)
        for method in ("fetch", "recent", "reactions"):
            assert client.refused(f"conversation/{method}").kind == "not_permitted"


def test_rows_are_listed_from_a_moment_on(workspace: Workspace) -> None:
    runtime = talk(workspace)
    runtime.call("conversation/save", {"kind": "my.note", "content_str": "now"})
    asked = {"kinds": ["my.note"]}
    assert len(runtime.call("conversation/recent", {**asked, "days": 1})["items"]) == 1
    assert len(runtime.call("conversation/recent", {**asked, "since": "2020-01-01T00:00:00Z"})["items"]) == 1
    assert runtime.call("conversation/recent", {**asked, "since": "2100-01-01T00:00:00Z"})["items"] == []
    for refused, code in [({"days": 1, "since": 1}, -32602), ({"since": "yesterday"}, -32803)]:
        assert runtime.refused("conversation/recent", refused).code == code


# Inside, where rows can be as a turn's end leaves them, and things can be away.

NOTES = [
    row("m-1", "chat:user", "Where is the harbour?", "turn_1", 1.0),
    row("m-2", "chat:assistant", "The harbour is in the north.", "turn_1", 2.0),
    row("m-3", "chat:user", "Is there a boat in the harbour of the north?", "turn_2", 3.0),
    row("m-4", "my.note", "harbour", "", 4.0),
    row("m-5", "conv:sources_pool", '{"sources_pool":[{"title":"harbour north boat where"}]}', "turn_3", 5.0),
    row("m-6", "my.note", "Nothing of the kind", "turn_4", 6.0),
]
VECTORS = ([1.0, 0.0], [0.9, 0.1], [0.0, 1.0], [-1.0, 0.0], [0.7, 0.7], [0.1, 0.9])


async def asked(one: Inside, **about: Any) -> list[dict[str, Any]]:
    question = Question(
        about.get("query"), about.get("embedding"), about.get("filters", Filters()), about.get("limit", 10)
    )
    return await one.finding.search(question, about.get("onlooker", EVERYTHING))


def ids(hits: list[dict[str, Any]]) -> list[str]:
    return [hit["message_id"] for hit in hits]


async def test_words_find_the_best_row_of_each_turn_and_no_snapshot(tmp_path: Path) -> None:
    async with inside(tmp_path) as one:
        await one.put(*NOTES, embeddings=VECTORS)
        hits = await asked(one, query="HARBOUR")
        assert {hit["turn_id"] for hit in hits} == {"turn_1", "turn_2", ""}
        assert len(hits) == 3
        assert all("similarity" not in hit for hit in hits)
        assert ids(await asked(one, query="boat north")) == ["m-3"]
        assert ids(await asked(one, query="boat", filters=Filters(kinds=("conv:sources_pool",)))) == ["m-5"]
        assert await asked(one, query="?!") == []


async def test_a_vector_finds_what_is_nearest_with_its_cosine(tmp_path: Path) -> None:
    async with inside(tmp_path) as one:
        await one.put(*NOTES, embeddings=VECTORS)
        hits = await asked(one, embedding=[1.0, 0.0], limit=3)
        assert ids(hits) == ["m-1", "m-5", "m-4"] or ids(hits)[:2] == ["m-1", "m-5"]
        assert hits[0]["similarity"] == 1.0


async def test_words_and_a_vector_together_find_what_both_find_first(tmp_path: Path) -> None:
    async with inside(tmp_path) as one:
        await one.put(*NOTES, embeddings=VECTORS)
        assert ids(await asked(one, query="boat", embedding=[0.0, 1.0]))[0] == "m-3"
        both = await asked(one, query="harbour", embedding=[1.0, 0.0])
        assert len({hit["turn_id"] for hit in both}) == len(both)


async def test_a_search_goes_on_until_it_has_enough_turns(tmp_path: Path) -> None:
    async with inside(tmp_path) as one:
        loud = [row(f"a-{n:03}", "my.note", "harbour", "turn_1", 100.0 + n) for n in range(40)]
        quiet = [
            row(f"b-{n}", "my.note", "the harbour of another long and quiet day", f"turn_{n}", n) for n in range(2, 6)
        ]
        await one.put(*loud, *quiet)
        assert len(await asked(one, query="harbour", limit=5)) == 5


async def test_a_search_reads_no_more_rows_than_it_needs_and_answers_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[str] = []
    readable = finding.readable
    monkeypatch.setattr(finding, "readable", lambda text: (read.append(text), readable(text))[1])
    async with inside(tmp_path) as one:
        rows = [row(f"n-{n:02}", "my.note", f"harbour {n}", f"turn_{n % 15}", float(n)) for n in range(60)]
        await one.put(*rows, embeddings=tuple([float(n % 7), 1.0] for n in range(60)))
        everything = ids(await asked(one, query="harbour", limit=50))
        assert len(everything) == 15
        read.clear()
        assert ids(await asked(one, query="harbour", limit=3)) == everything[:3]
        assert len(read) <= 6
        monkeypatch.setattr(finding, "CANDIDATES", 60)  # so that every question has the same candidates
        both = ids(await asked(one, query="harbour", embedding=[1.0, 0.0], limit=50))
        for limit in (1, 5, 14):
            assert ids(await asked(one, query="harbour", embedding=[1.0, 0.0], limit=limit)) == both[:limit]


async def test_long_rows_are_not_read_on_the_loop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    threads: set[int] = set()
    readable = finding.readable
    monkeypatch.setattr(finding, "readable", lambda text: (threads.add(threading.get_ident()), readable(text))[1])
    async with inside(tmp_path) as one:
        await one.put(*NOTES, embeddings=VECTORS)
        assert await asked(one, query="harbour", embedding=[1.0, 0.0])
    assert threads
    assert threading.get_ident() not in threads


async def test_a_row_of_json_that_a_vector_found_shows_what_a_person_reads_of_it(tmp_path: Path) -> None:
    async with inside(tmp_path) as one:
        text = '{"turn_id":"turn_1","rows":[{"title":"Boats","artifact_path":"ar:x"},{"text":"leave at nine"}]}'
        await one.put(row("m-1", "my.note", text), embeddings=([1.0, 0.0],))
        (hit,) = await asked(one, embedding=[1.0, 0.0])
        assert hit["snippet"] == "Boats · leave at nine"


async def test_what_is_withheld_is_not_found_by_any_means(tmp_path: Path) -> None:
    async with inside(tmp_path) as one:
        await one.put(*NOTES, embeddings=VECTORS)
        person = replace(EVERYTHING, sees_all=False, withheld=frozenset({"conv:sources_pool"}))
        for about in ({"query": "boat", "filters": Filters(kinds=("conv:sources_pool",))}, {"embedding": [0.7, 0.7]}):
            assert "m-5" not in ids(await asked(one, onlooker=person, **about))


async def test_of_a_snapshot_a_person_gets_the_row_without_its_sources(tmp_path: Path) -> None:
    async with inside(tmp_path) as one:
        await one.put(NOTES[4], row("m-7", "conv.timeline.v1", "no json"))
        person = replace(EVERYTHING, sees_all=False, withheld=frozenset({"conv:sources_pool", "conv.timeline.v1"}))
        items = await one.finding.recent_contents(Filters(), person, limit=10)
        assert [(item["text"], item["missing"]) for item in items] == [
            ("{}", "not_for_this_role"),
            ("", "not_for_this_role"),
        ]


class Away:
    """An index that never answers."""

    kind = "sqlite"

    def __getattr__(self, name: str) -> Any:
        def refuse(*_: Any, **__: Any) -> None:
            if name != "close":
                raise StoreUnavailable("index", "it does not answer", fault="unreachable")

        return refuse


async def test_turns_are_shown_while_the_index_is_away_without_their_feedback(tmp_path: Path) -> None:
    index: Index = Away()  # type: ignore[assignment]
    async with inside(tmp_path, index) as one:
        await one.tell({"type": "user.prompt", "text": "Hello"})
        (turn,) = (await one.finding.fetch(Pick(None, frozenset(), 10, None), EVERYTHING))["turns"]
        assert turn["user"]["text"] == "Hello"
        assert "feedbacks" not in turn
        with pytest.raises(StoreUnavailable):
            await one.finding.fetch(Pick(None, frozenset({"my.note"}), 10, None), EVERYTHING)
        with pytest.raises(StoreUnavailable):
            await one.finding.recent(Filters(), EVERYTHING, limit=1)


async def test_a_page_ends_before_it_is_too_long_to_answer(tmp_path: Path) -> None:
    async with inside(tmp_path) as one:
        for n in range(3):
            await one.tell({"type": "user.prompt", "text": "x" * 9_000_000}, turn_id=f"turn_{n}")
        first = await one.finding.fetch(Pick(None, frozenset(), 10, None), EVERYTHING)
        assert [turn["turn_id"] for turn in first["turns"]] == ["turn_0"]
        rest = await one.finding.fetch(Pick(None, frozenset(), 10, first["next_cursor"]), EVERYTHING)
        assert [turn["turn_id"] for turn in rest["turns"]] == ["turn_1"]
        with pytest.raises(BadSelector):
            await one.finding.fetch(Pick(("turn_2",), frozenset(), 10, "turn_0"), EVERYTHING)


async def test_a_turns_log_is_told_without_its_blocks(tmp_path: Path) -> None:
    async with inside(tmp_path) as one:
        await one.tell({"type": "user.prompt", "text": "Hello"})
        saved = await one.save(content={"blocks": [1], "indexes": [0], "tokens": 3}, turn_id="turn_1")
        found = await one.archive.ask(one.archive.index.row, one.archive.scope, saved["message_id"])
        assert found is not None
        await one.put(replace(found, kind="turn.log"))
        answer = await one.finding.fetch(Pick(None, frozenset({"turn.log"}), 10, None), EVERYTHING)
        (artifact,) = orjson.loads(b"".join(encode_in_pieces(answer, "runtime")))["turns"][0]["artifacts"]
        assert artifact["payload"] == {"tokens": 3}


async def test_questions_asked_at_once_do_not_wait_for_each_other(tmp_path: Path) -> None:
    async with inside(tmp_path) as one:
        await one.put(*NOTES, embeddings=VECTORS)
        answers = await asyncio.gather(*(asked(one, query="harbour") for _ in range(20)))
        assert all(answer == answers[0] for answer in answers)
