"""`artifact-sidecar mcp` as MCP clients see it."""

from __future__ import annotations

import asyncio
import base64
import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from mcp import MCPError
from mcp.client.subscriptions import ResourcesListChanged
from mcp_types import (
    BlobResourceContents,
    CallToolResult,
    ImageContent,
    ResourceListChangedNotification,
    ResourceUpdatedNotification,
    TextContent,
    TextResourceContents,
)

from protocol.methods import REQUESTS
from sidecar.__main__ import main
from tests.daemon_process import PROJECT, Workspace, environment, eventually
from tests.mcp.conftest import CEILING, LEGACY, MODERN, Join, joined

PNG = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8BQDwAEhQGAhKmMIQAAAABJRU5ErkJggg=="
)
BEGINNING = "artifact-sidecar://artifacts/"


def texts(result: CallToolResult) -> list[str]:
    return [part.text for part in result.content if isinstance(part, TextContent)]


def said(result: CallToolResult) -> Any:
    """The answer of a tool, which stands in it twice: for programs and for models."""
    assert not result.is_error, result
    assert json.loads(texts(result)[0]) == result.structured_content
    return result.structured_content


def refusal(result: CallToolResult) -> dict[str, Any]:
    assert result.is_error
    assert "Traceback" not in texts(result)[0]
    return result.structured_content["error"]


@pytest.fixture
def filled(workspace: Workspace) -> Workspace:
    runtime = workspace.connect("runtime", ceiling=CEILING)
    runtime.call("turn/begin", {"turn_id": "turn_1", "prompt": "draw it"})
    workspace.write("turn_1/files/a report.md", "# Sales\n\nSee [[S:1]].\n")
    workspace.write("turn_1/files/chart.png", PNG)
    workspace.write("turn_1/files/data.bin", b"\0\1\2")
    runtime.call("workspace/sync")
    return workspace


# Opening, and the tools


@pytest.mark.rule("cli.mcp-serves-any-client")
@pytest.mark.parametrize(("mode", "version"), [(LEGACY, "2025-11-25"), (MODERN, "2026-07-28")])
async def test_a_client_of_either_era_finds_the_tools_and_what_they_take(
    filled: Workspace, join: Join, mode: str, version: str
) -> None:
    async with join(mode=mode) as client:
        assert client.session.protocol_version == version
        assert client.session.server_info.name == "artifact-sidecar"
        assert str(filled.out_dir) in (client.session.instructions or "")
        tools = {tool.name: tool for tool in (await client.list_tools()).tools}
        assert {"list_artifacts", "resolve_paths", "read_artifacts", "search_files", "list_sources"} < set(tools)
        assert {"fetch", "replace_citations", "rehost_files", "pull_assets", "sync_workspace", "outline"} < set(tools)
        for tool in tools.values():
            assert tool.description
            assert set(tool.input_schema) <= {"type", "properties", "required", "additionalProperties"}
            assert "$ref" not in json.dumps(tool.input_schema)
        assert tools["artifact_versions"].input_schema["required"] == ["path"]
        listed = tools["list_artifacts"].input_schema["properties"]
        assert set(listed) == set(REQUESTS["artifact/list"].params.model_fields)


@pytest.mark.rule("cli.mcp-serves-any-client")
@pytest.mark.parametrize("mode", [LEGACY, MODERN])
async def test_every_tool_answers(filled: Workspace, join: Join, mode: str) -> None:
    async with join(mode=mode) as client:
        call = client.call_tool
        assert said(await call("workspace_status"))["counts"]["artifacts"] == 3
        page = said(await call("list_artifacts", {"limit": 2}))
        assert [one["artifact_path"] for one in page["artifacts"]] == [
            "fi:turn_1.files/a report.md",
            "fi:turn_1.files/chart.png",
        ]
        rest = said(await call("list_artifacts", {"cursor": page["next_cursor"]}))
        assert [one["artifact_path"] for one in rest["artifacts"]] == ["fi:turn_1.files/data.bin"]
        found = said(await call("resolve_paths", {"paths": ["turn_1/files/data.bin", "../x"]}))["results"]
        assert [(one["found"], one.get("reason")) for one in found] == [(True, None), (False, "unsafe_path")]
        hits = said(await call("search_files", {"root": "", "content_regex": "Sales"}))["hits"]
        assert [hit["logical_path"] for hit in hits] == ["fi:turn_1.files/a report.md"]
        assert [row["sid"] for row in said(await call("list_sources", {"selector": "2"}))["rows"]] == [2]
        replaced = said(await call("replace_citations", {"text": "x [[S:9]]"}))
        assert (replaced["text"], replaced["unresolved"]) == ("x [[S:9]]", [9])
        assert len(said(await call("artifact_versions", {"path": "turn_1/files/chart.png"}))["versions"]) == 1
        assert "edges" in said(await call("artifact_lineage", {"path": "turn_1/files/chart.png", "direction": "up"}))
        assert said(await call("outline"))["turns"][0]["artifacts"] == 3
        (filled.out_dir / "turn_1/files/chart.png").unlink()
        assert said(await call("sync_workspace"))["unsettled"] == []
        back = said(await call("rehost_files", {"paths": ["turn_1/files/chart.png"]}))
        assert [one["origin"] for one in back["rehosted"]] == ["kept"]
        assert (filled.out_dir / "turn_1/files/chart.png").read_bytes() == PNG
        pulled = said(await call("pull_assets", {"content": "![x](chart.png) ![y](none.png)", "mime": "text/markdown"}))
        assert [one["path"] for one in (*pulled["present"], *pulled["missing"])]


