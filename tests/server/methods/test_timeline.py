"""The timeline through its methods."""

from __future__ import annotations

import orjson
import pytest

from sidecar.core.errors import BadPath, NotFound, Stale, UnknownTurn, UnsafePath
from sidecar.server.methods.timeline import SHORT_BYTES
from tests.daemon_process import Workspace
from tests.server.inside import Inside

NOTE = {"type": "react.note", "turn_id": "turn_1", "text": "a note"}


async def test_blocks_are_answered_as_they_were_told_with_every_key(inside: Inside) -> None:
    told = {**NOTE, "path": "ar:turn_1.react.note.1", "strange": {"deep": [1, None]}, "call_id": "tc_1", "author": "me"}
    await inside.ask("timeline/append", {"blocks": [told]})
    (block,) = (await inside.ask("timeline/blocks"))["blocks"]
    assert {key: block[key] for key in told} == told


async def test_numbers_and_canonical_paths_are_answered(inside: Inside) -> None:
    blocks = [NOTE, {**NOTE, "path": "fi:turn_1.attachments/a.pdf"}]
    answer = await inside.ask("timeline/append", {"blocks": blocks})
    assert answer["blocks"] == [{"index": 0}, {"index": 1, "path": "fi:turn_1.user.attachments/a.pdf"}]
    assert answer["revision"] == inside.workspace.revision


async def test_an_append_is_all_or_nothing(inside: Inside) -> None:
    with pytest.raises(UnsafePath):
        await inside.ask("timeline/append", {"blocks": [NOTE, {**NOTE, "path": "fi:turn_1.files/../x"}]})
    assert (await inside.ask("timeline/blocks"))["blocks"] == []


@pytest.mark.parametrize(
    "field", [{"turn_id": "a.b"}, {"path": "zz:1"}, {"ts": "yesterday"}, {"base64": "%", "text": None}]
)
async def test_a_block_that_cannot_be_is_refused(inside: Inside, field: dict[str, str | None]) -> None:
    with pytest.raises(BadPath):
        await inside.ask("timeline/append", {"blocks": [{**NOTE, "path": "fi:turn_1.files/x", **field}]})


async def test_times_are_printed_as_utc(inside: Inside) -> None:
    times = [1771408921.25, "2026-02-18T10:00:00+01:00", "2026-02-18T09:00:00Z"]
    await inside.ask("timeline/append", {"blocks": [{**NOTE, "ts": ts} for ts in times]})
    printed = [block["ts"] for block in (await inside.ask("timeline/blocks"))["blocks"]]
    assert printed == ["2026-02-18T10:02:01.250Z", "2026-02-18T09:00:00Z", "2026-02-18T09:00:00Z"]


async def test_blocks_go_page_by_page(inside: Inside) -> None:
    await inside.ask("timeline/append", {"blocks": [{**NOTE, "text": str(n)} for n in range(5)]})
    seen: list[str] = []
    since = 0
    while True:
        page = await inside.ask("timeline/blocks", {"since": since, "limit": 2})
        if not page["blocks"]:
            break
        seen += [block["text"] for block in page["blocks"]]
        since = page["next_since"]
    assert seen == list("01234")


async def test_blocks_are_chosen_by_path_and_turn(inside: Inside) -> None:
    blocks = [NOTE, {**NOTE, "turn_id": "turn_2"}, {**NOTE, "path": "ar:turn_1.x"}]
    await inside.ask("timeline/append", {"blocks": blocks})
    assert len((await inside.ask("timeline/blocks", {"turn_id": "turn_1"}))["blocks"]) == 2
    assert len((await inside.ask("timeline/blocks", {"path": "ar:turn_1.x"}))["blocks"]) == 1
    assert (await inside.ask("timeline/blocks", {"path": "ar:turn_1.x", "turn_id": "turn_2"}))["blocks"] == []


async def test_an_unknown_turn_is_refused(inside: Inside) -> None:
    with pytest.raises(UnknownTurn):
        await inside.ask("timeline/blocks", {"turn_id": "turn_9"})


async def test_an_editor_sees_no_block_of_an_internal_file(inside: Inside) -> None:
    path = "fi:turn_1.files/secret.md"
    block = {
        **NOTE,
        "type": "react.tool.result",
        "path": path,
        "meta": {"visibility": "internal", "tool_call_id": "tc"},
    }
    await inside.ask("timeline/append", {"blocks": [block, NOTE]})
    assert len((await inside.ask("timeline/blocks", role="editor"))["blocks"]) == 1
    for hidden_or_absent in (path, "ar:turn_1.nothing"):
        with pytest.raises(NotFound):
            await inside.ask("timeline/blocks", {"path": hidden_or_absent}, role="editor")


async def test_hosting_fields_in_blocks_are_cut_to_the_role(inside: Inside) -> None:
    digest = orjson.dumps({"artifact_path": "fi:turn_1.files/a", "rn": "ef:1", "key": "k"}).decode()
    meta = {"hosted_uri": "s3://x", "rn": "ef:1", "digest": digest}
    await inside.ask("timeline/append", {"blocks": [{**NOTE, "meta": meta}]})
    (mine,) = (await inside.ask("timeline/blocks"))["blocks"]
    (theirs,) = (await inside.ask("timeline/blocks", role="editor"))["blocks"]
    assert mine["meta"]["hosted_uri"] == "s3://x"
    assert "hosted_uri" not in theirs["meta"]
    assert theirs["meta"]["rn"] == "ef:1"
    assert orjson.loads(theirs["meta"]["digest"]).keys() == {"artifact_path", "rn"}


async def test_the_same_request_id_appends_once(inside: Inside) -> None:
    asked = {"blocks": [NOTE], "request_id": "r1"}
    assert await inside.ask("timeline/append", asked) == await inside.ask("timeline/append", asked)
    assert len(inside.workspace.timeline) == 1
    with pytest.raises(Stale):
        await inside.ask("timeline/append", {**asked, "blocks": [NOTE, NOTE]})


@pytest.mark.rule("timeline.blocks-stand-as-they-were-told")
async def test_blocks_stand_in_the_order_in_which_they_were_told_however_long_they_are(workspace: Workspace) -> None:
    long = "x" * (SHORT_BYTES + 1)
    texts = [f"{number} {long if number % 7 == 3 else ''}" for number in range(60)]

    def named(number: int) -> dict[str, str]:
        return {"request_id": f"r{number}"} if number % 3 == 1 else {}

    runtime = workspace.connect("runtime")
    asked = [
        runtime.ask("timeline/append", {"blocks": [{**NOTE, "text": text}], **named(number)})
        for number, text in enumerate(texts)
    ]
    for number in asked:
        runtime.answer(number)
    told = runtime.call("timeline/blocks", {"limit": 100})["blocks"]
    assert [block["text"].split()[0] for block in told] == [str(number) for number in range(60)]


async def test_flush_writes_the_view(inside: Inside) -> None:
    await inside.ask("timeline/append", {"blocks": [NOTE]})
    assert await inside.ask("timeline/flush") == {"files": ["timeline.json", "context.json", "sources_pool.json"]}
    view = orjson.loads((inside.out / "timeline.json").read_bytes())
    assert (view["version"], len(view["blocks"]), view["turn_ids"]) == (1, 1, ["turn_1"])
