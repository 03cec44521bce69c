"""What is JSON already."""

from __future__ import annotations


class Spelled(list[bytes]):
    """A list within a payload whose items go out as they are: what wrote them was JSON."""
