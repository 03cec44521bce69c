"""Finding artifacts: by path, by property, by what stands in them."""

from __future__ import annotations

import os

import orjson
import pytest

from sidecar.core.errors import BadSelector, NotFound, UnsafePath
from tests.server.inside import Inside


def digest_and_content(path: str, text: str, call: str, **meta: object) -> list[dict[str, object]]:
    digest = {"artifact_path": f"fi:{path}", "mime": "text/markdown", "kind": "display", "visibility": "external"}
    result = {"type": "react.tool.result", "turn_id": "turn_1", "meta": {"tool_call_id": call, **meta}}
    return [
        {
            **result,
            "mime": "application/json",
            "path": f"tc:turn_1.{call}.result",
            "text": orjson.dumps(digest).decode(),
        },
        {**result, "mime": "text/markdown", "path": f"fi:{path}", "text": text},
    ]


async def resolve(inside: Inside, path: str, role: str = "runtime") -> dict[str, object]:
    (result,) = (await inside.ask("artifact/resolve", {"paths": [path]}, role=role))["results"]
    return result


@pytest.mark.parametrize(
    ("path", "reason"),
    [
        ("../x", "unsafe_path"),
        ("/etc/passwd", "unsafe_path"),
        ("fi:turn_1.files/../../x", "unsafe_path"),
        ("zz:x", "bad_path"),
        ("tc:turn_1.x", "bad_path"),
        ("so:sources_pool[1", "bad_path"),
        ("fi:turn_1.files/none.txt", "not_found"),
        ("ar:turn_1.user.prompt", "not_found"),
        ("so:sources_pool[7]", "not_found"),
    ],
)
async def test_a_path_that_leads_nowhere_says_why(inside: Inside, path: str, reason: str) -> None:
    assert (await resolve(inside, path))["reason"] == reason


async def test_one_bad_path_fails_none_of_the_others(inside: Inside) -> None:
    inside.write("turn_1/files/a.txt")
    await inside.sync()
    answer = await inside.ask("artifact/resolve", {"paths": ["../x", "turn_1/files/a.txt", "zz:1"]})
    assert [one["found"] for one in answer["results"]] == [False, True, False]


async def test_a_file_written_just_now_resolves_without_a_sync(inside: Inside) -> None:
    inside.write("turn_1/files/a.txt")
    assert (await resolve(inside, "turn_1/files/a.txt"))["artifact"]["sid"] == 1


async def test_a_generic_file_is_readable_and_no_artifact(inside: Inside) -> None:
    inside.write("logs/out.log", "line")
    artifact = (await resolve(inside, "fi:logs/out.log"))["artifact"]
    assert (artifact["artifact_path"], artifact["size_bytes"]) == ("fi:logs/out.log", 4)
    assert "turn_id" not in artifact
    assert len(inside.workspace.artifacts) == 0


async def test_a_link_is_unsafe(inside: Inside) -> None:
    inside.write("turn_1/files/a.txt")
    os.symlink("/etc/passwd", inside.out / "turn_1/files/link")
    assert (await resolve(inside, "turn_1/files/link"))["reason"] == "unsafe_path"


async def test_the_latest_group_wins_as_a_whole(inside: Inside) -> None:
    await inside.begin()
    blocks = digest_and_content("turn_1.files/s.md", "v1", "tc_1", hosted_uri="s3://b/v1", rn="ef:1", key="k1")
    blocks += digest_and_content("turn_1.files/s.md", "v2", "tc_2")
    await inside.ask("timeline/append", {"blocks": blocks})
    artifact = (await resolve(inside, "fi:turn_1.files/s.md"))["artifact"]
    assert (artifact["version"], artifact["edited"], artifact["tool_call_id"]) == (2, True, "tc_2")
    assert not {"hosted_uri", "rn", "key"} & artifact.keys()


