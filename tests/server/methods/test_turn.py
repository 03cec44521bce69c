"""A turn begins once, with what was attached, and ends with what was answered; the first names the conversation."""

from __future__ import annotations

import asyncio
import base64
import shutil
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson
import pytest

from sidecar.core.blocks import MIME, Told, tell
from sidecar.core.citations import extract
from sidecar.core.errors import JournalUnavailable, NotFound, NotPermitted, Refusal, UnknownTurn, UnsafePath
from sidecar.turns import Ending
from tests.server.inside import Inside


async def test_a_turn_begins_with_its_header_and_prompt(inside: Inside) -> None:
    await inside.ask("turn/begin", {"turn_id": "turn_1", "prompt": "make a report"})
    blocks = (await inside.ask("timeline/blocks"))["blocks"]
    assert [(block["type"], block.get("path")) for block in blocks] == [
        ("turn.header", None),
        ("user.prompt", "ar:turn_1.user.prompt"),
    ]


async def test_beginning_the_open_turn_again_changes_nothing(inside: Inside) -> None:
    await inside.ask("turn/begin", {"turn_id": "turn_1", "prompt": "a"})
    revision = inside.workspace.revision
    await inside.ask("turn/begin", {"turn_id": "turn_1", "prompt": "a"})
    assert inside.workspace.revision == revision


async def test_the_open_turn_with_other_params_is_refused(inside: Inside) -> None:
    await inside.ask("turn/begin", {"turn_id": "turn_1", "prompt": "a"})
    with pytest.raises(NotPermitted):
        await inside.ask("turn/begin", {"turn_id": "turn_1", "prompt": "b"})


async def test_another_turn_ends_the_open_one_for_good(inside: Inside) -> None:
    await inside.begin("turn_1")
    await inside.begin("turn_2")
    assert (await inside.ask("workspace/status"))["turn_id"] == "turn_2"
    with pytest.raises(NotPermitted):
        await inside.begin("turn_1")


@pytest.mark.parametrize("whole", [1000, 1])
@pytest.mark.parametrize("over", [("turn/begin", {"turn_id": "turn_2"}), ("turn/end", {"turn_id": "turn_1"})])
async def test_an_abandoned_turn_settles_what_its_calls_made(
    inside: Inside, monkeypatch: pytest.MonkeyPatch, whole: int, over: tuple[str, dict[str, Any]]
) -> None:
    monkeypatch.setattr("sidecar.settling.WHOLE", whole)
    monkeypatch.setattr("sidecar.settling.PIECE", 1)
    await inside.begin("turn_1")
    await inside.ask("call/begin", {"tool_call_id": "tc_1", "tool_id": "exec", "params": {}})
    files = [f"fi:turn_1.files/{name}.txt" for name in "abc"]
    for name in "cab":
        inside.write(f"turn_1/files/{name}.txt", name)
    await inside.sync()
    await inside.ask(*over)
    resolved = await inside.ask("artifact/resolve", {"paths": files})
    artifacts = [one["artifact"] for one in resolved["results"]]
    assert [(one["visibility"], one["sid"], one["tool_call_id"]) for one in artifacts] == [
        ("external", sid, "tc_1") for sid in (1, 2, 3)
    ]
    assert not inside.workspace.open_calls


@pytest.mark.rule("sources.sids-are-never-reused")
@pytest.mark.parametrize("whole", [1000, 1])
async def test_of_several_calls_and_nobody_each_file_has_a_number_of_its_own(
    inside: Inside, monkeypatch: pytest.MonkeyPatch, whole: int
) -> None:
    monkeypatch.setattr("sidecar.settling.WHOLE", whole)
    monkeypatch.setattr("sidecar.settling.PIECE", 1)
    await inside.begin("turn_1")
    for call, names in (("tc_1", "zy"), ("tc_2", "ba")):
        await inside.ask("call/begin", {"tool_call_id": call, "tool_id": "exec", "params": {}})
        for name in names:
            inside.write(f"turn_1/files/{name}.txt", name)
        await inside.sync()
    attached = {"name": "m.txt", "text": "attached"}
    began = await inside.ask("turn/begin", {"turn_id": "turn_2", "attachments": [attached]})
    rows = (await inside.ask("sources/list"))["rows"]
    assert [(row["sid"], row["title"]) for row in rows] == [
        *enumerate(["y.txt", "z.txt", "a.txt", "b.txt", "m.txt"], 1)
    ]
    assert [one["sid"] for one in began["attachments"]] == [5]


