"""The reference shows every method, and examples that a conformance case proves."""

from __future__ import annotations

from typing import Any

import pytest

from protocol import export, reference
from protocol.errors import FAILURES
from protocol.methods import EVENTS, REQUESTS
from protocol.notices import NOTICES


def case(about: str, *steps: dict[str, Any]) -> dict[str, Any]:
    return {"about": about, "rules": [], "steps": list(steps)}


@pytest.fixture(scope="module")
def page() -> str:
    return reference.render(export.schema(), {})


@pytest.mark.parametrize("method", [*REQUESTS, *EVENTS])
def test_every_method_and_event_has_a_heading(page: str, method: str) -> None:
    assert f"\n### `{method}`\n" in page


@pytest.mark.parametrize("code", [*(row.kind for row in FAILURES), *NOTICES])
def test_every_failure_and_notice_has_a_row(page: str, code: str) -> None:
    assert f"| `{code}` |" in page


def test_every_link_leads_to_a_heading(page: str) -> None:
    headings = {
        line.lstrip("# ").strip("`").lower().replace("/", "") for line in page.splitlines() if line.startswith("#")
    }
    links = {piece.split(")")[0] for piece in page.split("](#")[1:]}
    assert links
    assert links <= headings


def test_every_row_of_a_table_has_the_columns_of_its_head(page: str) -> None:
    for table in page.split("\n\n"):
        rows = [line.replace("\\|", "") for line in table.splitlines() if line.startswith("|")]
        assert len({row.count("|") for row in rows}) <= 1


def test_a_method_without_a_case_has_no_example(page: str) -> None:
    assert "```json" not in page


def test_the_example_is_the_step_of_a_case() -> None:
    step = {"call": "sources/list", "params": {"selector": "1"}, "result": {"rows": [{"sid": 1}], "missing": []}}
    page = reference.render(export.schema(), reference.examples([case("Numbers lead to rows.", step)]))
    assert "For example (Numbers lead to rows):" in page
    assert '{"jsonrpc": "2.0", "id": 1, "method": "sources/list", "params": {"selector": "1"}}' in page
    assert '{"jsonrpc": "2.0", "id": 1, "result": {"rows": [{"sid": 1}], "missing": []}}' in page


@pytest.mark.parametrize(
    ("better", "worse"),
    [
        ({"result": {"text": "SOURCES POOL (0 sources)", "tokens": 6}}, {"result": {"text": "$any", "tokens": 1}}),
        ({"result": {"text": "a"}}, {"params": {"since": {"$kept": "before"}}, "result": {"text": "a", "tokens": 1}}),
        ({"result": {"text": "a"}}, {"result": {"text": "a" * 900, "tokens": 225}}),
    ],
    ids=["says more", "can be sent as it stands", "fits on the page"],
)
def test_the_more_telling_example_is_shown(better: dict[str, Any], worse: dict[str, Any]) -> None:
    cases = [case("Better.", {"call": "sources/render", **better}), case("Worse.", {"call": "sources/render", **worse})]
    for order in (cases, cases[::-1]):
        assert reference.examples(order)["sources/render"].about == "Better."


def test_what_a_case_leaves_open_is_an_ellipsis() -> None:
    result = {"revision": "$any", "artifacts": ["$any"], "sources": [{"$kept": "sid"}], "truncated": "$absent"}
    step = {"call": "workspace/sync", "result": result}
    page = reference.render(export.schema(), reference.examples([case("a", step)]))
    assert '"result": {"revision": "\u2026", "artifacts": ["\u2026"], "sources": ["\u2026"]}' in page
    assert "$any" not in page


def test_steps_that_show_no_answer_are_no_examples() -> None:
    steps = [
        {"write": {"turn_1/files/a.txt": "x"}},
        {"call": "workspace/sync", "result": "$any"},
        {"call": "artifact/versions", "params": {"path": "x:"}, "error": {"code": -32803}},
    ]
    assert reference.examples([case("a", *steps)]) == {}
