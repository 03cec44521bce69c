"""Whether params fit a method, asked of the model and of the exported schema, which must agree."""

from __future__ import annotations

import functools
from typing import Any

import jsonschema
import pytest
from pydantic import ValidationError

from protocol import export
from protocol.base import Params
from protocol.methods import REQUESTS


def taken(method: str, params: dict[str, Any]) -> Params:
    """These params fit. Returns them as the handler gets them."""
    assert schema_of(method).is_valid(params), f"the exported schema refuses what {method} takes"
    return REQUESTS[method].params.model_validate(params)


def refused(method: str, params: dict[str, Any], at: str) -> None:
    """These params do not fit, and the first fault is at this place."""
    assert not schema_of(method).is_valid(params), f"the exported schema takes what {method} refuses"
    refused_by_the_model(method, params, at)


def refused_by_the_model(method: str, params: dict[str, Any], at: str) -> None:
    """These params do not fit for a reason that a schema cannot say."""
    with pytest.raises(ValidationError) as caught:
        REQUESTS[method].params.model_validate(params)
    place = ".".join(str(step) for step in caught.value.errors()[0]["loc"])
    assert place == at or place.startswith(f"{at}."), f"refused at {place!r}, not at {at!r}"


@functools.cache
def schema_of(method: str) -> jsonschema.Draft202012Validator:
    document = _document()
    return jsonschema.Draft202012Validator({"$ref": document["methods"][method]["params"]["$ref"], **document})


@functools.cache
def _document() -> dict[str, Any]:
    return export.schema()