async def made_very_much(inside: Inside, monkeypatch: pytest.MonkeyPatch, names: str) -> None:
    """A call made these files, which are as many as are settled one by one."""
    monkeypatch.setattr("sidecar.settling.WHOLE", 1)
    monkeypatch.setattr("sidecar.settling.PIECE", 1)
    await inside.begin("turn_1")
    await inside.ask("call/begin", {"tool_call_id": "tc_1", "tool_id": "exec", "params": {}})
    for name in names:
        inside.write(f"turn_1/files/{name}.txt", name)
    await inside.sync()


async def test_the_same_end_of_a_turn_asked_for_by_many_at_once_is_one(
    inside: Inside, monkeypatch: pytest.MonkeyPatch
) -> None:
    await made_very_much(inside, monkeypatch, "abcdefgh")
    asked = {"turn_id": "turn_1", "request_id": "r1"}

    async def later(rest: float) -> Any:
        await asyncio.sleep(rest)
        return await inside.ask("turn/end", asked)

    answers = await asyncio.gather(*(later(rest) for rest in (0, 0, 0, 0.01, 0.02, 0.04)))
    assert all(answer["sources_used"] == answers[0]["sources_used"] for answer in answers)
    assert len((await inside.ask("sources/list"))["rows"]) == 8


async def test_no_call_ends_while_its_turn_settles_what_it_made(
    inside: Inside, monkeypatch: pytest.MonkeyPatch
) -> None:
    await made_very_much(inside, monkeypatch, "abcd")
    calls = inside.assembly.services.calls
    async with calls.abandoning() as was_long:
        assert was_long
        with pytest.raises(NotFound):
            await inside.ask("call/end", {"tool_call_id": "tc_1"})
    assert len((await inside.ask("call/end", {"tool_call_id": "tc_1"}))["artifacts"]) == 1
    async with calls.abandoning() as was_long:
        assert not was_long


async def test_another_conversation_is_refused(inside: Inside) -> None:
    await inside.ask("turn/begin", {"turn_id": "turn_1", "conversation": {"conversation_id": "c1"}})
    assert (await inside.ask("workspace/status"))["conversation"]["conversation_id"] == "c1"
    with pytest.raises(NotPermitted):
        await inside.ask("turn/begin", {"turn_id": "turn_2", "conversation": {"conversation_id": "c2"}})


@pytest.mark.parametrize("part", ["conversation_id", "user_id", "user_type", "tenant", "project"])
async def test_a_turn_that_named_nothing_has_opened_the_conversation_of_the_settings(inside: Inside, part: str) -> None:
    await inside.ask("turn/begin", {"turn_id": "turn_1"})
    await inside.ask("turn/end", {"turn_id": "turn_1"})
    before = (await inside.ask("workspace/status"))["conversation"]
    with pytest.raises(NotPermitted):
        await inside.ask("turn/begin", {"turn_id": "turn_2", "conversation": {part: "another"}})
    assert (await inside.ask("workspace/status"))["conversation"] == before
    await inside.ask("turn/begin", {"turn_id": "turn_2", "conversation": {part: before[part], "title": "Hello"}})
    assert (await inside.ask("workspace/status"))["conversation"] == {**before, "title": "Hello"}


# Attachments

PNG = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg=="
)


async def attach(inside: Inside, *attachments: dict[str, Any], turn: str = "turn_1", **more: Any) -> Any:
    return await inside.ask("turn/begin", {"turn_id": turn, "attachments": list(attachments), **more})


async def types_at(inside: Inside, path: str) -> list[str]:
    return [block["type"] for block in (await inside.ask("timeline/blocks", {"path": path}))["blocks"]]


