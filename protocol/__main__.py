"""`python -m protocol` writes what is generated; with `--check` it names what is stale, and fails if anything is."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from protocol import export


def main(arguments: list[str] | None = None, *, root: Path = export.ROOT) -> int:
    """Returns the exit status."""
    parser = argparse.ArgumentParser(prog="python -m protocol", description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing; name the stale files and exit 1")
    if parser.parse_args(arguments).check:
        stale = export.stale(root)
        for path in stale:
            print(f"{path} is stale; run `python -m protocol`", file=sys.stderr)
        return 1 if stale else 0
    for path in export.write(root):
        print(f"wrote {path}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
