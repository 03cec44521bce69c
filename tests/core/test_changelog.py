"""What changed since a revision, in order, blocks woven in; or that a client must start over."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sidecar.core import limits
from sidecar.core.blocks import Defaults, tell
from sidecar.core.changelog import Change, ChangeLog
from sidecar.core.timeline import Timeline


def log_of(*changes: Change) -> ChangeLog:
    log = ChangeLog()
    for change in changes:
        log.add(change)
    return log


def blocks_at(*revisions: int) -> Timeline:
    timeline = Timeline()
    for revision in revisions:
        timeline.add(revision, tell({"type": "note"}, Defaults("turn_1", 0.0)).head)
    return timeline


ARTIFACT, SOURCE, NOTICE = Change(2, "artifact", "fi:a"), Change(4, "source", 1), Change(4, "notice", "oversize")


@pytest.mark.parametrize(
    ("since", "expected"),
    [
        (0, [Change(1, "block", 0), ARTIFACT, Change(3, "block", 1), SOURCE, NOTICE]),
        (1, [ARTIFACT, Change(3, "block", 1), SOURCE, NOTICE]),
        (3, [SOURCE, NOTICE]),
        (4, []),
    ],
)
def test_changes_come_in_order_with_the_blocks_between_them(since: int, expected: list[Change]) -> None:
    assert list(log_of(ARTIFACT, SOURCE, NOTICE).since(since, blocks_at(1, 3))) == expected


@pytest.mark.parametrize(
    ("since", "revision", "reaches"),
    [
        (0, 0, True),
        (5, 5, True),
        (6, 5, False),
        (-1, 5, False),
        (0, limits.CHANGES_KEPT, True),
        (0, limits.CHANGES_KEPT + 1, False),
        (1, limits.CHANGES_KEPT + 1, True),
    ],
)
def test_a_replay_reaches_back_so_far(since: int, revision: int, reaches: bool) -> None:
    assert ChangeLog().reaches(since, revision) is reaches


def test_what_was_forgotten_is_never_replayed_with_a_hole() -> None:
    log = log_of(*(Change(revision, "source", 1) for revision in range(1, 2 * limits.CHANGES_KEPT + 1)))
    revision = 2 * limits.CHANGES_KEPT
    assert not log.reaches(limits.CHANGES_KEPT - 1, revision)
    assert log.reaches(limits.CHANGES_KEPT, revision)
    assert len(list(log.since(limits.CHANGES_KEPT, Timeline()))) == limits.CHANGES_KEPT


@given(st.lists(st.sampled_from(["block", "source"]), max_size=30), st.integers(0, 30))
def test_a_replay_is_the_tail_of_everything(kinds: list[str], since: int) -> None:
    everything = list(enumerate(kinds, start=1))
    log = log_of(*(Change(revision, "source", 1) for revision, kind in everything if kind == "source"))
    timeline = blocks_at(*(revision for revision, kind in everything if kind == "block"))
    replayed = [(change.revision, change.kind) for change in log.since(since, timeline)]
    assert replayed == [(revision, kind) for revision, kind in everything if revision > since]
