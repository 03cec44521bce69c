"""Contents: read as blocks, fetched in a program, brought back."""

from __future__ import annotations

import asyncio
import os
import threading
from typing import Any

import orjson
import pytest

from protocol.requests.contents import ReadParams
from sidecar.core.citations import extract
from sidecar.core.errors import NotPermitted, Stale
from sidecar.server.caller import Caller, Client, Peer
from sidecar.server.methods import contents
from sidecar.server.wire import encode_in_pieces
from tests.server.inside import Inside, Silence

PNG = b"\x89PNG\r\n\x1a\n" + bytes(16)
FILE = "fi:turn_1.files/a.md"


async def told_prompt(inside: Inside) -> None:
    await inside.ask("turn/begin", {"turn_id": "turn_1", "prompt": "make a report"})


async def test_a_status_comes_first_in_request_order(inside: Inside) -> None:
    await told_prompt(inside)
    inside.write("turn_1/files/a.md", "# hi")
    answer = await inside.ask("artifact/read", {"paths": ["ar:turn_1.user.prompt", "fi:turn_1.files/no.md", FILE]})
    assert [one["path"] for one in answer["status"]["paths"]] == [
        "ar:turn_1.user.prompt", "fi:turn_1.files/no.md", FILE,
    ]  # fmt: skip
    assert answer["status"]["missing"] == ["fi:turn_1.files/no.md"]
    assert answer["notices"][-1]["code"] == "read_paths_missing"


async def test_a_file_is_its_digest_and_its_content(inside: Inside) -> None:
    inside.write("turn_1/files/a.md", "# hi")
    digest, content = (await inside.ask("artifact/read", {"paths": [FILE]}))["blocks"]
    assert orjson.loads(digest["text"])["artifact_path"] == FILE
    assert (content["text"], content["mime"]) == ("# hi", "text/markdown")
    assert orjson.loads(content["meta"]["digest"]) == orjson.loads(digest["text"])


async def test_an_empty_file_is_empty_content(inside: Inside) -> None:
    inside.write("turn_1/files/a.md", "")
    _, content = (await inside.ask("artifact/read", {"paths": [FILE]}))["blocks"]
    assert content["text"] == ""


async def test_what_a_long_file_cites_is_found_off_the_loop(inside: Inside, monkeypatch: pytest.MonkeyPatch) -> None:
    readers: list[threading.Thread] = []

    def watched(text: str, mime: str, sids: Any) -> list[int]:
        readers.append(threading.current_thread())
        return extract(text, mime, sids)

    monkeypatch.setattr("sidecar.reading.extract", watched)
    await inside.begin("turn_1")
    inside.write("turn_1/files/a.json", '{"citations": [{"sids": [1%s]}]}' % (",1" * 50_000))
    await inside.sync()
    await inside.ask("artifact/read", {"paths": ["turn_1/files/a.json"]})
    assert (await inside.ask("artifact/fetch", {"path": "turn_1/files/a.json"}))["ret"]["sources_used"] == [1]
    assert readers
    assert threading.current_thread() not in readers


@pytest.mark.rule("answers.a-long-one-leaves-in-turns")
async def test_a_long_text_leaves_in_pieces_that_were_made_off_the_loop(inside: Inside) -> None:
    long = 'words "and" \u00e9 more\n' * 50_000
    inside.write("turn_1/files/long.txt", long)
    await inside.sync()
    params = ReadParams(paths=["turn_1/files/long.txt"], max_bytes=4_000_000)
    caller = Caller(Client(9, "exec", Peer(1, 0)), 1, "artifact/read", size=0, post=Silence())
    answer = await contents.read(inside.assembly.services, caller, params)
    pieces = encode_in_pieces(answer, "exec")
    assert isinstance(pieces, list)
    assert max(map(len, pieces)) < len(long) / 5
    assert orjson.loads(b"".join(pieces))["blocks"][1]["text"] == long


async def test_a_long_text_that_is_read_in_a_call_stands_whole_in_the_timeline(inside: Inside) -> None:
    long = '{"hosted_uri": "theirs", "sid": 1, "text": "%s"}' % ("word " * 50_000)
    await inside.begin("turn_1")
    inside.write("turn_1/files/long.txt", long)
    await inside.ask("call/begin", {"tool_call_id": "c1", "tool_id": "t", "params": {}})
    asked = {"paths": ["turn_1/files/long.txt"], "tool_call_id": "c1", "max_bytes": 4_000_000}
    answer = await inside.ask("artifact/read", asked)
    assert answer["blocks"][1]["text"] == long
    told = (await inside.ask("timeline/blocks", {"turn_id": "turn_1"}))["blocks"]
    assert long in [block.get("text") for block in told]


