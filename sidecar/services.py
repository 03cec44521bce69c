"""Everything a handler may need, built once by the daemon."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from sidecar.looking import Looker
from sidecar.ports import OutDir
from sidecar.reading import Reader
from sidecar.rehost import Rehoster
from sidecar.turns import Turns
from sidecar.views import Views
from sidecar.workspace import Workspace


@dataclass(frozen=True, slots=True)
class Services:
    """`watch_state`, `store_state` and `clients` answer for the parts that only the daemon knows."""

    workspace: Workspace
    looker: Looker
    outdir: OutDir
    rehoster: Rehoster
    reader: Reader
    turns: Turns
    views: Views
    watch_state: Callable[[], dict[str, Any]]
    store_state: Callable[[], dict[str, Any]]
    clients: Callable[[], list[dict[str, Any]]]
    uptime: Callable[[], float]
