"""What an index answers when it refuses says what about."""

from __future__ import annotations

from sidecar.core.index_rows import Commit, Filters, RowChanged, WrongDimension


def test_a_row_that_changed_is_named() -> None:
    assert RowChanged("artifact-1").message_id == "artifact-1"


def test_a_wrong_dimension_says_both_lengths() -> None:
    wrong = WrongDimension(384, 3)
    assert wrong.expected == 384
    assert "384" in str(wrong)
    assert "3" in str(wrong)


def test_nothing_asked_is_no_filter_and_changes_nothing() -> None:
    assert Filters() == Filters(kinds=(), tags=(), turn_ids=(), since=None, until=None)
    assert Commit() == Commit(rows=(), remove=(), next_block=None, facts=None)
