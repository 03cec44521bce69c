"""Write, patch and hide as clients ask for them: what is answered, what is told, what stands on disk."""

from __future__ import annotations

import asyncio
import base64
import hashlib
from typing import Any

import orjson
import pytest

from sidecar.core.errors import BadPath, NotFound, NotPermitted, Refusal, Stale, TooLarge, UnknownTurn, UnsafePath
from tests.conformance.generated import REFUSED
from tests.server.inside import Inside

PNG = b"\x89PNG\r\n\x1a\n" + bytes(16)
FILE = "fi:turn_9.files/a.md"
ON_DISK = "turn_9/files/a.md"


def sha(content: str | bytes) -> str:
    return hashlib.sha256(content.encode() if isinstance(content, str) else content).hexdigest()


async def write(inside: Inside, path: str = ON_DISK, content: str = "one", **more: Any) -> dict[str, Any]:
    role = more.pop("role", "runtime")
    asked = {"path": path, "kind": "file", **({} if "base64" in more else {"content": content}), **more}
    answer: dict[str, Any] = await inside.ask("artifact/write", asked, role=role)
    return answer


async def patch(inside: Inside, path: str, text: str, **more: Any) -> dict[str, Any]:
    role = more.pop("role", "runtime")
    answer: dict[str, Any] = await inside.ask("artifact/patch", {"path": path, "patch": text, **more}, role=role)
    return answer


async def hide(inside: Inside, *paths: str, replacement: str = "an old draft", **more: Any) -> list[dict[str, Any]]:
    answer = await inside.ask("artifact/hide", {"paths": list(paths), "replacement": replacement, **more})
    return list(answer["results"])


async def resolved(inside: Inside, path: str = FILE, role: str = "runtime") -> dict[str, Any]:
    (one,) = (await inside.ask("artifact/resolve", {"paths": [path]}, role=role))["results"]
    return dict(one.get("artifact") or {})


async def blocks(inside: Inside, role: str = "runtime", **asked: Any) -> list[dict[str, Any]]:
    return list((await inside.ask("timeline/blocks", asked, role=role))["blocks"])


async def told_since(inside: Inside, since: int) -> list[dict[str, Any]]:
    return await blocks(inside, since=since)


def shape(told: list[dict[str, Any]]) -> list[tuple[str, str]]:
    """Types and paths, the call's own id cut out."""
    return [(block["type"], block["path"].partition(":")[0] + ":" + block["path"].rpartition(".")[2]) for block in told]


async def text_of(inside: Inside, path: str = FILE) -> str:
    fetched = await inside.ask("artifact/fetch", {"path": path})
    return str(fetched["ret"]["text"])


def hidden_names(inside: Inside) -> list[str]:
    return [path.name for path in inside.out.rglob(".*")]


# Writing ------------------------------------------------------------------------------------------------------------


async def test_a_file_is_written_registered_and_told(inside: Inside) -> None:
    await inside.begin("turn_9")
    answer = await write(inside, content="# hi [[S:2]]", description="a greeting")
    assert (inside.out / ON_DISK).read_text() == "# hi [[S:2]]"
    artifact = answer["artifact"]
    assert (artifact["kind"], artifact["visibility"], artifact["origin"], artifact["on_disk"]) == (
        "file", "external", "both", True,
    )  # fmt: skip
    assert (artifact["sid"], artifact["sha256"], artifact["mime"]) == (1, sha("# hi [[S:2]]"), "text/markdown")
    assert (artifact["description"], artifact["sources_used"], artifact["edited"]) == ("a greeting", [2], False)


@pytest.mark.parametrize(
    "more",
    [
        {},
        {"kind": "display"},
        {"channel": "internal"},
        {"visibility": "internal", "channel": "canvas"},
        {"base64": base64.b64encode(PNG).decode(), "path": "turn_9/files/a.png"},
        {"sources_used": [3, 1, 3], "description": "words", "mime": "text/x-own"},
    ],
)
async def test_the_answer_is_the_artifact_as_it_stands_afterwards(inside: Inside, more: dict[str, Any]) -> None:
    await inside.begin("turn_9")
    first = await write(inside, **{"content": "one", **more})
    assert first["artifact"] == await resolved(inside, first["artifact"]["artifact_path"])
    again = await write(inside, **{"content": "two", **more})
    assert again["artifact"] == await resolved(inside, first["artifact"]["artifact_path"])
    assert again["artifact"]["edited"]
    assert len((await inside.ask("artifact/versions", {"path": first["artifact"]["physical_path"]}))["versions"]) == 2


@pytest.mark.rule("write.blocks-come-in-order", "rewrite.a-real-rewrite-adds-a-notice")
async def test_call_notices_digest_and_content_come_in_this_order(inside: Inside) -> None:
    await inside.begin("turn_9")
    since = len(await blocks(inside))
    answer = await write(inside, "turn_1/files/a.md", "one")
    told = await told_since(inside, since)
    assert shape(told) == [
        ("react.tool.call", "tc:call"),
        ("react.notice", "tc:notice"),
        ("react.tool.result", "tc:result"),
        ("react.tool.result", "fi:md"),
    ]
    said = {"code": "protocol_violation.path_rewritten", "original": "turn_1/files/a.md", "normalized": ON_DISK}
    assert said.items() <= orjson.loads(told[1]["text"]).items()
    assert [said.items() <= one.items() for one in answer["notices"]] == [True]
    call = orjson.loads(told[0]["text"])
    assert (call["tool_id"], call["params"]["content"]) == ("react.write", "one")
    assert {block["meta"]["tool_call_id"] for block in told} == {call["tool_call_id"]}
    assert orjson.loads(told[3]["meta"]["digest"]) == orjson.loads(told[2]["text"])