async def test_a_picture_is_base64_and_other_binary_is_its_digest_alone(inside: Inside) -> None:
    inside.write("turn_1/files/a.png", PNG)
    inside.write("turn_1/files/b.bin", b"\0\1")
    blocks = (await inside.ask("artifact/read", {"paths": ["turn_1/files/a.png", "turn_1/files/b.bin"]}))["blocks"]
    assert ["base64" in block for block in blocks] == [False, True, False]


async def test_lines_are_cut_out_and_named(inside: Inside) -> None:
    inside.write("turn_1/files/a.md", "".join(f"{n}\n" for n in range(1, 8)))
    items = [{"path": FILE, "line_start": 3, "line_count": 2}]
    answer = await inside.ask("artifact/read", {"items": items})
    assert answer["status"]["paths"][0]["lines"] == "3-4/7"
    assert (answer["blocks"][1]["text"], answer["blocks"][1]["meta"]["lines"]) == ("3\n4\n", "3-4/7")


async def test_what_is_cut_says_where_the_rest_is(inside: Inside) -> None:
    inside.write("turn_1/files/a.md", "line\n" * 100)
    _, content = (await inside.ask("artifact/read", {"paths": [FILE], "max_bytes": 50}))["blocks"]
    meta = content["meta"]
    assert (meta["truncated"], meta["size_bytes"], meta["physical_path"]) == (True, 500, "turn_1/files/a.md")
    assert meta["next_line"] == 11


async def test_stats_bring_nothing_back(inside: Inside) -> None:
    file = inside.write("turn_1/files/a.md", "# hi")
    await inside.sync()
    file.unlink()
    answer = await inside.ask("artifact/read", {"paths": [FILE], "stats_only": True})
    assert answer["blocks"] == []
    assert answer["status"]["paths"][0]["tokens"] == 1
    assert not file.exists()


async def test_reading_brings_an_absent_file_back(inside: Inside) -> None:
    file = inside.write("turn_1/files/a.md", "# hi")
    await inside.sync()
    file.unlink()
    _, content = (await inside.ask("artifact/read", {"paths": [FILE]}))["blocks"]
    assert (content["text"], file.read_text()) == ("# hi", "# hi")


@pytest.mark.parametrize("from_memory", [True, False])
async def test_a_short_file_that_stands_as_it_is_known_is_read_in_one_step(
    inside: Inside, monkeypatch: pytest.MonkeyPatch, from_memory: bool
) -> None:
    """And one that does not is looked at and read as it is by then."""
    await inside.begin()
    path, looker = "turn_1/files/a.txt", inside.assembly.looker
    inside.write(path, "one")
    await inside.sync()
    if not from_memory:
        monkeypatch.setattr(inside.assembly.outdir, "bytes_now", lambda *_: None)
    at_once = inside.assembly.outdir.bytes_now(path, inside.workspace.files[path]) is not None
    steps: list[str] = []
    for way in ("off_loop", "bring", "see", "read_long"):
        step = getattr(looker, way)
        monkeypatch.setattr(looker, way, lambda *args, step=step, way=way: (steps.append(way), step(*args))[1])

    async def read() -> tuple[str, int]:
        answer = await inside.ask("artifact/read", {"paths": [path]})
        return answer["blocks"][-1]["text"], len(inside.workspace.artifacts.get("fi:turn_1.files/a.txt").versions)

    assert (await read(), steps) == (("one", 1), [] if at_once else ["off_loop"])
    steps.clear()
    await inside.ask("artifact/read", {"items": [{"path": path, "line_start": 1, "line_count": 1}]})
    assert steps == ["off_loop"]  # to look for the lines of a part may take long
    (inside.out / path).unlink()
    inside.write(path, "two")
    assert await read() == ("two", 2)
    (inside.out / path).unlink()
    (inside.out / path).symlink_to(inside.write("elsewhere.txt", "secret"))
    answer = await inside.ask("artifact/read", {"paths": [path]})
    assert (answer["blocks"], answer["status"]["missing"]) == ([], [path])


