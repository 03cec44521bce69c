"""A call begins and ends, and what appears in between is its own."""

from __future__ import annotations

import asyncio
import hashlib
from pathlib import Path
from typing import Any

import orjson
import pytest
import pytest_asyncio

from sidecar.calls import Outcome
from sidecar.core.entries import Entry, encode
from sidecar.core.errors import JournalUnavailable, NotFound, NotPermitted, TooLarge, UnknownTurn
from sidecar.stores.folder_store import FolderStore
from tests.server.inside import Inside, awake

BEGIN = {"tool_call_id": "tc_1", "tool_id": "exec", "params": {"code": "..."}}


@pytest.fixture(autouse=True, params=["in one change", "some at a time"])
def size(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """What a call made is settled whole, or ahead of its end a file at a time: nobody sees a difference afterwards."""
    if request.param == "some at a time":
        monkeypatch.setattr("sidecar.settling.WHOLE", 1)
        monkeypatch.setattr("sidecar.settling.PIECE", 1)
    return str(request.param)


@pytest_asyncio.fixture
async def calling(inside: Inside) -> Inside:
    await inside.begin()
    await inside.ask("call/begin", BEGIN)
    return inside


async def test_a_call_needs_a_turn(inside: Inside) -> None:
    with pytest.raises(UnknownTurn):
        await inside.ask("call/begin", BEGIN)


async def test_a_used_id_is_refused(calling: Inside) -> None:
    with pytest.raises(NotPermitted):
        await calling.ask("call/begin", BEGIN)


async def test_an_unknown_call_cannot_end(calling: Inside) -> None:
    with pytest.raises(NotFound):
        await calling.ask("call/end", {"tool_call_id": "tc_2"})


async def test_an_ended_call_cannot_end_again(calling: Inside) -> None:
    await calling.ask("call/end", {"tool_call_id": "tc_1"})
    with pytest.raises(NotFound):
        await calling.ask("call/end", {"tool_call_id": "tc_1"})


async def test_what_appears_while_it_is_open_is_pending_without_a_number(calling: Inside) -> None:
    calling.write("turn_1/files/a.txt")
    answer = await calling.sync()
    assert answer["sources"] == []
    artifact = (await calling.ask("artifact/resolve", {"paths": ["turn_1/files/a.txt"]}))["results"][0]["artifact"]
    assert (artifact["visibility"], artifact["tool_call_id"]) == ("pending", "tc_1")


async def test_its_end_numbers_what_is_citable_in_order_of_path(calling: Inside) -> None:
    for name in ("b.txt", "a.txt", "c.bin"):
        calling.write(f"turn_1/files/{name}", b"\0" if name == "c.bin" else name)
        await calling.sync()
    ended = await calling.ask("call/end", {"tool_call_id": "tc_1"})
    assert [(one["physical_path"], one.get("sid")) for one in ended["artifacts"]] == [
        ("turn_1/files/a.txt", 1),
        ("turn_1/files/b.txt", 2),
        ("turn_1/files/c.bin", None),
    ]


async def test_its_answer_is_what_resolves_afterwards(calling: Inside) -> None:
    calling.write("turn_1/files/a.txt")
    (told,) = (await calling.ask("call/end", {"tool_call_id": "tc_1"}))["artifacts"]
    resolved = await calling.ask("artifact/resolve", {"paths": ["turn_1/files/a.txt"]})
    assert resolved["results"][0]["artifact"] == told | {"ts": resolved["results"][0]["artifact"]["ts"]}


async def test_internal_files_get_no_number(calling: Inside) -> None:
    calling.write("turn_1/files/a.txt")
    expect = [{"path": "a.txt", "visibility": "internal", "description": "scratch"}]
    ended = await calling.ask("call/end", {"tool_call_id": "tc_1", "expect": expect})
    assert [(one["visibility"], one.get("sid")) for one in ended["artifacts"]] == [("internal", None)]
    assert (await calling.ask("sources/list"))["rows"] == []


async def test_the_description_of_an_expected_file_is_kept(calling: Inside) -> None:
    calling.write("turn_1/files/a.txt")
    await calling.ask("call/end", {"tool_call_id": "tc_1", "expect": [{"path": "a.txt", "description": "notes"}]})
    resolved = await calling.ask("artifact/resolve", {"paths": ["turn_1/files/a.txt"]})
    assert resolved["results"][0]["artifact"]["description"] == "notes"


async def test_what_was_expected_and_is_not_there_is_missing(calling: Inside) -> None:
    ended = await calling.ask("call/end", {"tool_call_id": "tc_1", "expect": ["gone.txt"]})
    assert ended["missing"] == ["gone.txt"]
    assert [notice["code"] for notice in ended["notices"]] == ["missing_artifact"]
    fetched = await calling.ask("artifact/fetch", {"path": "tc:turn_1.tc_1.result"})
    assert orjson.loads(fetched["ret"]["text"])["error"]["code"] == "missing_artifact"


async def test_a_file_still_open_is_unsettled(calling: Inside) -> None:
    with calling.write("turn_1/files/open.txt").open("a") as writer:
        writer.write("half")
        ended = await calling.ask("call/end", {"tool_call_id": "tc_1"})
    assert ended["unsettled"] == ["turn_1/files/open.txt"]
    assert [notice["code"] for notice in ended["notices"]] == ["still_open"]


async def test_with_two_calls_open_the_one_that_names_a_file_gets_it(calling: Inside) -> None:
    await calling.ask("call/begin", {**BEGIN, "tool_call_id": "tc_2"})
    calling.write("turn_1/files/a.txt")
    calling.write("turn_1/files/nobodys.txt")
    first = await calling.ask("call/end", {"tool_call_id": "tc_2", "expect": ["a.txt"]})
    assert [one["physical_path"] for one in first["artifacts"]] == ["turn_1/files/a.txt"]
    last = await calling.ask("call/end", {"tool_call_id": "tc_1"})
    assert last["artifacts"] == []
    assert [notice["code"] for notice in last["notices"]] == ["attribution_ambiguous"]
    rows = (await calling.ask("sources/list"))["rows"]
    assert [row["physical_path"] for row in rows] == ["turn_1/files/a.txt", "turn_1/files/nobodys.txt"]


async def test_the_same_request_id_is_answered_without_ending_twice(calling: Inside) -> None:
    calling.write("turn_1/files/a.txt")
    asked = {"tool_call_id": "tc_1", "result": {"ok": True}, "request_id": "r1"}
    first = await calling.ask("call/end", asked)
    revision = calling.workspace.revision
    assert await calling.ask("call/end", asked) == first
    assert calling.workspace.revision == revision


async def test_a_file_closed_after_its_call_is_what_the_call_said(calling: Inside) -> None:
    expect = [{"path": "open.txt", "visibility": "internal"}]
    with calling.write("turn_1/files/open.txt").open("a") as writer:
        writer.write("half")
        ended = await calling.ask("call/end", {"tool_call_id": "tc_1", "expect": expect})
    assert (ended["missing"], ended["unsettled"]) == ([], ["turn_1/files/open.txt"])
    await calling.sync()
    resolved = await calling.ask("artifact/resolve", {"paths": ["turn_1/files/open.txt"]})
    artifact = resolved["results"][0]["artifact"]
    assert (artifact["visibility"], artifact["tool_call_id"], "sid" in artifact) == ("internal", "tc_1", False)


async def test_what_is_no_path_of_a_file_is_missing_and_the_call_ends(calling: Inside) -> None:
    ended = await calling.ask("call/end", {"tool_call_id": "tc_1", "expect": ["../x", "ar:turn_1.user.prompt"]})
    assert ended["missing"] == ["../x", "ar:turn_1.user.prompt"]


async def test_the_same_end_asked_for_twice_at_once_is_one_end(calling: Inside) -> None:
    asked = {"tool_call_id": "tc_1", "request_id": "r1"}
    first, second = await asyncio.gather(calling.ask("call/end", asked), calling.ask("call/end", asked))
    assert first == second


# What it made, as blocks


async def blocks_of(inside: Inside, **params: Any) -> list[dict[str, Any]]:
    return (await inside.ask("timeline/blocks", params))["blocks"]


@pytest.mark.rule("digest.produced-files-get-digest-and-content-blocks")
async def test_each_file_has_a_digest_and_a_content_block(calling: Inside) -> None:
    calling.write("turn_1/files/b.png", b"\x89PNG\r\n\x1a\n")
    calling.write("turn_1/files/a.md", "# one")
    calling.write("turn_1/files/c.zip", b"PK\x05\x06" + bytes(18))
    await calling.ask("call/end", {"tool_call_id": "tc_1"})
    digests = [orjson.loads(block["text"]) for block in await blocks_of(calling, path="tc:turn_1.tc_1.result")]
    assert [one["artifact_path"] for one in digests] == [
        "fi:turn_1.files/a.md",
        "fi:turn_1.files/b.png",
        "fi:turn_1.files/c.zip",
    ]
    held = [
        (block["mime"], block.get("text"), "base64" in block, orjson.loads(block["meta"]["digest"]))
        for digest in digests
        for block in await blocks_of(calling, path=digest["artifact_path"])
    ]
    assert held == [
        ("text/markdown", "# one", False, digests[0]),
        ("image/png", None, True, digests[1]),
        ("application/zip", None, False, digests[2]),
    ]


async def test_a_long_text_stays_in_its_file(calling: Inside) -> None:
    calling.write("turn_1/files/a.txt", "x" * (256 * 1024 + 1))
    (made,) = (await calling.ask("call/end", {"tool_call_id": "tc_1"}))["artifacts"]
    (block,) = await blocks_of(calling, path="fi:turn_1.files/a.txt")
    assert "text" not in block
    resolved = await calling.ask("artifact/resolve", {"paths": ["turn_1/files/a.txt"]})
    assert (resolved["results"][0]["artifact"]["sha256"], made["version"]) == (made["sha256"], 1)


async def test_what_is_told_of_a_file_is_the_version_that_was_seen(calling: Inside) -> None:
    calling.write("turn_1/files/a.txt", "one")
    await calling.ask("call/end", {"tool_call_id": "tc_1"})
    versions = (await calling.ask("artifact/versions", {"path": "turn_1/files/a.txt"}))["versions"]
    assert [(one["version"], one["origin"], one["tool_call_id"]) for one in versions] == [(1, "both", "tc_1")]


async def test_a_file_told_to_be_internal_stays_so_without_being_expected(calling: Inside) -> None:
    calling.write("turn_1/files/a.txt", "one")
    await calling.sync()
    meta = {"tool_call_id": "tc_1", "visibility": "internal"}
    block = {"type": "react.tool.result", "path": "fi:turn_1.files/a.txt", "text": "one", "meta": meta}
    await calling.ask("timeline/append", {"blocks": [block]})
    (made,) = (await calling.ask("call/end", {"tool_call_id": "tc_1"}))["artifacts"]
    assert (made["visibility"], made.get("sid")) == ("internal", None)


@pytest.mark.rule("calls.a-missing-expectation-is-an-error-block")
async def test_a_missing_expectation_is_an_error_block(calling: Inside) -> None:
    await calling.ask("call/end", {"tool_call_id": "tc_1", "expect": ["gone.txt"]})
    (block,) = await blocks_of(calling, path="tc:turn_1.tc_1.result")
    said = orjson.loads(block["text"])
    assert (said["error"]["code"], said["error"]["details"]) == ("missing_artifact", {"path": "gone.txt"})


async def test_what_is_hosted_and_told_is_the_file_and_not_what_a_block_said_meanwhile(tmp_path: Path) -> None:
    async with awake(tmp_path, store=FolderStore(str(tmp_path / "store"))) as inside:
        await inside.begin()
        await inside.ask("call/begin", BEGIN)
        inside.write("turn_1/files/a.md", "real")
        await inside.sync()
        meta = {"tool_call_id": "tc_9"}
        other = {"type": "react.tool.result", "path": "fi:turn_1.files/a.md", "text": "told", "meta": meta}
        await inside.ask("timeline/append", {"blocks": [other]})
        (made,) = (await inside.ask("call/end", {"tool_call_id": "tc_1"}))["artifacts"]
        sha256 = hashlib.sha256(b"real").hexdigest()
        assert (made["sha256"], made["version"]) == (sha256, 1)
        held = [block["text"] for block in await blocks_of(inside, path="fi:turn_1.files/a.md")]
        assert held == ["told", "real"]
        assert await inside.assembly.hosting.settle(5)
        assert [one.sha256 for one in inside.workspace.handles.values()] == [sha256]


@pytest.mark.parametrize("expect", [[], ["a.md"], [{"path": "a.md", "visibility": "internal"}]])
async def test_an_internal_file_that_a_call_changed_is_told_of_and_stays_internal(inside: Inside, expect: Any) -> None:
    await inside.begin()
    written = {"path": "a.md", "content": "one", "kind": "file", "visibility": "internal"}
    await inside.ask("artifact/write", written)
    await inside.ask("artifact/write", {**written, "path": "untouched.md"})
    await inside.ask("call/begin", BEGIN)
    inside.write("turn_1/files/a.md", "one and two")
    (made,) = (await inside.ask("call/end", {"tool_call_id": "tc_1", "expect": expect}))["artifacts"]
    assert (made["visibility"], made["version"], made["origin"], made.get("sid")) == ("internal", 2, "both", None)
    assert [block["text"] for block in await blocks_of(inside, path="fi:turn_1.files/a.md")] == ["one", "one and two"]
    seen = (await inside.ask("timeline/blocks", role="editor"))["blocks"]
    assert [block["type"] for block in seen] == ["turn.header", "react.tool.call"]
    assert inside.workspace.hosting == {}


async def test_what_nobody_claims_is_numbered_after_what_the_last_call_made(calling: Inside) -> None:
    await calling.ask("call/begin", {**BEGIN, "tool_call_id": "tc_2"})
    calling.write("turn_1/files/b.txt")
    calling.write("turn_1/files/a.txt")
    await calling.sync()
    await calling.ask("call/end", {"tool_call_id": "tc_2"})
    (made,) = (await calling.ask("call/end", {"tool_call_id": "tc_1", "expect": ["b.txt"]}))["artifacts"]
    assert made["sid"] == 1
    rows = (await calling.ask("sources/list"))["rows"]
    assert [(row["sid"], row["physical_path"]) for row in rows] == [
        (1, "turn_1/files/b.txt"),
        (2, "turn_1/files/a.txt"),
    ]


# Many files


async def test_the_end_of_a_call_that_made_many_files_lets_others_have_their_turn(
    calling: Inside, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Counted, not timed: with no work at once allowed, there is a rest at every file."""
    monkeypatch.setattr("sidecar.pacing.SECONDS_AT_ONCE", -1.0)
    files = 100
    for number in range(files):
        calling.write(f"turn_1/files/{number:03}.txt", str(number))
    await calling.sync()
    rests, calls = 0, calling.assembly.services.calls
    outcome = Outcome({}, (), (), {})
    preparing = asyncio.ensure_future(calls.prepare("tc_1", outcome))
    while not preparing.done():
        await asyncio.sleep(0)
        rests += 1
    assert rests > 4 * files
    entries, result, encoded = calls.end("tc_1", outcome, preparing.result())
    assert len(result["artifacts"]) == files
    assert list(encoded) == [encode(entry) for entry in entries]
    assert [one["sid"] for one in result["artifacts"]] == list(range(1, files + 1))


async def test_a_prepared_end_counts_only_while_nothing_changed(calling: Inside) -> None:
    calling.write("turn_1/files/a.txt", "one")
    await calling.sync()
    calls, outcome = calling.assembly.services.calls, Outcome({}, (), (), {})
    prepared = await calls.prepare("tc_1", outcome)
    await calling.ask("sources/merge", {"rows": [{"url": "https://example.com/", "title": "first"}]})
    _, result, encoded = calls.end("tc_1", outcome, prepared)
    assert ([one["sid"] for one in result["artifacts"]], list(encoded)) == ([2], [])


async def test_very_much_is_settled_in_many_changes_and_an_end_that_is_refused_goes_on_where_it_was(
    calling: Inside, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sidecar.settling.WHOLE", 4)
    monkeypatch.setattr("sidecar.settling.PIECE", 2)
    names = [f"turn_1/files/{number}.txt" for number in range(9)]
    for name in names:
        calling.write(name, name)
    await calling.sync()
    stage, staged = calling.workspace.stage, list[int]()

    def refusing(*entries: Entry, **more: Any) -> Any:
        staged.append(len(entries))
        if len(staged) == 3:
            raise JournalUnavailable("journal", "the disk is full")
        return stage(*entries, **more)

    monkeypatch.setattr(calling.workspace, "stage", refusing)
    with pytest.raises(JournalUnavailable):
        await calling.ask("call/end", {"tool_call_id": "tc_1"})
    seen = await calling.ask("artifact/list", {}, role="editor")
    assert [one["physical_path"] for one in seen["artifacts"]] == names[:4]
    ended = await calling.ask("call/end", {"tool_call_id": "tc_1"})
    assert [(one["physical_path"], one["sid"]) for one in ended["artifacts"]] == [
        *zip(names, range(1, 10), strict=True)
    ]
    assert max(staged) <= 2 * 5 + 2  # of each file what it is, its number and two blocks; then a result and the end


async def test_what_changes_while_it_is_settled_ahead_is_settled_once_more(
    calling: Inside, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sidecar.settling.WHOLE", 2)
    monkeypatch.setattr("sidecar.settling.PIECE", 1)
    for name in "abc":
        calling.write(f"turn_1/files/{name}.txt", name)
    await calling.sync()
    calls, outcome = calling.assembly.services.calls, Outcome({}, (), (), {})
    await calls.settle_ahead("tc_1", outcome)
    calling.write("turn_1/files/a.txt", "newer")
    ended = await calling.ask("call/end", {"tool_call_id": "tc_1"})
    assert [(one["name"], one["version"]) for one in ended["artifacts"]] == [("a.txt", 2), ("b.txt", 1), ("c.txt", 1)]
    assert ended["artifacts"][0]["sha256"] == hashlib.sha256(b"newer").hexdigest()


@pytest.fixture
def settled_in_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two files are many, and each is settled by itself."""
    monkeypatch.setattr("sidecar.settling.WHOLE", 1)
    monkeypatch.setattr("sidecar.settling.PIECE", 1)


@pytest.mark.usefixtures("settled_in_pieces")
async def test_an_end_whose_daemon_died_halfway_gives_all_of_it_to_the_next_daemon(tmp_path: Path) -> None:
    async with awake(tmp_path) as inside:
        await inside.begin()
        await inside.ask("call/begin", BEGIN)
        for name in "dbca":
            inside.write(f"turn_1/files/{name}.txt", name)
        await inside.sync()
        await inside.assembly.services.calls.settle_ahead("tc_1", Outcome({}, (), (), {}))
        assert len(inside.workspace.pending) == 1
    async with awake(tmp_path) as inside:
        ended = await inside.ask("call/end", {"tool_call_id": "tc_1"})
        assert [(one["name"], one["sid"]) for one in ended["artifacts"]] == [
            ("a.txt", 1), ("b.txt", 2), ("c.txt", 3), ("d.txt", 4)
        ]  # fmt: skip
        await inside.ask("call/begin", {**BEGIN, "tool_call_id": "tc_2"})
        assert (await inside.ask("call/end", {"tool_call_id": "tc_2"}))["artifacts"] == []


@pytest.mark.usefixtures("settled_in_pieces")
async def test_what_nobody_claims_is_named_by_the_end_although_a_daemon_died_halfway(tmp_path: Path) -> None:
    async with awake(tmp_path) as inside:
        await inside.begin()
        await inside.ask("call/begin", BEGIN)
        await inside.ask("call/begin", {**BEGIN, "tool_call_id": "tc_2"})
        for name in "abc":
            inside.write(f"turn_1/files/{name}.txt", name)
        await inside.sync()
        await inside.ask("call/end", {"tool_call_id": "tc_2"})
        await inside.assembly.services.calls.settle_ahead("tc_1", Outcome({}, (), (), {}))
        assert len(inside.workspace.pending) == 1
    async with awake(tmp_path) as inside:
        ended = await inside.ask("call/end", {"tool_call_id": "tc_1"})
        assert [said["path"] for said in ended["notices"]] == [f"turn_1/files/{name}.txt" for name in "abc"]
        await inside.ask("call/begin", {**BEGIN, "tool_call_id": "tc_3"})
        assert (await inside.ask("call/end", {"tool_call_id": "tc_3"}))["notices"] == []


async def test_what_went_after_it_was_settled_ahead_is_told_as_it_is(
    calling: Inside, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sidecar.settling.WHOLE", 1)
    monkeypatch.setattr("sidecar.settling.PIECE", 1)
    for name in "abc":
        calling.write(f"turn_1/files/{name}.txt", name)
    await calling.sync()
    await calling.assembly.services.calls.settle_ahead("tc_1", Outcome({}, (), (), {}))
    (calling.out / "turn_1/files/a.txt").unlink()
    ended = await calling.ask("call/end", {"tool_call_id": "tc_1", "expect": ["a.txt"]})
    assert ended["missing"] == ["a.txt"]
    assert [(one["name"], one["on_disk"]) for one in ended["artifacts"]] == [
        ("a.txt", False), ("b.txt", True), ("c.txt", True)
    ]  # fmt: skip


async def test_what_was_written_and_told_of_in_a_call_is_not_told_once_more_by_its_end(calling: Inside) -> None:
    for name in "abc":
        calling.write(f"turn_1/files/{name}.txt", name)
    write = {"tool_call_id": "tc_1", "path": "bb.txt", "content": "bb", "kind": "file"}
    await calling.ask("artifact/write", write)
    await calling.sync()
    ended = await calling.ask("call/end", {"tool_call_id": "tc_1"})
    assert [one["name"] for one in ended["artifacts"]] == ["a.txt", "b.txt", "c.txt"]


async def test_an_end_that_no_answer_can_come_of_settles_nothing(calling: Inside) -> None:
    for name in "abc":
        calling.write(f"turn_1/files/{name}.txt", name)
    await calling.sync()
    deep = orjson.loads("[" * 240 + "]" * 240)
    with pytest.raises(TooLarge):
        await calling.ask("call/end", {"tool_call_id": "tc_1", "result": {"deep": deep}})
    assert (await calling.ask("artifact/list", {}, role="editor"))["artifacts"] == []
    assert len(calling.workspace.pending) == 3


async def test_of_very_much_too_what_nobody_claims_is_numbered_last(calling: Inside) -> None:
    calling.write("turn_1/files/y.txt", "y")
    calling.write("turn_1/files/z.txt", "z")
    await calling.sync()
    await calling.ask("call/begin", {**BEGIN, "tool_call_id": "tc_2"})
    for name in "abc":
        calling.write(f"turn_1/files/{name}.txt", name)
    await calling.sync()
    await calling.ask("call/end", {"tool_call_id": "tc_2"})
    ended = await calling.ask("call/end", {"tool_call_id": "tc_1"})
    assert [(one["name"], one["sid"]) for one in ended["artifacts"]] == [("y.txt", 1), ("z.txt", 2)]
    unclaimed = [f"turn_1/files/{name}.txt" for name in "abc"]
    assert [said["path"] for said in ended["notices"]] == unclaimed
    rows = (await calling.ask("sources/list"))["rows"]
    assert [(row["sid"], row["physical_path"]) for row in rows[2:]] == [*zip((3, 4, 5), unclaimed, strict=True)]
