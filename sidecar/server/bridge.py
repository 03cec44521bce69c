"""The stdio door: joins its stdin and stdout to the workspace's daemon, and starts one when none answers.

It copies bytes and knows no JSON. A sandboxed program starts it and waits for it, so it imports nothing that is not
part of the interpreter itself; it runs as `python -m sidecar connect` and as a file by itself
(`python -S -E bridge.py --out-dir DIR`). Where the sockets lie is decided here, for the daemon as well.
"""

from __future__ import annotations

import _socket
import _thread
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
REPLAY_BYTES = 65536
RECONNECTS = 2

# sysexits.h; 75 is what a daemon ends with that finds another one holding the workspace.
USAGE, UNAVAILABLE, ALREADY_SERVED, NO_PERMISSION = 64, 69, 75, 77


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
        if given > 2 and _quietly(os.get_inheritable, given):
            actions.append((os.POSIX_SPAWN_CLOSE, given))
    try:
        return os.posix_spawn(serve[0], serve, _environment(), file_actions=actions, setsid=True)
    except OSError as error:
        raise Hopeless(UNAVAILABLE, f"cannot start the daemon: {error}") from None


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


def _quietly(do, *arguments):
    """What `do` gives, or None when it fails: the other thread sees the same failure, and can do something about it."""
    try:
        return do(*arguments)
    except OSError:
        return None


def _write_all(sink: int, chunk: bytes) -> None:
    rest = memoryview(chunk)
    while rest:
        rest = rest[os.write(sink, rest) :]


class _Upward:
    """The way from stdin to the daemon, which can be moved to another daemon as long as nothing was answered.

    A daemon that is about to end may still take a connection and drop it. What was sent to it is kept until the first
    answer comes, and told again to its successor.
    """

    def __init__(self, sock: _socket.socket) -> None:
        self.sock = sock
        self.ended = False  # stdin has ended
        self.unanswered: bytearray | None = bytearray()  # None when there is no way back
        self._lock = _thread.allocate_lock()

    def copy(self, source: int) -> None:
        while chunk := _quietly(os.read, source, CHUNK):
            with self._lock:
                kept = self.unanswered
                if kept is not None:
                    kept += chunk
                    if len(kept) > REPLAY_BYTES:
                        self.unanswered = None
                _quietly(self.sock.sendall, chunk)  # whoever reads the socket learns that it is dead
        with self._lock:
            self.ended = True
            _quietly(self.sock.shutdown, _socket.SHUT_WR)

    def move(self, sock: _socket.socket) -> None:
        """Tell everything again to another daemon, and go on with it."""
        with self._lock:
            self.sock.close()
            self.sock = sock
            _quietly(sock.sendall, self.unanswered or b"")
            if self.ended:
                _quietly(sock.shutdown, _socket.SHUT_WR)

    def first_answer(self) -> bytes:
        """What the daemon says first, or nothing when it hung up."""
        chunk = _quietly(self.sock.recv, CHUNK)
        if chunk:
            self.unanswered = None  # it lives, so nothing needs to be told twice
        return chunk or b""


def join(folder: str, role: str, serve: list[str], *, source: int = 0, sink: int = 1) -> None:
    """Be the door between two descriptors and the daemon until one side ends. Raises Hopeless."""
    sock, child = connect(folder, role, serve)
    upward = _Upward(sock)
    _thread.start_new_thread(upward.copy, (source,))
    for attempt in range(RECONNECTS + 1):
        if chunk := upward.first_answer():
            _write_all(sink, chunk)
            bring_down(upward.sock, sink)
            return
        if upward.ended and upward.unanswered == b"":
            return  # nothing was asked, so no answer is missing
        code = None if child is None else _wait_for_end(child)
        if code not in (None, 0, ALREADY_SERVED):
            raise _failed_start(folder, code)
        if upward.unanswered is None or attempt == RECONNECTS:
            break
        sock, another = connect(folder, role, serve)
        child = another or child
        upward.move(sock)
    if not upward.ended:
        raise Hopeless(UNAVAILABLE, "the daemon closed the connection before it answered anything")


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
        else:
            others.append(word)
    return options, others


def _say(code: int, sentence: str) -> int:
    sys.stderr.write(f"artifact-sidecar: {sentence}\n")
    return code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
