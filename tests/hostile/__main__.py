"""`python -m tests.hostile` attacks real daemons in every way that is known here, and prints what came of it.

`--quick` makes a few hundred attacks, the sizes of each small; `--only` takes kinds, or one attack as `races#17`;
`--write` puts the table into FIGURES.md. Exit code 1 when anything was wrong.
"""

from __future__ import annotations

import argparse
import os
import platform
import random
import re
import sys
from pathlib import Path

from tests.hostile.figures import HEAD, Found, attacked, line, total
from tests.hostile.table import KINDS

FIGURES = Path(__file__).with_name("FIGURES.md")
MARK = "<!-- Everything below is written by `python -m tests.hostile --write`. -->\n"


def main() -> int:
    options = read_options()
    seed = options.seed if options.seed is not None else random.SystemRandom().randrange(2**32)
    print(f"seed {seed}", file=sys.stderr, flush=True)
    wanted = {name.partition("#")[0]: name.partition("#")[2] for name in options.only}
    every: list[Found] = []
    print(HEAD, end="")
    for kind in KINDS:
        count = min(kind.quick if options.quick else kind.long, options.at_most)
        if wanted and kind.name not in wanted:
            continue
        numbers = [int(wanted[kind.name])] if wanted.get(kind.name) else range(count)
        if numbers:
            every.append(attacked(kind, seed, numbers, quick=options.quick, say=complain))
            print(line(every[-1]), flush=True)
    print(total("\n".join(map(line, every))))
    if options.write:
        keep(every, seed)
    return 1 if any(one.wrong for one in every) else 0


def read_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.hostile", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a few hundred attacks, small ones")
    parser.add_argument("--at-most", type=int, default=sys.maxsize, metavar="N", help="so many attacks of each kind")
    parser.add_argument("--seed", type=int, help="of everything that is left to chance; random by default")
    parser.add_argument(
        "--only", action="append", default=[], metavar="KIND[#NUMBER]", help="these kinds, or one attack"
    )
    parser.add_argument("--write", action="store_true", help="put the table into FIGURES.md")
    return parser.parse_args()


def complain(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def keep(every: list[Found], seed: int) -> None:
    """Put these rows into the page, in order, and leave those of other kinds as they are."""
    head, mark, rest = FIGURES.read_text("utf-8").partition(MARK)
    rows = {found[1]: found[0] for found in re.finditer(r"^\| ([^|]+?) \|.*$", rest, re.MULTILINE)}
    rows |= {one.kind.name: line(one) for one in every}
    load = ", ".join(f"{one:.1f}" for one in os.getloadavg())
    machine = f"{os.cpu_count()} cores, Linux {platform.release()}, Python {platform.python_version()}, load {load}"
    table = "\n".join(rows[name] for name in (kind.name for kind in KINDS) if name in rows)
    said = f"`python -m tests.hostile --seed {seed}`, {machine}"
    FIGURES.write_text(f"{head}{mark}\n{said}\n\n{HEAD}{table}\n{total(table)}\n", "utf-8")


if __name__ == "__main__":
    sys.exit(main())
