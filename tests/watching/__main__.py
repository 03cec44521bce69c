"""`python -m tests.watching --runs 10`: every deed in full size, by sync and by events, and a table of what was missed.

Each run has a daemon and an OUT_DIR of its own. Exit code 1 when anything was missed or half.
"""

from __future__ import annotations

import argparse
import random
import shutil
import sys
import tempfile
from pathlib import Path

from tests.daemon_process import Workspace
from tests.watching.deeds import FULL_SIZE
from tests.watching.overflow import OVERFLOW, through_a_stop
from tests.watching.trial import WAYS, Outcome


def main() -> int:
    options = read_options()
    seed = options.seed if options.seed is not None else random.SystemRandom().randrange(2**32)
    chosen = [name for name in [*FULL_SIZE, OVERFLOW] if options.only in name]
    print(f"{options.runs} runs each, seed {seed}\n")
    print("| what a program does | files | seen by | runs | missed | half | slowest after the last write |")
    print("| --- | ---: | --- | ---: | ---: | ---: | ---: |")
    clean = True
    for name in chosen:
        for way in WAYS:
            outcomes = [one_run(name, way, f"turn_{seed}_{run}") for run in range(options.runs)]
            clean = clean and all(outcome.is_clean for outcome in outcomes)
            print(row(name, way, outcomes), flush=True)
            for outcome in outcomes:
                if not outcome.is_clean:
                    print(f"  {outcome}", file=sys.stderr)
    return 0 if clean else 1


def read_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.watching", description=__doc__)
    parser.add_argument("--runs", type=int, default=10)
    parser.add_argument("--only", default="", help="deeds whose name holds this text")
    parser.add_argument("--seed", type=int, help="names the turns; random by default")
    return parser.parse_args()


def one_run(name: str, way: str, prefix: str) -> Outcome:
    folder = Path(tempfile.mkdtemp(prefix="as-watching-"))
    try:
        with Workspace(folder) as workspace:
            if name == OVERFLOW:
                return through_a_stop(workspace, way, prefix, 20_000)
            return WAYS[way](workspace, name, prefix, FULL_SIZE[name])
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def row(name: str, way: str, outcomes: list[Outcome]) -> str:
    files = sum(outcome.made for outcome in outcomes)
    missed = sum(len(outcome.missed) + len(outcome.unnumbered) for outcome in outcomes)
    half = sum(len(outcome.half) for outcome in outcomes)
    slowest = max(outcome.seconds for outcome in outcomes)
    return f"| {name.replace('_', ' ')} | {files} | {way} | {len(outcomes)} | {missed} | {half} | {slowest:.2f} s |"


if __name__ == "__main__":
    sys.exit(main())
