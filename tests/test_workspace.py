"""Everything that changes goes through `stage`: numbered in order, durable, applied, told; or refused as a whole."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import orjson
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from sidecar.core import limits
from sidecar.core.artifacts import describe, describe_versions
from sidecar.core.blocks import Defaults, tell
from sidecar.core.changelog import Change
from sidecar.core.entries import (
    Answered,
    BlockTold,
    CallBegun,
    CallEnded,
    Entry,
    FileGone,
    FileSeen,
    FolderAdopted,
    Noticed,
    Remembered,
    SourceSet,
    TurnBegun,
    TurnEnded,
)
from sidecar.core.errors import JournalUnavailable, ShuttingDown
from sidecar.core.happened import Happened
from sidecar.core.inventory import FileFact, StatKey
from sidecar.core.notices import notice
from sidecar.core.paths import parse_physical
from sidecar.core.sources import plan_merge
from sidecar.stores.journal import Journal
from sidecar.workspace import GROUPS_AT_ONCE, Applied, Workspace
from tests.memory_journal import MemoryJournal

A = "turn_1/files/a.txt"
FI_A = "fi:turn_1.files/a.txt"


def block(text: str = "x", turn: str = "turn_1", **more: Any) -> BlockTold:
    return BlockTold(tell({"type": "note", "text": text, **more}, Defaults(turn, 1.0)))


def seen(path: str = A, sha256: str = "aa", *, call: str = "", visibility: Any = "external", **more: Any) -> FileSeen:
    fact = FileFact(path, StatKey(1, 2, 3, more.pop("mtime", 4), 5), sha256, "text/plain", **more)
    return FileSeen(fact, 1.0, call, visibility)


def begun(call: str = "tc_1") -> CallBegun:
    return CallBegun(call, "turn_1", "tool", 1.0)


def merging(workspace: Workspace, *rows: dict[str, Any]) -> list[Entry]:
    return [SourceSet(row) for row in plan_merge(workspace.pool, rows, proposals=True).changed]


def snapshot(workspace: Workspace) -> dict[str, Any]:
    """Everything a reader can learn."""
    return {
        "revision": workspace.revision,
        "heads": list(workspace.timeline.heads),
        "seqs": list(workspace.timeline.seqs),
        "tools": workspace.timeline.tools,
        "turns": workspace.timeline.turns,
        "rows": workspace.pool.all_rows(),
        "highest": workspace.pool.highest,
        "artifacts": {
            artifact.path.logical: (describe(artifact, {}), describe_versions(artifact), artifact.owner)
            for artifact in workspace.artifacts
            if artifact.versions
        },
        "pending": sorted(workspace.pending),
        "files": workspace.files,
        "facts": workspace.facts,
        "turn": workspace.durable_turn_id,
        "ended": {name: turn.ended for name, turn in workspace.turns.durable.items()},
        "open": sorted(name for name, call in workspace.calls.durable.items() if call.open),
        "answers": dict(workspace.answers.durable),
        "adopted": workspace.adopted,
        "noticed": workspace.noticed,
        "changes": list(workspace.log.since(0, workspace.timeline)),
        "next": (workspace.next_revision, workspace.next_block),
    }


@pytest.mark.rule("journal.readers-see-only-durable-state")
async def test_a_change_is_answered_when_it_is_durable_and_applied() -> None:
    journal = MemoryJournal()
    workspace = Workspace(journal)
    journal.hold()
    answer = workspace.stage(block(), seen(), block())
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert not answer.done()
    assert (workspace.revision, len(workspace.timeline), workspace.files) == (0, 0, {})
    assert (workspace.next_revision, workspace.next_block) == (4, 2)
    journal.release()
    assert await answer == Applied(3, (0, 1))
    assert (workspace.revision, len(workspace.timeline)) == (3, 2)
    assert not workspace.busy


async def test_what_is_staged_while_a_batch_is_under_way_goes_with_the_next() -> None:
    journal = MemoryJournal()
    workspace = Workspace(journal)
    journal.hold()
    first = workspace.stage(block())
    await asyncio.sleep(0)
    others = [workspace.stage(block()) for _ in range(GROUPS_AT_ONCE + 1)]
    journal.release()
    await asyncio.gather(first, *others)
    assert journal.groups == [1, GROUPS_AT_ONCE, 1]


async def test_staging_nothing_waits_for_everything_before() -> None:
    workspace = Workspace(MemoryJournal())
    assert await workspace.stage() == Applied(0, ())
    first = workspace.stage(block())
    assert await workspace.stage() == Applied(1, ())
    assert first.done()


async def test_a_refused_batch_takes_everything_staged_behind_it_along() -> None:
    journal = MemoryJournal()
    workspace = Workspace(journal)
    await workspace.stage(TurnBegun("turn_1", 1.0, ""), begun("tc_0"), *merging(workspace, {"url": "https://a.io"}))
    before = snapshot(workspace)
    journal.refusing = True
    refused = [
        workspace.stage(block(), begun("tc_1"), *merging(workspace, {"url": "https://b.io"})),
        workspace.stage(TurnEnded("turn_1", 1.0, "done"), CallEnded("tc_0", 1.0), Answered("r", "", {})),
    ]
    await asyncio.sleep(0)
    refused.append(workspace.stage(*merging(workspace, {"url": "https://c.io"})))
    for answer in refused:
        with pytest.raises(JournalUnavailable):
            await answer
    assert snapshot(workspace) == before
    assert workspace.turn_id == "turn_1"
    assert [call.tool_call_id for call in workspace.open_calls] == ["tc_0"]
    assert workspace.answers.latest("r") is None
    assert workspace.calls.latest("tc_1") is None
    journal.refusing = False
    await workspace.stage(*merging(workspace, {"url": "https://c.io"}))
    assert list(workspace.pool.sids) == [1, 2], "numbers that were never given are free"


async def test_a_closed_journal_refuses_and_nobody_waits_for_ever() -> None:
    journal = MemoryJournal()
    workspace = Workspace(journal)
    journal.close()
    with pytest.raises(JournalUnavailable):
        await workspace.stage(block())
    assert not workspace.busy


async def test_a_workspace_that_is_ending_takes_nothing() -> None:
    workspace = Workspace(MemoryJournal())
    workspace.closing = True
    with pytest.raises(ShuttingDown):
        workspace.stage(block())


async def test_a_requester_that_left_stops_nobody() -> None:
    workspace = Workspace(MemoryJournal())
    left = workspace.stage(block())
    left.cancel()
    assert await workspace.stage(block()) == Applied(2, (1,))


async def test_listeners_hear_of_a_batch_after_it_is_applied() -> None:
    workspace = Workspace(MemoryJournal())
    heard: list[tuple[Happened, int]] = []
    workspace.listeners.append(lambda happened: heard.append((happened, workspace.revision)))
    row = {"sid": 1, "title": "t"}
    said = notice("oversize", path=A)
    await workspace.stage(block(turn="turn_2"), SourceSet(row), seen(), Noticed(said))
    ((happened, revision),) = heard
    assert (happened.revision, revision) == (4, 4)
    assert happened.sources == {1: row}
    assert list(happened.artifacts) == [FI_A]
    assert (happened.blocks, happened.notices, happened.turns) == ([0], [said], {"turn_2"})


async def test_a_row_that_only_changes_is_not_told_as_added() -> None:
    workspace = Workspace(MemoryJournal())
    await workspace.stage(SourceSet({"sid": 1, "title": "t"}))
    heard: list[Happened] = []
    workspace.listeners.append(heard.append)
    await workspace.stage(SourceSet({"sid": 1, "title": "longer"}))
    assert heard[0].sources == {}


@pytest.mark.parametrize("entry", [block(turn="t9"), TurnBegun("t9", 1.0, "")])
async def test_a_turn_that_is_named_for_the_first_time_is_told(entry: Entry) -> None:
    workspace = Workspace(MemoryJournal())
    heard: list[set[str]] = []
    workspace.listeners.append(lambda happened: heard.append(happened.turns))
    assert not workspace.is_turn("t9")
    await workspace.stage(entry, block(turn="t9"))
    await workspace.stage(block(turn="t9"))
    assert heard == [{"t9"}, set()]
    assert workspace.is_turn("t9")


@pytest.mark.rule("watch.turn-folders-are-known-or-look-like-turns", "watch.four-names-are-never-turns")
@pytest.mark.parametrize(
    ("folder", "is_turn"),
    [
        ("turn_1", True),
        ("known", True),
        ("adopted", True),
        ("other", False),
        ("logs", False),
        ("current_turn", False),
        ("turn_1.files", False),
        ("turn_é", False),
        ("", False),
    ],
)
async def test_a_folder_is_a_turns_when_it_is_known_or_looks_like_one(folder: str, is_turn: bool) -> None:
    workspace = Workspace(MemoryJournal())
    await workspace.stage(block(turn="known"), FolderAdopted("adopted"), FolderAdopted("logs"))
    assert workspace.is_turn(folder) is is_turn


async def test_the_open_turn_is_the_last_that_began_and_did_not_end() -> None:
    workspace = Workspace(MemoryJournal())
    staged = workspace.stage(TurnBegun("turn_1", 1.0, "p"))
    assert (workspace.turn_id, workspace.durable_turn_id) == ("turn_1", "")
    await staged
    await workspace.stage(TurnEnded("turn_1", 2.0, "abandoned"), TurnBegun("turn_2", 2.0, ""))
    assert (workspace.turn_id, workspace.durable_turn_id) == ("turn_2", "turn_2")
    assert workspace.turns.durable["turn_1"].ended
    await workspace.stage(TurnEnded("turn_1", 3.0, ""))
    assert workspace.turn_id == "turn_2"


async def test_a_call_is_open_from_its_staging_on_and_ends_once() -> None:
    workspace = Workspace(MemoryJournal())
    staged = workspace.stage(begun())
    assert [call.tool_call_id for call in workspace.open_calls] == ["tc_1"]
    await staged
    await workspace.stage(CallEnded("tc_1", 2.0), CallEnded("tc_1", 2.0), CallEnded("unknown", 2.0))
    assert workspace.open_calls == ()
    assert not workspace.calls.durable["tc_1"].open


async def test_pending_files_are_listed_until_their_call_ends() -> None:
    workspace = Workspace(MemoryJournal())
    await workspace.stage(begun(), seen(call="tc_1", visibility="pending"))
    assert list(workspace.pending) == [FI_A]
    digest = orjson.dumps({"artifact_path": FI_A, "visibility": "external"}).decode()
    await workspace.stage(block(digest, type="react.tool.result", mime="application/json"))
    assert list(workspace.pending) == [FI_A], "a digest told meanwhile settles nothing"
    await workspace.stage(seen(call="tc_1"), CallEnded("tc_1", 2.0))
    assert workspace.pending == {}


async def test_whoever_comes_first_artifact_and_row_find_each_other() -> None:
    row = {"sid": 4, "source_type": "file", "physical_path": A, "artifact_path": FI_A}
    for entries in ([seen(), SourceSet(row)], [SourceSet(row), seen()], [SourceSet(row), block(path=FI_A)]):
        workspace = Workspace(MemoryJournal())
        await workspace.stage(*entries)
        artifact = workspace.artifact(parse_physical(A))
        assert artifact is not None
        assert artifact.sid == 4


async def test_a_number_given_later_is_a_change_of_the_artifact() -> None:
    workspace = Workspace(MemoryJournal())
    await workspace.stage(seen())
    await workspace.stage(SourceSet({"sid": 4, "physical_path": A, "artifact_path": FI_A}))
    assert list(workspace.log.since(1, workspace.timeline)) == [Change(2, "source", 4), Change(2, "artifact", FI_A)]


async def test_a_file_that_is_gone_stays_an_artifact() -> None:
    workspace = Workspace(MemoryJournal())
    await workspace.stage(seen(), FileGone(A), FileGone("turn_1/files/never"))
    artifact = workspace.artifact(parse_physical(A))
    assert artifact is not None
    assert not artifact.on_disk
    assert workspace.files == {}


async def test_an_incomplete_file_is_read_again_when_it_is_closed() -> None:
    workspace = Workspace(MemoryJournal())
    await workspace.stage(seen(incomplete=True))
    assert A not in workspace.files


async def test_a_copy_of_what_is_no_artifact_makes_none() -> None:
    workspace = Workspace(MemoryJournal())
    await workspace.stage(block(path="fi:logs/out.log", meta={"rel": "read"}))
    assert len(workspace.artifacts) == 0


async def test_the_json_of_blocks_comes_back_in_the_order_asked_for() -> None:
    workspace = Workspace(MemoryJournal())
    await workspace.stage(block("a"), seen(), block("b"))
    assert [orjson.loads(body)["text"] for body in workspace.bodies([1, 0])] == ["b", "a"]


async def test_only_so_many_answers_are_remembered() -> None:
    workspace = Workspace(MemoryJournal())
    await workspace.stage(*(Answered(f"r{number}", "", {}) for number in range(limits.ANSWERS_KEPT + 2)))
    assert len(workspace.answers.durable) == limits.ANSWERS_KEPT
    assert workspace.answers.latest("r1") is None
    assert workspace.answers.latest("r2") is not None


@pytest.mark.rule("sources.pool-grows-on-merge-and-is-durable")
async def test_what_was_acknowledged_is_there_after_a_restart_of_the_real_journal(tmp_path: Path) -> None:
    def opened() -> Journal:
        return Journal.open(str(tmp_path), post=asyncio.get_running_loop().call_soon_threadsafe)

    journal = opened()
    workspace = Workspace(journal)
    assert workspace.load() == 0
    await asyncio.gather(
        workspace.stage(TurnBegun("turn_1", 1.0, "p"), block("hello", path="ar:turn_1.user.prompt")),
        workspace.stage(begun(), seen(call="tc_1", visibility="pending"), block("v1", path=FI_A)),
        workspace.stage(*merging(workspace, {"sid": 7, "url": "https://a.io"}, {"title": "note"})),
        workspace.stage(Remembered({"conversation": {"user_id": "u"}}), Noticed(notice("link_skipped", name="l"))),
        workspace.stage(Answered("r", "p", {"sids": [7]}), FolderAdopted("old")),
    )
    before = snapshot(workspace)
    journal.close()
    again = opened()
    restarted = Workspace(again)
    assert restarted.load() == before["revision"]
    assert snapshot(restarted) == before
    assert [call.tool_call_id for call in restarted.open_calls] == ["tc_1"]
    assert orjson.loads(restarted.bodies([0])[0])["text"] == "hello"
    again.close()


URLS = st.sampled_from(["https://a.io", "https://b.io", "https://c.io", ""])


class AgainstAPlainModel(RuleBasedStateMachine):
    """Merges, blocks, files and calls staged in any order, batches refused at any time, restarts between them."""

    @initialize()
    def start(self) -> None:
        self.loop = asyncio.new_event_loop()
        self.journal = MemoryJournal()
        self.workspace = Workspace(self.journal)
        self.rows: dict[int, dict[str, Any]] = {}  # what was acknowledged
        self.blocks: list[str] = []
        self.files: dict[str, str] = {}
        self.opened: set[str] = set()
        self.calls = self.states = 0
        self.waiting: list[tuple[asyncio.Future[Applied], Callable[[Applied], object]]] = []

    def stage(self, decide: Callable[[], tuple[list[Entry], Callable[[Applied], object]]]) -> None:
        """Decide and stage in one step, as everybody must: between two steps the journal may refuse what was staged.

        `decide` answers the entries, and what is done to the model when they are acknowledged.
        """

        async def staged() -> tuple[asyncio.Future[Applied], Callable[[Applied], object]]:
            entries, then = decide()
            return self.workspace.stage(*entries), then

        self.waiting.append(self.loop.run_until_complete(staged()))

    @rule(urls=st.lists(URLS, min_size=1, max_size=3), proposed=st.none() | st.integers(1, 40))
    def merge(self, urls: list[str], proposed: int | None) -> None:
        rows = [{"url": url, "title": f"{url} title"} for url in urls]
        if proposed is not None:
            rows[0]["sid"] = proposed  # type: ignore[assignment]

        def decide() -> tuple[list[Entry], Callable[[Applied], object]]:
            changed = plan_merge(self.workspace.pool, rows, proposals=True).changed
            return [SourceSet(row) for row in changed], lambda _: self.rows.update((row["sid"], row) for row in changed)

        self.stage(decide)

    @rule(texts=st.lists(st.text("ab", max_size=2), min_size=1, max_size=3))
    def append(self, texts: list[str]) -> None:
        def decide() -> tuple[list[Entry], Callable[[Applied], object]]:
            first = self.workspace.next_block

            def acknowledged(applied: Applied) -> None:
                assert applied.blocks == tuple(range(first, first + len(texts)))
                self.blocks.extend(texts)

            return [block(text) for text in texts], acknowledged

        self.stage(decide)

    @rule(name=st.sampled_from("ab"), sha256=st.sampled_from(["aa", "bb"]))
    def see(self, name: str, sha256: str) -> None:
        path = f"turn_1/files/{name}.txt"
        self.states += 1
        entry = seen(path, sha256, mtime=self.states)
        self.stage(lambda: ([entry], lambda _: self.files.update({path: sha256})))

    @rule(name=st.sampled_from("ab"))
    def lose(self, name: str) -> None:
        path = f"turn_1/files/{name}.txt"
        self.stage(lambda: ([FileGone(path)], lambda _: self.files.pop(path, None)))

    @rule()
    def begin(self) -> None:
        self.calls += 1
        name = f"tc_{self.calls}"
        self.stage(lambda: ([begun(name)], lambda _: self.opened.add(name)))

    @precondition(lambda self: self.workspace.open_calls)
    @rule()
    def end(self) -> None:
        def decide() -> tuple[list[Entry], Callable[[Applied], object]]:
            names = [call.tool_call_id for call in self.workspace.open_calls[:1]]
            return [CallEnded(name, 1.0) for name in names], lambda _: self.opened.difference_update(names)

        self.stage(decide)

    @rule(refuse=st.booleans())
    def settle(self, refuse: bool) -> None:
        """Let the journal decide on everything that waits."""
        self.journal.refusing = refuse
        waiting, self.waiting = self.waiting, []
        answers = [answer for answer, _ in waiting]

        async def settled() -> list[Applied | BaseException]:
            return await asyncio.gather(*answers, return_exceptions=True)

        outcomes = self.loop.run_until_complete(settled())
        revisions = [outcome.revision for outcome in outcomes if isinstance(outcome, Applied)]
        assert revisions == sorted(revisions)
        for outcome, (_, then) in zip(outcomes, waiting, strict=True):
            if isinstance(outcome, Applied):
                then(outcome)
            else:
                assert isinstance(outcome, JournalUnavailable)

    @precondition(lambda self: not self.waiting)
    @rule()
    def restart(self) -> None:
        before = snapshot(self.workspace)
        self.workspace = Workspace(self.journal)
        self.workspace.load()
        assert snapshot(self.workspace) == before

    @invariant()
    def readers_see_what_was_acknowledged_and_nothing_else(self) -> None:
        if self.waiting:
            return  # some of these are durable and not yet acknowledged to the model
        workspace = self.workspace
        assert {row["sid"]: row for row in workspace.pool.all_rows()} == self.rows
        assert [orjson.loads(body)["text"] for body in workspace.bodies(range(len(self.blocks)))] == self.blocks
        assert workspace.files.keys() == self.files.keys()
        for path, sha256 in self.files.items():
            artifact = workspace.artifact(parse_physical(path))
            assert artifact is not None
            assert artifact.on_disk
            assert artifact.knows(sha256)
        assert {call.tool_call_id for call in workspace.open_calls} == self.opened
        assert workspace.revision == len(self.journal.records)

    def teardown(self) -> None:
        if hasattr(self, "loop"):
            self.settle(refuse=False)
            self.loop.close()


AgainstAPlainModel.TestCase.settings = settings(max_examples=60, stateful_step_count=25, deadline=None)
TestAgainstAPlainModel = AgainstAPlainModel.TestCase
