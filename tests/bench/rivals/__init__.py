"""The same jobs done by others, side by side. What is not installed is said and left out.

What is equal in each comparison, and what is not, is the first thing that its module says.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator

from tests.bench.figures import Figure, Size
from tests.bench.rivals import file_service, file_tools, linear_scans, watchers
from tests.radosgw import NotInstalled

PARTS: tuple[Callable[[Size], Iterator[Figure]], ...] = (
    linear_scans.measure,
    file_tools.measure,
    file_service.measure,
    watchers.by_watchfiles,
    watchers.by_watchman,
)


def measure(size: Size) -> Iterator[Figure]:
    for part in PARTS:
        try:
            yield from part(size)
        except NotInstalled as missing:
            print(f"not measured: {missing}", file=sys.stderr)