@pytest.mark.rule("turns.attachments-are-materialised")
@pytest.mark.rule("sources.attachments-register-themselves")
async def test_attachments_are_laid_into_their_turn_and_are_sources(inside: Inside) -> None:
    inside.write("inbox/c.csv", "1,2")
    begun = await attach(
        inside,
        {"name": "a.txt", "text": "one"},
        {"name": "b.png", "base64": base64.b64encode(PNG).decode(), "summary": "a dot"},
        {"name": "c.csv", "path": "inbox/c.csv"},
        {"name": "d.zip", "base64": base64.b64encode(b"PK\x05\x06" + bytes(18)).decode()},
    )
    assert [(one["physical_path"], one["mime"], one.get("sid")) for one in begun["attachments"]] == [
        ("turn_1/attachments/a.txt", "text/plain", 1),
        ("turn_1/attachments/b.png", "image/png", 2),
        ("turn_1/attachments/c.csv", "text/csv", 3),
        ("turn_1/attachments/d.zip", "application/zip", None),
    ]
    assert (inside.out / "turn_1/attachments/b.png").read_bytes() == PNG
    rows = (await inside.ask("sources/list"))["rows"]
    assert [(row["source_type"], row["artifact_path"]) for row in rows] == [
        ("attachment", "fi:turn_1.user.attachments/a.txt"),
        ("attachment", "fi:turn_1.user.attachments/b.png"),
        ("attachment", "fi:turn_1.user.attachments/c.csv"),
    ]
    revision = inside.workspace.revision
    await inside.sync()
    assert inside.workspace.revision == revision, "a look finds nothing new"


@pytest.mark.rule("turns.pdf-and-image-attachments-are-blocks")
async def test_pictures_and_pdf_are_blocks_and_others_are_told_of(inside: Inside) -> None:
    await attach(
        inside,
        {"name": "a.txt", "text": "one"},
        {"name": "b.png", "base64": base64.b64encode(PNG).decode()},
        {"name": "c.pdf", "text": "%PDF-1.4"},
    )
    assert await types_at(inside, "turn_1/attachments/a.txt") == ["user.attachment.meta"]
    assert await types_at(inside, "turn_1/attachments/b.png") == ["user.attachment.meta", "user.attachment"]
    assert await types_at(inside, "turn_1/attachments/c.pdf") == ["user.attachment.meta", "user.attachment"]
    read = await inside.ask("artifact/read", {"paths": ["fi:turn_1.user.attachments/b.png"]})
    assert [(block["mime"], "base64" in block) for block in read["blocks"]] == [
        ("application/json", False),
        ("image/png", True),
    ]


@pytest.mark.rule("turns.attachments-are-materialised")
async def test_two_attachments_of_one_name_never_shadow_each_other(inside: Inside) -> None:
    begun = await attach(inside, *({"name": "a.tar.gz", "text": text} for text in ("one", "two", "one")))
    names = [one["physical_path"].rpartition("/")[2] for one in begun["attachments"]]
    assert names == ["a.tar.gz", "a.tar-2.gz", "a.tar-3.gz"]
    assert [(inside.out / "turn_1/attachments" / name).read_text() for name in names] == ["one", "two", "one"]


async def test_a_file_that_stands_there_already_is_never_replaced(inside: Inside) -> None:
    inside.write("turn_1/attachments/a.txt", "somebody's")
    begun = await attach(inside, {"name": "a.txt", "text": "mine"})
    assert begun["attachments"][0]["physical_path"] == "turn_1/attachments/a-2.txt"
    assert (inside.out / "turn_1/attachments/a.txt").read_text() == "somebody's"


async def test_an_attachment_that_lies_in_its_place_already_is_that_one(inside: Inside) -> None:
    inside.write("turn_1/attachments/a.txt", "there")
    begun = await attach(inside, {"name": "a.txt", "path": "turn_1/attachments/a.txt"})
    assert begun["attachments"][0]["physical_path"] == "turn_1/attachments/a.txt"


async def test_beginning_again_answers_the_same_attachments(inside: Inside) -> None:
    wanted = [{"name": "b.txt", "text": "two"}, {"name": "a.txt", "text": "one"}]
    first = await attach(inside, *wanted)
    assert await attach(inside, *wanted) == first
    assert len(list((inside.out / "turn_1/attachments").iterdir())) == 2


@pytest.mark.parametrize(
    ("attachment", "kind"),
    [
        ({"name": "../a", "text": "x"}, "unsafe_path"),
        ({"name": "/a", "text": "x"}, "unsafe_path"),
        ({"name": "a\0", "text": "x"}, "unsafe_path"),
        ({"name": "a", "base64": "?"}, "bad_path"),
        ({"name": "a", "path": "no/where"}, "not_found"),
        ({"name": "a", "path": "../../etc/passwd"}, "unsafe_path"),
        ({"name": "a", "path": "/etc/passwd"}, "not_permitted"),
        ({"name": "a", "path": "link"}, "unsafe_path"),
        ({"name": "a", "path": "so:sources_pool[1]"}, "bad_path"),
    ],
)
async def test_what_cannot_be_attached_begins_nothing(inside: Inside, attachment: dict[str, str], kind: str) -> None:
    (inside.out / "link").symlink_to("/etc/passwd")
    with pytest.raises(Refusal) as refused:
        await attach(inside, {"name": "good.txt", "text": "x"}, attachment)
    assert refused.value.kind == kind
    assert "turn_id" not in await inside.ask("workspace/status")


