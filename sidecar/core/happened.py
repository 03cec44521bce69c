"""What a state is made of and what a change of it brought about: turns, calls, and the news of one batch."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

from sidecar.core.artifacts import Artifact
from sidecar.core.notices import Notice


@dataclass(slots=True)
class Happened:
    """What one batch changed, for those who listen: new rows, and artifacts as they stand now."""

    revision: int = 0
    sources: dict[int, dict[str, Any]] = field(default_factory=dict)
    artifacts: dict[str, Artifact] = field(default_factory=dict)
    blocks: list[int] = field(default_factory=list)
    notices: list[Notice] = field(default_factory=list)
    turns: set[str] = field(default_factory=set)  # turns named for the first time


@dataclass(slots=True)
class Call:
    """A tool call: open while the program of that call may produce files."""

    tool_call_id: str
    turn_id: str
    tool_id: str
    open: bool = True
    watched: bool = False  # what it uses comes by the daemon


@dataclass(slots=True)
class Turn:
    """A turn that was begun. Moments are seconds since the epoch."""

    turn_id: str
    params: str
    began: float = 0.0
    ended: bool = False
    ended_at: float | None = None
    status: str = ""

    def over(self, ended_at: float, status: str) -> Turn:
        """The same turn once it has ended."""
        return replace(self, ended=True, ended_at=ended_at, status=status)
