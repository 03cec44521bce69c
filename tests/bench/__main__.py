"""`python -m tests.bench [--quick] [NAME...]` measures and prints a table; without a name, everything.

`--write` puts the table of each group into its section of FIGURES.md as well, as soon as it is measured.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence

from tests.bench import (
    appends,
    assets,
    bringing,
    doors,
    editing,
    fairness,
    hosting,
    indexing,
    landing,
    machine,
    page,
    rendering,
    rivals,
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
    "fairness": fairness.measure,
    "rivals": rivals.measure,
}


def main(argv: Sequence[str]) -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.bench", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"one of {', '.join(GROUPS)}")
    parser.add_argument("--quick", dest="size", action="store_const", const=QUICK, default=FULL, help="a tenth of it")
    parser.add_argument("--write", action="store_true", help="put the tables into FIGURES.md; not with --quick")
    given = parser.parse_args(argv)
    if unknown := set(given.names) - GROUPS.keys():
        parser.error(f"no such group: {', '.join(sorted(unknown))}")
    if given.write and given.size is QUICK:
        parser.error("FIGURES.md holds full sizes: --write does not go with --quick")
    print(machine.facts())
    for name in given.names or GROUPS:
        facts, stolen = machine.facts(), machine.Stolen()
        figures = measured([name], given.size)
        if not figures:
            continue
        facts = f"{facts}; {stolen} of the processors' time stolen while it ran.\n"
        print(f"{name}\n{table(figures)}\n{facts}", flush=True)
        if given.write:
            fresh = {name: page.section(name, facts, table(figures))}
            said = page.with_sections(page.FIGURES.read_text("utf-8"), fresh, GROUPS)
            page.FIGURES.write_text(said, "utf-8")


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
