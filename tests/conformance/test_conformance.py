"""Every case, played against the daemon through its stdio door."""

from __future__ import annotations

from pathlib import Path

import pytest

from protocol.methods import REQUESTS
from tests.conformance.case import Case, load, paths
from tests.conformance.generated import ASKED_BY, examples, generated
from tests.conformance.play import play, prepare
from tests.conformance.servers import DOOR, Server

CASES = [load(path) for path in paths()]


@pytest.mark.rule(
    # No case says these: the runner looks at every answer (wire_check.py) and at every close (rpc_client.py).
    "wire.content-length-framing",
    "wire.lsp-life-cycle",
    "wire.one-answer-per-request",
    "wire.absent-means-default",
    "errors.kinds-are-a-closed-list",
    "errors.refusals-are-32803",
    "errors.handlers-raise-only-what-they-declare",
    "errors.notice-codes-are-a-closed-table",
    "cli.the-door-starts-or-attaches",
)
@pytest.mark.parametrize(
    "case", [pytest.param(case, marks=pytest.mark.rule(*case.rules), id=case.name) for case in [*CASES, *generated()]]
)
def test_the_daemon_does_as_the_case_says(case: Case, tmp_path: Path) -> None:
    server = Server(tmp_path, DOOR, settings=case.given.get("settings", {}))
    prepare(case, server.out_dir)
    try:
        play(case, server)
    finally:
        server.end()
    assert "Traceback" not in server.tail()


def test_every_method_has_an_example() -> None:
    assert sorted(set(REQUESTS) - set(examples())) == []


@pytest.mark.rule("roles.default-deny")
def test_the_protocol_lets_ask_whom_the_table_lets_ask() -> None:
    declared = {method: set(request.asked_by) for method, request in REQUESTS.items()}
    assert declared == {method: set(ASKED_BY[method]) for method in declared}


def test_every_case_says_what_it_shows_in_a_sentence_of_its_own() -> None:
    told = [case.about for case in CASES]
    assert len(set(told)) == len(told)
