"""Progress of an editor's work begins, and ends, exactly once, and only where somebody listens."""

from __future__ import annotations

from concurrent.futures import Future
from types import SimpleNamespace
from typing import Any

import orjson
import pytest

from sidecar.server.editor.progress import Work

pytestmark = pytest.mark.rule("editor.progress-of-commands")


class Listener:
    """As much of an editor as progress needs. `agree` answers its question."""

    def __init__(self, *, offers: bool) -> None:
        self.told: list[dict[str, Any]] = []
        self.works: dict[Any, Any] = {}
        self.asked: list[tuple[dict[str, Any], Future[Any]]] = []
        self.client_capabilities = SimpleNamespace(window=SimpleNamespace(work_done_progress=offers))
        wire = SimpleNamespace(send=lambda body: self.told.append(orjson.loads(body)["params"]))
        self.protocol = SimpleNamespace(wire=wire, send_request=self._ask)

    def _ask(self, method: str, params: dict[str, Any]) -> Future[Any]:
        assert method == "window/workDoneProgress/create"
        future: Future[Any] = Future()
        self.asked.append((params, future))
        return future

    @property
    def kinds(self) -> list[str]:
        return [one["value"]["kind"] for one in self.told]


def work(listener: Listener, token: str | int | None = None) -> Work:
    return Work(listener, SimpleNamespace(work_done_token=token), "Working")  # type: ignore[arg-type]


async def test_with_a_token_of_the_request_it_begins_at_once() -> None:
    listener = Listener(offers=True)
    with work(listener, 5) as running:
        running.report("half", 50)
        listener.works[5]()
    assert (listener.kinds, {one["token"] for one in listener.told}) == (["begin", "report", "end"], {5})
    assert (running.cancelled, listener.works, listener.asked) == (True, {}, [])


async def test_it_begins_when_the_editor_agrees() -> None:
    listener = Listener(offers=True)
    with work(listener) as running:
        running.report("not heard yet")
        [(params, answer)] = listener.asked
        answer.set_result(None)
        assert list(listener.works) == [params["token"]]
    assert listener.kinds == ["begin", "end"]


async def test_it_never_begins_once_it_is_over_or_was_declined() -> None:
    for answered in (lambda future: future.set_result(None), lambda future: future.set_exception(OSError())):
        listener = Listener(offers=True)
        with work(listener):
            pass
        answered(listener.asked[0][1])
        assert listener.told == []


async def test_without_an_offer_nobody_is_asked() -> None:
    listener = Listener(offers=False)
    with work(listener) as running:
        running.report("x")
    assert (listener.told, listener.asked) == ([], [])