async def test_what_is_read_comes_as_text_and_as_pictures(filled: Workspace, join: Join) -> None:
    async with join() as client:
        paths = ["turn_1/files/a report.md", "turn_1/files/chart.png", "turn_1/files/none.md"]
        result = await client.call_tool("read_artifacts", {"paths": paths})
        status, *_ = map(json.loads, texts(result)[:1])
        assert status["status"]["missing"] == ["turn_1/files/none.md"]
        assert "# Sales\n\nSee [[S:1]].\n" in texts(result)
        (picture,) = (part for part in result.content if isinstance(part, ImageContent))
        assert (base64.b64decode(picture.data), picture.mime_type) == (PNG, "image/png")
        item = {"path": paths[0], "line_start": 3, "line_count": 1}
        some = await client.call_tool("read_artifacts", {"items": [item]})
        assert [text.rstrip() for text in texts(some) if "Sales" in text or "See" in text] == ["See [[S:1]]."]
        cut = await client.call_tool("read_artifacts", {"paths": paths[:1], "max_bytes": 10})
        assert json.loads(texts(cut)[-1])["truncated"] is True
        fetched = await client.call_tool("fetch", {"path": "turn_1/files/a report.md"})
        assert texts(fetched)[1] == "# Sales\n\nSee [[S:1]].\n"
        rows = said(await client.call_tool("fetch", {"path": "so:sources_pool[1,7]"}))
        assert ([row["sid"] for row in rows["ret"]], rows["missing"]) == ([1], [7])


@pytest.mark.parametrize(
    ("tool", "arguments", "kind"),
    [
        ("artifact_versions", {"path": "../x"}, "unsafe_path"),
        ("artifact_versions", {"path": "turn_1/files/none"}, "not_found"),
        ("search_files", {"root": "", "name_regex": "("}, "bad_selector"),
        ("fetch", {"path": "turn_1/files/none"}, "not_found"),
        ("read_artifacts", {}, "invalid_params"),
        ("list_artifacts", {"colour": "red"}, "invalid_params"),
        ("read_artifacts", {"paths": ["turn_1/files/chart.png"], "tool_call_id": "c1"}, "not_permitted"),
    ],
)
async def test_a_refusal_is_an_error_that_says_what_to_do(
    filled: Workspace, join: Join, tool: str, arguments: dict[str, Any], kind: str
) -> None:
    async with join() as client:
        result = await client.call_tool(tool, arguments)
        error = refusal(result)
        assert error["kind"] == kind
        assert error["about"]
        assert texts(result)[0].startswith(kind)


async def test_a_tool_that_there_is_not_is_said(join: Join) -> None:
    async with join() as client:
        with pytest.raises(MCPError, match="there is no tool 'rm'"):
            await client.call_tool("rm", {})


async def test_who_may_not_ask_is_not_offered_it(filled: Workspace, join: Join) -> None:
    filled.connect("runtime", ceiling=CEILING).call("call/begin", {"tool_call_id": "c", "tool_id": "x", "params": {}})
    filled.write("turn_1/files/unseen.md", "x")
    async with join("--role", "editor") as editor, join() as program:
        tools = {tool.name for tool in (await editor.list_tools()).tools}
        assert "list_artifacts" in tools
        assert not {"rehost_files", "pull_assets"} & tools
        await program.call_tool("sync_workspace")
        pending = {"path": "turn_1/files/unseen.md"}
        assert not (await program.call_tool("artifact_versions", pending)).is_error
        assert refusal(await editor.call_tool("artifact_versions", pending))["kind"] == "not_found"


# Resources


