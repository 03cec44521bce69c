"""`python -m tests.soak` lets one daemon work for hours with 16 clients of all roles and says what grew.

Ctrl-C or SIGTERM ends it early and it reports all the same. Exit code 1 when anything was lost or unexpected.
`--write` puts the report into FIGURES.md.
"""

from __future__ import annotations

import argparse
import os
import random
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from tests.bench import machine
from tests.soak.report import report
from tests.soak.run import Plan, soak

FIGURES = Path(__file__).with_name("FIGURES.md")
MARK = "<!-- Everything below is written by `python -m tests.soak --write`. -->\n"


def main(argv: Sequence[str]) -> int:
    options = read_options(argv)
    seed = options.seed if options.seed is not None else random.SystemRandom().randrange(2**32)
    print(f"seed {seed}", file=sys.stderr, flush=True)
    with tempfile.TemporaryDirectory(prefix="as-soak-") as name, places(options.store, options.index) as settings:
        plan = Plan(
            options.minutes, seed, options.rate, options.every, tuple(settings.items()), options.inside, options.series
        )
        outcome = soak(plan, Path(name) / "soak")
    said = f"{machine.facts()}\n{report(outcome)}"
    print(said, flush=True)
    if options.write:
        FIGURES.write_text(f"{FIGURES.read_text('utf-8').partition(MARK)[0]}{MARK}\n{said}", "utf-8")
    return 1 if outcome.wrong else 0


def read_options(argv: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.soak", description=__doc__)
    parser.add_argument("--minutes", type=float, default=120.0)
    parser.add_argument("--seed", type=int, help="of everything that is left to chance; random by default")
    parser.add_argument("--rate", type=float, default=1.0, help="how fast the clients work; 2 is twice as fast")
    parser.add_argument("--every", type=float, default=10.0, help="seconds between two samples")
    parser.add_argument("--store", choices=("folder", "s3"), default="folder")
    parser.add_argument("--index", choices=("sqlite", "postgresql"), default="sqlite")
    parser.add_argument("--write", action="store_true", help="put the report into FIGURES.md")
    parser.add_argument("--series", type=Path, help="a file that gets every sample as a line of JSON")
    parser.add_argument("--inside", type=Path, help="a folder that gets the daemon's objects by type each minute")
    return parser.parse_args(argv)


@contextmanager
def places(store: str, index: str) -> Iterator[dict[str, str]]:
    """The settings for store and index, whose servers run meanwhile. Raises NotInstalled."""
    settings: dict[str, str] = {}
    stops = []
    try:
        if store == "s3":
            from tests.radosgw import Radosgw

            server = Radosgw()
            stops.append(server.stop)
            os.environ |= server.environment()
            settings |= {"store": f"s3://{server.make_bucket()}/soak", "store_endpoint_url": server.http}
        if index == "postgresql":
            from tests.postgres import Postgres

            database = Postgres()
            stops.append(database.stop)
            settings["index"] = database.url()
        yield settings
    finally:
        for stop in stops:
            stop()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
