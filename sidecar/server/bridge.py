"""The stdio door: joins its stdin and stdout to the workspace's daemon, and starts one when none answers.

A sandboxed program starts it and waits for it, so it imports nothing that is not part of the interpreter itself; it
runs as `python -m sidecar connect` and as a file (`python -S -E bridge.py --out-dir DIR`), with `doorway.py`,
`upward.py`, `session.py` and `envelopes.py` beside it. Where the sockets lie is decided here, for the daemon as well.
"""

from __future__ import annotations

import _socket
import os
import sys
import time

ROLES = ("runtime", "renderer", "exec", "editor")
DEFAULT_ROLE = "exec"
SOCKET_NAME = "s.sock"
LONGEST_ADDRESS = 107  # bytes in sockaddr_un.sun_path, without the final NUL

START_SECONDS = 30.0
FIRST_WAIT, LONGEST_WAIT = 0.002, 0.05
RESPAWN_SECONDS = 0.5
ENDING_SECONDS = 1.0
CHUNK = 65536
RECONNECTS = 5
RECONNECT_PAUSE, LONGEST_PAUSE = 0.05, 1.0
YIELD_SECONDS = 0.1

# sysexits.h; 75 is what a daemon ends with that finds another one holding the workspace.
USAGE, UNAVAILABLE, ALREADY_SERVED, NO_PERMISSION = 64, 69, 75, 77
# A journal that failed, a bug, a signal: a daemon that ends with these may have a healthy successor.
PASSING = frozenset((70, *range(129, 193)))


class Hopeless(Exception):  # noqa: N818 - said to a person, with an exit code
    """There is no daemon to connect to and none could be started."""

    def __init__(self, code: int, sentence: str) -> None:
        super().__init__(sentence)
        self.code = code


# Where the sockets lie.


def socket_folder(out_dir: str, socket_dir: str | None = None) -> str:
    """The folder of this workspace's sockets: named by the real path of OUT_DIR alone, so that all doors agree."""
    name = _sha256(os.fsencode(os.path.realpath(out_dir)))[:16]
    return os.path.join(socket_dir or os.environ.get("ARTIFACT_SIDECAR_SOCKET_DIR") or _default_base(), name)


def make_folder(path: str) -> None:
    """Make the folder, and the default one above it, ours alone. Raises Hopeless when something else stands there."""
    try:
        # One by one, because only the last folder of a path gets the mode.
        os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
        os.makedirs(path, mode=0o700, exist_ok=True)
    except OSError as error:
        raise Hopeless(NO_PERMISSION, f"no folder for the sockets: {error}") from None
    check_folder(path)


def check_folder(path: str) -> None:
    """Look that nobody else put the folder there, to answer in the daemon's place. Raises Hopeless."""
    base = os.path.dirname(path)
    for folder in (base, path) if base == _default_base() else (path,):
        try:
            found = os.lstat(folder)
        except FileNotFoundError:
            return
        if found.st_mode & 0o170077 != 0o040000 or found.st_uid != os.geteuid():
            raise Hopeless(NO_PERMISSION, f"{folder} is not a folder of ours alone (it must be 0700 and no link)")


def dial(folder: str, role: str) -> _socket.socket:
    """Connect to the role's socket. Raises OSError when nobody answers there."""
    sock = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)
    try:
        with_address(os.path.join(folder, role), sock.connect)
    except BaseException:
        sock.close()
        raise
    return sock


