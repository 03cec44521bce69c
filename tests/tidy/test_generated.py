"""What is generated from the protocol equals what would be generated now."""

from __future__ import annotations

import pytest

from tests.tidy.tools import run_module


@pytest.mark.rule("wire.what-is-generated-is-fresh")
def test_the_generated_files_are_fresh() -> None:
    run_module("protocol", "--check")