@pytest.mark.rule("cli.mcp-serves-any-client")
@pytest.mark.parametrize("mode", [LEGACY, MODERN])
async def test_artifacts_are_resources(filled: Workspace, join: Join, mode: str) -> None:
    async with join(mode=mode) as client:
        listed = (await client.list_resources()).resources
        assert [one.uri for one in listed] == [
            f"{BEGINNING}fi:turn_1.files/a%20report.md",
            f"{BEGINNING}fi:turn_1.files/chart.png",
            f"{BEGINNING}fi:turn_1.files/data.bin",
        ]
        assert (listed[1].mime_type, listed[1].size) == ("image/png", len(PNG))
        (template,) = (await client.list_resource_templates()).resource_templates
        assert template.uri_template == f"{BEGINNING}{{+path}}"
        (text,) = (await client.read_resource(listed[0].uri)).contents
        assert isinstance(text, TextResourceContents)
        assert (text.text, text.mime_type) == ("# Sales\n\nSee [[S:1]].\n", "text/markdown")
        (blob,) = (await client.read_resource(listed[1].uri)).contents
        assert isinstance(blob, BlobResourceContents)
        assert base64.b64decode(blob.blob) == PNG
        (rows,) = (await client.read_resource(f"{BEGINNING}so:sources_pool%5B1-2%5D")).contents
        assert isinstance(rows, TextResourceContents)
        assert [row["sid"] for row in json.loads(rows.text)] == [1, 2]


async def test_many_resources_come_page_by_page(workspace: Workspace, join: Join) -> None:
    for number in range(450):
        workspace.write(f"turn_1/files/{number}.txt", "x")
    async with join() as client:
        await client.call_tool("sync_workspace")
        uris: list[str] = []
        pages, cursor = 0, None
        while pages == 0 or cursor:
            page = await client.list_resources(cursor=cursor)
            uris += [one.uri for one in page.resources]
            pages, cursor = pages + 1, page.next_cursor
        assert (len(set(uris)), pages) == (450, 3)


@pytest.mark.parametrize(
    ("uri", "kind"),
    [
        (f"{BEGINNING}fi:turn_1.files/none.md", "not_found"),
        (f"{BEGINNING}../etc/passwd", "unsafe_path"),
        (f"{BEGINNING}turn_1/files/data.bin", "too_large"),
        ("file:///etc/passwd", None),
        (f"{BEGINNING}%ff", None),
    ],
)
async def test_a_resource_that_cannot_be_read_is_refused(
    filled: Workspace, join: Join, uri: str, kind: str | None
) -> None:
    async with join() as client:
        with pytest.raises(MCPError) as caught:
            await client.read_resource(uri)
        assert caught.value.code == -32602
        assert (caught.value.data["uri"], caught.value.data.get("kind")) == (uri, kind)


# Being told


async def test_a_client_of_the_handshake_is_told_of_changes(workspace: Workspace, join: Join) -> None:
    told: asyncio.Queue[Any] = asyncio.Queue()
    async with join(message_handler=told.put) as client:
        await client.list_tools()
        with pytest.warns(match="subscribe"):
            await client.subscribe_resource(f"{BEGINNING}fi:turn_1.files/a.md")
        workspace.write("turn_1/files/other.md", "one")
        await until(told, ResourceListChangedNotification)
        workspace.write("turn_1/files/a.md", "one")
        updated = await until(told, ResourceUpdatedNotification)
        assert updated.params.uri == f"{BEGINNING}fi:turn_1.files/a.md"
        with pytest.warns(match="unsubscribe"):
            await client.unsubscribe_resource(f"{BEGINNING}fi:turn_1.files/a.md")


async def test_a_client_of_today_listens_to_what_it_names(workspace: Workspace, join: Join) -> None:
    async with join(mode=MODERN) as client:
        uri = f"{BEGINNING}fi:turn_1.files/a.md"
        async with client.listen(resources_list_changed=True, resource_subscriptions=[uri]) as changes:
            workspace.write("turn_1/files/a.md", "one")
            heard: set[Any] = set()
            async with asyncio.timeout(CEILING):
                async for change in changes:
                    heard.add(type(change) if isinstance(change, ResourcesListChanged) else change.uri)
                    if len(heard) == 2:
                        break
            assert heard == {ResourcesListChanged, uri}


async def until(told: asyncio.Queue[Any], kind: type) -> Any:
    async with asyncio.timeout(CEILING):
        while not isinstance(found := await told.get(), kind):
            pass
    return found


# Life


async def test_two_clients_go_on_side_by_side(filled: Workspace, join: Join) -> None:
    async with join() as one, join(mode=MODERN) as other:
        paths = {"paths": ["turn_1/files/chart.png"]}
        answers = await asyncio.gather(*(client.call_tool("resolve_paths", paths) for client in (one, other) * 50))
        assert all(said(answer)["results"][0]["found"] for answer in answers)
    assert filled.answers(), "the daemon is nobody's own"


