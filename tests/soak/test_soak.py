"""A soak in small: every client works, everything is accounted for, and the report says so. No time is judged here."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest

from tests.daemon_process import Workspace
from tests.soak.__main__ import FIGURES, MARK
from tests.soak.report import at, line, report
from tests.soak.run import Plan, soak
from tests.soak.slope import slope
from tests.soak.world import World

EACH = (
    "artifact/patch", "artifact/search", "assets/pull", "call/end", "client killed", "connection", "file written",
    "library artifact/read", "mcp list_artifacts", "timeline/append", "timeline/render", "turn/end", "workspace/sync",
)  # fmt: skip


@pytest.mark.rule("soak.long-work-loses-nothing")
@pytest.mark.timeout(600)
def test_a_short_soak_loses_nothing_and_meets_nothing_unexpected(tmp_path: Path) -> None:
    seed = Random().randrange(2**32)
    print(f"seed {seed}")
    outcome = soak(Plan(minutes=0.2, seed=seed, rate=8.0, every=2.0, least=EACH), tmp_path / "soak")
    said = report(outcome)
    assert outcome.wrong == 0, said
    assert outcome.promises > 0
    assert outcome.accounts.events["artifacts/changed"] > 0
    assert all(outcome.accounts.latencies[name] for name in ("resolve", "read", "sync", "append"))
    assert outcome.samples[-1].blocks > outcome.samples[0].blocks
    assert "lost 0" in said


async def test_the_ledger_names_what_is_not_there(workspace: Workspace) -> None:
    world = World(workspace, Random(1), 1.0)
    async with world.client("runtime") as client:
        told = await client.call("timeline/append", {"blocks": [{"type": "note", "text": "a", "turn_id": "turn_1"}]})
        world.ledger.blocks[told["blocks"][0]["index"]] = "a"
        assert await world.ledger.lost(client) == []
        world.ledger.blocks[7] = "b"
        world.ledger.files["fi:turn_1.files/a.txt"].add("0" * 64)
        world.ledger.sources[1] = "https://example.org/1"
        world.ledger.turns.add("turn_1")
        assert len(await world.ledger.lost(client)) == 4


def test_a_line_is_found_among_noise_and_its_steepness_is_within_what_is_said() -> None:
    chance = Random(5)
    found = slope([(x, 3.0 * x + chance.gauss(0, 10)) for x in range(400)])
    assert abs(found.steep - 3.0) <= 2 * found.sure < 0.2


@pytest.mark.parametrize("points", [[], [(1.0, 2.0)] * 50])
def test_no_line_is_found_where_there_is_none(points: list[tuple[float, float]]) -> None:
    assert slope(points).sure == float("inf")


def test_percentiles_and_bars_are_of_what_was_measured() -> None:
    assert at([0.001 * number for number in range(1, 101)], 99) == pytest.approx(100.0)
    assert line([0.0, 1.0]) == "▁█"


def test_a_report_finds_its_place_in_the_page_of_figures() -> None:
    assert FIGURES.read_text("utf-8").count(MARK) == 1
