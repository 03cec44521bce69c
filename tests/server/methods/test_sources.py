"""The pool through its methods."""

from __future__ import annotations

import pytest

from sidecar.core.errors import BadPath, BadSelector, Stale, TooLarge
from tests.server.inside import Inside

WEB = {"url": "https://e.com/a", "title": "A", "text": "words"}


async def test_rows_are_answered_in_request_order_as_they_stand(inside: Inside) -> None:
    await inside.ask("sources/merge", {"rows": [WEB]})
    answer = await inside.ask(
        "sources/merge", {"rows": [{"url": "https://n.io"}, {"url": "https://E.com/a#f", "title": "Longer"}]}
    )
    assert [(row["sid"], row["url"]) for row in answer["rows"]] == [(2, "https://n.io"), (1, "https://e.com/a")]
    assert (answer["rows"][1]["title"], answer["added"]) == ("Longer", [2])
    assert answer["path"] == "so:sources_pool[1-2]"


async def test_only_the_runtime_proposes_numbers(inside: Inside) -> None:
    row = {**WEB, "sid": 100}
    assert (await inside.ask("sources/merge", {"rows": [row]}, role="renderer"))["sid_map"] == {"100": 1}
    other = {"url": "https://n.io", "sid": 50}
    assert (await inside.ask("sources/merge", {"rows": [other]}))["sid_map"] == {"50": 50}


async def test_a_renderer_brings_no_hosting_fields(inside: Inside) -> None:
    row = {**WEB, "hosted_uri": "s3://evil/x", "rn": "ef:evil", "key": "evil"}
    answer = await inside.ask("sources/merge", {"rows": [row]}, role="renderer")
    assert answer["notices"][0]["code"] == "hosting_ignored"
    assert not {"hosted_uri", "rn", "key"} & (await inside.ask("sources/list"))["rows"][0].keys()


async def test_a_merge_that_says_nothing_new_changes_nothing(inside: Inside) -> None:
    await inside.ask("sources/merge", {"rows": [WEB]})
    revision = inside.workspace.revision
    await inside.ask("sources/merge", {"rows": [WEB]})
    assert inside.workspace.revision == revision


async def test_the_same_request_id_merges_once(inside: Inside) -> None:
    manual = {"rows": [{"title": "note"}], "request_id": "r1"}
    first = await inside.ask("sources/merge", manual)
    assert await inside.ask("sources/merge", manual) == first
    assert len(inside.workspace.pool) == 1
    with pytest.raises(Stale):
        await inside.ask("sources/merge", {**manual, "rows": [{"title": "other"}]})


@pytest.mark.parametrize(
    ("row", "refusal"),
    [
        ({"source_type": "file", "title": "x"}, BadPath),
        ({"physical_path": "turn_1/files/a", "artifact_path": "fi:turn_1.files/b"}, BadPath),
        ({"title": "x" * 300_000}, TooLarge),
    ],
)
async def test_a_row_that_cannot_be_is_refused(inside: Inside, row: dict[str, str], refusal: type[Exception]) -> None:
    with pytest.raises(refusal):
        await inside.ask("sources/merge", {"rows": [WEB, row]})
    assert len(inside.workspace.pool) == 0


@pytest.mark.parametrize(
    ("selector", "sids", "missing"),
    [(None, [1, 2, 3], []), ("2,1", [1, 2], []), ("so:sources_pool[3-2]", [2, 3], []), ("2,9", [2], [9])],
)
async def test_a_selector_answers_ascending(
    inside: Inside, selector: str | None, sids: list[int], missing: list[int]
) -> None:
    await inside.ask("sources/merge", {"rows": [{"title": str(n)} for n in range(3)]})
    answer = await inside.ask("sources/list", {"selector": selector} if selector else {})
    assert ([row["sid"] for row in answer["rows"]], answer["missing"]) == (sids, missing)


async def test_pieces_that_are_no_numbers_are_told(inside: Inside) -> None:
    answer = await inside.ask("sources/list", {"selector": "1,x"})
    assert answer["notices"][0]["pieces"] == ["x"]


async def test_a_selector_without_its_end_is_refused(inside: Inside) -> None:
    with pytest.raises(BadSelector):
        await inside.ask("sources/list", {"selector": "so:sources_pool[1"})


async def test_the_pool_is_rendered_as_the_agent_sees_it(inside: Inside) -> None:
    await inside.ask("sources/merge", {"rows": [{**WEB, "url": "https://www.e.com/a"}]})
    assert await inside.ask("sources/render") == {"text": 'SOURCES POOL (1 sources)\n[S:1] e.com  |  "A"', "tokens": 11}