def with_address(folder: str, use) -> None:
    """Call `use` with the address of the socket in this folder, however long the folder's own path is."""
    address = os.fsencode(os.path.join(folder, SOCKET_NAME))
    if len(address) <= LONGEST_ADDRESS:
        use(address)
        return
    descriptor = os.open(folder, os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        use(f"/proc/self/fd/{descriptor}/{SOCKET_NAME}".encode())
    finally:
        os.close(descriptor)


def _default_base() -> str:
    runtime = os.environ.get("XDG_RUNTIME_DIR")
    return f"{runtime}/artifact-sidecar" if runtime else f"/tmp/artifact-sidecar-{os.geteuid()}"


def _sha256(text: bytes) -> str:
    # hashlib brings OpenSSL with it, which takes longer than everything else here together.
    try:
        from _sha2 import sha256
    except ImportError:
        from _sha256 import sha256
    return sha256(text).hexdigest()


# The way to a daemon.


def connect(folder: str, role: str, serve: list[str]) -> tuple[_socket.socket, int | None]:
    """A connection to the workspace's daemon, and the process id of the daemon if we were the one to start it.

    Of any number of doors that find nobody, the one that holds the lock starts `serve`; the others wait with it.
    Raises Hopeless when the daemon ended, or nobody answered in time.
    """
    check_folder(folder)
    until = time.monotonic() + START_SECONDS
    wait, spawn_at = FIRST_WAIT, 0.0
    child = lock = None
    try:
        while True:
            try:
                return dial(folder, role), child
            except (FileNotFoundError, ConnectionRefusedError):
                now = time.monotonic()  # nobody there yet
            except OSError as error:
                raise Hopeless(NO_PERMISSION, f"cannot connect to the daemon: {error}") from None
            if now > until:
                raise Hopeless(UNAVAILABLE, f"no daemon answered within {START_SECONDS:g} seconds")
            if lock is None:
                lock = _try_lock(folder)
                if lock is not None:
                    continue  # whoever had it may have started a daemon: dial once more before starting another
            elif child is not None:
                child = _still_starting(folder, child)
                spawn_at = now + RESPAWN_SECONDS
            elif now >= spawn_at:
                child = _start(folder, serve)
            time.sleep(wait)
            wait = min(2 * wait, LONGEST_WAIT)
    finally:
        if lock is not None:
            os.close(lock)


def _try_lock(folder: str) -> int | None:
    import fcntl  # a door that finds its daemon has no need of it

    make_folder(folder)
    lock = os.open(os.path.join(folder, "spawn.lock"), os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(lock)
        return None
    return lock


def _start(folder: str, serve: list[str]) -> int:
    """Start the daemon in a session of its own. What it says before it has a log goes to `spawn.log`."""
    log = os.path.join(folder, "spawn.log")
    actions = [
        (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
        (os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0),
        (os.POSIX_SPAWN_OPEN, 2, log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_APPEND, 0o600),
    ]
    # A descriptor that we were given by accident would keep somebody's pipe open for as long as the daemon lives.
    for given in map(int, os.listdir("/proc/self/fd")):
        if given > 2 and _is_inherited(given):
            actions.append((os.POSIX_SPAWN_CLOSE, given))
    try:
        return os.posix_spawn(serve[0], serve, _environment(), file_actions=actions, setsid=True)
    except OSError as error:
        raise Hopeless(UNAVAILABLE, f"cannot start the daemon: {error}") from None


def _is_inherited(descriptor: int) -> bool:
    try:
        return os.get_inheritable(descriptor)
    except OSError:
        return False  # it was the one that listed the folder


def _environment() -> dict[str, str]:
    """Ours, and in a checkout that was never installed, the way to the package."""
    root = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    if root.endswith("-packages"):
        return dict(os.environ)
    known = os.environ.get("PYTHONPATH")
    return {**os.environ, "PYTHONPATH": f"{root}{os.pathsep}{known}" if known else root}


def _still_starting(folder: str, child: int) -> int | None:
    """The child while it lives; None when it gave way to another daemon. Raises Hopeless when it failed."""
    code = _ended(child)
    if code is None:
        return child
    if code == ALREADY_SERVED:
        return None
    raise _failed_start(folder, code)


def _ended(child: int) -> int | None:
    """The child's exit code, 128 + n after signal n, or None while it lives."""
    try:
        found, status = os.waitpid(child, os.WNOHANG)
    except ChildProcessError:
        return None
    if found == 0:
        return None
    code = os.waitstatus_to_exitcode(status)
    return 128 - code if code < 0 else code


def _wait_for_end(child: int) -> int | None:
    """The exit code of a daemon that has hung up on us, and so is about to end. None when it lives on."""
    until = time.monotonic() + ENDING_SECONDS
    while (code := _ended(child)) is None and time.monotonic() < until:
        time.sleep(FIRST_WAIT)
    return code


def _failed_start(folder: str, code: int) -> Hopeless:
    """The daemon's exit code, and the last line it said."""
    try:
        with open(os.path.join(folder, "spawn.log"), "rb") as log:
            log.seek(max(0, os.fstat(log.fileno()).st_size - 4096))
            said = [line for line in log.read().decode("utf-8", "replace").split("\n") if line.strip()]
    except OSError:
        said = []
    return Hopeless(code or UNAVAILABLE, f"the daemon ended with exit code {code}: {said[-1][:500] if said else '-'}")


# The copying.


def send_up(source: int, sock: _socket.socket) -> None:
    """Copy a descriptor to a socket until it ends, then say so to the other side, which may go on answering."""
    try:
        while chunk := os.read(source, CHUNK):
            sock.sendall(chunk)
        sock.shutdown(_socket.SHUT_WR)
    except OSError:
        pass  # whoever reads the socket learns of it


def bring_down(sock: _socket.socket, sink: int) -> None:
    """Copy a socket to a descriptor until either ends."""
    try:
        while chunk := sock.recv(CHUNK):
            _write_all(sink, chunk)
    except OSError:
        pass  # the reader has gone, or the daemon; there is nobody to tell


def _write_all(sink: int, chunk: bytes) -> None:
    rest = memoryview(chunk)
    while rest:
        rest = rest[os.write(sink, rest) :]


# The door while it is open.


class Way:
    """The way of one door to one daemon after another. `tries` counts those in a row that were of no use."""

    def __init__(self, folder: str, role: str, serve: list[str]) -> None:
        self.tries = 0
        self._where = (folder, role, serve)
        self._child: int | None = None
        self._served = False  # one of them did its work for a while
        self._last: Hopeless | None = None

    def first(self) -> _socket.socket:
        """Connect for the first time. Raises Hopeless."""
        sock, self._child = connect(*self._where)
        return sock

    def another(self) -> _socket.socket:
        """Connect to the successor of a daemon that has ended. Raises Hopeless, at the latest after a few tries."""
        while True:
            self.tries += 1
            if self.tries > RECONNECTS:
                sentence = f"the daemon ended {self.tries} times in a row before it gave a result"
                last = self._last
                raise Hopeless(last.code, f"{sentence}; {last}") if last else self.give_up(sentence)
            if self.tries > 1:
                time.sleep(min(2**self.tries * RECONNECT_PAUSE, LONGEST_PAUSE))
            try:
                return self._dial_for_a_moment() or self.first()
            except Hopeless as error:
                if error.code not in PASSING:
                    raise
                self._last = error

    def look_back(self, *, served: bool) -> None:
        """The daemon has hung up. Raises Hopeless when it was ours to start and another would end like it."""
        self._served = self._served or served
        child, self._child = self._child, None
        code = None if child is None else _wait_for_end(child)
        if code in (None, 0, ALREADY_SERVED):
            return
        error = _failed_start(self._where[0], code)
        if not served and (code not in PASSING or not self._served):
            raise error
        self._last = error

    def give_up(self, sentence: str) -> Hopeless:
        """What ends the door, with this reason."""
        return Hopeless(UNAVAILABLE, sentence)

    def _dial_for_a_moment(self) -> _socket.socket | None:
        """Whoever asked the old daemon to end may be about to start a newer one, and comes first."""
        until = time.monotonic() + YIELD_SECONDS
        while time.monotonic() < until:
            try:
                return dial(*self._where[:2])
            except OSError:
                time.sleep(FIRST_WAIT)
        return None


def join(folder: str, role: str, serve: list[str], *, source: int = 0, sink: int = 1) -> None:
    """Be the door between two descriptors and the daemon until one side ends. Raises Hopeless."""
    if __package__:
        from sidecar.server import doorway
    else:
        doorway = __import__("doorway")  # a file by itself has its parts beside it
    doorway.Doorway(Way(folder, role, serve), source=source, sink=sink).run()


# The command line.


def main(argv: list[str]) -> int:
    """`connect` with its arguments; the answer is the exit code. What it does not know is passed on to `serve`."""
    options, others = _options(argv)
    out_dir = options["--out-dir"] or os.environ.get("OUT_DIR")
    role, socket_dir = options["--role"] or DEFAULT_ROLE, options["--socket-dir"]
    if not out_dir:
        return _say(USAGE, "no workspace: give --out-dir DIR or set OUT_DIR")
    if role not in ROLES:
        return _say(USAGE, f"--role is one of {', '.join(ROLES)}")
    serve = [sys.executable, "-m", "sidecar", "serve", "--out-dir", os.path.realpath(out_dir), *others]
    if socket_dir:
        serve += ["--socket-dir", os.path.realpath(socket_dir)]
    folder = socket_folder(out_dir, socket_dir)
    try:
        _make_room(folder)
        join(folder, role, serve)
    except Hopeless as error:
        return _say(error.code, str(error))
    except BrokenPipeError:
        return 0  # our reader has left, and that is how a door is closed
    except KeyboardInterrupt:
        return 130
    return 0


def _make_room(folder: str) -> None:
    """An older daemon makes room for ours. A door that runs as a file by itself has no version, and takes what is."""
    try:
        with open(os.path.join(folder, "version"), encoding="ascii") as told:
            theirs = told.read(64)
        from sidecar import __version__
    except (OSError, UnicodeDecodeError, ImportError):
        return
    if theirs != __version__:
        from sidecar.server.retiring import ask_older

        ask_older(folder, __version__)


def _options(argv: list[str]) -> tuple[dict[str, str | None], list[str]]:
    options: dict[str, str | None] = {"--out-dir": None, "--role": None, "--socket-dir": None}
    others: list[str] = []
    words = iter(argv)
    for word in words:
        name, given, value = word.partition("=")
        if name in options:
            options[name] = value if given else next(words, None)
        elif word != "--stdio":  # which clients of editors add to whatever they start; there is no other way here
            others.append(word)
    return options, others


def _say(code: int, sentence: str) -> int:
    sys.stderr.write(f"artifact-sidecar: {sentence}\n")
    return code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
