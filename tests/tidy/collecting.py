"""A pytest plugin: writes which tests wear which rule, as they are collected.

`python -m pytest --collect-only -p tests.tidy.collecting --proofs-to FILE` writes a JSON object of rule -> tests.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--proofs-to", type=Path, help="where to write the rules that tests prove")


def pytest_collection_finish(session: pytest.Session) -> None:
    found: dict[str, list[str]] = {}
    for item in session.items:
        for mark in item.iter_markers("rule"):
            for rule in mark.args:
                found.setdefault(rule, []).append(item.nodeid)
    session.config.getoption("--proofs-to").write_text(json.dumps(found), "utf-8")
