"""Many clients at once, some of them hostile: whatever one does, the others are answered and memory stays bounded."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import psutil
import pytest

from sidecar.core import limits
from tests.daemon_process import ROLES, Workspace, eventually
from tests.faults.hostile import DEEDS, Deed, dial
from tests.rpc_client import CEILING, AsyncClient

GROWTH = 150 * 2**20
LATEST = CEILING
ROWS = 400


def resident(workspace: Workspace) -> int:
    assert workspace.daemon is not None
    memory: int = psutil.Process(workspace.daemon.pid).memory_info().rss
    return memory


class Times:
    """How long each answer took, in seconds."""

    def __init__(self, ceiling: float) -> None:
        self._ceiling = ceiling
        self._all: list[float] = []
        self._more = asyncio.Event()

    def note(self, seconds: float) -> None:
        self._all.append(seconds)
        self._more.set()

    def __len__(self) -> int:
        return len(self._all)

    async def next(self, count: int) -> list[float]:
        """Those of the next `count` answers."""
        first = len(self._all)
        async with asyncio.timeout(self._ceiling):
            while len(self._all) < first + count:
                self._more.clear()
                await self._more.wait()
        return self._all[first : first + count]


@asynccontextmanager
async def honest_clients(workspace: Workspace, *, ceiling: float = CEILING) -> AsyncIterator[Times]:
    """Four clients, one of each role, that ask again and again; yields how long each answer took, in seconds."""
    clients = [await workspace.connect_async(role) for role in ROLES]
    for client in clients:
        client.ceiling = ceiling
    await clients[0].call("turn/begin", {"turn_id": "turn_1"})
    times = Times(ceiling * 2)
    over = False

    async def ask(client: AsyncClient, at: int) -> None:
        loop = asyncio.get_running_loop()
        requests: tuple[tuple[str, dict[str, Any]], ...] = (
            ("artifact/resolve", {"paths": ["fi:turn_1.files/honest.txt"]}),
            ("citations/replace", {"text": "see [[S:1]]"}),
            ("workspace/sync", {}),
        )
        while not over:
            for method, params in requests:
                began = loop.time()
                await client.call(method, params)
                times.note(loop.time() - began)
            if at == 0:
                blocks = [{"type": "react.note", "text": f"{len(times)}"}]
                await client.call("timeline/append", {"blocks": blocks})

    workspace.write("turn_1/files/honest.txt", "honest")
    asking = [asyncio.create_task(ask(client, at)) for at, client in enumerate(clients)]
    try:
        yield times
    finally:
        over = True
        await asyncio.gather(*asking)
        for client in clients:
            await client.close()


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """One daemon for all hostile clients: what one leaves behind is the next one's surroundings."""
    workspace = Workspace(tmp_path_factory.mktemp("hostile"))
    workspace.start()
    workspace.connect("editor").call("workspace/sync")
    yield workspace
    workspace.clean_up(failed=False)


@pytest.mark.parametrize("name", DEEDS)
async def test_a_client_that_misbehaves_harms_no_other(shared: Workspace, name: str) -> None:
    deed: Deed = DEEDS[name]
    async with honest_clients(shared) as times:
        await times.next(20)
        before = resident(shared)
        link = await asyncio.to_thread(deed, shared)
        slowest = max(await times.next(200))
        grown = resident(shared) - before
        link.close()
    print(f"slowest answer {slowest * 1000:.0f} ms, memory {grown / 2**20:+.0f} MiB")
    assert slowest < LATEST
    assert grown < GROWTH


async def test_all_of_them_at_once_harm_nobody_and_leave_nothing_behind(workspace: Workspace) -> None:
    async with honest_clients(workspace) as times:
        await times.next(20)
        before = resident(workspace)
        links = await asyncio.gather(*(asyncio.to_thread(deed, workspace) for deed in DEEDS.values()))
        slowest = max(await times.next(500))
        grown = resident(workspace) - before
        for link in links:
            link.close()
        print(f"slowest answer {slowest * 1000:.0f} ms, memory {grown / 2**20:+.0f} MiB")
        assert slowest < LATEST
        assert grown < GROWTH
    observer = workspace.connect("editor")
    await asyncio.to_thread(eventually, lambda: len(observer.call("workspace/status")["clients"]) == 1)


