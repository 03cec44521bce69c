"""The MCP server: its handlers, each of which asks the daemon one thing."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import mcp_types as types
from mcp.server import Server
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import NotificationOptions
from mcp.server.stdio import stdio_server
from mcp.server.subscriptions import ListenHandler
from mcp.shared.exceptions import MCPError

from sidecar import __version__
from sidecar.mcp.addresses import TEMPLATE, address, written
from sidecar.mcp.changes import SUBSCRIPTIONS, Changes
from sidecar.mcp.contents import contents, failed, told
from sidecar.mcp.door import Door, NoDaemon, Refused
from sidecar.mcp.tools import described, offered

PAGE = 200
Context = ServerRequestContext[Any, Any]

INSTRUCTIONS = """\
What an agent made in the folder {out_dir}, called OUT_DIR: its files (artifacts), turn by turn, and the sources that it
cites by number. A path is a name such as `fi:turn_1.files/report.md`, or `turn_1/files/report.md` relative to OUT_DIR;
every tool takes either. Answers name `physical_path`, so that large files can be opened there. What is only partly
missing is in the answer, as `missing` or `notices`.\
"""


class Serving:
    """One MCP client on stdin and stdout, and one door to the daemon."""

    def __init__(self, command: Sequence[str], *, role: str, out_dir: str) -> None:
        """`command` starts the door."""
        self._changes = Changes()
        self._door = Door(command, self._changes.heard)
        self._streams = ListenHandler(self._changes.bus)
        self._tools = offered(role)
        self._server: Server[Any] = Server(
            "artifact-sidecar",
            version=__version__,
            title="Artifacts of a workspace",
            instructions=INSTRUCTIONS.format(out_dir=out_dir),
            on_list_tools=self._list_tools,
            on_call_tool=self._call_tool,
            on_list_resources=self._list_resources,
            on_list_resource_templates=self._list_templates,
            on_read_resource=self._read_resource,
            on_subscribe_resource=self._subscribe,
            on_unsubscribe_resource=self._unsubscribe,
            on_subscriptions_listen=self._listen,
        )
        self._server.add_notification_handler("notifications/initialized", types.NotificationParams, self._shook_hands)

    async def run(self) -> None:
        """Serve until the client hangs up, or until a signal ends the process."""
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, self._end, number)
        options = self._server.create_initialization_options(NotificationOptions(resources_changed=True))
        telling = asyncio.create_task(self._changes.run(self._door))
        try:
            async with stdio_server() as (incoming, outgoing):
                await self._server.run(incoming, outgoing, options)
        finally:
            telling.cancel()
            await asyncio.gather(telling, return_exceptions=True)
            await self._door.close()

    def _end(self, number: int) -> None:
        # At once: the thread that waits for stdin cannot be woken, and all that is to be kept is the daemon's.
        ending = asyncio.ensure_future(self._door.close())
        ending.add_done_callback(lambda _: os._exit(128 + number))

    async def _shook_hands(self, ctx: Context, _: types.NotificationParams) -> None:
        self._changes.session = ctx.session

    # Tools

    async def _list_tools(self, _: Context, __: types.PaginatedRequestParams | None) -> types.ListToolsResult:
        return types.ListToolsResult(tools=[described(tool) for tool in self._tools.values()])

    async def _call_tool(self, ctx: Context, params: types.CallToolRequestParams) -> types.CallToolResult:
        tool = self._tools.get(params.name)
        if tool is None:
            raise MCPError(types.INVALID_PARAMS, f"there is no tool {params.name!r}")
        asked = {**dict(tool.first), **(params.arguments or {})}
        try:
            return told(tool.method, await self._reporting(ctx, tool.method, asked))
        except (Refused, NoDaemon) as failure:
            return failed(failure)

    async def _reporting(self, ctx: Context, method: str, params: dict[str, Any]) -> dict[str, Any]:
        """The answer; what the daemon says of its progress goes to the client that asked for it."""
        if not (ctx.meta and "progress_token" in ctx.meta):
            return await self._door.call(method, params)
        said: asyncio.Queue[dict[str, Any] | None] = asyncio.Queue()
        reporting = asyncio.create_task(_report(ctx, said))
        try:
            return await self._door.call(method, params, progress=said.put_nowait)
        finally:
            said.put_nowait(None)
            await reporting  # what was said before the answer is told before it

    # Resources

    async def _list_resources(
        self, _: Context, params: types.PaginatedRequestParams | None
    ) -> types.ListResourcesResult:
        asked: dict[str, Any] = {"limit": PAGE}
        if params is not None and params.cursor is not None:
            asked["cursor"] = params.cursor
        page = await self._asked("artifact/list", asked)
        return types.ListResourcesResult(
            resources=[_resource(artifact) for artifact in page["artifacts"]], next_cursor=page["next_cursor"]
        )

    async def _list_templates(
        self, _: Context, __: types.PaginatedRequestParams | None
    ) -> types.ListResourceTemplatesResult:
        template = types.ResourceTemplate(
            name="path", uri_template=TEMPLATE, title="What stands at a path", description="A path of any family."
        )
        return types.ListResourceTemplatesResult(resource_templates=[template])

    async def _read_resource(self, _: Context, params: types.ReadResourceRequestParams) -> types.ReadResourceResult:
        path = written(params.uri)
        if path is None:
            raise MCPError(types.INVALID_PARAMS, "this is no resource of ours", {"uri": params.uri})
        fetched = await self._asked("artifact/fetch", {"path": path}, uri=params.uri)
        if fetched["err"] is not None:
            said = {"kind": fetched["err"]["code"], "about": path, "hint": fetched["err"]["message"]}
            raise MCPError(types.INVALID_PARAMS, fetched["err"]["message"], {"uri": params.uri, **said})
        try:
            return types.ReadResourceResult(contents=list(contents(params.uri, fetched)))
        except LookupError as why:
            said = {"kind": "too_large", "about": path, "hint": str(why)}
            raise MCPError(types.INVALID_PARAMS, str(why), {"uri": params.uri, **said}) from None

    async def _subscribe(self, _: Context, params: types.SubscribeRequestParams) -> types.EmptyResult:
        if written(params.uri) is None:
            raise MCPError(types.INVALID_PARAMS, "this is no resource of ours", {"uri": params.uri})
        await self._reached()
        if len(self._changes.wanted) >= SUBSCRIPTIONS:
            raise MCPError(types.INTERNAL_ERROR, f"there are {SUBSCRIPTIONS} subscriptions already")
        self._changes.wanted.add(params.uri)
        return types.EmptyResult()

    async def _listen(
        self, ctx: Context, params: types.SubscriptionsListenRequestParams
    ) -> types.SubscriptionsListenResult:
        await self._reached()
        return await self._streams(ctx, params)

    async def _unsubscribe(self, _: Context, params: types.UnsubscribeRequestParams) -> types.EmptyResult:
        self._changes.wanted.discard(params.uri)
        return types.EmptyResult()

    async def _reached(self) -> None:
        # Who is told that it listens hears of all from then on. The first door takes a second to open, and what
        # happened before it was open is told to nobody.
        with _refusals():
            await self._door.open()

    async def _asked(self, method: str, params: dict[str, Any], **about: str) -> dict[str, Any]:
        with _refusals(**about):
            return await self._door.call(method, params)


@contextmanager
def _refusals(**about: str) -> Iterator[None]:
    """Says what the door refuses as MCP says it."""
    try:
        yield
    except Refused as refusal:
        code = types.INVALID_PARAMS if refusal.kind or refusal.code == types.INVALID_PARAMS else refusal.code
        raise MCPError(code, str(refusal), {**refusal.data, **about}) from None
    except NoDaemon as failure:
        raise MCPError(types.INTERNAL_ERROR, str(failure), {"kind": "no_daemon", **about}) from None


async def _report(ctx: Context, said: asyncio.Queue[dict[str, Any] | None]) -> None:
    """Tell the client how far its request is. Numbers only grow, as MCP wants it."""
    last = -1
    while (value := await said.get()) is not None:
        percentage = value.get("percentage")
        if percentage is not None and percentage > last:
            last = percentage
            await ctx.session.report_progress(percentage, 100, value.get("message") or value.get("title"))


def _resource(artifact: dict[str, Any]) -> types.Resource:
    return types.Resource(
        uri=address(artifact["artifact_path"]),
        name=artifact["artifact_path"],
        title=artifact.get("name"),
        description=artifact.get("description"),
        mime_type=artifact["mime"],
        size=artifact.get("size_bytes"),
        annotations=types.Annotations(last_modified=artifact["ts"]),
    )
