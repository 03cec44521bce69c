"""`python -m tests.bench [--quick] [NAME...]` measures and prints a table; without a name, everything.

`--write` puts the table of a whole run into FIGURES.md as well.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from tests.bench import (
    appends,
    assets,
    bringing,
    doors,
    editing,
    hosting,
    indexing,
    landing,
    machine,
    rendering,
    roundtrips,
    scale,
    start,
)
from tests.bench.figures import FULL, QUICK, Figure, Size, table
from tests.radosgw import NotInstalled

Group = Callable[[Size], Iterator[Figure]]
GROUPS: Mapping[str, Group] = {
    "roundtrips": roundtrips.measure,
    "scale": scale.measure,
    "start": start.measure,
    "landing": landing.measure,
    "appends": appends.measure,
    "doors": doors.measure,
    "rendering": rendering.measure,
    "bringing": bringing.measure,
    "assets": assets.measure,
    "hosting": hosting.measure,
    "index": indexing.measure,
    "editor": editing.measure,
}
FIGURES = Path(__file__).with_name("FIGURES.md")
MARK = "<!-- Everything below is written by `python -m tests.bench --write`. -->\n"


def main(argv: Sequence[str]) -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.bench", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"one of {', '.join(GROUPS)}")
    parser.add_argument("--quick", dest="size", action="store_const", const=QUICK, default=FULL, help="a tenth of it")
    parser.add_argument("--write", action="store_true", help="put the table into FIGURES.md; only for a whole run")
    given = parser.parse_args(argv)
    if unknown := set(given.names) - GROUPS.keys():
        parser.error(f"no such group: {', '.join(sorted(unknown))}")
    if given.write and (given.names or given.size is QUICK):
        parser.error("FIGURES.md holds whole runs: --write goes with neither names nor --quick")
    report = f"{machine.facts()}\n{table(measured(given.names or GROUPS, given.size))}"
    print(report)
    if given.write:
        kept = FIGURES.read_text("utf-8").partition(MARK)[0]
        FIGURES.write_text(f"{kept}{MARK}\n{report}", "utf-8")


def measured(names: Sequence[str] | Mapping[str, Group], size: Size) -> list[Figure]:
    found: list[Figure] = []
    for name in names:
        print(f"measuring {name}", file=sys.stderr, flush=True)
        try:
            found += GROUPS[name](size)
        except NotInstalled as missing:
            print(f"not measured: {missing}", file=sys.stderr)
    return found


if __name__ == "__main__":
    main(sys.argv[1:])
