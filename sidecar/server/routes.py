"""Which handler answers which method, who may ask, and what the params must be."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Set
from dataclasses import dataclass
from typing import Any, Protocol

from pydantic import BaseModel, ValidationError

from protocol.handshake import unwrap
from sidecar.core.errors import NotPermitted
from sidecar.server.caller import Caller
from sidecar.server.failures import Failed, refused, wrong_fields, wrong_params

Handler = Callable[[Caller, Any], object]
"""Takes the caller and the params as their model; gives something JSON-able, or is `async` and gives it later.

Plain functions run on the loop and are therefore serial across all clients. Raises Refusal to refuse."""


class Request(Protocol):
    """The part of a row of `protocol.methods.REQUESTS` that the server needs."""

    @property
    def params(self) -> type[BaseModel]: ...

    @property
    def asked_by(self) -> frozenset[str]: ...


@dataclass(frozen=True, slots=True)
class Route:
    """One method: what checks its params, what answers it, and for whom."""

    method: str
    handler: Handler
    validate: Callable[[object], Any]
    asked_by: frozenset[str]
    bulky: bool = False  # answers with contents, which may be long
    ordered: bool = False  # what a client asks it for one after the other happens in that order

    def read(self, caller: Caller, raw: object) -> Any:
        """The params as the handler wants them; the progress token goes to the caller. Raises Failed."""
        if caller.role not in self.asked_by:
            roles = ", ".join(sorted(self.asked_by))
            raise Failed(refused(NotPermitted(self.method, f"this connection is {caller.role}; it is for {roles}")))
        if raw is None:
            raw = {}
        elif not isinstance(raw, dict):
            raise Failed(wrong_params([("", "params are an object")]))
        try:
            envelope, own = unwrap(raw)
            caller.token = envelope.workDoneToken
            return self.validate(own)
        except ValidationError as error:
            raise Failed(wrong_fields(error)) from None


def routes(
    handlers: Mapping[str, Handler],
    requests: Mapping[str, Request],
    *,
    bulky: Set[str] = frozenset(),
    ordered: Set[str] = frozenset(),
) -> dict[str, Route]:
    """Join the table of handlers with the protocol's. Raises ValueError when one has a method the other has not."""
    if odd := handlers.keys() ^ requests.keys():
        raise ValueError(f"declared and not handled, or handled and not declared: {', '.join(sorted(odd))}")
    return {
        method: Route(
            method,
            handlers[method],
            request.params.__pydantic_validator__.validate_python,
            request.asked_by,
            bulky=method in bulky,
            ordered=method in ordered,
        )
        for method, request in requests.items()
    }