@pytest.mark.rule("cli.mcp-outlives-the-daemon")
async def test_a_session_outlives_the_daemon(filled: Workspace, join: Join) -> None:
    told: asyncio.Queue[Any] = asyncio.Queue()
    try:
        async with join(message_handler=told.put) as client:
            paths = {"paths": ["turn_1/files/chart.png"]}
            with pytest.warns(match="subscribe"):
                await client.subscribe_resource(f"{BEGINNING}fi:turn_1.files/meanwhile.md")
            before = [asyncio.create_task(client.call_tool("resolve_paths", paths)) for _ in range(50)]
            await before[0]
            filled.kill9()
            filled.write("turn_1/files/meanwhile.md", "x")
            after = await asyncio.gather(*before, *(client.call_tool("resolve_paths", paths) for _ in range(50)))
            assert all(said(answer)["results"][0]["found"] for answer in after)
            await client.call_tool("sync_workspace")
            await until(told, ResourceUpdatedNotification)
            assert not (await client.call_tool("artifact_versions", {"path": "turn_1/files/meanwhile.md"})).is_error
    finally:
        # The door has started the next daemon, since nobody else did; it would start one more if it were still there.
        assert await asyncio.to_thread(main, ["stop", *filled.arguments]) == 0


def test_stdout_holds_the_protocol_alone_and_the_end_of_stdin_ends_it(filled: Workspace) -> None:
    with subprocess.Popen(
        [sys.executable, "-m", "sidecar", "mcp", *filled.arguments],
        cwd=PROJECT,
        env=environment(),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        me = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "a", "version": "1"}}
        for message in (
            {"id": 1, "method": "initialize", "params": me},
            {"method": "notifications/initialized"},
            {"id": 2, "method": "tools/call", "params": {"name": "artifact_versions", "arguments": {"path": "../x"}}},
            {"id": 3, "method": "no/such"},
        ):
            process.stdin.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")
        process.stdin.write(b"this is no message\n")
        process.stdin.flush()
        answers: dict[int, Any] = {}
        while len(answers) < 3:
            message = json.loads(process.stdout.readline())
            assert message["jsonrpc"] == "2.0"
            answers[message.get("id")] = message
        assert answers[1]["result"]["protocolVersion"] == "2025-06-18"
        assert answers[2]["result"]["isError"] is True
        assert answers[3]["error"]["code"] == -32601
        process.stdin.close()
        for line in process.stdout:
            assert json.loads(line)["jsonrpc"] == "2.0"
        assert process.wait(CEILING) == 0
    runtime = filled.connect("runtime", ceiling=CEILING)
    eventually(lambda: [one["role"] for one in runtime.call("workspace/status")["clients"]].count("exec") == 0)


def test_an_interrupt_ends_it_while_it_waits_for_its_client(workspace: Workspace) -> None:
    with subprocess.Popen(
        [sys.executable, "-m", "sidecar", "mcp", *workspace.arguments],
        cwd=PROJECT,
        env=environment(),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdin.write(b'{"jsonrpc": "2.0", "id": 1, "method": "ping"}\n')
        process.stdin.flush()
        assert json.loads(process.stdout.readline())["id"] == 1
        process.send_signal(signal.SIGINT)
        assert process.wait(CEILING) == 130
        assert (process.stdout.read(), process.stderr.read()) == (b"", b"")


# Starting


def test_it_says_what_is_missing_when_the_sdk_is_not_there(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    assert main(["mcp", "--out-dir", "x"]) == 69
    told = capsys.readouterr()
    assert told.out == ""
    assert told.err == (
        "artifact-sidecar: mcp needs the MCP SDK: `pip install -c .ci/constraints.txt -e '.[mcp]'` in a checkout, "
        "or `pip install mcp`\n"
    )


def test_it_needs_a_workspace(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.startswith("ARTIFACT_SIDECAR_") or name == "OUT_DIR"]:
        monkeypatch.delenv(name)
    assert main(["mcp"]) == 64
    told = capsys.readouterr()
    assert (told.out, told.err.count("\n")) == ("", 1)


async def test_a_daemon_that_cannot_start_is_said_by_every_tool(tmp_path: Path) -> None:
    out_dir = tmp_path / "out"
    out_dir.mkdir()
    words = ["--out-dir", str(out_dir), "--state-dir", "/proc/none", "--socket-dir", str(tmp_path / "sockets")]
    async with joined([sys.executable, "-m", "sidecar", "mcp", *words]) as client:
        assert len((await client.list_tools()).tools) > 5
        for _ in range(2):
            assert refusal(await client.call_tool("workspace_status"))["kind"] == "no_daemon"
        with pytest.raises(MCPError) as caught:
            await client.list_resources()
        assert caught.value.data["kind"] == "no_daemon"