BAD = {"name": "b.png", "base64": "!!!"}


@pytest.mark.parametrize("bad", [BAD, {"name": "b.txt", "path": "no/where"}, {"name": "b\\a", "text": "x"}])
async def test_a_refused_turn_leaves_no_attachment(inside: Inside, bad: dict[str, str]) -> None:
    with pytest.raises(Refusal) as refused:
        await attach(inside, {"name": "a.txt", "text": "one"}, bad)
    assert refused.value.hint
    assert not (inside.out / "turn_1").exists(), "all are opened before anything is laid down"
    assert (await inside.sync())["artifacts"] == []
    begun = await attach(inside, {"name": "a.txt", "text": "one, corrected"})
    assert begun["attachments"][0]["physical_path"] == "turn_1/attachments/a.txt"


async def test_a_turn_that_the_journal_refuses_leaves_no_attachment(
    inside: Inside, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: Any, **__: Any) -> Any:
        raise JournalUnavailable("journal", "the disk is full")

    inside.write("turn_1/attachments/there.txt", "there")
    with monkeypatch.context() as patched:
        patched.setattr(inside.workspace, "stage", refuse)
        with pytest.raises(JournalUnavailable):
            await attach(inside, {"name": "a/b.txt", "text": "one"}, {"name": "there.txt", "text": "there"})
    left = [path.name for path in (inside.out / "turn_1/attachments").rglob("*") if path.is_file()]
    assert left == ["there.txt"]
    assert "turn_1/attachments/there.txt" not in inside.workspace.claims


LONG = "x" * 251 + ".txt"
DOTTED = "x." + "y" * 253


@pytest.mark.parametrize(
    ("names", "laid"),
    [
        (["a/b", "a"], ["a/b", "a-2"]),
        (["a", "a/b", "a/c"], ["a", "a-2/b", "a-2/c"]),
        (["a/b", "a/b/c", "a/b"], ["a/b", "a/b-2/c", "a/b-3"]),
        ([LONG, LONG], [LONG, "x" * 249 + "-2.txt"]),
        ([DOTTED, DOTTED], [DOTTED, "x." + "y" * 251 + "-2"]),
        (["ü" * 127, "ü" * 127], ["ü" * 127, "ü" * 126 + "-2"]),
    ],
)
async def test_names_that_are_in_each_others_way_are_numbered(
    inside: Inside, names: list[str], laid: list[str]
) -> None:
    begun = await attach(inside, *({"name": name, "text": str(at)} for at, name in enumerate(names)))
    paths = [one["physical_path"].removeprefix("turn_1/attachments/") for one in begun["attachments"]]
    assert paths == laid
    assert [(inside.out / "turn_1/attachments" / path).read_text() for path in paths] == [*map(str, range(len(names)))]


async def test_links_in_the_way_of_attachments_are_refused(inside: Inside, tmp_path: Path) -> None:
    (inside.out / "turn_1").mkdir()
    (inside.out / "turn_1/attachments").symlink_to(tmp_path)
    with pytest.raises(UnsafePath):
        await attach(inside, {"name": "a.txt", "text": "x"})


async def test_an_attachment_is_never_credited_to_a_call_that_its_turn_abandons(
    inside: Inside, monkeypatch: pytest.MonkeyPatch
) -> None:
    await inside.begin()
    await inside.ask("call/begin", {"tool_call_id": "tc_1", "tool_id": "exec", "params": {}})
    take_in, looker = inside.assembly.outdir.take_in, inside.assembly.looker
    looks: list[asyncio.Future[None]] = []
    loop = asyncio.get_running_loop()

    def look_first(path: str, *rest: Any) -> Any:
        if not looks and path.endswith("a.txt"):
            looks.append(asyncio.run_coroutine_threadsafe(looker.look("turn_2"), loop))  # type: ignore[arg-type]
        return take_in(path, *rest)

    monkeypatch.setattr(inside.assembly.outdir, "take_in", look_first)
    wanted = ({"name": f"{name}.txt", "text": name * 10} for name in "abc")
    await attach(inside, *wanted, turn="turn_2")
    await asyncio.wrap_future(looks[0])  # type: ignore[arg-type]
    found = (await inside.ask("artifact/list"))["artifacts"]
    assert [(one["visibility"], one.get("tool_call_id"), one["version"]) for one in found] == [
        ("external", None, 1)
    ] * 3


