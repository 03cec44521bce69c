"""What an older path led to."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from sidecar.core.paths import FilePath
from sidecar.reading import Content

Kind = Literal["artifact", "slot", "message", "file", "rows", "told"]


@dataclass(frozen=True, slots=True)
class Found:
    """What stands at a path. `path` is its name today, `record` the thing itself, `value` what was asked of it.

    `leaf` says which part of it that is; `is_sliced` that it is rows by sid, `missing` which of these are not there.
    `file` is the file that it is, if it is
    one, and `content` what of that file was read.
    """

    path: str
    kind: Kind
    turn_id: str
    record: Mapping[str, Any]
    value: Any
    leaf: tuple[str, ...] = ()
    is_sliced: bool = False
    missing: tuple[int, ...] = ()
    file: FilePath | None = None
    content: Content | None = field(default=None, repr=False)

    @property
    def is_search(self) -> bool:
        return self.kind == "artifact" and self.record.get("artifact_kind") == "search"

    @property
    def is_whole(self) -> bool:
        """Whether the path names the thing itself, or all of its value."""
        return not self.is_sliced and self.leaf in ((), ("value",))
