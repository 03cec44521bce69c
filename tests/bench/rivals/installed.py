"""Where the rivals are that somebody has to install first. `.ci/rivals/install` gets them all."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from tests import node
from tests.radosgw import NotInstalled

HOW = "run .ci/rivals/install"
SERVER = "node_modules/@modelcontextprotocol/server-filesystem/dist/index.js"


def cache() -> Path:
    beside = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return Path(os.environ.get("ARTIFACT_SIDECAR_RIVALS") or beside / "artifact-sidecar-rivals")


def adk_python() -> str:
    """The Python that has google-adk. Raises NotInstalled."""
    return _there(cache() / "adk/bin/python", "google-adk")


def filesystem_server() -> list[str]:
    """The command of the MCP project's file system server, without its folder. Raises NotInstalled."""
    try:
        found = node.find()
    except node.NotInstalled as missing:
        raise NotInstalled(str(missing)) from None
    return [found.program, _there(cache() / "mcp-node" / SERVER, "@modelcontextprotocol/server-filesystem")]


def watchman() -> str:
    """Raises NotInstalled."""
    found = shutil.which("watchman")
    if found is None:
        raise NotInstalled(f"watchman not found; {HOW}, or apt-get install -y --no-install-recommends watchman")
    return found


def _there(path: Path, name: str) -> str:
    if not path.exists():
        raise NotInstalled(f"{name} not found in {cache()}; {HOW}")
    return str(path)
