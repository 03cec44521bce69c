"""Who writes: one holder at a time, known again after a restart, and nobody where nobody can be asked."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from sidecar.conversation.archive import Archive
from sidecar.conversation.lease import Lease
from sidecar.core.entries import Remembered, TurnBegun, TurnEnded, TurnSaved
from sidecar.core.errors import NotPermitted, StoreUnavailable
from sidecar.core.index_rows import Commit, LeaseLost, Scope, Standing
from sidecar.ports import Index
from sidecar.stores.sqlite_index import SqliteIndex
from sidecar.workspace import Workspace
from tests.conversation.inside import IDENTITY
from tests.memory_journal import MemoryJournal

pytestmark = pytest.mark.rule("store.one-writer-per-conversation")

SCOPE = Scope("acme", "inn", "ann", "c-1")


class Away:
    """An index that does not answer while it is told to."""

    def __init__(self, index: Index) -> None:
        self.away = False
        self._index = index

    def __getattr__(self, name: str) -> Any:
        if self.away and name != "kind":
            raise StoreUnavailable("index", "nobody is there", fault="unreachable")
        return getattr(self._index, name)


class Asking:
    """As much of an archive as a lease needs."""

    fault = None

    def __init__(self, index: Index) -> None:
        self.index = index
        self.scope = SCOPE

    async def ask(self, work: Any, *args: Any, **named: Any) -> Any:
        return work(*args, **named)


@pytest.fixture
def index(tmp_path: Path) -> Iterator[Away]:
    engine = SqliteIndex(str(tmp_path / "index.db"))
    engine.open()
    yield Away(engine)
    engine.close()


class Late(Asking):
    """An archive over an index that may not answer, also while the method itself is looked up."""

    def __init__(self, index: Any) -> None:
        super().__init__(Looked(index))  # type: ignore[arg-type]


class Looked:
    def __init__(self, index: Away) -> None:
        self._index = index

    def __getattr__(self, name: str) -> Any:
        return lambda *args, **named: getattr(self._index, name)(*args, **named)


class Slow(Late):
    """An archive over an index that takes as long as it is told to."""

    def __init__(self, index: Any) -> None:
        super().__init__(index)
        self.answers = asyncio.Event()
        self.answers.set()

    async def ask(self, work: Any, *args: Any, **named: Any) -> Any:
        await self.answers.wait()
        return work(*args, **named)


def workspace() -> Workspace:
    return Workspace(MemoryJournal())


def lease(index: Away, at: Workspace, label: str = "ann@here:out", seconds: float = 30.0) -> Lease:
    archive: Archive = Late(index)  # type: ignore[assignment]
    return Lease(at, archive, label=label, seconds=seconds)


def slow(index: Away, at: Workspace, seconds: float = 30.0) -> tuple[Lease, asyncio.Event]:
    """A lease that waits for its index no time at all, and what lets the index answer."""
    archive = Slow(index)
    one = Lease(at, archive, label="ann@here:out", seconds=seconds)  # type: ignore[arg-type]
    one.patience = 0.01
    return one, archive.answers


async def named(at: Workspace) -> Workspace:
    await at.stage(Remembered({"conversation": IDENTITY}))
    return at


@asynccontextmanager
async def running(one: Lease) -> AsyncIterator[None]:
    task = asyncio.create_task(one.run())
    try:
        yield
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def eventually(look: Callable[[], object]) -> None:
    """Look until it is so; the lease says nothing when it changes."""
    deadline = asyncio.get_running_loop().time() + 10
    while not look():
        assert asyncio.get_running_loop().time() < deadline
        await asyncio.sleep(0.01)


async def becomes(one: Lease, state: str) -> None:
    await eventually(lambda: one.state == state)


async def test_the_first_one_writes_and_the_second_one_is_told_who_does(index: Away) -> None:
    first, second = lease(index, await named(workspace())), lease(index, await named(workspace()), "bob@there:out")
    await first.take()
    await second.take()
    assert (first.state, second.state) == ("writer", "reader")
    first.require()
    with pytest.raises(NotPermitted) as refused:
        second.require()
    assert refused.value.about == "c-1"
    assert "ann@here:out" in refused.value.hint
    assert second.status() == {"lease": "reader", "held_by": "ann@here:out"}
    assert first.status() == {"lease": "writer"}


async def test_who_starts_again_on_the_same_workspace_has_it_at_once(index: Away) -> None:
    journal = MemoryJournal()
    before = lease(index, await named(Workspace(journal)))
    await before.take()
    again = Workspace(MemoryJournal(journal.records))
    again.load()
    after = lease(index, again)
    await after.take()
    assert after.state == "writer"
    assert after.fence == before.fence


async def test_a_lease_that_is_given_up_is_free_at_once(index: Away) -> None:
    first, second = lease(index, await named(workspace())), lease(index, await named(workspace()))
    await first.take()
    await first.release()
    assert not first.mine
    await second.take()
    assert second.state == "writer"
    await first.take()  # nothing is taken after the end
    assert not first.mine


@pytest.mark.rule("store.a-successor-takes-over")
async def test_a_successor_waits_until_it_expires(index: Away) -> None:
    first = lease(index, await named(workspace()), seconds=0.3)
    second = lease(index, await named(workspace()), seconds=0.3)
    await first.take()
    await second.take()
    assert second.state == "reader"
    async with running(second):
        await becomes(second, "writer")


async def test_a_writer_renews_it(index: Away) -> None:
    first = lease(index, await named(workspace()), seconds=0.3)
    second = lease(index, await named(workspace()), seconds=0.3)
    await first.take()
    await first.take()
    expires = asyncio.get_running_loop().time() + 0.6  # twice as long as it lasts
    async with running(first):
        while asyncio.get_running_loop().time() < expires:
            await second.take()
            assert second.state == "reader"
            await asyncio.sleep(0)
    assert first.state == "writer"


async def test_who_lost_it_without_knowing_changes_nothing(index: Away) -> None:
    """The fence is the generation: it says who has become the writer since."""
    first, second = lease(index, await named(workspace()), seconds=0.01), lease(index, await named(workspace()))
    await first.take()
    async with running(second):
        second._stirred.set()
        await becomes(second, "writer")
    assert first.mine  # it does not know yet
    with pytest.raises(LeaseLost):
        index.commit(SCOPE, Commit(next_block=7), fence=first.fence)
    first.lost()
    assert first.state == "reader"
    async with running(first):
        await eventually(lambda: first.held_by)
    assert index.commit(SCOPE, Commit(next_block=7), fence=second.fence) == 1


async def test_what_others_saved_is_taken_in_before_anything_is_written(index: Away) -> None:
    first, at = lease(index, await named(workspace())), await named(workspace())
    await first.take()
    index.commit(SCOPE, Commit(next_block=7), fence=first.fence)
    await first.release()
    second = lease(index, at)
    caught_up: list[tuple[int, str]] = []

    async def catch_up(standing: Standing) -> bool:
        caught_up.append((standing.next_block, second.state))
        return True

    second.catch_up = catch_up
    await second.take()
    assert caught_up == [(7, "unknown")]
    await second.take()
    assert len(caught_up) == 1, "who renews has nothing to take in"


async def test_work_that_cannot_be_reconciled_is_remembered(index: Away) -> None:
    journal = MemoryJournal()
    one = lease(index, await named(Workspace(journal)))

    async def never(_: Standing) -> bool:
        return False

    one.catch_up = never
    await one.take()
    assert one.state == "diverged"
    with pytest.raises(NotPermitted, match="--state-dir"):
        one.require()
    again = Workspace(MemoryJournal(journal.records))
    again.load()
    later = lease(index, again)
    await later.take()
    assert later.state == "diverged"


async def test_an_index_that_does_not_answer_stops_nobody_but_who_knows_nothing(index: Away) -> None:
    one = lease(index, await named(workspace()))
    index.away = True
    await one.take()
    assert one.state == "unknown"
    one.require()
    one.blind = True
    with pytest.raises(StoreUnavailable) as refused:
        one.require()
    assert refused.value.about == "index"
    index.away = False
    async with running(one):
        one._stirred.set()
        await becomes(one, "writer")


async def test_another_conversation_is_another_lease(index: Away) -> None:
    at = await named(workspace())
    one = lease(index, at)
    await one.take()
    other = Scope("acme", "inn", "ann", "c-2")
    one._archive.scope = other  # type: ignore[misc]
    await one.confirm()
    assert one.state == "writer"
    assert index.standing(SCOPE).holder == ""
    assert index.standing(other).holder == one.holder


async def test_an_index_that_says_nothing_holds_up_nobody(index: Away) -> None:
    one, answers = slow(index, await named(workspace()))
    await one.take()
    answers.clear()
    async with running(one):
        one._stirred.set()
        await eventually(one.alone.locked)  # by the renewal, which hangs
        one._until = 0.0
        for _ in range(2):
            await asyncio.wait_for(one.confirm(), 5)
            assert one.state == "unknown"
            one.require()
        answers.set()
        await becomes(one, "writer")
    assert not one.lapsed


async def test_who_stops_waiting_leaves_the_lease_whole(index: Away) -> None:
    one, answers = slow(index, await named(workspace()))
    one.patience = 60.0
    answers.clear()
    waiting = asyncio.create_task(one.confirm())
    await eventually(one.alone.locked)
    waiting.cancel()
    await asyncio.gather(waiting, return_exceptions=True)
    assert one.alone.locked()
    answers.set()
    await asyncio.wait_for(one.confirm(), 5)
    assert (one.state, one.alone.locked()) == ("writer", False)


async def test_a_reader_stays_one_while_the_lease_of_another_goes_on(index: Away) -> None:
    first, (second, answers) = lease(index, await named(workspace())), slow(index, await named(workspace()))
    await first.take()
    await second.take()
    answers.clear()
    await second.confirm()
    assert second.state == "reader"
    second._until = 0.0
    await second.confirm()
    assert second.state == "unknown"
    answers.set()
    await becomes(second, "reader")


async def test_what_others_saved_is_waited_for_however_long_it_takes(index: Away) -> None:
    """Nothing may be written before it is taken in."""
    first, (second, _) = lease(index, await named(workspace())), slow(index, await named(workspace()))
    await first.take()
    index.commit(SCOPE, Commit(next_block=7), fence=first.fence)
    await first.release()
    second.patience = 0.5  # for a busy machine: until it is taking in, an index that says nothing is not waited for
    taking, taken = asyncio.Event(), asyncio.Event()

    async def catch_up(_: Standing) -> bool:
        taking.set()
        await taken.wait()
        return True

    second.catch_up = catch_up
    waiting = asyncio.create_task(second.confirm())
    await taking.wait()
    await asyncio.sleep(3 * second.patience)
    assert not waiting.done()
    taken.set()
    await asyncio.wait_for(waiting, 5)
    assert second.state == "writer"


async def test_the_patience_begins_anew_when_what_others_saved_is_taken_in(index: Away) -> None:
    """The index was heard of: how long the taking in took is nothing to hold against it."""
    first, (second, answers) = lease(index, await named(workspace())), slow(index, await named(workspace()))
    await first.take()
    index.commit(SCOPE, Commit(next_block=7), fence=first.fence)
    await first.release()
    second.patience = 1.0

    async def catch_up(_: Standing) -> bool:
        await asyncio.sleep(1.5 * second.patience)  # past one round, and into the next
        answers.clear()
        return True

    second.catch_up = catch_up
    waiting = asyncio.create_task(second.confirm())
    await eventually(lambda: not answers.is_set())
    await asyncio.sleep(0.8 * second.patience)
    assert not waiting.done()
    answers.set()
    await asyncio.wait_for(waiting, 5)
    assert second.state == "writer"


async def test_a_lease_lasts_from_when_it_was_asked_for(index: Away, monkeypatch: pytest.MonkeyPatch) -> None:
    """A process that was stopped meanwhile gets the answer when the lease may be over."""
    one = lease(index, await named(workspace()))
    now = 1000.0
    monkeypatch.setattr("sidecar.conversation.lease.clock", lambda: now)
    await one.take()
    now += 29
    assert not one.lapsed
    now += 2
    assert one.lapsed
    await one.settle()
    assert (one.state, one.lapsed) == ("writer", False)
    claim = index.claim

    def stopped_meanwhile(*args: Any, **named: Any) -> Standing:
        nonlocal now
        now += 31
        return claim(*args, **named)

    monkeypatch.setattr(index, "claim", stopped_meanwhile, raising=False)
    await one.take()
    assert one.lapsed


async def test_who_waits_for_a_lapsed_lease_goes_on_in_the_order_of_asking(index: Away) -> None:
    one, answers = slow(index, await named(workspace()))
    one.patience = 60.0
    await one.take()
    one._until = 0.0
    answers.clear()
    order: list[int] = []

    async def change(number: int) -> None:
        await one.settle()
        order.append(number)

    early = [asyncio.create_task(change(number)) for number in range(3)]
    await eventually(one.alone.locked)
    answers.set()
    await eventually(lambda: order)
    late = [asyncio.create_task(change(3))] if one.doubtful else []
    await asyncio.gather(*early, *late)
    assert order == sorted(order)
    assert not one.doubtful


async def test_the_end_waits_for_an_index_no_longer_than_it_is_given(
    index: Away, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sidecar.conversation.lease.FAREWELL", 600.0)
    one, answers = slow(index, await named(workspace()))
    await one.take()
    answers.clear()
    async with asyncio.timeout(60):
        await one.release(within=0.01)
    assert not one.mine


async def saved_at(index: Away, change: int) -> Workspace:
    """A workspace that has saved a turn by this change of the index."""
    one = await named(workspace())
    await one.stage(TurnBegun("turn_1", 1.0, ""), TurnEnded("turn_1", 2.0, "completed"))
    first = lease(index, one)
    await first.take()
    for _ in range(3):
        index.commit(SCOPE, Commit(), fence=first.fence)
    await one.stage(TurnSaved("turn_1", one.revision, change, ()))
    await first.release()
    assert one.saved.is_saved("turn_1")
    return one


@pytest.mark.rule("store.an-index-that-was-set-back-gets-what-it-lost")
@pytest.mark.parametrize(("change", "is_saved"), [(3, True), (7, False)])
async def test_what_an_index_had_and_has_no_more_is_unsaved_again(index: Away, change: int, is_saved: bool) -> None:
    one = await saved_at(index, change)
    again = lease(index, one)
    await again.take()
    assert again.mine
    assert one.saved.is_saved("turn_1") is is_saved


async def test_an_index_that_knows_nothing_any_more_is_brought_nothing_back(index: Away) -> None:
    """It may have been told to forget."""
    one = await saved_at(index, 7)
    index.forget(SCOPE)
    again = lease(index, one)
    await again.take()
    assert again.mine
    assert one.saved.is_saved("turn_1")