@pytest.mark.parametrize(
    ("role", "seen"),
    [("runtime", {"hosted_uri", "rn", "key"}), ("renderer", {"rn"}), ("editor", {"rn"}), ("exec", set[str]())],
)
async def test_hosting_fields_are_cut_to_the_role(inside: Inside, role: str, seen: set[str]) -> None:
    await inside.begin()
    blocks = digest_and_content("turn_1.files/s.md", "v1", "tc_1", hosted_uri="s3://b/v1", rn="ef:1", key="k1")
    await inside.ask("timeline/append", {"blocks": blocks})
    artifact = (await resolve(inside, "fi:turn_1.files/s.md", role))["artifact"]
    assert artifact.keys() & {"hosted_uri", "rn", "key"} == seen


async def test_internal_artifacts_do_not_exist_for_an_editor(inside: Inside) -> None:
    await inside.begin()
    await inside.ask("call/begin", {"tool_call_id": "tc_1", "tool_id": "exec", "params": {}})
    inside.write("turn_1/files/a.txt", "secret")
    expect = [{"path": "a.txt", "visibility": "internal"}]
    await inside.ask("call/end", {"tool_call_id": "tc_1", "expect": expect})
    path = "fi:turn_1.files/a.txt"
    assert (await resolve(inside, path, "editor"))["found"] is False
    assert (await inside.ask("artifact/list", role="editor"))["artifacts"] == []
    assert (await inside.ask("artifact/read", {"paths": [path]}, role="editor"))["blocks"] == []
    assert (await inside.ask("artifact/fetch", {"path": path}, role="editor"))["err"]["code"] == "not_found"
    assert (await inside.ask("artifact/search", {"root": "", "content_regex": "secret"}, role="editor"))["hits"] == []
    assert (await resolve(inside, path, "exec"))["found"] is True


async def test_listing_goes_page_by_page_in_order_of_path(inside: Inside) -> None:
    for name in "cab":
        inside.write(f"turn_1/files/{name}.txt")
    inside.write("turn_2/files/d.png", b"\x89PNG\r\n\x1a\n")
    await inside.sync()
    first = await inside.ask("artifact/list", {"limit": 2})
    second = await inside.ask("artifact/list", {"limit": 2, "cursor": first["next_cursor"]})
    names = [one["physical_path"] for one in first["artifacts"] + second["artifacts"]]
    assert names == ["turn_1/files/a.txt", "turn_1/files/b.txt", "turn_1/files/c.txt", "turn_2/files/d.png"]
    assert second["next_cursor"] is None


@pytest.mark.parametrize(
    ("asked", "names"),
    [
        ({"turn_id": "turn_2"}, ["turn_2/files/d.png"]),
        ({"mime": "image/*"}, ["turn_2/files/d.png"]),
        ({"prefix": "fi:turn_1.files/a"}, ["turn_1/files/a.txt"]),
        ({"kind": "display"}, []),
        ({"visibility": "internal"}, []),
    ],
)
async def test_listing_filters(inside: Inside, asked: dict[str, str], names: list[str]) -> None:
    inside.write("turn_1/files/a.txt")
    inside.write("turn_2/files/d.png", b"\x89PNG\r\n\x1a\n")
    await inside.sync()
    listed = await inside.ask("artifact/list", asked)
    assert [one["physical_path"] for one in listed["artifacts"]] == names


async def test_versions_are_told_oldest_first(inside: Inside) -> None:
    for text in ("one", "two!"):
        inside.write("turn_1/files/a.txt", text)
        await inside.sync()
    rows = (await inside.ask("artifact/versions", {"path": "turn_1/files/a.txt"}))["versions"]
    assert [(row["version"], row["origin"], row["edited"], row["size_bytes"]) for row in rows] == [
        (1, "seen", False, 3),
        (2, "seen", True, 4),
    ]


async def test_versions_of_nothing_are_refused(inside: Inside) -> None:
    with pytest.raises(NotFound):
        await inside.ask("artifact/versions", {"path": "turn_1/files/a.txt"})