async def test_a_long_content_is_shown_in_part_by_its_call(inside: Inside) -> None:
    await inside.begin("turn_9")
    since = len(await blocks(inside))
    await write(inside, content="x" * 500)
    call = orjson.loads((await told_since(inside, since))[0]["text"])
    assert call["params"]["content"] == "x" * 100 + f"... [see {FILE}]"


@pytest.mark.rule("rewrite.a-real-rewrite-adds-a-notice")
@pytest.mark.parametrize(
    ("path", "lands", "notices"),
    [
        ("a.md", ON_DISK, 0),
        ("./a.md", ON_DISK, 0),
        ("files/a.md", ON_DISK, 0),
        (ON_DISK, ON_DISK, 0),
        (FILE, ON_DISK, 0),
        ("demo/a.md", "turn_9/files/demo/a.md", 0),
        ("timeline.json", "turn_9/files/timeline.json", 0),
        ("turn_1/files/a.md", ON_DISK, 1),
        ("fi:turn_1.files/a.md", ON_DISK, 1),
        ("turn_1/attachments/a.md", ON_DISK, 1),
        ("turn_9/attachments/a.md", ON_DISK, 1),
    ],
)
async def test_every_target_lands_in_the_open_turn(inside: Inside, path: str, lands: str, notices: int) -> None:
    await inside.begin("turn_9")
    answer = await write(inside, path)
    assert (answer["artifact"]["physical_path"], len(answer["notices"])) == (lands, notices)
    assert (inside.out / lands).read_text() == "one"


@pytest.mark.rule("write.generic-and-state-paths-are-refused")
@pytest.mark.parametrize("method", ["artifact/write", "artifact/patch"])
@pytest.mark.parametrize(
    ("path", "refusal"),
    [
        ("fi:logs/docker.err.log", UnsafePath),
        ("fi:timeline.json", UnsafePath),
        ("fi:context.json", UnsafePath),
        ("../evil.md", UnsafePath),
        ("turn_9/files/../../evil.md", UnsafePath),
        ("/etc/x.md", UnsafePath),
        ("turn_9/files/", UnsafePath),
        ("turn_9/files/link.md", UnsafePath),
        ("turn_9/files/folder", UnsafePath),
        ("ar:turn_9.user.prompt", BadPath),
        ("fi:turn_9.code.tc_1", BadPath),
    ],
)
async def test_what_is_no_file_of_the_turn_is_no_target(
    inside: Inside, method: str, path: str, refusal: type[Refusal]
) -> None:
    await inside.begin("turn_9")
    inside.write("logs/docker.err.log", "boom")
    inside.write("turn_9/files/folder/a.md")
    (inside.out / "turn_9/files/link.md").symlink_to("/etc/hostname")
    await inside.ask("timeline/flush")
    before = {path: path.stat().st_mtime_ns for path in inside.out.rglob("*")}
    rest = {"content": "new", "kind": "file"} if method == "artifact/write" else {"patch": "new"}
    with pytest.raises(refusal):
        await inside.ask(method, {"path": path, **rest})
    assert {path: path.stat().st_mtime_ns for path in inside.out.rglob("*")} == before
    assert await resolved(inside, "turn_9/files/folder") == {}


@pytest.mark.rule("refusals.hold-through-every-method", "refusals.nothing-is-left-on-disk")
@pytest.mark.parametrize("method", ["artifact/write", "artifact/patch"])
async def test_what_is_no_legal_path_is_refused_and_leaves_nothing(inside: Inside, method: str) -> None:
    await inside.begin("turn_9")
    rest = {"content": "new", "kind": "file"} if method == "artifact/write" else {"patch": "new"}
    kinds: list[tuple[str, str]] = []
    for text, _ in REFUSED:
        with pytest.raises(Refusal) as refused:
            await inside.ask(method, {"path": text, **rest})
        kinds.append((text, refused.value.kind))
    assert kinds == list(REFUSED)
    assert [path for path in inside.out.rglob("*") if path.is_file()] == []
    hidden = await hide(inside, *(text for text, _ in REFUSED))
    assert [(one["path"], one["reason"]) for one in hidden] == list(REFUSED)


async def test_nothing_is_written_below_a_file(inside: Inside) -> None:
    await inside.begin("turn_9")
    inside.write(ON_DISK, "a file")
    with pytest.raises(UnsafePath):
        await write(inside, f"{ON_DISK}/b.md")
    assert (await patch(inside, f"{ON_DISK}/b.md", "new"))["error"]["code"] == "target_missing"


async def test_without_an_open_turn_there_is_nowhere_to_write(inside: Inside) -> None:
    with pytest.raises(UnknownTurn):
        await write(inside)
    with pytest.raises(UnknownTurn):
        await patch(inside, ON_DISK, "new")


