"""What a daemon holds is taken apart into kinds that sum up to what it has resident."""

from __future__ import annotations

from tests.soak.holding import MIB, Holding, table


def test_what_is_held_by_kind_is_all_that_is_resident() -> None:
    said = {
        "memory": {
            "before": 100 * MIB,
            "heap": {"uordblks": 20 * MIB, "hblkhd": 1 * MIB, "fordblks": 4 * MIB},
            "small": {"used": 30 * MIB, "free": 5 * MIB},
        },
        "caches": {"SQLite": 6 * MIB, "changes": 2 * MIB},
        "modules": 700,
    }
    one = Holding.of(said)
    assert (one.used, one.free, one.cached) == (51 * MIB, 9 * MIB, 8 * MIB)
    rows = [line.split("|")[2].split()[0] for line in table({"soaked": one}).splitlines()[2:]]
    assert rows == ["100.0", "6.0", "2.0", "43.0", "9.0", "40.0"]
