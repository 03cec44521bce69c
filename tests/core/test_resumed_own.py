"""What was never saved, and whether somebody else gave its numbers to something else."""

from __future__ import annotations

from sidecar.core.entries import Remembered, SourceSet, TurnSaved
from sidecar.core.resumed import IMPORTED
from sidecar.core.resumed_own import own_work
from sidecar.core.saved_turns import WHOLE
from tests.core.saved_story import Story


def a_turn() -> Story:
    story = Story()
    story.begin("turn_1")
    story.apply(SourceSet({"sid": 1, "source_type": "web", "url": "https://example.com/1"}))
    story.end("turn_1")
    return story


def save(story: Story) -> None:
    revision = story.state.revision
    story.apply(TurnSaved("turn_1", revision, 1, ({"kind": "turn.log"},)), TurnSaved(WHOLE, revision, 1, ()))


def test_what_was_saved_is_nobodys_own() -> None:
    story = a_turn()
    save(story)
    assert not own_work(story.state, 100)


def test_what_was_not_saved_is_ours_as_far_as_its_numbers_may_be_somebody_elses() -> None:
    story = a_turn()
    own = own_work(story.state, 100)
    assert own.blocks == {0, 1, 2}
    assert own.sids == {1}
    assert own.turns == {"turn_1"}
    own = own_work(story.state, 0)  # nobody has saved a block
    assert own.blocks == set()
    own.found_pool(story.state, None)
    assert not own


def test_what_the_store_has_under_the_same_numbers_was_saved_after_all() -> None:
    story = a_turn()
    own = own_work(story.state, 100)
    own.found(story.state, story.log("turn_1"))
    own.found_pool(story.state, story.pool())
    assert not own


def test_other_work_under_the_same_numbers_is_found_out() -> None:
    story, other = a_turn(), Story()
    other.begin("turn_2")
    other.apply(SourceSet({"sid": 1, "source_type": "web", "url": "https://example.com/other"}))
    own = own_work(story.state, 100)
    own.found(story.state, other.log("turn_2"))
    own.found_pool(story.state, other.pool())
    assert own.blocks == {0, 1, 2}
    assert own.sids == {1}


def test_what_was_taken_in_is_not_our_own() -> None:
    story = a_turn()
    story.apply(Remembered({IMPORTED: {"change": 1, "next_block": 3, "max_sid": 1}}))
    assert not own_work(story.state, 100)
    story.tell({"type": "note", "text": "and this is"}, "turn_1")
    assert own_work(story.state, 100).blocks == {3}


def test_what_cannot_be_read_proves_nothing() -> None:
    story = a_turn()
    own = own_work(story.state, 100)
    for log in (None, {"blocks": 7, "indexes": []}, {"blocks": [7, {}], "indexes": [0, 1]}):
        own.found(story.state, log)
    own.found_pool(story.state, {"sources_pool": [7, {"sid": "1"}], "max_sid": 1})
    assert own.blocks == {0, 1, 2}
    assert own.sids == {1}
