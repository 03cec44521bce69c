"""Whoever asks the threads for little is served soon, however much others have asked for."""

from __future__ import annotations

import asyncio
import gc
import threading
import time
import weakref
from collections.abc import AsyncIterator, Callable

import pytest
import pytest_asyncio

from sidecar.hands import ASKER, Hands, Threads
from tests.server.joined import CEILING

BUSY = 60


class Counter:
    """One thread with a gate before it; the order in which askers were served."""

    def __init__(self) -> None:
        self.threads = Threads(1, "test")
        self.gate = threading.Event()
        self.served: list[str] = []

    def ask(self, asker: int, name: str, *, seconds: float = 0.0) -> asyncio.Task[None]:
        async def wait() -> None:
            ASKER.set(asker)
            await self.threads.run(self._work, name, seconds)

        return asyncio.create_task(wait())

    def _work(self, name: str, seconds: float) -> None:
        assert self.gate.wait(CEILING)
        self.served.append(name)
        until = time.thread_time() + seconds
        while time.thread_time() < until:
            pass


@pytest_asyncio.fixture
async def counter() -> AsyncIterator[Counter]:
    made = Counter()
    try:
        yield made
    finally:
        made.gate.set()
        made.threads.let_go()


async def turns() -> None:
    """Let everybody who can, go on."""
    for _ in range(20):
        await asyncio.sleep(0)


@pytest.mark.rule("faults.who-asks-for-little-is-served-soon")
async def test_one_question_waits_for_what_is_under_way_and_not_for_a_queue(counter: Counter) -> None:
    flood = [counter.ask(1, "flood", seconds=0.001) for _ in range(BUSY)]
    await turns()
    honest = counter.ask(2, "honest")
    await turns()
    counter.gate.set()
    await asyncio.gather(honest, *flood)
    assert counter.served.index("honest") <= 2
    assert len(counter.served) == BUSY + 1


async def test_those_who_ask_for_the_same_are_served_in_turn(counter: Counter) -> None:
    waiting = [counter.ask(asker, f"{asker}", seconds=0.002) for asker in (1, 2, 3) for _ in range(20)]
    await turns()
    counter.gate.set()
    await asyncio.gather(*waiting)
    first = counter.served[:30]
    assert all(first.count(f"{asker}") >= 6 for asker in (1, 2, 3))


async def test_a_crowd_of_newcomers_stands_behind_who_took_little_before(counter: Counter) -> None:
    counter.gate.set()
    await counter.ask(2, "before")
    counter.gate.clear()
    crowd = [counter.ask(asker, "crowd", seconds=0.001) for asker in range(10, 10 + BUSY)]
    await turns()
    honest = counter.ask(2, "honest")
    await turns()
    counter.gate.set()
    await asyncio.gather(honest, *crowd)
    assert counter.served.index("honest") <= 2


async def test_one_askers_work_is_done_in_its_order(counter: Counter) -> None:
    waiting = [counter.ask(1, f"{number}") for number in range(BUSY)]
    await turns()
    counter.gate.set()
    await asyncio.gather(*waiting)
    assert counter.served == [f"{number}" for number in range(BUSY)]


async def test_what_is_given_up_while_it_waits_is_never_done_and_holds_up_nobody(counter: Counter) -> None:
    under_way = counter.ask(1, "under way")
    given_up = [counter.ask(asker, "given up") for asker in (1, 2) for _ in range(BUSY)]
    last = counter.ask(3, "last")
    await turns()
    for one in given_up:
        one.cancel()
    counter.gate.set()
    await asyncio.gather(under_way, last)
    assert counter.served == ["under way", "last"]
    await counter.ask(2, "after")
    assert counter.served[-1] == "after"


async def test_a_turn_that_comes_while_it_is_given_up_is_another_ones(counter: Counter) -> None:
    counter.gate.set()
    for _ in range(50):  # at each of them the thread becomes free at another moment
        one, other = counter.ask(1, "one"), counter.ask(2, "other")
        last = counter.ask(3, "last")
        await asyncio.sleep(0)
        one.cancel()
        await asyncio.sleep(0)
        other.cancel()
        async with asyncio.timeout(CEILING):
            await last


async def test_work_that_is_given_up_under_way_keeps_its_thread_until_it_ends(counter: Counter) -> None:
    under_way = counter.ask(1, "under way")
    await turns()
    under_way.cancel()
    await asyncio.gather(under_way, return_exceptions=True)
    waiting = counter.ask(2, "next")
    await turns()
    assert counter.served == []
    assert not waiting.done()
    counter.gate.set()
    await waiting
    assert counter.served == ["under way", "next"]


async def test_what_fails_fails_for_its_asker_and_frees_its_thread(counter: Counter) -> None:
    with pytest.raises(ZeroDivisionError):
        await counter.threads.run(lambda: 1 // 0)
    counter.gate.set()
    await counter.ask(1, "after")
    assert counter.served == ["after"]


async def test_when_the_threads_are_let_go_nobody_waits_any_more(counter: Counter) -> None:
    under_way = counter.ask(1, "under way")
    waiting = [counter.ask(2, "waiting") for _ in range(3)]
    await turns()
    counter.threads.let_go()
    await asyncio.wait(waiting)
    assert all(one.cancelled() for one in waiting)
    counter.gate.set()
    await under_way
    with pytest.raises(RuntimeError):
        await counter.threads.run(lambda: None)


async def test_each_kind_of_work_has_threads_of_its_own() -> None:
    hands, gate = Hands(), threading.Event()
    held: list[Callable[[], object]] = [gate.wait] * 4
    busy = [asyncio.create_task(hands.search(one)) for one in held]
    try:
        async with asyncio.timeout(CEILING):
            assert await hands.off_loop(lambda: 1) == await hands.see(lambda: 1) == await hands.bring(lambda: 1) == 1
    finally:
        gate.set()
        await asyncio.gather(*busy)
        hands.let_go()


async def test_accounts_of_those_who_are_gone_are_not_kept_for_ever() -> None:
    threads = Threads(1, "test")
    for asker in range(3000):
        ASKER.set(asker)
        await threads.run(int)
    assert len(threads._accounts) <= 1025
    threads.let_go()


@pytest.mark.rule("faults.a-crowd-of-clients-is-bounded")
async def test_work_that_fails_leaves_nothing_behind() -> None:
    """Not even until cycles are collected, which may be long after."""

    class Given:
        pass

    def fails(given: Given) -> None:
        raise ValueError(str(given))

    threads = Threads(1, "test")
    given = Given()
    was_given = weakref.ref(given)
    gc.collect()
    gc.disable()
    try:
        with pytest.raises(ValueError, match="Given"):
            await threads.run(fails, given)
        del given
        await asyncio.to_thread(threads.let_go)
        assert was_given() is None
    finally:
        gc.enable()
