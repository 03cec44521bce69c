"""A link on the wire: by a handle or by a path, for one to sixty minutes."""

from __future__ import annotations

from typing import Any

import pytest

from tests.protocol.fit import refused, taken


@pytest.mark.parametrize(
    "params",
    [
        {"rn": "ef:a:b"},
        {"path": "fi:turn_1.files/a"},
        {"path": "a", "ttl_seconds": 60},
        {"rn": "x", "ttl_seconds": 3600},
    ],
)
def test_it_takes(params: dict[str, Any]) -> None:
    taken("artifact/link", params)


@pytest.mark.parametrize(
    ("params", "at"),
    [
        ({}, ""),
        ({"rn": "x", "path": "a"}, ""),
        ({"rn": ""}, "rn"),
        ({"path": "a", "ttl_seconds": 59}, "ttl_seconds"),
        ({"path": "a", "ttl_seconds": 3601}, "ttl_seconds"),
        ({"path": "a", "ttl_seconds": 60.5}, "ttl_seconds"),
        ({"path": "a", "key": "k"}, "key"),
    ],
)
def test_it_refuses(params: dict[str, Any], at: str) -> None:
    refused("artifact/link", params, at)
