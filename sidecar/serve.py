"""`serve`: from the settings to a running daemon, its log and its recording."""

from __future__ import annotations

import argparse
import json
import logging
import os
import sys
import threading
import time
from logging.handlers import RotatingFileHandler
from typing import IO, TYPE_CHECKING, Any, cast

from sidecar.config import Settings, read_settings
from sidecar.console.arguments import Parser, add_workspace
from sidecar.settings_file import BadSettings
from sidecar.stores.durable import make_folder

if TYPE_CHECKING:
    from sidecar.server.assembly import Wanted
    from sidecar.server.caller import Client

USAGE = 64
ROLES = ("runtime", "renderer", "exec", "editor")
LOG_NAME = "sidecar.log"
LOG_BYTES, LOG_FILES = 10 * 1024 * 1024, 3


def main(argv: list[str]) -> int:
    """Serve until asked to end; the answer is the exit code (see `sidecar.server.daemon`)."""
    from sidecar.server import bridge, daemon

    asked = vars(_parser().parse_args(argv))
    stdio, role = asked.pop("stdio"), asked.pop("role")
    try:
        settings = read_settings(asked)
    except BadSettings as error:
        sys.stderr.write(f"artifact-sidecar: {error}\n")
        return USAGE
    _begin_log(settings, bridge.socket_folder(settings.out_dir, settings.socket_dir))
    serving = daemon.Serving(
        socket_dir=settings.socket_dir,
        idle_exit=settings.idle_exit,
        stdio_role=role if stdio else None,
        allowed=settings.allowed,
        tap=Recording(settings.record).tap if settings.record else None,
        begun=settings.remember_store,
    )
    # The settings have all that `Wanted` has; importing that would bring the heavy half before the sockets are bound.
    return daemon.run(cast("Wanted", settings), serving)


def run(argv: list[str]) -> int:
    """The same as the whole work of this process, which ends with it.

    An upload that hangs on a store must not hold up the end: all that matters is in the journal already.
    """
    code = main(argv)
    if any(thread is not threading.main_thread() and not thread.daemon for thread in threading.enumerate()):
        logging.shutdown()
        sys.stderr.flush()
        os._exit(code)
    return code


def _parser() -> argparse.ArgumentParser:
    parser = Parser(prog="artifact-sidecar serve", description="Be the daemon of a workspace, in the foreground.")
    add_workspace(parser)
    parser.add_argument("--stdio", action="store_true", help="also be a client's connection, on stdin and stdout")
    parser.add_argument("--role", choices=ROLES, default="runtime", help="the role of that connection")
    for name, field in Settings.model_fields.items():
        if name in ("out_dir", "state_dir", "socket_dir"):
            continue
        flag, says = f"--{name.replace('_', '-')}", (field.description or "").replace("%", "%%")
        match field.annotation:
            case annotation if annotation is bool:
                switch = argparse.BooleanOptionalAction if field.default else "store_true"
                parser.add_argument(flag, action=switch, default=None, help=says)
            case _ if name in ("allow_uid", "attach_root", "eligible"):
                parser.add_argument(flag, action="append", help=f"{says} May be given several times.")
            case _:
                parser.add_argument(flag, metavar="VALUE", help=says)
    return parser


class _PrivateFile(RotatingFileHandler):
    """A log that only its owner reads, in three files of at most 10 MiB."""

    def __init__(self, path: str) -> None:
        super().__init__(path, maxBytes=LOG_BYTES, backupCount=LOG_FILES - 1, encoding="utf-8", delay=True)

    def _open(self) -> Any:
        return open(self.baseFilename, "a", encoding="utf-8", opener=_private)

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: N802 - logging's name for it
        """On a full disk the line is lost here; stderr has it too, and needs no traceback for each."""


def _private(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_NOFOLLOW, 0o600)


def _begin_log(settings: Settings, socket_folder: str) -> None:
    make_folder(settings.state_dir)
    handlers: list[logging.Handler] = [_PrivateFile(os.path.join(settings.state_dir, LOG_NAME))]
    said = logging.StreamHandler(sys.stderr)
    if _is_spawn_log(socket_folder):
        said.setLevel(logging.ERROR)  # a door started us: that file only tells why a start failed, and is never rotated
    handlers.append(said)
    for handler in handlers:
        handler.setFormatter(_Layout())
    logging.basicConfig(level=settings.log_level.upper(), handlers=handlers)


class _Layout(logging.Formatter):
    """One line per record, in UTC. Lines of requests come many at once, each with its own time already."""

    converter = time.gmtime

    def __init__(self) -> None:
        super().__init__("%(asctime)s.%(msecs)03dZ %(levelname)s %(name)s %(message)s", "%Y-%m-%dT%H:%M:%S")

    def format(self, record: logging.LogRecord) -> str:
        return record.getMessage() if record.name == "sidecar.request" else super().format(record)


def _is_spawn_log(socket_folder: str) -> bool:
    try:
        return os.path.samestat(os.fstat(2), os.stat(os.path.join(socket_folder, "spawn.log")))
    except OSError:
        return False


class Recording:
    """`--record FILE`: every message with its client and direction, one JSON object per line, for debugging.

    It holds contents, so only its owner can read it.
    """

    def __init__(self, path: str) -> None:
        self._file: IO[str] = open(path, "a", encoding="utf-8", opener=_private)  # noqa: SIM115 - as long as we live
        self._lock = threading.Lock()

    def tap(self, client: Client, way: str, body: bytes) -> None:
        line = {"at": time.time(), "client": client.id, "role": client.role, "way": way}
        try:
            line["body"] = json.loads(body)
        except ValueError:
            line["garbage"] = body.decode("utf-8", "backslashreplace")
        with self._lock:
            self._file.write(json.dumps(line, ensure_ascii=False) + "\n")
            self._file.flush()
