"""Events say what is new and at which revision."""

from __future__ import annotations

from typing import Any, get_args

import pytest
from pydantic import ValidationError

from protocol.base import Topic
from protocol.methods import EVENTS
from tests.protocol.test_records import ARTIFACT

TOLD: dict[str, dict[str, Any]] = {
    "sources/added": {"rows": [{"sid": 1, "source_type": "web", "favicon": "x"}], "revision": 2},
    "artifacts/changed": {"artifacts": [ARTIFACT], "revision": 3},
    "timeline/appended": {"blocks": [{"index": 0, "type": "user.prompt", "turn_id": "t"}], "revision": 4},
    "notice/posted": {"notice": {"code": "watch_lost", "message": "gone"}, "revision": 5},
}


def test_there_is_an_example_of_every_event() -> None:
    assert TOLD.keys() == EVENTS.keys()


@pytest.mark.parametrize("method", EVENTS)
def test_the_example_fits(method: str) -> None:
    EVENTS[method].payload.model_validate(TOLD[method])


@pytest.mark.parametrize("method", EVENTS)
def test_an_event_without_a_revision_is_none(method: str) -> None:
    with pytest.raises(ValidationError):
        EVENTS[method].payload.model_validate({key: value for key, value in TOLD[method].items() if key != "revision"})


def test_each_topic_has_its_event() -> None:
    assert [row.topic for row in EVENTS.values()] == list(get_args(Topic.__value__))
