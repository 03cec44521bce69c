"""What commands take and answer."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from protocol.errors import REFUSALS
from protocol.methods import COMMANDS
from protocol.requests.commands import CiteParams, OpenParams, RehostFilesParams


@pytest.mark.parametrize("command", COMMANDS)
def test_commands_have_the_name_of_the_product_and_known_refusals(command: str) -> None:
    assert command.startswith("artifact-sidecar.")
    assert set(COMMANDS[command].fails_with) <= set(REFUSALS)


def test_a_version_counts_from_one() -> None:
    assert OpenParams(path="a.md").version is None
    with pytest.raises(ValidationError):
        OpenParams(path="a.md", version=0)


def test_nothing_is_asked_for_nothing() -> None:
    for wrong in (lambda: RehostFilesParams(paths=[]), lambda: CiteParams(sids=[]), lambda: CiteParams(sids=[0])):
        with pytest.raises(ValidationError):
            wrong()