async def test_the_contents_of_attachments_are_told_up_to_a_limit(
    inside: Inside, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sidecar.core.limits.ATTACHED_CONTENT_BYTES", 2 * len(PNG))
    picture = base64.b64encode(PNG).decode()
    await attach(inside, *({"name": f"{at}.png", "base64": picture} for at in range(3)))
    types = [await types_at(inside, f"turn_1/attachments/{at}.png") for at in range(3)]
    whole = ["user.attachment.meta", "user.attachment"]
    assert types == [whole, whole, whole[:1]]


async def test_the_blocks_of_attachments_are_made_off_the_loop(inside: Inside, monkeypatch: pytest.MonkeyPatch) -> None:
    threads: set[str] = set()

    def telling(block: Any, defaults: Any) -> Told:
        threads.add(threading.current_thread().name)
        return tell(block, defaults)

    monkeypatch.setattr("sidecar.attaching.tell", telling)
    await attach(inside, {"name": "a.png", "base64": base64.b64encode(PNG).decode()})
    assert threads
    assert threading.main_thread().name not in threads


async def test_the_end_of_a_turn_reads_no_picture_and_few_blocks_at_once(
    inside: Inside, monkeypatch: pytest.MonkeyPatch
) -> None:
    picture = base64.b64encode(PNG).decode()
    await attach(inside, {"name": "a.png", "base64": picture})
    made = {"type": "react.tool.result", "mime": "image/png", "path": "fi:turn_1.files/p.png", "base64": picture}
    meta = {"tool_call_id": "tc_1", "sources_used": [1]}
    notes = [{"type": "react.notes", "text": f"note {at}"} for at in range(40)]
    await inside.ask("timeline/append", {"blocks": [{**made, "meta": meta}, *notes]})
    asked: list[list[int]] = []
    bodies = inside.workspace.bodies_in_turn

    def counted(numbers: Any) -> Iterator[bytes]:
        asked.append(list(numbers))
        return bodies(numbers)

    monkeypatch.setattr(inside.workspace, "bodies_in_turn", counted)
    ending = Ending("turn_1", "done", None, "completed", {})
    assert await inside.assembly.services.turns.sources_used(ending) == [1]
    mimes = {inside.workspace.timeline.heads[number][MIME] for some in asked for number in some}
    assert (mimes, max(map(len, asked))) == ({"text/markdown"}, 16)


async def test_a_long_completion_is_read_off_the_loop(inside: Inside, monkeypatch: pytest.MonkeyPatch) -> None:
    readers: list[threading.Thread] = []

    def watched(text: str, mime: str, sids: Any) -> list[int]:
        readers.append(threading.current_thread())
        return extract(text, mime, sids)

    monkeypatch.setattr("sidecar.turns.extract", watched)
    await inside.ask("turn/begin", {"turn_id": "turn_1"})
    text = "[[S:1-999999999]] " * 1000
    await inside.ask("turn/end", {"turn_id": "turn_1", "completion": {"text": text}})
    assert readers
    assert threading.current_thread() not in readers


# Bringing back


@pytest.mark.rule("turns.begin-rehosts-on-request")
@pytest.mark.parametrize("rehost", ["all", ["fi:turn_1.files/a.txt", "turn_1/attachments/b.txt"]])
async def test_a_turn_begins_with_the_files_of_earlier_ones(inside: Inside, rehost: Any) -> None:
    await attach(inside, {"name": "b.txt", "text": "two"})
    inside.write("turn_1/files/a.txt", "one")
    await inside.sync()
    shutil.rmtree(inside.out / "turn_1")
    await inside.sync()
    begun = await attach(inside, turn="turn_2", rehost=rehost)
    assert sorted(one["physical_path"] for one in begun["rehosted"]) == [
        "turn_1/attachments/b.txt",
        "turn_1/files/a.txt",
    ]
    assert (inside.out / "turn_1/files/a.txt").read_text() == "one"


async def test_what_cannot_be_brought_back_is_missing_and_the_turn_begins(inside: Inside) -> None:
    begun = await attach(inside, rehost=["fi:turn_0.files/never.txt", "fi:../x"])
    assert begun["missing"] == [
        {"path": "fi:turn_0.files/never.txt", "reason": "unknown"},
        {"path": "fi:../x", "reason": "unsafe_path"},
    ]


# The end


@pytest.mark.rule("turns.end-saves-and-settles")
async def test_a_turn_ends_with_what_was_answered(inside: Inside) -> None:
    await inside.begin()
    inside.write("turn_1/files/a.txt", "one")
    ended = await inside.ask("turn/end", {"turn_id": "turn_1", "completion": {"text": "Done, see [[S:1]]."}})
    assert [one["kind"] for one in ended.pop("saved")] == ["chat:assistant"], "without a store there are rows alone"
    assert ended == {"sources_used": [1], "notices": []}
    (block,) = (await inside.ask("timeline/blocks", {"path": "ar:turn_1.assistant.completion"}))["blocks"]
    assert (block["text"], block["meta"]["sources_used"]) == ("Done, see [[S:1]].", [1])
    assert "turn_id" not in await inside.ask("workspace/status")
    view = orjson.loads((inside.out / "timeline.json").read_bytes())
    assert [one["type"] for one in view["blocks"]] == ["turn.header", "assistant.completion"]


async def test_a_turn_that_is_not_open_cannot_end(inside: Inside) -> None:
    with pytest.raises(UnknownTurn):
        await inside.ask("turn/end", {"turn_id": "turn_1"})
    await inside.begin("turn_1")
    await inside.ask("turn/end", {"turn_id": "turn_1"})
    with pytest.raises(NotPermitted):
        await inside.ask("turn/end", {"turn_id": "turn_1"})


async def test_the_end_asked_for_again_answers_the_same(inside: Inside) -> None:
    await inside.begin()
    params = {"turn_id": "turn_1", "completion": {"text": "Done."}, "request_id": "r1"}
    first = await inside.ask("turn/end", params)
    revision = inside.workspace.revision
    assert await inside.ask("turn/end", params) == first
    assert inside.workspace.revision == revision


async def test_an_open_call_ends_with_its_turn(inside: Inside) -> None:
    await inside.begin()
    await inside.ask("call/begin", {"tool_call_id": "tc_1", "tool_id": "exec", "params": {}})
    inside.write("turn_1/files/a.txt", "one")
    await inside.ask("turn/end", {"turn_id": "turn_1"})
    assert not inside.workspace.open_calls
    resolved = await inside.ask("artifact/resolve", {"paths": ["turn_1/files/a.txt"]})
    assert resolved["results"][0]["artifact"]["visibility"] == "external"


@pytest.mark.rule("watch.incomplete-files-at-turn-end")
async def test_a_file_still_open_at_the_end_is_incomplete_until_it_is_closed(
    inside: Inside, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sidecar.core.limits.STILL_OPEN_WAIT", 0.05)
    await inside.begin()
    with inside.write("turn_1/files/a.txt", "half").open("a") as writer:
        ended = await inside.ask("turn/end", {"turn_id": "turn_1"})
        assert [said["code"] for said in ended["notices"]] == ["still_open"]
        (found,) = (await inside.ask("artifact/list"))["artifacts"]
        assert (found["incomplete"], found.get("sid"), found.get("sha256")) == (True, None, None)
        writer.write(" and half")
    await inside.sync()
    (found,) = (await inside.ask("artifact/list"))["artifacts"]
    assert (found.get("incomplete"), found["sid"], found["version"]) == (None, 1, 1)


@pytest.mark.rule("turns.sources-used-of-a-turn")
async def test_a_turn_used_what_its_answer_and_its_files_cite(inside: Inside) -> None:
    await inside.begin()
    await inside.ask("sources/merge", {"rows": [{"url": f"https://example.com/{n}"} for n in range(4)]})
    await inside.ask("call/begin", {"tool_call_id": "tc_1", "tool_id": "exec", "params": {}})
    inside.write("turn_1/files/a.md", "as [[S:3]] says")
    (made,) = (await inside.ask("call/end", {"tool_call_id": "tc_1"}))["artifacts"]
    assert made["sources_used"] == [3]
    ended = await inside.ask("turn/end", {"turn_id": "turn_1", "completion": {"text": "x", "sources_used": [1]}})
    assert ended["sources_used"] == [1, 3]


async def test_vectors_are_kept_for_what_the_turn_leaves(inside: Inside) -> None:
    await inside.begin()
    await inside.ask("turn/end", {"turn_id": "turn_1", "embeddings": {"turn.log": [0.5, -1.0]}})
    assert inside.workspace.vectors.keys() == {("turn_1", "turn.log")}
