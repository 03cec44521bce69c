"""What of the VS Code extension needs no editor: its types, where it looks for the daemon, its tree page by page."""

from __future__ import annotations

import pytest

from tests import node
from tests.daemon_process import PROJECT

pytestmark = pytest.mark.timeout(900)  # a first run installs the packages


@pytest.mark.rule("clients.vscode-finds-the-daemon")
@pytest.mark.rule("clients.vscode-asks-for-pages")
def test_the_types_hold_and_the_units_of_the_extension_pass() -> None:
    folder = node.installed(PROJECT / "clients/vscode")
    assert "fail 0" in node.required().run_npm("test", cwd=folder)
