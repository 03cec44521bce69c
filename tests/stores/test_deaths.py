"""A watch that died is built anew, as long as that is worth it."""

from __future__ import annotations

import pytest

from sidecar.stores.deaths import DEATHS_IN_ALL, MINUTE, Deaths


@pytest.mark.parametrize(
    ("culprits", "verdicts"),
    [
        (["a"], ["rebuild"]),
        (["a", "a", "a", "a"], ["rebuild", "rebuild", "rest", "rest"]),
        (["a", "b", "a", "b", "", "a"], ["rebuild", "rebuild", "rebuild", "rebuild", "rebuild", "rest"]),
        (["", "", ""], ["rebuild", "rebuild", "rest"]),
        ([None] * 6, ["rebuild"] * 5 + ["silence"]),
        ([None] * 7, ["rebuild"] * 5 + ["silence", "rebuild"]),
    ],
)
def test_deaths_at_once(culprits: list[str | None], verdicts: list[str]) -> None:
    deaths = Deaths()
    assert [deaths.judge(culprit, 10.0) for culprit in culprits] == verdicts


def test_deaths_of_many_folders_silence_the_bell_in_the_end() -> None:
    deaths = Deaths()
    verdicts = [deaths.judge(str(number), 0.0) for number in range(DEATHS_IN_ALL + 1)]
    assert verdicts == ["rebuild"] * DEATHS_IN_ALL + ["silence"]


def test_what_is_a_minute_past_is_forgotten() -> None:
    deaths = Deaths()
    assert [deaths.judge(None, number * (MINUTE / 4)) for number in range(40)] == ["rebuild"] * 40
