"""The commands for people and scripts: their flags, and what their failures mean to a shell."""

from __future__ import annotations

import argparse
import importlib
import os
import sys
from collections.abc import Callable

from artifact_client import ConnectionLost, NoAnswer, NoSidecar, RpcError

from sidecar.console.arguments import Parser, add_json, add_store, add_workspace
from sidecar.console.output import complain
from sidecar.console.place import Place, StillThere
from sidecar.core.errors import Refusal
from sidecar.server.bridge import Hopeless
from sidecar.settings_file import BadSettings

# sysexits.h
USAGE, NO_INPUT, UNAVAILABLE, BROKEN, TRY_AGAIN, NO_PERMISSION = 64, 66, 69, 70, 75, 77
INTERRUPTED = 130

_MODULES = {
    "demo": "demo", "doctor": "doctor", "stop": "life", "restart": "life", "logs": "life", "export": "export",
    "gc": "gc", "erase": "erase", "index": "index", "exec": "running", "watch": "watching",
}  # fmt: skip
_BY_KIND = {
    "bad_path": USAGE,
    "unsafe_path": USAGE,
    "bad_selector": USAGE,
    "not_found": NO_INPUT,
    "unknown_turn": NO_INPUT,
    "not_permitted": NO_PERMISSION,
    "store_unavailable": TRY_AGAIN,
    "journal_unavailable": TRY_AGAIN,
    "shutting_down": TRY_AGAIN,
}


def main(name: str, argv: list[str], *, says: str) -> int:
    """Run the command that `says` what it does; the answer is the exit code. Every failure is one line on stderr."""
    parser = Parser(prog=f"artifact-sidecar {name}", description=says)
    _FLAGS.get(name, _no_more)(parser)
    if name != "demo":
        add_workspace(parser)
    asked = parser.parse_args(argv)
    module = importlib.import_module(f"sidecar.console.{_MODULES.get(name, 'listing')}")
    run = getattr(module, name if _needs_workspace(name, asked) or name == "demo" else f"{name}_alone")
    place: Place | None = None
    try:
        place = Place(vars(asked)) if _needs_workspace(name, asked) else None
        code = run(asked) if place is None else run(place, asked)
        sys.stdout.flush()
    except BrokenPipeError:
        # Our reader has what it wanted. What is left in the buffer must not be written at exit either.
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        return 0
    except KeyboardInterrupt:
        return INTERRUPTED
    except RpcError as refusal:
        complain(str(refusal))
        return _BY_KIND.get(refusal.kind, BROKEN)
    except Refusal as refusal:
        complain(f"{refusal.about}: {refusal.hint}" if refusal.hint else str(refusal))
        return _BY_KIND.get(refusal.kind, BROKEN)
    except (Hopeless, BadSettings, NoSidecar, NoAnswer, ConnectionLost, StillThere) as failure:
        lost = isinstance(failure, NoSidecar | ConnectionLost) and place is not None
        known = (place.fate() if lost else None) or failure
        complain(str(known))
        return known.code if isinstance(known, Hopeless) else _BY_FAILURE[type(known)]
    return code


_BY_FAILURE: dict[type[Exception], int] = {
    BadSettings: USAGE,
    NoSidecar: UNAVAILABLE,
    NoAnswer: TRY_AGAIN,
    ConnectionLost: TRY_AGAIN,
    StillThere: TRY_AGAIN,
}


def _needs_workspace(name: str, asked: argparse.Namespace) -> bool:
    """An index can be made before there is a workspace; everything else but the demo is about one."""
    return name != "demo" and not (name == "index" and not asked.out_dir and not os.environ.get("OUT_DIR"))


def _no_more(_: argparse.ArgumentParser) -> None:
    return


def _ls(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--turn", dest="turn_id", metavar="TURN", help="only those of this turn")
    parser.add_argument("--kind", choices=("file", "display"))
    parser.add_argument("--mime", metavar="TYPE", help="only this media type; `image/*` takes a whole family")
    parser.add_argument("--visibility", choices=("external", "internal", "pending"))
    parser.add_argument("--prefix", metavar="PATH", help="only logical paths that begin so")
    add_json(parser)


def _one_path(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("path", metavar="PATH", help="of any family, logical or physical")
    add_json(parser)


def _sources(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("selector", nargs="?", metavar="SELECTOR", help="`1,3-5`; all rows by default")
    add_json(parser)


def _sync(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--since", type=int, metavar="REVISION", help="what is new after this; everything by default")
    add_json(parser)


def _watch(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--since", type=int, metavar="REVISION", help="begin with what changed after this")
    add_json(parser)


def _logs(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("-n", "--lines", type=int, default=50, metavar="N", help="how many lines, 50 by default")
    parser.add_argument("-f", "--follow", action="store_true", help="go on with what is written from now on")


def _doctor(parser: argparse.ArgumentParser) -> None:
    add_json(parser)
    add_store(parser)


def _index(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--migrate", action="store_true", help="make the schema, or bring it up to this version")
    add_json(parser)
    add_store(parser)


def _export(parser: argparse.ArgumentParser) -> None:
    kind = parser.add_mutually_exclusive_group(required=True)
    kind.add_argument("--zip", metavar="FILE", help="the archive to write")
    kind.add_argument("--ro-crate", metavar="FILE", help="the same, described as linked data (RO-Crate 1.2)")
    parser.add_argument("--internal", action="store_true", help="also what is for nobody but the agent")
    parser.add_argument("--force", action="store_true", help="replace an archive that is there")
    add_store(parser)


def _gc(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--dry-run", action="store_true", help="say what would be freed, and change nothing")
    add_json(parser)
    add_store(parser)


def _erase(parser: argparse.ArgumentParser) -> None:
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--conversation", action="store_true", help="everything")
    what.add_argument("--turn", metavar="TURN", help="this turn")
    parser.add_argument("--files", action="store_true", help="also the files in OUT_DIR")
    parser.add_argument("--yes", action="store_true", help="do not ask")
    add_store(parser)


def _exec(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--turn", metavar="ID", help="begin this turn, and end it afterwards; the open turn by default")
    parser.add_argument("--tool-call-id", metavar="ID", help="the id of the call; one of its own by default")
    parser.add_argument(
        "--sandbox", choices=("auto", "bwrap", "none"), default="auto",
        help="auto: bubblewrap where it works, and a warning where it does not",
    )  # fmt: skip
    parser.add_argument(
        "--work-dir", metavar="DIR", help="the folder it runs in, outside OUT_DIR; a temporary one by default"
    )
    parser.add_argument("--timeout", type=float, metavar="S", help="end it after so many seconds")
    parser.add_argument(
        "--expect",
        action="append",
        default=[],
        metavar="FILE",
        help="a file that it is to make; without it exit code 1",
    )
    add_json(parser)
    parser.add_argument("command", nargs=argparse.REMAINDER, metavar="-- COMMAND", help="the program and its arguments")


_FLAGS: dict[str, Callable[[argparse.ArgumentParser], None]] = {
    "status": add_json,
    "ls": _ls,
    "show": _one_path,
    "versions": _one_path,
    "sources": _sources,
    "render": add_json,
    "sync": _sync,
    "watch": _watch,
    "doctor": _doctor,
    "logs": _logs,
    "index": _index,
    "export": _export,
    "gc": _gc,
    "erase": _erase,
    "exec": _exec,
}
