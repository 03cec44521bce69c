"""Every wanted folder is watched, to be watched, missing or resting; a folder that was replaced is watched anew."""

from __future__ import annotations

from collections.abc import Iterator
from typing import cast

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from sidecar.stores.roster import Roster
from sidecar.stores.watch import Watch


class FakeWatch:
    def __init__(self, *folders: str) -> None:
        self.folders = frozenset(folders)


def watch(*folders: str) -> Watch:
    return cast("Watch", FakeWatch(*folders))


def begun(roster: Roster, now: float = 0.0) -> tuple[str, ...]:
    """What is to be watched now, as if nothing came of it."""
    folders = roster.begin(now)
    roster.end()
    return folders


def watching(*folders: str) -> tuple[Roster, Watch]:
    """A roster that wants these folders and has them under one watch."""
    roster, one = Roster(), watch("", *folders)
    roster.want(folders)
    roster.begin(0.0)
    roster.take(one)
    roster.end()
    return roster, one


def test_out_dir_itself_is_always_wanted_and_parents_come_first() -> None:
    roster = Roster()
    assert begun(roster) == ("",)
    roster.want(["a/b", "a", "c"])
    assert begun(roster) == ("", "a", "c", "a/b")


def test_what_is_watched_is_not_asked_for_again() -> None:
    roster, one = watching("a", "b")
    assert begun(roster) == ()
    assert roster.sizes() == {one: 3}
    roster.want(["b", "c"])
    assert (begun(roster), roster.sizes()) == (("c",), {one: 2})


def test_over_the_limit_the_deepest_are_left_out() -> None:
    roster = Roster(limit=3)
    roster.want(["a/b/c", "a/b", "a", "z"])
    assert (begun(roster), roster.over_limit) == (("", "a", "z"), 2)
    roster.want(["a"])
    assert roster.over_limit == 0


def test_a_folder_that_moved_is_watched_anew_with_all_below_it() -> None:
    roster, _ = watching("a", "a/b", "a/b/c", "ab", "d")
    assert roster.move(["a", "a/file"])
    assert begun(roster) == ("a", "a/b", "a/b/c")


def test_files_that_moved_are_no_folders_of_ours() -> None:
    roster, _ = watching("a")
    assert not roster.move(["a/file", "file", "b"])
    assert begun(roster) == ()


def test_out_dir_that_moved_takes_everything_along() -> None:
    roster, _ = watching("a", "b")
    assert roster.move([""])
    assert begun(roster) == ("", "a", "b")


def test_a_folder_that_moved_while_its_watch_was_built_is_not_believed_watched() -> None:
    roster = Roster()
    roster.want(["a", "a/b", "c"])
    asked = roster.begin(0.0)
    roster.move(["a"])
    assert roster.take(watch(*asked)) == {"", "c"}
    roster.end()
    assert begun(roster) == ("a", "a/b")


def test_a_missing_folder_waits_for_its_parent_to_tell() -> None:
    roster = Roster()
    roster.want(["a", "a/b"])
    roster.begin(0.0)
    roster.take(watch(""))
    roster.miss(["a", "a/b"])
    roster.end()
    assert begun(roster) == ()
    assert roster.move(["a"])
    assert begun(roster) == ("a", "a/b")


def test_a_folder_that_came_while_it_was_missed_is_asked_for_again() -> None:
    roster = Roster()
    roster.want(["a"])
    roster.begin(0.0)
    roster.move(["a"])
    roster.miss(["a"])
    roster.end()
    assert "a" in begun(roster)


def test_a_look_that_finds_a_missing_folder_has_it_watched() -> None:
    roster = Roster()
    roster.want(["a"])
    roster.begin(0.0)
    roster.miss(["a"])
    roster.end()
    roster.want(["a"])
    assert "a" in begun(roster)


def test_the_folders_of_a_replaced_watch_need_another() -> None:
    roster, one = watching("a", "b")
    roster.replace(watch("a"))
    assert begun(roster) == ()
    roster.replace(one)
    assert begun(roster) == ("", "a", "b")


def two_watches() -> tuple[Roster, Watch, Watch]:
    """A roster with `a` under one watch, and what is below `a` under another."""
    roster, parent, child = Roster(), watch("", "a", "d"), watch("a/b", "a/b/c")
    roster.want(["a", "a/b", "a/b/c", "d"])
    roster.begin(0.0)
    roster.take(parent)
    roster.take(child)
    roster.end()
    return roster, parent, child