async def test_a_listener_that_reads_nothing_costs_bounded_memory_and_is_told_what_it_missed(
    workspace: Workspace,
) -> None:
    runtime = await workspace.connect_async("runtime")
    await runtime.call("turn/begin", {"turn_id": "turn_1"})
    deaf = await asyncio.to_thread(DEEDS["hears of everything and reads nothing"], workspace)
    listener = workspace.connect("runtime", events=["timeline"])
    await runtime.call("workspace/status")
    before = resident(workspace)
    for _ in range(150):
        blocks = [{"type": "react.note", "text": "x", "path": f"ar:turn_1.note.{at}.{'y' * 80}"} for at in range(200)]
        await runtime.call("timeline/append", {"blocks": blocks})
    grown = resident(workspace) - before
    assert grown < GROWTH, f"{grown / 2**20:.0f} MiB"
    # The second one reads at last: some events, then one notice for all that were dropped.
    told = await asyncio.to_thread(listener.event, "notice/posted")
    assert told["notice"]["code"] == "events_dropped"
    assert told["notice"]["count"] > 0
    listener.drop()
    deaf.close()
    await runtime.close()


async def test_rows_merged_by_many_at_once_get_numbers_without_a_gap(workspace: Workspace) -> None:
    mergers = [await workspace.connect_async(role) for role in ("runtime", "renderer") * 4]
    readers = [await workspace.connect_async(role, events=["sources"]) for role in ("exec", "editor")]
    asked = [
        mergers[at % len(mergers)].call("sources/merge", {"rows": [{"url": f"https://e.org/{at}", "title": f"{at}"}]})
        for at in range(ROWS)
    ]
    answers = await asyncio.gather(*asked)
    given = [answer["added"] for answer in answers]
    assert all(len(sids) == 1 for sids in given)
    assert sorted(sid for (sid,) in given) == [*range(1, ROWS + 1)]
    rows = (await readers[0].call("sources/list"))["rows"]
    assert {row["sid"]: row["url"] for row in rows} == {sids[0]: f"https://e.org/{at}" for at, sids in enumerate(given)}
    for reader in readers:
        told: list[int] = []
        while len(told) < ROWS:
            told += [row["sid"] for row in (await reader.event("sources/added"))["rows"]]
        assert told == [*range(1, ROWS + 1)], "each row is told once, in order"
    for client in (*mergers, *readers):
        await client.close()


async def test_the_same_row_merged_by_all_at_once_gets_one_number(workspace: Workspace) -> None:
    mergers = [await workspace.connect_async(role) for role in ("runtime", "renderer") * 4]
    row = {"url": "https://e.org/same", "title": "same"}
    answers = await asyncio.gather(*(merger.call("sources/merge", {"rows": [row]}) for merger in mergers))
    assert {answer["rows"][0]["sid"] for answer in answers} == {1}
    assert sum(len(answer["added"]) for answer in answers) == 1
    for client in mergers:
        await client.close()


async def test_eight_clients_of_different_roles_work_at_once(workspace: Workspace) -> None:
    clients = [await workspace.connect_async(role) for role in ROLES * 2]
    await clients[0].call("turn/begin", {"turn_id": "turn_1"})

    async def work(at: int, client: AsyncClient) -> None:
        path = f"turn_1/files/of_{at}.txt"
        for trial in range(10):
            await asyncio.to_thread(workspace.write, path, f"{at} {trial}")
            await client.call("workspace/sync")
            fetched = await client.call("artifact/fetch", {"path": path})
            assert fetched["ret"]["text"] == f"{at} {trial}"

    await asyncio.gather(*(work(at, client) for at, client in enumerate(clients)))
    for client in clients:
        await client.close()


async def test_a_client_may_cancel_while_others_wait_for_the_same(workspace: Workspace) -> None:
    first, second = await workspace.connect_async("exec"), await workspace.connect_async("renderer")
    for at in range(300):
        workspace.write(f"turn_1/files/{at}.txt", f"{at}")
    given_up = first.ask("workspace/sync")
    waited = second.ask("workspace/sync")
    first.notify("$/cancelRequest", {"id": 2})
    answer = await asyncio.wait_for(waited, CEILING)
    assert len(answer["result"]["artifacts"]) == 300
    ended = await asyncio.wait_for(given_up, CEILING)
    assert ended.get("error", {}).get("code", -32800) == -32800
    for client in (first, second):
        await client.close()


def test_a_crowd_is_turned_away_at_the_limit_and_makes_room_again(workspace: Workspace) -> None:
    observer = workspace.connect("editor")
    crowd = [dial(workspace) for _ in range(limits.CONNECTIONS_PER_UID + 20)]
    assert b"close one" in crowd[-1].recv(4096)
    inside = eventually(lambda: observer.call("workspace/status")["clients"])
    assert len(inside) == limits.CONNECTIONS_PER_UID
    for link in crowd:
        link.close()
    eventually(lambda: len(observer.call("workspace/status")["clients"]) == 1)
    assert workspace.connect("exec").call("workspace/status")["out_dir"] == str(workspace.out_dir)
