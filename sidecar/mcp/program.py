"""`artifact-sidecar mcp`: its flags, and what is said when it cannot start. stdout belongs to the protocol."""

from __future__ import annotations

import asyncio
import importlib.util
import sys

from sidecar.config import read_settings
from sidecar.console.arguments import STORE, USAGE, Parser, add_store, add_workspace
from sidecar.console.output import complain
from sidecar.server import bridge
from sidecar.settings_file import BadSettings

UNAVAILABLE = 69
FLAGS = ("out_dir", "state_dir", "socket_dir", "index", *STORE)


def main(argv: list[str], *, says: str) -> int:
    """Serve one MCP client; the answer is the exit code."""
    parser = Parser(prog="artifact-sidecar mcp", description=says)
    parser.add_argument(
        "--role", choices=bridge.ROLES, default=bridge.DEFAULT_ROLE, help="whom the daemon takes the client for"
    )
    add_workspace(parser)
    add_store(parser)
    asked = parser.parse_args(argv)
    if importlib.util.find_spec("mcp") is None:
        complain(
            "mcp needs the MCP SDK: `pip install -c .ci/constraints.txt -e '.[mcp]'` in a checkout, "
            "or `pip install mcp`"
        )
        return UNAVAILABLE
    given = {name: value for name in FLAGS if (value := getattr(asked, name))}
    try:
        settings = read_settings(given)
    except BadSettings as failure:
        complain(str(failure))
        return USAGE
    from sidecar.mcp.serving import Serving

    command = [sys.executable, "-m", "sidecar", "connect", "--role", asked.role, "--out-dir", settings.out_dir]
    for name in FLAGS[1:]:
        if name in given:
            command += [f"--{name.replace('_', '-')}", str(getattr(settings, name))]
    asyncio.run(Serving(command, role=asked.role, out_dir=settings.out_dir).run())
    return 0
