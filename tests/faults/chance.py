"""What is left to chance in a test, and how much of it is tried: two variables decide, and a failed test names them.

`FAULTS_SEED=7` gives every test the same chances once more, each test its own ones; `FAULTS_SIZE=long` makes of a test
of every day the trial that `python -m tests.faults --long` reports.
"""

from __future__ import annotations

import hashlib
import os
import random

SEED, SIZE = "FAULTS_SEED", "FAULTS_SIZE"


def a_seed() -> int:
    """The seed of the test that runs, printed as what would give it again."""
    given = os.environ.get(SEED) or str(random.SystemRandom().randrange(2**32))
    test = os.environ.get("PYTEST_CURRENT_TEST", "").partition(" ")[0]
    print(f"{SEED}={given}")
    return int.from_bytes(hashlib.sha256(f"{given} {test}".encode()).digest()[:4], "big")


def tries(quick: int, *, long: int) -> int:
    """How often: as every day, or as in the long run."""
    return long if os.environ.get(SIZE) == "long" else quick
