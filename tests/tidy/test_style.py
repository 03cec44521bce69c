"""The style is what the tools say, not what a reviewer likes."""

from __future__ import annotations

import pytest

from tests.tidy.tools import run_tool

pytestmark = pytest.mark.rule("house.style-is-checked")


def test_ruff_finds_nothing() -> None:
    run_tool("ruff", "check", ".")


def test_every_file_is_formatted() -> None:
    run_tool("ruff", "format", "--check", ".")


@pytest.mark.timeout(300)
def test_the_strict_type_checker_finds_nothing_in_core_and_protocol() -> None:
    run_tool("basedpyright", "--warnings")
