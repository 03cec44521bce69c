"""Every answer is held against the protocol's own models, so that a case need name only the fields it is about."""

from __future__ import annotations

from typing import Any

from pydantic import ValidationError

from protocol.errors import REFUSALS, REQUEST_FAILED
from protocol.methods import EVENTS, REQUESTS


def faults_of_result(method: str, result: Any) -> list[str]:
    """What the protocol's model of this result finds wrong."""
    request = REQUESTS.get(method)
    return [] if request is None else _faults(request.result, result, f"result of {method}")


def faults_of_event(method: str, params: Any) -> list[str]:
    event = EVENTS.get(method)
    return [f"{method} is no event of the protocol"] if event is None else _faults(event.payload, params, method)


def faults_of_error(method: str, error: dict[str, Any]) -> list[str]:
    """What is wrong with a refusal: its number, its data, or that the method's table does not name its kind."""
    kind = (error.get("data") or {}).get("kind")
    if kind is None:
        return [f"a refusal of {method} has no kind"] if error["code"] == REQUEST_FAILED else []
    if kind not in REFUSALS:
        return [f"{kind} is no kind of refusal"]
    row, request = REFUSALS[kind], REQUESTS.get(method)
    found = [] if error["code"] == row.number else [f"{kind} has the number {row.number}, not {error['code']}"]
    if row.data is not None:
        found += _faults(row.data, error["data"], f"data of {kind}")
    if request is not None and kind not in request.fails_with:
        found.append(f"{method} does not declare that it fails with {kind}")
    return found


def _faults(model: Any, value: Any, what: str) -> list[str]:
    try:
        model.model_validate(value)
    except ValidationError as error:
        return [f"{what}: {'.'.join(map(str, e['loc']))}: {e['msg']}" for e in error.errors()]
    return []
