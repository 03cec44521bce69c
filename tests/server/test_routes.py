"""The table of methods: complete, and checked before a handler is called."""

from __future__ import annotations

import pytest

from sidecar.server.caller import Caller, Client
from sidecar.server.failures import Failed
from sidecar.server.peer import Peer
from sidecar.server.routes import routes
from tests.server.joined import Row, Text, Workbench


def caller(role: str = "exec") -> Caller:
    return Caller(Client(1, role, Peer(1, 1)), 1, "a/b", size=0, post=None)  # type: ignore[arg-type]


def test_a_method_cannot_be_declared_and_forgotten_or_the_reverse() -> None:
    bench = Workbench()
    with pytest.raises(ValueError, match="a/b, c/d"):
        routes({"a/b": bench.echo}, {"c/d": Row()})


def test_params_come_as_their_model_and_the_token_goes_to_the_caller() -> None:
    [route] = routes({"a/b": Workbench().echo}, {"a/b": Row()}).values()
    asking = caller()
    assert route.read(asking, {"text": "a", "workDoneToken": "t"}) == Text(text="a")
    assert asking.token == "t"


def test_a_role_that_is_not_named_is_refused() -> None:
    [route] = routes({"a/b": Workbench().echo}, {"a/b": Row(asked_by=frozenset({"runtime"}))}).values()
    assert route.read(caller("runtime"), None) == Text()
    with pytest.raises(Failed) as caught:
        route.read(caller("exec"), None)
    assert caught.value.failure.outcome == "not_permitted"


def test_a_method_for_nobody_is_refused_to_all() -> None:
    [route] = routes({"a/b": Workbench().echo}, {"a/b": Row(asked_by=frozenset())}).values()
    for role in ("runtime", "renderer", "exec", "editor", ""):
        with pytest.raises(Failed):
            route.read(caller(role), None)