@pytest.mark.parametrize("asked", ["files", "rows"])
async def test_others_have_their_turn_while_many_are_read(
    inside: Inside, monkeypatch: pytest.MonkeyPatch, asked: str
) -> None:
    await inside.begin()
    for number in range(40):
        inside.write(f"turn_1/files/{number}.txt", "x")
    await inside.sync()
    monkeypatch.setattr("sidecar.pacing.SECONDS_AT_ONCE", -1.0)
    turns = 0

    async def other() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    beside = asyncio.create_task(other())
    paths = [f"turn_1/files/{number}.txt" for number in range(40)] if asked == "files" else ["so:sources_pool[1-40]"]
    answer = await inside.ask("artifact/read", {"paths": paths})
    beside.cancel()
    assert len(answer["blocks"]) == 80
    assert turns >= 40


async def test_without_a_call_reading_changes_nothing(inside: Inside) -> None:
    await told_prompt(inside)
    inside.write("turn_1/files/a.md", "# hi")
    await inside.sync()
    revision = inside.workspace.revision
    await inside.ask("artifact/read", {"paths": [FILE, "ar:turn_1.user.prompt"]})
    assert inside.workspace.revision == revision


async def test_with_a_call_it_is_told_once_and_makes_no_version(inside: Inside) -> None:
    await told_prompt(inside)
    inside.write("turn_1/files/a.md", "# hi")
    first = await inside.ask("artifact/read", {"paths": [FILE], "tool_call_id": "tc_1"})
    again = await inside.ask("artifact/read", {"paths": [FILE], "tool_call_id": "tc_2"})
    assert len(first["blocks"]) == 2
    assert again["blocks"] == []
    assert again["status"]["paths"][0]["status"] == "exists_in_visible_context"
    assert len((await inside.ask("artifact/versions", {"path": FILE}))["versions"]) == 1
    assert len((await inside.ask("timeline/blocks", {"path": FILE}))["blocks"]) == 2


@pytest.mark.parametrize("role", ["renderer", "exec"])
async def test_a_call_is_not_theirs_to_name(inside: Inside, role: str) -> None:
    with pytest.raises(NotPermitted):
        await inside.ask("artifact/read", {"paths": [FILE], "tool_call_id": "tc_1"}, role=role)


async def test_a_web_row_reads_as_one_text(inside: Inside) -> None:
    await inside.ask("sources/merge", {"rows": [{"url": "https://e.com/a", "title": "A", "text": "words"}]})
    (block,) = (await inside.ask("artifact/read", {"paths": ["so:sources_pool[1]"]}))["blocks"]
    assert (block["path"], block["text"]) == ("so:sources_pool[1]", "[S:1] A\nhttps://e.com/a\nwords")


async def test_a_file_row_reads_as_its_file(inside: Inside) -> None:
    inside.write("turn_1/files/a.md", "# hi")
    await inside.sync()
    blocks = (await inside.ask("artifact/read", {"paths": ["so:sources_pool[1]"]}))["blocks"]
    assert [block["path"] for block in blocks] == [FILE, FILE]


async def test_rehost_tells_where_the_bytes_came_from(inside: Inside) -> None:
    await inside.begin()
    file = inside.write("turn_1/files/a.md", "# hi")
    block = {"type": "react.tool.result", "path": "fi:turn_1.files/b.md", "text": "from the timeline"}
    await inside.ask("timeline/append", {"blocks": [block]})
    await inside.sync()
    file.unlink()
    answer = await inside.ask("artifact/rehost", {"paths": [FILE, "fi:turn_1.files/b.md"]}, role="exec")
    again = await inside.ask("artifact/rehost", {"paths": [FILE]}, role="exec")
    assert [one["origin"] for one in answer["rehosted"] + again["rehosted"]] == ["kept", "inline", "on_disk"]
    assert (inside.out / "turn_1/files/b.md").read_text() == "from the timeline"


