"""`python -m tests.faults --long` finds every figure of reliability in full size and prints a table.

Without `--long` it says what there is, and which tests find the same in small every day. `--only` takes numbers or
parts of names; `--write` puts the table into FIGURES.md, other rows of it staying as they are. Exit code 1 when
anything was wrong.
"""

from __future__ import annotations

import argparse
import os
import random
import re
import sys
from pathlib import Path
from time import monotonic

from tests.faults.figures import Outcome, Row, line, measured, table
from tests.faults.table import ROWS

FIGURES = Path(__file__).with_name("FIGURES.md")
MARK = "<!-- Everything below is written by `python -m tests.faults --long --write`. -->\n"


def main() -> int:
    options = read_options()
    wanted = [row for row in ROWS if is_wanted(row, options.only)]
    if not options.long:
        for row in wanted:
            print(f"{row.number:3} {row.name} ({row.aim}): {', '.join(row.daily) or 'only in the long run'}")
        return 0
    seed = options.seed if options.seed is not None else random.SystemRandom().randrange(2**32)
    lines: dict[int, str] = {}
    clean = True
    for row in wanted:
        print(f"{row.number} {row.name}, seed {seed}", file=sys.stderr, flush=True)
        began = monotonic()
        found = measured(row, seed, jobs=options.jobs)
        if isinstance(found, Outcome):
            clean = clean and not found.wrong
            print(*found.faults, sep="\n", file=sys.stderr)
        lines[row.number] = line(row, seed, found, monotonic() - began)
        print(lines[row.number], flush=True)
        if options.write:
            keep(lines)
    return 0 if clean else 1


def read_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.faults", description=__doc__)
    parser.add_argument("--long", action="store_true", help="find them; without it they are only named")
    parser.add_argument("--seed", type=int, help="of everything that is left to chance; random by default")
    parser.add_argument("--only", action="append", default=[], metavar="NAME", help="a number, or a part of a name")
    parser.add_argument(
        "--jobs", type=int, default=os.cpu_count() or 1, help="processes at once, where that is no matter"
    )
    parser.add_argument("--write", action="store_true", help="put what is found into FIGURES.md")
    return parser.parse_args()


def is_wanted(row: Row, only: list[str]) -> bool:
    return not only or any(name == str(row.number) or (not name.isdigit() and name in row.name) for name in only)


def keep(lines: dict[int, str]) -> None:
    """Put these lines into the page, in order, and leave the others as they are."""
    head, mark, rest = FIGURES.read_text("utf-8").partition(MARK)
    kept = {int(found[1]): found[0] for found in re.finditer(r"^\| (\d+) \|.*$", rest, re.MULTILINE)}
    all_lines = kept | lines
    FIGURES.write_text(f"{head}{mark}\n{table(all_lines[number] for number in sorted(all_lines))}", "utf-8")


if __name__ == "__main__":
    sys.exit(main())
