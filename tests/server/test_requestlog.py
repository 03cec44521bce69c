"""The request log: one line each, one word each, never contents, few calls of the logging machinery."""

from __future__ import annotations

import logging
import re
from typing import Any

import pytest

from sidecar.server.caller import Caller, Client
from sidecar.server.peer import Peer
from sidecar.server.requestlog import GATHER_LINES, RequestLog, word
from tests.server.joined import until


class Params:
    def __init__(self, **fields: Any) -> None:
        self.__dict__.update(fields)


def call(**params: Any) -> Caller:
    caller = Caller(Client(3, "exec", Peer(1, 1)), 1, "artifact/read", size=0, post=None)  # type: ignore[arg-type]
    caller.params = Params(**params)
    return caller


def logged(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [line for record in caplog.records for line in record.getMessage().split("\n")]


@pytest.fixture(autouse=True)
def _listening(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "sidecar.request")


async def test_a_line_says_who_asked_what_about_what_how_long_and_how_it_ended(
    caplog: pytest.LogCaptureFixture,
) -> None:
    log = RequestLog()
    log.note(call(path="fi:turn_1.files/a"), "ok")
    log.flush()
    [line] = logged(caplog)
    assert re.fullmatch(
        r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z client=3 role=exec method=artifact/read about=fi:turn_1.files/a "
        r"ms=\d+\.\d\d outcome=ok",
        line,
    )


@pytest.mark.parametrize(
    ("params", "about"),
    [
        ({"path": "a", "turn_id": "t"}, "a"),
        ({"paths": ["a"]}, "a"),
        ({"paths": ["a", "b", "c"]}, "a+2"),
        ({"paths": []}, "-"),
        ({"path": None, "tool_call_id": "c"}, "c"),
        ({"text": "contents", "content": "contents"}, "-"),
        ({"path": "a b\nclient=1"}, "'a\\x20b\\nclient=1'"),
        ({"path": "x" * 5000}, "x" * 200),
    ],
)
async def test_what_a_request_is_about_is_a_name_among_its_params(
    params: dict[str, Any], about: str, caplog: pytest.LogCaptureFixture
) -> None:
    log = RequestLog()
    log.note(call(**params), "ok")
    log.flush()
    assert f"about={about} ms=" in logged(caplog)[0]


async def test_lines_are_written_together_and_soon(caplog: pytest.LogCaptureFixture) -> None:
    log = RequestLog()
    for _ in range(5):
        log.note(call(), "ok")
    assert caplog.records == []
    await until(lambda: caplog.records)
    assert (len(caplog.records), len(logged(caplog))) == (1, 5)


async def test_many_lines_do_not_wait(caplog: pytest.LogCaptureFixture) -> None:
    log = RequestLog()
    for _ in range(GATHER_LINES):
        log.note(call(), "ok")
    assert len(logged(caplog)) == GATHER_LINES


async def test_a_log_that_nobody_wants_gathers_nothing(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING, "sidecar.request")
    log = RequestLog()
    log.note(call(), "ok")
    caplog.set_level(logging.INFO, "sidecar.request")
    log.flush()
    assert caplog.records == []


@pytest.mark.parametrize(
    ("text", "said"), [("a/b", "a/b"), ("ä", "ä"), ("", ""), ("a b", "'a\\x20b'"), ("\x1b[1m", "'\\x1b[1m'")]
)
def test_a_word_is_one_word(text: str, said: str) -> None:
    assert word(text) == said
