"""`python -m tests.fuzzing` tries inputs that nobody thought of, led by what of the code they reach.

Each target gets `--seconds` of time in slots of at most two minutes, all in turn. What is found is printed, and written
down with the totals and the growing corpus in `$ARTIFACT_SIDECAR_FUZZING`, or the user's cache. SIGTERM ends it in
order. Exit code 1 when anything was found.
"""

from __future__ import annotations

import argparse
import random
import sys

from tests.fuzzing import corpus, figures, ledger
from tests.fuzzing.rotation import Rotation, until_told
from tests.fuzzing.slot import Done, NotInstalled, smallest
from tests.fuzzing.table import NAMES, target_of
from tests.fuzzing.target import Target

KEPT_BYTES = 10_000  # of one target


def main() -> int:
    options = read_options()
    targets = [target_of(name) for name in options.targets or NAMES]
    if options.open or options.write or options.keep:
        return tidy_up(options, targets)
    seed = options.seed if options.seed is not None else random.SystemRandom().randrange(1, 2**31)
    clean = True

    def tell(target: Target, slot_seed: int, done: Done) -> None:
        nonlocal clean
        clean = clean and not done.faults
        print(figures.slot_line(target, slot_seed, done), flush=True)

    rotation = Rotation(targets, seconds=options.seconds, seed=seed, jobs=options.jobs)
    until_told(rotation)
    try:
        rotation.run(tell)
    except NotInstalled as missing:
        print(missing, file=sys.stderr)
        return 2
    return 0 if clean else 1


def tidy_up(options: argparse.Namespace, targets: list[Target]) -> int:
    if options.keep:
        for target in targets:
            corpus.keep(target.name, smallest(target, most=KEPT_BYTES))
    if options.write:
        figures.write()
    for target in targets:
        for mark, fault in ledger.open_findings(target).items():
            print(f"{target.name} {mark}: {fault}")
    return 0


def read_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzzing", description=__doc__)
    parser.add_argument("targets", nargs="*", metavar="TARGET", choices=[*NAMES, []], help=f"of {', '.join(NAMES)}")
    parser.add_argument("--seconds", type=int, default=60, help="for each target; 60 by default")
    parser.add_argument("--seed", type=int, help="of the first slot of each; the next ones count on; random by default")
    parser.add_argument("--jobs", type=int, default=1, help="how many slots run at once")
    parser.add_argument("--open", action="store_true", help="fuzz nothing; print what was found and is so today")
    parser.add_argument("--keep", action="store_true", help="fuzz nothing; make the growing corpus the one kept here")
    parser.add_argument("--write", action="store_true", help="fuzz nothing; put the totals into FIGURES.md")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
