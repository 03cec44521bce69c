"""MCP clients of the SDK, which know nothing of ours."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from mcp import Client, StdioServerParameters
from mcp.client.stdio import stdio_client

from tests.daemon_process import PROJECT, Workspace, environment

CEILING = 60.0
LEGACY, MODERN = "legacy", "auto"  # the handshake of 2024 and 2025, and the envelopes of 2026-07-28

Join = Callable[..., Client]


@pytest.fixture
def join(workspace: Workspace) -> Join:
    """Makes a client that starts `artifact-sidecar mcp` on the workspace when it is entered."""

    def client(*words: str, mode: str = LEGACY, **options: Any) -> Client:
        return joined([sys.executable, "-m", "sidecar", "mcp", *workspace.arguments, *words], mode=mode, **options)

    return client


def joined(command: Sequence[str], *, mode: str = LEGACY, **options: Any) -> Client:
    """A client of any command that speaks MCP on its stdin and stdout."""
    params = StdioServerParameters(command=command[0], args=list(command[1:]), env=environment(), cwd=str(PROJECT))
    # With the errors of the process where pytest's own are, since a captured stderr has no descriptor.
    transport = stdio_client(params, errlog=sys.__stderr__)
    return Client(transport, mode=mode, read_timeout_seconds=CEILING, **options)