@pytest.mark.parametrize(
    ("path", "reason"),
    [("fi:turn_1.files/no", "unknown"), ("../x", "unsafe_path"), ("ar:turn_1.user.prompt", "bad_path"),
     ("turn_1/files/link", "unsafe_path"), ("fi:turn_1.files/bare.bin", "not_hosted"),
     ("fi:turn_1.files/lost.txt", "gone")],
)  # fmt: skip
async def test_rehost_tells_why_not(inside: Inside, path: str, reason: str) -> None:
    await inside.begin()
    lost = inside.write("turn_1/files/lost.txt", "lost")
    os.symlink("/etc/passwd", inside.out / "turn_1/files/link")
    bare = {"type": "react.tool.result", "path": "fi:turn_1.files/bare.bin", "mime": "application/zip"}
    await inside.ask("timeline/append", {"blocks": [bare]})
    await inside.sync()
    lost.unlink()
    for sha256 in inside.assembly.blobs.sizes():
        inside.assembly.blobs.evict(sha256)
    answer = await inside.ask("artifact/rehost", {"paths": [path]})
    assert answer["missing"] == [{"path": path, "reason": reason}]


async def test_unknown_bytes_are_never_overwritten(inside: Inside) -> None:
    inside.write("turn_1/files/a.md", "one")
    await inside.sync()
    file = inside.write("turn_1/files/a.md", "two, not looked at yet")
    (one,) = (await inside.ask("artifact/rehost", {"paths": [FILE]}))["rehosted"]
    assert (one["origin"], file.read_text()) == ("on_disk", "two, not looked at yet")
    assert len((await inside.ask("artifact/versions", {"path": FILE}))["versions"]) == 2


async def test_a_stale_copy_is_refreshed_to_the_latest(inside: Inside) -> None:
    await inside.begin()
    file = inside.write("turn_1/files/a.md", "one")
    await inside.sync()
    block = {"type": "react.tool.result", "path": FILE, "text": "two", "meta": {"tool_call_id": "tc_1"}}
    await inside.ask("timeline/append", {"blocks": [block]})
    (one,) = (await inside.ask("artifact/rehost", {"paths": [FILE]}))["rehosted"]
    assert (one["origin"], file.read_text()) == ("inline", "two")


async def test_while_a_call_is_open_files_of_the_turn_are_not_refreshed(inside: Inside) -> None:
    await inside.begin()
    file = inside.write("turn_1/files/a.md", "one")
    await inside.sync()
    block = {"type": "react.tool.result", "path": FILE, "text": "two", "meta": {"tool_call_id": "tc_1"}}
    await inside.ask("timeline/append", {"blocks": [block]})
    await inside.ask("call/begin", {"tool_call_id": "tc_2", "tool_id": "exec", "params": {}})
    await inside.ask("artifact/rehost", {"paths": [FILE]})
    assert file.read_text() == "one"


async def test_hosting_fields_are_cut_before_texts_are_joined_or_truncated(inside: Inside) -> None:
    await inside.begin()
    text = orjson.dumps({"artifact_path": "x" * 200, "hosted_uri": "s3://secret", "key": "KEY", "rn": "RN"}).decode()
    path = "tc:turn_1.tc_1.result"
    blocks = [{"type": "react.tool.result", "mime": "application/json", "path": path, "text": text}] * 2
    await inside.ask("timeline/append", {"blocks": blocks})
    fetched = await inside.ask("artifact/fetch", {"path": path}, role="exec")
    read = await inside.ask("artifact/read", {"paths": [path], "max_bytes": 260}, role="exec")
    assert "s3://secret" not in orjson.dumps([fetched, read]).decode()


async def test_an_answer_of_another_role_is_nobodys(inside: Inside) -> None:
    await inside.begin()
    asked = {"rows": [{"title": "a"}], "request_id": "r1"}
    await inside.ask("sources/merge", asked)
    with pytest.raises(Stale):
        await inside.ask("sources/merge", asked, role="renderer")


async def test_what_an_open_call_makes_is_not_read_by_people(inside: Inside) -> None:
    await inside.begin()
    await inside.ask("call/begin", {"tool_call_id": "tc_1", "tool_id": "exec", "params": {}})
    inside.write("turn_1/files/a.md", "half an idea")
    for method, params in (("artifact/fetch", {"path": FILE}), ("artifact/read", {"paths": [FILE]})):
        assert "half an idea" not in str(await inside.ask(method, params, role="editor"))
    found = await inside.ask("artifact/search", {"root": "", "content_regex": "idea"}, role="editor")
    assert found["hits"] == []
    assert (await inside.ask("artifact/fetch", {"path": FILE}, role="exec"))["ret"]["text"] == "half an idea"


