"""The older dialect as another spelling of today's paths, where something is read (spec section 3).

What the older text names must be there; else it is read as today's methods always read it.
"""

from __future__ import annotations

from sidecar.core.paths import Path, parse
from sidecar.services import Services


def spelled(services: Services, text: str) -> str:
    """A path as an answer may echo it: with the turn's own id where it says `current_turn`."""
    if "current_turn" not in text or not services.context.records.current_turn:
        return text
    return services.context.finder.respelled(text)


def parse_asked(services: Services, text: str) -> Path:
    """Read a path in any spelling. Raises BadPath or UnsafePath."""
    return parse_spelled(services, spelled(services, text))


def parse_spelled(services: Services, text: str) -> Path:
    """The same for a path that `spelled` gave."""
    return parse(services.context.finder.alias(text) or text)