@pytest.mark.rule("write.internal-is-never-hosted", "write.internal-channel-is-a-note")
async def test_an_internal_note_is_seen_by_the_agent_alone(inside: Inside) -> None:
    await inside.begin("turn_9")
    since = len(await blocks(inside))
    answer = await write(inside, content="a secret thought", channel="internal", visibility="external")
    artifact = answer["artifact"]
    assert (artifact["visibility"], artifact["channel"]) == ("internal", "internal")
    assert "sid" not in artifact
    note = (await told_since(inside, since))[-1]
    assert (note["type"], note["text"], note["meta"]["channel"]) == ("react.note", "a secret thought", "internal")
    assert [block for block in await blocks(inside, role="editor") if "secret" in str(block)] == []
    assert "a.md" not in str(await blocks(inside, role="editor"))
    assert inside.workspace.hosting == {}
    await inside.ask("timeline/flush")
    assert "secret" not in (inside.out / "timeline.json").read_text()
    assert await text_of(inside) == "a secret thought"


async def test_what_is_internal_stays_so_unless_it_is_said_otherwise(inside: Inside) -> None:
    await inside.begin("turn_9")
    await write(inside, visibility="internal")
    assert (await write(inside, content="two"))["artifact"]["visibility"] == "internal"
    assert (await patch(inside, ON_DISK, "three"))["artifact"]["visibility"] == "internal"
    assert (await write(inside, content="four", visibility="external"))["artifact"]["sid"] == 1


@pytest.mark.rule("write.display-keeps-its-text-in-the-timeline")
async def test_a_display_lives_in_the_timeline_until_it_is_needed(inside: Inside) -> None:
    await inside.begin("turn_9")
    long = "a line of the report\n" * 20_000
    answer = await write(inside, content=long, kind="display", channel="canvas")
    assert (answer["artifact"]["kind"], answer["artifact"]["on_disk"]) == ("display", False)
    assert not (inside.out / ON_DISK).exists()
    assert (await blocks(inside, path=FILE))[-1]["text"] == long
    (brought,) = (await inside.ask("artifact/rehost", {"paths": [FILE]}))["rehosted"]
    assert brought["origin"] == "inline"
    assert (inside.out / ON_DISK).read_text() == long
    assert (await resolved(inside))["kind"] == "display"


@pytest.mark.rule("write.file-and-display-at-one-path-are-one")
async def test_a_file_and_a_display_at_one_path_are_one_display(inside: Inside) -> None:
    await inside.begin("turn_9")
    await write(inside, content="shown", kind="display")
    inside.write(ON_DISK, "produced by a program")
    await inside.sync()
    seen = await resolved(inside)
    assert (seen["kind"], seen["version"], seen["origin"]) == ("display", 2, "seen")
    written = (await write(inside, content="written as a file"))["artifact"]
    assert (written["kind"], written["version"], written["on_disk"]) == ("display", 3, True)


@pytest.mark.rule("write.file-and-display-at-one-path-are-one")
async def test_a_display_at_the_path_of_a_file_is_written_there_too(inside: Inside) -> None:
    await inside.begin("turn_9")
    inside.write(ON_DISK, "produced by a program")
    answer = await write(inside, content="shown", kind="display")
    assert (answer["artifact"]["kind"], answer["artifact"]["version"]) == ("display", 2)
    assert (inside.out / ON_DISK).read_text() == "shown"