async def test_an_answer_holds_only_so_much(inside: Inside, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sidecar.core.limits.READ_BYTES", 10)
    inside.write("turn_1/files/a.md", "0123456789")
    inside.write("turn_1/files/b.md", "more")
    answer = await inside.ask("artifact/read", {"paths": [FILE, "fi:turn_1.files/b.md"]})
    assert [block["meta"].get("truncated") for block in answer["blocks"]] == [None, None, True]


async def test_a_long_first_line_is_shown_in_part_and_reading_goes_on_behind_it(inside: Inside) -> None:
    inside.write("turn_1/files/a.md", "x" * 100 + "\nsecond\n")
    first = await inside.ask("artifact/read", {"paths": [FILE], "max_bytes": 10})
    line = first["blocks"][1]["meta"]["next_line"]
    items = [{"path": FILE, "line_start": line}]
    second = await inside.ask("artifact/read", {"items": items, "max_bytes": 10})
    assert (first["blocks"][1]["text"], second["blocks"][1]["text"]) == ("x" * 10, "second\n")


async def test_reading_what_is_internal_is_told_to_nobody_who_may_not_know_of_it(inside: Inside) -> None:
    await told_prompt(inside)
    await inside.ask("artifact/write", {"path": "s.md", "content": "a", "kind": "file", "visibility": "internal"})
    await inside.ask("artifact/hide", {"paths": ["turn_1/files/s.md"], "replacement": "w"})
    await inside.ask("call/begin", {"tool_call_id": "rd", "tool_id": "react.read", "params": {}})
    paths = ["turn_1/files/s.md", "fi:turn_1.files/none.md"]
    await inside.ask("artifact/read", {"paths": paths, "tool_call_id": "rd"})
    for role, is_told in (("runtime", True), ("editor", False)):
        blocks = orjson.dumps(await inside.ask("timeline/blocks", role=role))
        assert (b"s.md" in blocks, b"read_paths_missing" in blocks) == (is_told, is_told)


async def test_what_is_hidden_behind_a_newer_block_is_brought_back(inside: Inside) -> None:
    await told_prompt(inside)
    result = {"type": "react.tool.result", "path": "tc:turn_1.zz.result", "text": "the first"}
    await inside.ask("timeline/append", {"blocks": [result]})
    await inside.ask("artifact/hide", {"paths": [result["path"]], "replacement": "w"})
    await inside.ask("timeline/append", {"blocks": [{**result, "text": "the second"}]})
    await inside.ask("call/begin", {"tool_call_id": "rd", "tool_id": "react.read", "params": {}})
    answer = await inside.ask("artifact/read", {"paths": [result["path"]], "tool_call_id": "rd"})
    assert [block["text"] for block in answer["blocks"]] == ["the first", "the second"]
    assert "the first" in (await inside.ask("timeline/render", {"as": "text"}))["text"]


@pytest.mark.rule("roles.exec-never-sees-hosting-fields")
async def test_what_a_tool_was_asked_and_answered_is_without_what_we_gave_out(inside: Inside) -> None:
    await told_prompt(inside)
    given = {"rn": "ef:t:p:chatbot:x", "key": "cb/k"}
    await inside.ask("call/begin", {"tool_call_id": "c1", "tool_id": "share", "params": given})
    await inside.ask("call/end", {"tool_call_id": "c1", "result": given})
    for path in ("tc:turn_1.c1.call", "tc:turn_1.c1.result"):
        for role, left in (("runtime", (True, True)), ("renderer", (True, False)), ("exec", (False, False))):
            fetched = await inside.ask("artifact/fetch", {"path": path}, role=role)
            read = await inside.ask("artifact/read", {"paths": [path]}, role=role)
            for said in map(orjson.dumps, (fetched, read)):
                assert (b"ef:t" in said, b"cb/k" in said) == left
    blocks = orjson.dumps(await inside.ask("timeline/blocks", role="editor"))
    assert (b"ef:t" in blocks, b"cb/k" in blocks) == (True, False)
    await inside.ask("timeline/flush")
    written = (inside.out / "timeline.json").read_bytes()
    assert (b"ef:t" in written, b"cb/k" in written) == (False, False)


async def test_a_text_is_text_wherever_its_head_is_cut(inside: Inside) -> None:
    await inside.begin()
    for length in range(4093, 4097):
        inside.write(f"turn_1/files/{length}.md", "a" * length + "🎉" * 3)
    await inside.sync()
    for length in range(4093, 4097):
        answer = await inside.ask("artifact/read", {"paths": [f"turn_1/files/{length}.md"]})
        assert answer["blocks"][1]["text"] == "a" * length + "🎉" * 3
