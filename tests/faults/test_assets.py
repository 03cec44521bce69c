"""Hostile pages are answered within their limits and nobody waits for them; a store that is down loses no file."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from statistics import median
from typing import Any

import psutil
import pytest
import pytest_asyncio

from sidecar.core import limits
from sidecar.stores.s3_client import Timing
from sidecar.stores.s3_store import S3Store
from tests.daemon_process import Workspace
from tests.faulty_front import Answer, FaultyFront
from tests.rpc_client import AsyncClient
from tests.server.inside import Inside, awake

MIB = limits.MIB
QUICK = Timing(connect=0.3, read=0.5)
PICTURE = b"\x89PNG\r\n\x1a\n" + bytes(range(256)) * 64
PAGES: dict[str, tuple[Callable[[], str], str]] = {
    "ten megabytes of ranges": (lambda: "[[S:1-999999999]]" * (10 * MIB // 17), "text/html"),
    "ten megabytes of ranges in Markdown": (lambda: "[[S:1-999999999]]" * (10 * MIB // 17), "text/markdown"),
    "a hundred thousand links": (
        lambda: "".join(f"<a href=turn_1/files/{number}>x</a>" for number in range(100_000)),
        "text/html",
    ),
    "a hundred thousand links in Markdown": (
        lambda: "".join(f"[x](turn_1/files/{number})\n" for number in range(100_000)),
        "text/markdown",
    ),
    "circles of style sheets": (lambda: "<link rel=stylesheet href=turn_1/files/0.css>", "text/html"),
    "ways out of the folder": (
        lambda: "".join(f"<img src=turn_1/files/../../{number}>" for number in range(100_000)),
        "text/html",
    ),
    "pictures of five megabytes": (
        lambda: f"<img src='data:image/png;base64,{'A' * 5 * MIB}'>![x](data:image/png;base64,{'A' * 5 * MIB})",
        "text/markdown",
    ),
    "pictures that never end": (lambda: ("![" * 3000 + "] ") * 340, "text/markdown"),
    "a style sheet of brackets": (lambda: f"<style>a{{b:url(x){'(' * MIB}</style>", "text/html"),
    "a tower of elements": (lambda: "<div>" * (2 * MIB), "text/html"),
}
FOR_ONE_PAGE = (
    4 * limits.ASSET_SECONDS
)  # scanning has its limit; looking for ten thousand files on a slow disk has none
GROWTH = 300 * MIB


async def answers_of_others(client: AsyncClient, over: asyncio.Event) -> list[float]:
    """How long somebody else waits for each of many small answers, in seconds."""
    loop, times = asyncio.get_running_loop(), list[float]()
    while not over.is_set():
        began = loop.time()
        await client.call("artifact/resolve", {"paths": ["fi:turn_1.files/0.css"]})
        times.append(loop.time() - began)
    return times


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Any:
    workspace = Workspace(tmp_path_factory.mktemp("pages"))
    for number in range(50):
        sheet = f"@import '{(number + 1) % 50}.css'; @import '0.css'; a{{b:url(../../../x)}}"
        workspace.write(f"turn_1/files/{number}.css", sheet)
    workspace.start()
    workspace.connect("editor").call("workspace/sync")
    yield workspace
    workspace.clean_up(failed=False)


@pytest.mark.parametrize("name", PAGES)
async def test_a_hostile_page_is_answered_and_nobody_waits_for_it(shared: Workspace, name: str) -> None:
    make, mime = PAGES[name]
    page = make()
    pullers = [await shared.connect_async(role) for role in ("renderer", "exec")]
    other = await shared.connect_async("editor")
    assert shared.daemon is not None
    daemon = psutil.Process(shared.daemon.pid)
    before, over = daemon.memory_info().rss, asyncio.Event()
    watching = asyncio.create_task(answers_of_others(other, over))
    asked = [puller.ask("assets/pull", {"content": page, "mime": mime}) for puller in pullers]
    answers = await asyncio.wait_for(asyncio.gather(*asked), FOR_ONE_PAGE)
    over.set()
    times = await watching
    grown = daemon.memory_info().rss - before
    said = [notice.get("limit", notice["code"]) for notice in answers[0]["result"]["notices"]]
    print(f"others: {median(times) * 1000:.1f} ms, {max(times) * 1000:.0f} at worst; {grown / MIB:+.0f} MiB; {said}")
    assert all("result" in answer for answer in answers)
    assert max(times) < 2.0
    assert grown < GROWTH
    for client in (*pullers, other):
        await client.close()


async def test_a_pull_that_is_given_up_stops_looking(workspace: Workspace) -> None:
    puller, other = await workspace.connect_async("renderer"), await workspace.connect_async("exec")
    slow = {"content": ("![" * 3000 + "] ") * 340, "mime": "text/markdown"}
    given_up = [puller.ask("assets/pull", slow) for _ in range(8)]
    for number in range(8):
        puller.notify("$/cancelRequest", {"id": 2 + number})
    assert {(await one)["error"]["code"] for one in given_up} == {-32800}
    # The two threads that scan are free again; eight pages would have kept them for minutes.
    answer = await asyncio.wait_for(other.ask("assets/pull", {"content": "<img src=x>"}), 2 * limits.ASSET_SECONDS)
    assert answer["result"]["missing"][0]["path"] == "x"
    for client in (puller, other):
        await client.close()


@pytest_asyncio.fixture
async def emptied(front: FaultyFront, bucket: str, tmp_path: Path) -> AsyncIterator[Inside]:
    """A workspace on real S3 whose one picture is in the store and nowhere else."""
    store = S3Store(bucket, tmp_path.name, endpoint_url=front.url, region="us-east-1", timing=QUICK)
    async with awake(tmp_path, store=store) as inside:
        await inside.begin("turn_1")
        picture = inside.write("turn_1/files/a.png", PICTURE)
        await inside.ask("turn/end", {"turn_id": "turn_1"})
        await inside.assembly.hosting.settle(5)
        (artifact,) = (await inside.ask("artifact/list"))["artifacts"]
        picture.unlink()
        inside.assembly.blobs.evict(artifact["sha256"])
        yield inside


@pytest.mark.rule("assets.rehosted-before-rendering")
async def test_a_picture_that_is_only_in_s3_is_there_before_rendering(emptied: Inside) -> None:
    answer = await emptied.ask("assets/pull", {"content": "![x](turn_1/files/a.png) [[S:1]]"}, role="renderer")
    assert (answer["missing"], answer["files_of_sources"]) == ([], {"1": "turn_1/files/a.png"})
    assert (emptied.out / "turn_1/files/a.png").read_bytes() == PICTURE


async def test_a_store_that_is_down_is_no_lost_file(emptied: Inside, front: FaultyFront) -> None:
    page = {"content": "![x](turn_1/files/a.png) ![y](turn_1/files/never.png)"}
    front.behave(Answer(403, "AccessDenied"))
    answer = await emptied.ask("assets/pull", page, role="renderer")
    assert {one["path"]: (one["reason"], one.get("fault")) for one in answer["missing"]} == {
        "turn_1/files/a.png": ("store_unavailable", "denied"),
        "turn_1/files/never.png": ("unknown", None),
    }
    front.heal()
    assert len((await emptied.ask("assets/pull", page, role="renderer"))["rehosted"]) == 1
