"""What `initialize` brings beyond LSP, and what it is answered with."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import ValidationError

from protocol.handshake import InitializationOptions
from protocol.version import MAJOR, PROTOCOL_VERSION, speaks
from sidecar.server.failures import Failed, wrong_fields, wrong_params

_PLACE = "initializationOptions"


def options(params: object) -> InitializationOptions:
    """The `initializationOptions`. Raises Failed (-32602) when they are wrong, or ask for another major version."""
    if params is not None and not isinstance(params, dict):
        raise Failed(wrong_params([("", "params are an object")]))
    given = (params or {}).get(_PLACE)
    try:
        wanted = InitializationOptions.model_validate({} if given is None else given)
    except ValidationError as error:
        raise Failed(wrong_fields(error, below=_PLACE)) from None
    if wanted.protocol_version is not None and not speaks(wanted.protocol_version):
        problem = f"this daemon speaks protocol version {PROTOCOL_VERSION} and serves clients of {MAJOR}.x only"
        raise Failed(wrong_params([(f"{_PLACE}.protocol_version", problem)], message=problem))
    return wanted


def labels(wanted: InitializationOptions) -> dict[str, str]:
    """Who the client says it works for. It goes to the log and grants nothing."""
    return {
        name: label
        for name, label in (("turn_id", wanted.turn_id), ("tool_call_id", wanted.tool_call_id))
        if label is not None
    }


def answer(result: Mapping[str, Any], hello: Mapping[str, Any]) -> dict[str, Any]:
    """LSP's answer with ours at `capabilities.experimental.artifact_sidecar` (spec section 7)."""
    capabilities = result["capabilities"]
    experimental = {**(capabilities.get("experimental") or {}), "artifact_sidecar": hello}
    return {**result, "capabilities": {**capabilities, "experimental": experimental}}