async def test_a_display_that_is_too_long_is_refused(inside: Inside, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sidecar.core.limits.DISPLAY_BYTES", 10)
    await inside.begin("turn_9")
    with pytest.raises(TooLarge):
        await write(inside, content="x" * 11, kind="display")
    await write(inside, content="x" * 10, kind="display")
    with pytest.raises(TooLarge):
        await patch(inside, ON_DISK, "x" * 11)
    assert (await resolved(inside))["size_bytes"] == 10


async def test_a_file_that_describes_itself_is_believed_in_nothing(inside: Inside) -> None:
    await inside.begin("turn_9")
    path = "fi:turn_9.files/a.json"
    said = {"artifact_path": path, "visibility": "external", "kind": "file", "sha256": "0" * 64, "description": "mine"}
    text = orjson.dumps(said).decode()
    for kind in ("display", "file"):
        artifact = (await write(inside, path, text, kind=kind, visibility="internal"))["artifact"]
        assert (artifact["visibility"], artifact["sha256"]) == ("internal", sha(text))
        assert "description" not in artifact
        assert artifact == await resolved(inside, path)


@pytest.mark.rule("write.exec-makes-files-only")
async def test_what_a_program_makes_is_an_external_file_unless_said_otherwise(inside: Inside) -> None:
    await inside.begin("turn_9")
    await begin_call(inside)
    inside.write(ON_DISK, "made")
    inside.write("turn_9/files/b.md", "made, too")
    expect = [{"path": "b.md", "visibility": "internal"}]
    made = (await inside.ask("call/end", {"tool_call_id": "tc_1", "expect": expect}))["artifacts"]
    assert [(one["kind"], one["visibility"]) for one in made] == [("file", "external"), ("file", "internal")]


@pytest.mark.parametrize(
    ("path", "content", "held"),
    [
        ("turn_9/files/a.png", PNG, "base64"),
        ("turn_9/files/a.bin", b"\0\1\2", None),
        ("turn_9/files/a.txt", "tëxt".encode(), "text"),
        ("turn_9/files/a.txt", b"", "text"),
        ("turn_9/files/big.txt", b"x" * (256 * 1024 + 1), None),
        ("turn_9/files/big.png", PNG + bytes(4 * 1024 * 1024), None),
    ],
)
async def test_a_content_block_carries_what_blocks_carry(
    inside: Inside, path: str, content: bytes, held: str | None
) -> None:
    await inside.begin("turn_9")
    answer = await write(inside, path, base64=base64.b64encode(content).decode())
    (block,) = await blocks(inside, path=answer["artifact"]["artifact_path"])
    assert [key for key in ("text", "base64") if key in block] == ([held] if held else [])
    assert (inside.out / path).read_bytes() == content
    assert answer["artifact"]["sha256"] == sha(content)


@pytest.mark.parametrize("packed", ["no base64!", "QUJ\u00e4", "\u2028", "QQ"])
async def test_base64_that_does_not_decode_is_refused(inside: Inside, packed: str) -> None:
    await inside.begin("turn_9")
    with pytest.raises(BadPath):
        await write(inside, base64=packed)


@pytest.mark.parametrize(
    ("path", "content", "used"),
    [
        ("a.md", "A [[S:2]] B [[S:1]]", [1, 2]),
        ("a.json", '{"citations": [{"sids": [3]}]}', [3]),
        ("a.html", '<sup class="cite" data-sids="1,3">x</sup>', [1, 3]),
        ("a.md", "none", []),
    ],
)
async def test_the_sources_used_are_those_cited(inside: Inside, path: str, content: str, used: list[int]) -> None:
    await inside.begin("turn_9")
    assert (await write(inside, path, content))["artifact"]["sources_used"] == used
    assert (await write(inside, path, content, sources_used=[9, 7]))["artifact"]["sources_used"] == [7, 9]


@pytest.mark.rule("write.expected-sha256-guards")
async def test_another_state_than_expected_is_stale_and_nothing_is_written(inside: Inside) -> None:
    await inside.begin("turn_9")
    with pytest.raises(Stale) as absent:
        await write(inside, expected_sha256=sha("one"))
    assert (absent.value.expected, absent.value.actual) == (sha("one"), "")
    await write(inside, expected_sha256="")
    with pytest.raises(Stale) as there:
        await write(inside, content="two", expected_sha256="")
    assert there.value.actual == sha("one")
    inside.write(ON_DISK, "a program's own")
    since = len(await blocks(inside))
    with pytest.raises(Stale) as changed:
        await write(inside, content="two", expected_sha256=sha("one"))
    assert (changed.value.expected, changed.value.actual) == (sha("one"), sha("a program's own"))
    assert (inside.out / ON_DISK).read_text() == "a program's own"
    assert await told_since(inside, since) == []
    await write(inside, content="two", expected_sha256=sha("a program's own"))
    assert (inside.out / ON_DISK).read_text() == "two"


async def test_unknown_bytes_become_a_version_before_they_are_replaced(inside: Inside) -> None:
    await inside.begin("turn_9")
    inside.write(ON_DISK, "nobody has looked at this")
    await write(inside, content="two")
    versions = (await inside.ask("artifact/versions", {"path": FILE}))["versions"]
    assert [one["sha256"] for one in versions] == [sha("nobody has looked at this"), sha("two")]
    assert inside.assembly.blobs.has(sha("nobody has looked at this"))


async def test_a_file_that_somebody_writes_to_is_not_replaced(inside: Inside, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sidecar.core.limits.STILL_OPEN_WAIT", 0.1)
    await inside.begin("turn_9")
    with inside.write(ON_DISK, "half").open("a") as writing:
        with pytest.raises(NotPermitted, match="writes to this file"):
            await write(inside)
        writing.write(" and whole")
    assert (inside.out / ON_DISK).read_text() == "half and whole"
    await write(inside)
    assert hidden_names(inside) == []


async def test_two_writes_to_one_path_take_turns(inside: Inside) -> None:
    await inside.begin("turn_9")
    answers = await asyncio.gather(*(write(inside, content=f"text {n}") for n in range(20)))
    assert sorted(answer["artifact"]["version"] for answer in answers) == list(range(1, 21))
    last = max(answers, key=lambda answer: answer["artifact"]["version"])["artifact"]
    assert sha((inside.out / ON_DISK).read_bytes()) == last["sha256"]
    assert last == await resolved(inside)
    assert hidden_names(inside) == []


async def test_only_one_of_many_that_expect_the_same_wins(inside: Inside) -> None:
    await inside.begin("turn_9")
    await write(inside)
    asked = [write(inside, content=f"text {n}", expected_sha256=sha("one")) for n in range(8)]
    answers = await asyncio.gather(*asked, return_exceptions=True)
    assert sorted(type(answer).__name__ for answer in answers) == ["Stale"] * 7 + ["dict"]


async def test_the_same_request_is_answered_again_and_done_once(inside: Inside) -> None:
    await inside.begin("turn_9")
    asked = {"path": "a.md", "content": "one", "kind": "file", "request_id": "r1"}
    first, second = await asyncio.gather(*(inside.ask("artifact/write", asked) for _ in range(2)))
    assert first == second == await inside.ask("artifact/write", asked)
    await inside.ask("turn/begin", {"turn_id": "turn_10"})
    assert await inside.ask("artifact/write", asked) == first
    with pytest.raises(Stale):
        await inside.ask("artifact/write", {**asked, "content": "two"})
    assert len((await inside.ask("artifact/versions", {"path": FILE}))["versions"]) == 1


# In which call ------------------------------------------------------------------------------------------------------


async def begin_call(inside: Inside, call_id: str = "tc_1") -> None:
    await inside.ask("call/begin", {"tool_call_id": call_id, "tool_id": "exec", "params": {}})


async def test_the_one_open_call_is_the_one_it_is_told_in(inside: Inside) -> None:
    await inside.begin("turn_9")
    await begin_call(inside)
    since = len(await blocks(inside))
    artifact = (await write(inside))["artifact"]
    assert (artifact["tool_call_id"], artifact["tool_id"], artifact["visibility"]) == ("tc_1", "exec", "external")
    assert artifact["sid"] == 1
    assert shape(await told_since(inside, since)) == [
        ("react.tool.result", "tc:result"),
        ("react.tool.result", "fi:md"),
    ]
    ended = await inside.ask("call/end", {"tool_call_id": "tc_1"})
    assert ended["artifacts"] == []


async def test_of_several_open_calls_the_one_that_is_named(inside: Inside) -> None:
    await inside.begin("turn_9")
    await begin_call(inside, "tc_1")
    await begin_call(inside, "tc_2")
    assert (await write(inside, tool_call_id="tc_1"))["artifact"]["tool_call_id"] == "tc_1"
    own = (await write(inside, content="two"))["artifact"]
    assert own["tool_call_id"].startswith("write_")
    assert own["tool_id"] == "react.write"


async def test_a_call_writes_twice_and_both_are_versions(inside: Inside) -> None:
    await inside.begin("turn_9")
    await begin_call(inside)
    await write(inside, tool_call_id="tc_1")
    again = await write(inside, content="two", tool_call_id="tc_1")
    assert again["artifact"]["version"] == 2
    assert again["artifact"] == await resolved(inside)
    assert await text_of(inside) == "two"


@pytest.mark.parametrize(("call_id", "refusal"), [("tc_none", NotFound), ("tc_ended", NotPermitted)])
async def test_a_call_that_is_not_open_is_refused(inside: Inside, call_id: str, refusal: type[Refusal]) -> None:
    await inside.begin("turn_9")
    await begin_call(inside, "tc_ended")
    await inside.ask("call/end", {"tool_call_id": "tc_ended"})
    for asked in (write(inside, tool_call_id=call_id), hide(inside, FILE, tool_call_id=call_id)):
        with pytest.raises(refusal):
            await asked
    assert not (inside.out / ON_DISK).exists()
    assert hidden_names(inside) == []


async def test_a_call_that_was_told_of_in_a_block_may_be_named(inside: Inside) -> None:
    await inside.begin("turn_9")
    text = orjson.dumps({"tool_id": "react.write", "tool_call_id": "tc_told", "params": {}}).decode()
    block = {"type": "react.tool.call", "mime": "application/json", "path": "tc:turn_9.tc_told.call", "text": text}
    await inside.ask("timeline/append", {"blocks": [block]})
    assert (await write(inside, tool_call_id="tc_told"))["artifact"]["tool_id"] == "react.write"


async def test_a_renderer_writes_and_names_no_call(inside: Inside) -> None:
    await inside.begin("turn_9")
    await begin_call(inside)
    assert (await write(inside, role="renderer"))["artifact"]["tool_call_id"] == "tc_1"
    for asked in (write, patch):
        with pytest.raises(NotPermitted):
            await asked(inside, ON_DISK, "two", tool_call_id="tc_1", role="renderer")


async def test_what_an_open_call_made_stays_its_own_when_it_is_patched(inside: Inside) -> None:
    await inside.begin("turn_9")
    await begin_call(inside)
    inside.write(ON_DISK, "made by a program")
    answer = await patch(inside, ON_DISK, "patched")
    assert (answer["artifact"]["visibility"], "sid" in answer["artifact"]) == ("pending", False)
    assert "patched" not in str(await blocks(inside, role="editor"))
    ended = await inside.ask(
        "call/end", {"tool_call_id": "tc_1", "expect": [{"path": ON_DISK, "visibility": "internal"}]}
    )
    assert [one["visibility"] for one in ended["artifacts"]] == ["internal"]
    assert "patched" not in str(await blocks(inside, role="editor"))


# Patching -----------------------------------------------------------------------------------------------------------


@pytest.mark.rule("patch.diff-or-whole-replacement")
@pytest.mark.parametrize(
    ("text", "after"),
    [
        ("@@ -1,2 +1,2 @@\n one\n-two\n+zwei\n", "one\nzwei\n"),
        ("--- a/a.md\n+++ b/a.md\n@@ -2 +2 @@\n-two\n+zwei\n", "one\nzwei\n"),
        ("---\ntitle: x\n---\n# Hi\n", "---\ntitle: x\n---\n# Hi\n"),
        ("all new\n", "all new\n"),
    ],
)
async def test_a_diff_is_applied_and_all_else_replaces(inside: Inside, text: str, after: str) -> None:
    await inside.begin("turn_9")
    await write(inside, content="one\ntwo\n")
    answer = await patch(inside, ON_DISK, text)
    assert (answer["ok"], answer["notices"]) == (True, [])
    assert (inside.out / ON_DISK).read_text() == after
    assert answer["artifact"] == await resolved(inside)


@pytest.mark.rule("patch.the-timeline-keeps-the-patched-text")
async def test_the_timeline_keeps_the_patched_text_and_the_diff_is_the_result(inside: Inside) -> None:
    await inside.begin("turn_9")
    await write(inside, content="one\ntwo\n")
    since = len(await blocks(inside))
    diff = "@@ -1,2 +1,2 @@\n one\n-two\n+zwei\n"
    answer = await patch(inside, ON_DISK, diff)
    told = await told_since(inside, since)
    assert shape(told) == [
        ("react.tool.call", "tc:call"),
        ("react.tool.result", "tc:result"),
        ("react.tool.result", "fi:md"),
        ("react.tool.result", "tc:result"),
    ]
    assert told[2]["text"] == "one\nzwei\n"
    assert orjson.loads(told[1]["text"])["sha256"] == sha("one\nzwei\n") == answer["artifact"]["sha256"]
    assert orjson.loads(told[3]["text"]) == {"ok": True, "path": ON_DISK, "patch": diff}
    assert await text_of(inside) == "one\nzwei\n"
    (inside.out / ON_DISK).unlink()
    await inside.ask("artifact/rehost", {"paths": [FILE]})
    assert (inside.out / ON_DISK).read_text() == "one\nzwei\n"


@pytest.mark.rule("patch.historical-targets-are-copied-first")
@pytest.mark.parametrize(
    ("path", "source"),
    [
        ("turn_1/files/a.md", "turn_1/files/a.md"),
        ("fi:turn_1.files/a.md", "turn_1/files/a.md"),
        ("turn_1/attachments/a.md", "turn_1/attachments/a.md"),
        ("fi:turn_1.user.attachments/a.md", "turn_1/attachments/a.md"),
        ("fi:turn_9.user.attachments/a.md", "turn_9/attachments/a.md"),
    ],
)
@pytest.mark.parametrize("on_disk", [True, False])
async def test_a_target_elsewhere_is_copied_first(inside: Inside, path: str, source: str, *, on_disk: bool) -> None:
    inside.write(source, "old\n")
    await inside.sync()
    await inside.begin("turn_9")
    if not on_disk:
        (inside.out / source).unlink()
    answer = await patch(inside, path, "@@ -1 +1 @@\n-old\n+new\n", expected_sha256=sha("old\n"))
    assert answer["ok"]
    assert answer["artifact"]["artifact_path"] == FILE
    assert [one["normalized"] for one in answer["notices"]] == [ON_DISK]
    assert (inside.out / ON_DISK).read_text() == "new\n"
    assert (inside.out / source).read_text() == "old\n"


async def test_what_was_copied_once_is_patched_where_it_is(inside: Inside) -> None:
    inside.write("turn_1/files/a.md", "one\ntwo\n")
    await inside.begin("turn_9")
    await patch(inside, "turn_1/files/a.md", "@@ -1 +1 @@\n-one\n+eins\n")
    answer = await patch(inside, "turn_1/files/a.md", "@@ -2 +2 @@\n-two\n+zwei\n")
    assert answer["artifact"]["version"] == 2
    assert (inside.out / ON_DISK).read_text() == "eins\nzwei\n"


async def test_a_copy_of_what_is_internal_is_internal(inside: Inside) -> None:
    await inside.begin("turn_1")
    await write(inside, "turn_1/files/a.md", "a secret\n", channel="internal")
    await inside.begin("turn_9")
    since = len(await blocks(inside))
    answer = await patch(inside, "turn_1/files/a.md", "@@ -1 +1 @@\n-a secret\n+another secret\n")
    assert (answer["artifact"]["visibility"], answer["artifact"]["channel"]) == ("internal", "internal")
    failed = await patch(inside, "turn_9/files/a.md", "@@ -1 +1 @@\n-no secret\n+x\n")
    assert failed["error"]["actual"]
    assert "secret" not in str([block for block in await told_since(inside, since) if block["path"].startswith("tc:")])
    assert "secret" not in str(await blocks(inside, role="editor"))


@pytest.mark.rule("patch.all-hunks-or-none", "patch.mismatches-say-what-was-expected")
async def test_a_hunk_that_does_not_fit_changes_nothing_and_says_why(inside: Inside) -> None:
    inside.write("turn_1/files/a.md", "".join(f"line {n}\n" for n in range(1, 21)))
    await inside.begin("turn_9")
    since = len(await blocks(inside))
    two = "@@ -1 +1 @@\n-line 1\n+eins\n@@ -9,3 +9,3 @@\n line 9\n-line ten\n+zehn\n line 11\n"
    answer = await patch(inside, "turn_1/files/a.md", two)
    assert answer["ok"] is False
    error = answer["error"]
    assert (error["code"], error["hunk"], error["path"]) == ("hunk_mismatch", 2, "turn_1/files/a.md")
    assert "line ten" in error["expected"]
    assert "line 10" in error["actual"]
    suggested = error["suggested_read"]
    assert suggested["path"] == "fi:turn_1.files/a.md"
    read = await inside.ask("artifact/read", {"items": [suggested]})
    assert "line 10\n" in read["blocks"][-1]["text"]
    assert not (inside.out / ON_DISK).exists()
    assert await resolved(inside) == {}
    told = await told_since(inside, since)
    assert shape(told) == [
        ("react.tool.call", "tc:call"),
        ("react.notice", "tc:notice"),
        ("react.tool.result", "tc:result"),
    ]
    assert orjson.loads(told[-1]["text"]) == {"ok": False, "error": error}


@pytest.mark.rule("patch.model-made-diffs-are-repaired")
async def test_a_diff_of_a_model_is_repaired(inside: Inside) -> None:
    await inside.begin("turn_9")
    await write(inside, content="one\ntwo\nthree\n")
    answer = await patch(inside, ON_DISK, "```diff\n@@ -11,8 +11,13 @@\n one\n-two\n+zwei\n three\n```\n")
    assert answer["ok"], answer
    assert (inside.out / ON_DISK).read_text() == "one\nzwei\nthree\n"


@pytest.mark.rule("patch.line-number-prefixes-are-refused")
async def test_a_text_with_line_numbers_is_refused(inside: Inside) -> None:
    await inside.begin("turn_9")
    await write(inside, content="alpha\nbeta\n")
    answer = await patch(inside, ON_DISK, "     1\talpha\n     2\tbeta edited\n")
    assert answer["error"]["code"] == "line_numbers_in_patch"
    assert (inside.out / ON_DISK).read_text() == "alpha\nbeta\n"


@pytest.mark.parametrize(
    ("path", "code"), [("turn_9/files/none.md", "target_missing"), ("turn_9/files/a.bin", "target_binary"),
                       ("turn_1/files/none.md", "target_missing"), ("turn_9/files/gone.md", "target_missing")]
)  # fmt: skip
async def test_what_cannot_be_patched_is_said(inside: Inside, path: str, code: str) -> None:
    await inside.begin("turn_9")
    await write(inside, "a.bin", base64="AAEC")
    gone = inside.write("turn_9/files/gone.md", "x" * 300_000)
    await inside.sync()
    gone.unlink()
    inside.assembly.blobs.evict(sha("x" * 300_000))
    answer = await patch(inside, path, "new text")
    assert (answer["ok"], answer["error"]["code"]) == (False, code)
    assert not (inside.out / "turn_9/files/none.md").exists()


async def test_a_file_that_is_too_large_to_patch_is_refused(inside: Inside, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sidecar.core.limits.PATCHED_BYTES", 10)
    await inside.begin("turn_9")
    inside.write(ON_DISK, "x" * 11)
    with pytest.raises(TooLarge):
        await patch(inside, ON_DISK, "new")


async def test_a_patch_expects_what_it_is_a_patch_of(inside: Inside) -> None:
    inside.write("turn_1/files/a.md", "old")
    await inside.begin("turn_9")
    for expected, actual in [(sha("other"), sha("old")), ("", sha("old"))]:
        with pytest.raises(Stale) as stale:
            await patch(inside, "turn_1/files/a.md", "new", expected_sha256=expected)
        assert stale.value.actual == actual
    with pytest.raises(Stale) as absent:
        await patch(inside, "none.md", "new", expected_sha256=sha("old"))
    assert absent.value.actual == ""
    assert not (inside.out / ON_DISK).exists()


async def test_a_display_is_patched_in_the_timeline_and_materialised(inside: Inside) -> None:
    await inside.begin("turn_9")
    await write(inside, content="one\n", kind="display", channel="canvas", description="a list")
    answer = await patch(inside, ON_DISK, "@@ -1 +1 @@\n-one\n+eins\n")
    artifact = answer["artifact"]
    assert (artifact["kind"], artifact["channel"], artifact["description"]) == ("display", "canvas", "a list")
    assert (inside.out / ON_DISK).read_text() == "eins\n"
    assert (await blocks(inside, path=FILE))[-1]["text"] == "eins\n"


async def test_a_patch_that_fails_makes_no_file_of_a_display(inside: Inside) -> None:
    await inside.begin("turn_9")
    await write(inside, content="one\n", kind="display")
    assert (await patch(inside, ON_DISK, "@@ -1 +1 @@\n-two\n+x\n"))["ok"] is False
    assert not (inside.out / ON_DISK).exists()


async def test_patches_of_one_file_build_on_each_other(inside: Inside) -> None:
    await inside.begin("turn_9")
    await write(inside, content="".join(f"line {n}\n" for n in range(10)))
    diffs = [f"@@ -{n + 1} +{n + 1} @@\n-line {n}\n+LINE {n}\n" for n in range(10)]
    answers = await asyncio.gather(*(patch(inside, ON_DISK, diff) for diff in diffs))
    assert all(answer["ok"] for answer in answers)
    assert (inside.out / ON_DISK).read_text() == "".join(f"LINE {n}\n" for n in range(10))


async def test_a_renderer_patches_nothing_that_it_does_not_see(inside: Inside) -> None:
    await inside.begin("turn_9")
    await begin_call(inside)
    inside.write(ON_DISK, "half an idea\n")
    answer = await patch(inside, ON_DISK, "@@ -1 +1 @@\n-x\n+y\n", role="renderer")
    assert answer["error"]["code"] == "target_missing"


async def test_a_patch_is_answered_again_and_done_once(inside: Inside) -> None:
    await inside.begin("turn_9")
    await write(inside, content="one\n")
    asked = {"path": ON_DISK, "patch": "@@ -1 +1,2 @@\n one\n+two\n", "request_id": "r1"}
    first = await inside.ask("artifact/patch", asked)
    assert await inside.ask("artifact/patch", asked) == first
    assert (inside.out / ON_DISK).read_text() == "one\ntwo\n"
    fails = {"path": ON_DISK, "patch": "@@ -1 +1 @@\n-none\n+x\n", "request_id": "r2"}
    assert (await inside.ask("artifact/patch", fails)) == (await inside.ask("artifact/patch", fails))


# Hiding -------------------------------------------------------------------------------------------------------------


@pytest.mark.rule("hide.one-replacement-per-path", "blocks.hidden-is-written-in-meta")
async def test_every_block_at_a_path_is_hidden_behind_one_replacement(inside: Inside) -> None:
    await inside.begin("turn_9")
    for text in ("one", "two", "three"):
        await write(inside, content=f"{'a long beginning, ' * 8}{text}")
    await write(inside, "b.png", base64=base64.b64encode(PNG).decode())
    first, second = await hide(inside, FILE, "turn_9/files/b.png", replacement="old drafts.")
    assert (first["status"], first["blocks_hidden"], second["blocks_hidden"]) == ("ok", 3, 1)
    for path, count in ((FILE, 3), ("fi:turn_9.files/b.png", 1)):
        told = await blocks(inside, path=path)
        assert [block["meta"]["hidden"] for block in told] == [True] * count
        words = f"HIDDEN — old drafts. Retrieve with react.read({path})"
        assert {block["meta"]["replacement_text"] for block in told} == {words}
        assert not any("hidden" in block or "replacement_text" in block for block in told)
    rendered = await inside.ask("timeline/render", {"as": "text"})
    assert rendered["text"].count("HIDDEN — old drafts.") == 2
    assert "three" not in rendered["text"]
    assert base64.b64encode(PNG).decode() not in rendered["text"]
    assert (await resolved(inside))["hidden"]
    assert (await text_of(inside)).endswith("three")


async def test_what_is_saved_is_counted_in_tokens(inside: Inside) -> None:
    await inside.begin("turn_9")
    await write(inside, content="x" * 4000)
    await write(inside, "b.md", "x")
    long, short = await hide(inside, FILE, "turn_9/files/b.md", replacement="gone")
    words = len(f"HIDDEN — gone. Retrieve with react.read({FILE})".encode())
    assert long["tokens_hidden"] == 1000 - -(-words // 4)
    assert short["tokens_hidden"] < 0


@pytest.mark.rule("hide.says-ok-not-found-or-too-old")
async def test_each_path_is_answered_for_itself(inside: Inside) -> None:
    await inside.begin("turn_8")
    await write(inside, "old.md", "an old one")
    await write(inside, "long.md", "x" * 9000)
    await inside.begin("turn_9")
    await write(inside)
    results = await hide(
        inside, "fi:turn_8.files/old.md", "turn_8/files/long.md", FILE, FILE, "fi:turn_9.files/none.md", "../x", "xx:y"
    )
    assert [(one["status"], one["blocks_hidden"]) for one in results] == [
        ("too_old", 0), ("ok", 1), ("ok", 1), ("ok", 0), ("not_found", 0), ("not_found", 0), ("not_found", 0),
    ]  # fmt: skip
    assert [one.get("reason") for one in results] == [None] * 5 + ["unsafe_path", "bad_path"]
    assert [one["path"] for one in results][:2] == ["fi:turn_8.files/old.md", "turn_8/files/long.md"]
    again = await hide(inside, FILE)
    assert [(one["status"], one["blocks_hidden"], one["tokens_hidden"]) for one in again] == [("ok", 0, 0)]


async def test_hiding_is_told_in_a_call_and_answered_again(inside: Inside) -> None:
    await inside.begin("turn_9")
    await write(inside)
    since = len(await blocks(inside))
    asked = {"paths": [FILE], "replacement": "old", "request_id": "r1"}
    first, second = await asyncio.gather(*(inside.ask("artifact/hide", asked) for _ in range(2)))
    assert first == second
    told = await told_since(inside, since)
    assert shape(told) == [("react.tool.call", "tc:call"), ("react.tool.result", "tc:result")]
    assert orjson.loads(told[0]["text"])["tool_id"] == "react.hide"
    assert orjson.loads(told[1]["text"]) == first


async def test_between_turns_things_are_hidden_without_a_word(inside: Inside) -> None:
    await inside.begin("turn_9")
    await write(inside)
    await inside.ask("turn/end", {"turn_id": "turn_9"})
    since = len(await blocks(inside))
    assert [one["status"] for one in await hide(inside, FILE)] == ["ok"]
    assert await told_since(inside, since) == []


async def test_a_message_is_hidden_and_read_again_with_a_call(inside: Inside) -> None:
    await inside.ask("turn/begin", {"turn_id": "turn_9", "prompt": "make a report"})
    await write(inside)
    await hide(inside, "ar:turn_9.user.prompt", FILE)
    await inside.ask("artifact/read", {"paths": ["ar:turn_9.user.prompt", FILE]})
    assert (await blocks(inside, path=FILE))[0]["meta"]["hidden"]
    await begin_call(inside, "tc_r")
    read = await inside.ask("artifact/read", {"paths": ["ar:turn_9.user.prompt", FILE], "tool_call_id": "tc_r"})
    assert [one.get("status") for one in read["status"]["paths"]] == [None, None]
    for path in ("ar:turn_9.user.prompt", FILE):
        told = await blocks(inside, path=path)
        assert not [block for block in told if block["meta"].get("hidden") or "replacement_text" in block["meta"]]
    assert (await resolved(inside))["hidden"] is False


async def test_an_agents_thinking_is_not_shown_because_it_was_read(inside: Inside) -> None:
    await inside.begin("turn_9")
    path = "ar:turn_9.react.thinking.1"
    block = {"type": "react.thinking", "path": path, "text": "hm", "meta": {"hidden": True}}
    await inside.ask("timeline/append", {"blocks": [block]})
    await begin_call(inside, "tc_r")
    await inside.ask("artifact/read", {"paths": [path], "tool_call_id": "tc_r"})
    assert (await blocks(inside, path=path))[0]["meta"]["hidden"]