def test_what_is_below_a_lost_watch_may_be_another_folder_by_now() -> None:
    roster, parent, child = two_watches()
    roster.lose(child)
    assert begun(roster) == ("a/b", "a/b/c")
    roster, parent, child = two_watches()
    roster.lose(parent)
    assert begun(roster) == ("", "a", "d", "a/b", "a/b/c")


def test_what_is_below_a_rested_folder_may_be_another_folder_by_now() -> None:
    roster, parent, child = two_watches()
    roster.lose(parent)
    roster.rest(["a"], 60.0)
    roster.begin(1.0)
    roster.take(watch("", "d"))
    roster.take(child)
    roster.end()
    assert begun(roster, 1.0) == ()
    assert begun(roster, 60.0) == ("a", "a/b", "a/b/c")


def test_a_resting_folder_is_left_alone_until_its_time() -> None:
    roster, one = watching("a", "b")
    roster.lose(one)
    roster.rest(["a", "unheard"], 60.0)
    assert (begun(roster, 59.0), roster.resting) == (("", "b"), 1)
    assert (begun(roster, 60.0), roster.resting) == (("", "a", "b"), 0)


def test_a_resting_folder_that_is_gone_rests_no_more() -> None:
    roster = Roster()
    roster.want(["a"])
    roster.rest(["a"], 60.0)
    roster.want([])
    assert roster.resting == 0


def test_forgetting_leaves_everything_to_be_watched() -> None:
    roster, _ = watching("a")
    roster.forget()
    assert (begun(roster), roster.is_watched("a")) == (("", "a"), False)


_folders = st.sets(st.sampled_from(["a", "a/b", "a/b/c", "d", "d/e", "f"]))


class Rounds(RuleBasedStateMachine):
    """A disk of folders with identities, against a roster that is told what a kernel would tell."""

    @initialize()
    def begin(self) -> None:
        self.roster = Roster()
        self.serial = 0
        self.disk: dict[str, int] = {"": 0}
        self.watched: dict[Watch, dict[str, int]] = {}

    @rule(folders=_folders)
    def folders_come_and_go(self, folders: set[str]) -> None:
        moved: set[str] = set()
        for folder in sorted(folders):
            if folder.rpartition("/")[0] not in self.disk:
                continue
            moved.add(folder)
            below = [name for name in self.disk if name == folder or name.startswith(f"{folder}/")]
            for name in below:
                del self.disk[name]
            if not below:
                self.serial += 1
                self.disk[folder] = self.serial
        self.roster.move(moved)

    @rule()
    def a_look(self) -> None:
        self.roster.want(self.disk)

    @rule()
    def a_round(self) -> None:
        asked = self.roster.begin(0.0)
        present = {folder: self.disk[folder] for folder in asked if folder in self.disk}
        one = watch(*present)
        self.watched[one] = present
        self.roster.take(one)
        self.roster.miss(set(asked) - present.keys())
        self.roster.end()

    @invariant()
    def what_counts_as_watched_is_the_folder_that_stands_there(self) -> None:
        if hasattr(self, "roster"):
            for folder, one in self.roster._watched.items():
                assert self.disk.get(folder) == self.watched[one][folder]

    @rule()
    def after_a_look_and_a_round_everything_is_watched(self) -> None:
        self.a_look()
        self.a_round()
        assert all(self.roster.is_watched(folder) for folder in self.disk)


TestRounds = Rounds.TestCase
TestRounds.settings = settings(max_examples=60, stateful_step_count=20, deadline=None)


def test_what_goes_costs_what_is_below_it_and_not_what_is_beside_it() -> None:
    """Counted, not timed: of a thousand folders that go, each is heard of without a look at all others."""
    folders = [f"t/files/{at % 10}/{at}" for at in range(1000)]
    roster, one = watching("t", "t/files", *(f"t/files/{at}" for at in range(10)), *folders)
    roster._wanted = unlooked = _Unlooked(roster._wanted)
    assert all(roster.move([folder]) for folder in folders)
    assert (unlooked.looks, roster.sizes()) == (0, {one: 13})
    assert roster.move(["t"])
    assert (unlooked.looks, roster.sizes()) == (0, {one: 1})


class _Unlooked(frozenset[str]):
    looks = 0

    def __iter__(self) -> Iterator[str]:
        self.looks += 1
        return super().__iter__()
