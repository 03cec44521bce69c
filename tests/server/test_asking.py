"""Questions to a client: an answer settles its own question, once, and nothing else."""

from __future__ import annotations

import pytest

from sidecar.server import asking
from sidecar.server.asking import NoAnswer, Questions


async def test_an_answer_settles_its_question() -> None:
    questions = Questions()
    first, second = questions.ask(), questions.ask()
    assert questions.settle({"id": second[0], "result": {"a": 1}})
    assert second[1].result(0) == {"a": 1}
    assert not first[1].done()
    questions.close()


async def test_a_question_that_was_answered_is_no_longer_timed() -> None:
    questions = Questions()
    number, _ = questions.ask()
    timer = questions._open[number][1]
    questions.settle({"id": number, "result": 1})
    assert timer.cancelled()


async def test_an_answer_without_a_result_is_null() -> None:
    questions = Questions()
    number, future = questions.ask()
    questions.settle({"id": number, "result": None})
    assert future.result(0) is None


@pytest.mark.parametrize("message", [{"id": "s:2", "result": 1}, {"id": 1, "result": 1}, {"result": 1}, {"id": [1]}])
async def test_an_answer_to_what_was_not_asked_is_ignored(message: dict[str, object]) -> None:
    questions = Questions()
    _, future = questions.ask()
    assert not questions.settle(message)
    assert not future.done()
    questions.close()


async def test_a_second_answer_is_ignored() -> None:
    questions = Questions()
    number, future = questions.ask()
    questions.settle({"id": number, "result": 1})
    assert not questions.settle({"id": number, "result": 2})
    assert future.result(0) == 1


async def test_an_error_is_no_answer() -> None:
    questions = Questions()
    number, future = questions.ask()
    questions.settle({"id": number, "error": {"code": 1, "message": "secret"}})
    assert "secret" not in str(future.exception(0))


async def test_a_client_that_goes_answers_nothing() -> None:
    questions = Questions()
    futures = [questions.ask()[1] for _ in range(3)]
    questions.close()
    assert all(isinstance(future.exception(0), NoAnswer) for future in futures)


async def test_a_late_answer_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(asking, "ANSWER_SECONDS", 0.001)
    questions = Questions()
    number, future = questions.ask()
    import asyncio

    with pytest.raises(NoAnswer, match="too long"):
        await asyncio.wait_for(asyncio.wrap_future(future), 5)
    assert not questions.settle({"id": number, "result": 1})


async def test_an_answer_to_a_question_that_was_given_up_is_ignored() -> None:
    questions = Questions()
    number, future = questions.ask()
    future.cancel()
    assert questions.settle({"id": number, "result": 1})
    questions.close()