async def test_a_search_tells_lines_with_their_neighbours(inside: Inside) -> None:
    inside.write("turn_1/files/a.txt", "one\ntwo\nthree\n")
    inside.write("logs/a.log", "two")
    answer = await inside.ask("artifact/search", {"root": "turn_1", "content_regex": "^two$", "context_lines": 1})
    assert answer["hits"] == [
        {
            "path": "turn_1/files/a.txt",
            "size_bytes": 14,
            "logical_path": "fi:turn_1.files/a.txt",
            "matches": [{"line": 2, "text": "two", "before": ["one"], "after": ["three"]}],
        }
    ]


async def test_a_search_finds_names(inside: Inside) -> None:
    inside.write("logs/docker.err.log", "boom")
    hits = (await inside.ask("artifact/search", {"root": "", "name_regex": r"docker\.err\.log$"}))["hits"]
    assert hits == [{"path": "logs/docker.err.log", "size_bytes": 4, "logical_path": "fi:logs/docker.err.log"}]


async def test_a_file_without_a_logical_path_is_found_without_one(inside: Inside) -> None:
    inside.write("turn_1.files/x.txt")
    hits = (await inside.ask("artifact/search", {"root": "", "name_regex": "x"}))["hits"]
    assert hits == [{"path": "turn_1.files/x.txt", "size_bytes": 1}]


async def test_a_search_says_when_it_stopped(inside: Inside) -> None:
    for number in range(3):
        inside.write(f"turn_1/files/{number}.txt")
    answer = await inside.ask("artifact/search", {"root": "", "name_regex": "txt", "max_hits": 2})
    assert len(answer["hits"]) == 2
    assert answer["truncated"] is True
    assert answer["notices"][0]["limit"] == "max_hits"


# The last is short and comes to megabytes of states: nobody else is served while it is read.
@pytest.mark.parametrize("pattern", ["(", "(?=x)", r"(a)\1", r"\pL" * 300])
async def test_a_pattern_that_is_not_re2_or_too_much_is_refused(inside: Inside, pattern: str) -> None:
    with pytest.raises(BadSelector):
        await inside.ask("artifact/search", {"root": "", "name_regex": pattern})


async def test_a_search_stays_below_out_dir(inside: Inside) -> None:
    with pytest.raises(UnsafePath):
        await inside.ask("artifact/search", {"root": "../", "name_regex": "x"})


async def test_a_call_that_made_what_is_internal_does_not_exist_for_an_editor(inside: Inside) -> None:
    await inside.begin()
    await inside.ask("artifact/write", {"path": "s.md", "content": "a", "kind": "file", "visibility": "internal"})
    (path,) = {head[4] for head in inside.workspace.timeline.heads if head[4].endswith(".call")}
    assert (await resolve(inside, path))["found"]
    assert not (await resolve(inside, path, "editor"))["found"]
    assert (await inside.ask("artifact/versions", {"path": path}))["versions"]
    for method in ("artifact/versions", "timeline/blocks"):
        with pytest.raises(NotFound):
            await inside.ask(method, {"path": path}, role="editor")


async def test_people_find_nothing_that_the_disk_has_and_nobody_registered(inside: Inside) -> None:
    async def found(role: str) -> list[str]:
        hits = (await inside.ask("artifact/search", {"root": "", "content_regex": "secret"}, role=role))["hits"]
        return [hit["path"] for hit in hits]

    await inside.begin()
    await inside.ask("artifact/write", {"path": "b.md", "content": "public", "kind": "file"})
    await inside.ask("call/begin", {"tool_call_id": "c1", "tool_id": "x", "params": {}})
    inside.write("turn_1/files/b.md", "a secret")
    assert await found("editor") == []
    assert await found("exec") == ["turn_1/files/b.md"]
    await inside.ask("call/end", {"tool_call_id": "c1"})
    assert await found("editor") == ["turn_1/files/b.md"]
    with inside.workspace.claims.hold("turn_1/files/b.md"):
        assert await found("editor") == []
