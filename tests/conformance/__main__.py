"""`python -m tests.conformance --command "..." [CASE ...]`: play the cases against any server over stdio.

The command is a template: `{role}`, `{out_dir}`, `{state_dir}` and `{socket_dir}` are filled in, and the same names are
in the environment as OUT_DIR and ARTIFACT_SIDECAR_*.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

from tests.conformance.case import Case, load, paths
from tests.conformance.generated import generated
from tests.conformance.play import play, prepare
from tests.conformance.servers import DOOR, Server
from tests.rpc_client import HungUpError


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.conformance", description=__doc__)
    parser.add_argument("--command", default=DOOR, help="how to reach the server (default: %(default)s)")
    parser.add_argument("cases", nargs="*", help="names of cases; all by default")
    asked = parser.parse_args()
    every = [load(path) for path in paths()] + generated()
    chosen = [case for case in every if not asked.cases or case.name in asked.cases]
    failed = [case.name for case in chosen if not passes(case, asked.command)]
    print(f"{len(chosen) - len(failed)} of {len(chosen)} cases hold")
    return 1 if failed or not chosen else 0


def passes(case: Case, command: str) -> bool:
    """Play one case in a fresh folder and print its line."""
    with tempfile.TemporaryDirectory(prefix="conformance-") as folder:
        server = Server(Path(folder), command, settings=case.given.get("settings", {}))
        prepare(case, server.out_dir)
        try:
            play(case, server)
        except (AssertionError, TimeoutError, HungUpError) as fault:
            print(f"FAILED {case.name}: {case.about}\n  {fault}\n{server.tail()}")
            return False
        finally:
            server.end()
    print(f"ok     {case.name}: {case.about}")
    return True


if __name__ == "__main__":
    sys.exit(main())
