"""Ask the artifact sidecar of this workspace, from any Python program.

    from artifact_client import fetch_ctx
    rows = fetch_ctx("so:sources_pool[1-5]")["ret"]

One file, standard library only, Python 3.9 and later; copy it into an image or install it. The first call connects, by
the first of these that works: the connected descriptor ARTIFACT_SIDECAR_FD, the socket ARTIFACT_SIDECAR_SOCKET, the
command ARTIFACT_SIDECAR_COMMAND, and `python -m sidecar connect --role exec` where OUT_DIR is set and the daemon is
installed beside this file. Every call has a deadline. Whatever goes wrong is a SidecarError.
"""

from __future__ import annotations

import os
import sys
from _collections import deque  # pyright: ignore - `collections` itself takes 3 ms to import
from _thread import allocate_lock
from time import monotonic, sleep

TYPE_CHECKING = False
if TYPE_CHECKING:
    import socket
    import subprocess
    from collections.abc import Iterable, Iterator, Sequence
    from typing import Any, Callable

__version__ = "0.1.0"
PROTOCOL_VERSION = "1.5"
TIMEOUT, PATIENCE, _HEADER_BYTES, _ADDRESS_BYTES = 30.0, 5.0, 4096, 107  # seconds of a call, of them for a new daemon
_READS = "fetch read resolve list versions search status changes render blocks extract replace".split()  # change nothing


class SidecarError(Exception):
    """Anything that kept the sidecar from answering."""


class NoSidecar(SidecarError):
    """Nothing offers a sidecar here. The message names everything that was looked for."""


class NoAnswer(SidecarError, TimeoutError):
    """The deadline passed. The connection was closed, so that a late answer meets nobody."""


class ConnectionLost(SidecarError, ConnectionError):
    """The connection ended before the answer came. Repeated with the same `request_id`, a change is made only once."""

    delivered = True  # False when the other side cannot have got the whole message


class RpcError(SidecarError):
    """The sidecar answered with an error. `kind`, `about` and `hint` are empty for faults of the protocol itself."""

    def __init__(self, error: dict[str, Any]) -> None:
        self.code: int = error.get("code", 0)
        self.message = str(error.get("message", ""))
        self.data: dict[str, Any] = error.get("data") or {}
        self.kind, self.about, self.hint = (str(self.data.get(key, "")) for key in ("kind", "about", "hint"))
        told = [self.message, self.about, self.hint, self.data.get("incident")]
        told += [f"{fault['where']}: {fault['problem']}" for fault in self.data.get("faults", ())]
        super().__init__("; ".join(filter(None, told)))


class MissingSources(UserWarning):
    """Numbers that were asked for and that no source has."""


def fetch_ctx(path: str) -> dict[str, Any]:
    """Fetch what stands at a path: `{"ret": ..., "err": ...}`, exactly one of them None.

    A `so:` path gives source rows (open their files at OUT_DIR / `physical_path`), any other `{path, kind, mime, text?,
    base64?, physical_path?, size_bytes?, truncated?, sources_used?}`; `err` is `{code, message, details}`. Numbers that
    no source has come as a MissingSources warning. Raises SidecarError when there is nobody to answer.
    """
    result = call("artifact/fetch", {"path": path})
    if result.get("missing"):
        import warnings

        warnings.warn(f"no source has the number {str(result['missing'])[1:-1]} ({path})", MissingSources, stacklevel=2)
    return {"ret": result.get("ret"), "err": result.get("err")}


def read(paths: str | Iterable[str], **options: Any) -> dict[str, Any]:
    """Read contents as blocks: `{status, blocks, notices}`. Options: `stats_only`, `max_bytes`, `tool_call_id`."""
    return call("artifact/read", {"paths": [paths] if isinstance(paths, str) else [*paths], **options})


def rehost(paths: str | Iterable[str], *, timeout: float | None = None) -> dict[str, Any]:
    """Bring known files back into OUT_DIR: `{rehosted: [...], missing: [{path, reason}], notices}`."""
    return call("artifact/rehost", {"paths": [paths] if isinstance(paths, str) else [*paths]}, timeout=timeout)


def resolve(paths: str | Iterable[str]) -> list[dict[str, Any]]:
    """Find what stands at each path, in order: `[{path, found, artifact?, reason?, notices}]`."""
    return call("artifact/resolve", {"paths": [paths] if isinstance(paths, str) else [*paths]})["results"]


def sources(selector: str | None = None) -> dict[str, Any]:
    """List source rows, all or those of a selector such as `1,3-5`: `{rows, missing}`."""
    return call("sources/list", {} if selector is None else {"selector": selector})


def sync(since: int | None = None, *, timeout: float | None = None) -> dict[str, Any]:
    """Register every file that is complete now: `{revision, artifacts, sources, unsettled, truncated?}`."""
    return call("workspace/sync", {} if since is None else {"since": since}, timeout=timeout)


def pull_assets(content: str | None = None, *, timeout: float | None = None, **options: Any) -> dict[str, Any]:
    """Bring what a page needs into OUT_DIR. It is `content`, or the file `path`; also `mime`, `tool_id`, `lock`."""
    return call("assets/pull", options if content is None else {"content": content, **options}, timeout=timeout)


class Client:
    """One connection to a sidecar, made and greeted at the first call; also a context manager.

    `dial` makes the connection (`dial_socket` and its kin). Options go into the greeting: `events`, what `events()`
    shall bring, of `sources artifacts timeline notices`; `turn_id`, `tool_call_id` for the daemon's log. Threads may
    share it: calls go one by one. A forked child connects anew, unless all there was is one inherited descriptor.
    """

    def __init__(self, dial: Callable[[], Link] | None = None, *, timeout: float = TIMEOUT, **options: Any) -> None:
        self._dial, self._timeout = dial or dial_from_environment, timeout
        self._options = {"protocol_version": PROTOCOL_VERSION, **options}
        self._begin()

    def _begin(self) -> None:
        self._pid, self._lock, self._count, self._had_link = os.getpid(), allocate_lock(), 0, False
        self._link: Link | None = None
        self._events: deque[tuple[str, dict[str, Any]]] = deque()

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Hang up. The sidecar goes on; a later call connects again."""
        if self._pid == os.getpid():
            self._hang_up()
            self._events.clear()
            self._had_link = False

    def call(self, method: str, params: Any = None, *, timeout: float | None = None, progress: Any = None) -> Any:
        """Ask and wait for the answer, at most `timeout` seconds (30 by default).

        `progress` gets the values of `$/progress`. Raises SidecarError, and ValueError for params that are no JSON.
        What was not delivered, and a plain read whose answer was lost, is asked once more over a new connection.
        """
        if not isinstance(params := params or {}, dict):
            raise ValueError("params are a dict of named fields")
        plain = method.split("/")[-1] in _READS and "tool_call_id" not in params
        asked = (method, dict(params), deadline := self._acquire(timeout), progress)
        try:
            try:
                return self._ask(self._connected(deadline), *asked)
            except ConnectionLost as lost:
                if lost.delivered and not plain:
                    raise ConnectionLost(f"{lost}; repeat {method} with the same request_id to have it once") from None
            except RpcError as refusal:
                if refusal.kind != "shutting_down" or not plain:
                    raise
                self._hang_up()
            return self._ask(self._connected(deadline), *asked)
        finally:
            self._lock.release()

    def events(self, timeout: float | None = None) -> Iterator[tuple[str, dict[str, Any]]]:
        """What the sidecar tells by itself, as `(method, params)`, until nothing came for `timeout` seconds."""
        while True:
            deadline = self._acquire(None)
            try:
                link = self._link or self._connected(deadline)
                while not self._events:
                    if link.whole() is None and not link.poll(1, timeout):
                        return
                    self._take(self._watched(link.receive, monotonic() + self._timeout))
                event = self._events.popleft()
            finally:
                self._lock.release()
            yield event

    def _acquire(self, timeout: float | None) -> float:
        """Take the lock; the answer is the deadline of the call that wanted it."""
        deadline = monotonic() + (self._timeout if timeout is None else timeout)
        if self._pid != os.getpid():
            # Forked: the line is the parent's, and a thread that is not here may hold the lock.
            link = self._link
            self._begin()
            if link is not None:
                link.stream.close()
        if not self._lock.acquire(timeout=max(0.0, deadline - monotonic())):
            raise NoAnswer("another thread's call to the sidecar did not end in time")
        return deadline

    def _connected(self, deadline: float) -> Link:
        if self._link is not None and self._link.hung_up():
            self._hang_up()
        if self._link is None:
            anew = self._had_link
            self._link = link = self._dialled(min(deadline, monotonic() + PATIENCE) if anew else 0.0)
            me = {"name": "artifact_client", "version": __version__}
            hello = {"processId": os.getpid(), "clientInfo": me, "capabilities": {}, "rootUri": None}
            try:
                self._ask(link, "initialize", {**hello, "initializationOptions": self._options}, deadline, None)
                self._send(link, {"method": "initialized", "params": {}}, deadline)
                if anew and self._options.get("events"):
                    revision = self._ask(link, "workspace/status", {}, deadline, None)["revision"]
                    notice = {"code": "events_dropped", "message": "reconnected; ask workspace/changes", "count": 0}
                    self._events.append(("notice/posted", {"notice": notice, "revision": revision}))
            except ConnectionLost as error:
                code = None if link._process is None else link._process.returncode
                why = f"it ended with exit code {code}, and said why on stderr" if code and code > 0 else error
                raise NoSidecar(f"{link.name}: {why}") from None
            except RpcError as refusal:
                # Invalid request: another process greeted on this very descriptor, and its session is still good.
                if not (link.inherited and refusal.code == -32600):
                    self._hang_up()
                    raise
            self._had_link = not link.inherited
        return self._link

    def _dialled(self, until: float) -> Link:
        while monotonic() < until:
            try:
                return self._dial()
            except NoSidecar:
                sleep(0.02)
        return self._dial()

    def _ask(self, link: Link, method: str, params: dict[str, Any], deadline: float, progress: Any) -> Any:
        self._count += 1
        # The process is part of the id: on an inherited descriptor an answer to somebody before us may still come.
        identity = f"{self._pid}-{self._count}"
        if progress is not None:
            params["workDoneToken"] = identity
        try:
            self._send(link, {"id": identity, "method": method, "params": params}, deadline)
        except ConnectionLost as lost:
            lost.delivered = False
            raise
        while True:
            message = self._watched(link.receive, deadline)
            if "method" not in message and message.get("id") in (identity, None):
                if "error" in message:
                    raise RpcError(message["error"])
                return message.get("result")
            if progress and message.get("method") == "$/progress" and message["params"].get("token") == identity:
                progress(message["params"]["value"])
            self._take(message)

    def _take(self, message: dict[str, Any]) -> None:
        """Keep an event. Anything else was meant for somebody before us."""
        method = message.get("method", "$/")
        if "id" not in message and not method.startswith("$/"):
            self._events.append((method, message.get("params") or {}))

    def _send(self, link: Link, message: dict[str, Any], deadline: float) -> None:
        import json

        text = json.dumps({"jsonrpc": "2.0", **message}, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
        body = text.encode()
        self._watched(link.send, b"Content-Length: %d\r\n\r\n%b" % (len(body), body), deadline)

    def _watched(self, step: Callable[..., Any], *args: Any) -> Any:
        """A step that ends badly, an interrupt in its middle included, leaves a stream nobody can go on with."""
        try:
            return step(*args)
        except BaseException as error:
            self._hang_up()
            if isinstance(error, (OSError, ValueError)) and not isinstance(error, SidecarError):
                raise ConnectionLost(f"the connection to the sidecar was lost ({error})") from None
            raise

    def _hang_up(self) -> None:
        link, self._link = self._link, None
        if link is not None:
            link.close()


class Link:
    """A connected stream of whole messages. It stays in blocking mode, since an inherited one is not ours alone."""

    def __init__(self, stream: socket.socket, name: str, process: subprocess.Popen[bytes] | None = None) -> None:
        self.name = name
        self.inherited = False
        self.stream = stream
        self._process = process
        self._buffer = bytearray()

    def send(self, frame: bytes, deadline: float) -> None:
        from socket import MSG_DONTWAIT

        rest = memoryview(frame)
        while rest:
            try:
                rest = rest[self.stream.send(rest, MSG_DONTWAIT) :]
            except BlockingIOError:
                self._wait(4, deadline)

    def receive(self, deadline: float) -> dict[str, Any]:
        """The next message. Raises NoAnswer, OSError, and ConnectionLost or ValueError for what is no message."""
        import json

        while (whole := self.whole()) is None:
            self._wait(1, deadline)
            came = self.stream.recv(262_144)
            if not came:
                raise ConnectionLost("the other side hung up")
            self._buffer += came
        body = bytes(self._buffer[whole[0] : whole[1]])
        del self._buffer[: whole[1]]
        message = json.loads(body)
        if not isinstance(message, dict):
            raise ConnectionLost("what came is no message")
        return message

    def hung_up(self) -> bool:
        """Whether the other side has ended, as far as can be seen without waiting."""
        from socket import MSG_DONTWAIT

        try:
            while came := self.stream.recv(262_144, MSG_DONTWAIT):
                self._buffer += came
        except OSError as error:
            return not isinstance(error, BlockingIOError)
        return True

    def close(self) -> None:
        """Hang up, and see the door out."""
        self.stream.close()
        if self._process is not None:
            self._process.terminate()
            self._process.wait()

    def _wait(self, event: int, deadline: float) -> None:
        if not self.poll(event, max(0.0, deadline - monotonic())):
            raise NoAnswer("the sidecar did not answer in time; the connection was closed")

    def poll(self, event: int, seconds: float | None) -> bool:
        """Wait for POLLIN (1) or POLLOUT (4), for ever with None. A hang-up counts as something to read."""
        import select

        poll = select.poll()
        poll.register(self.stream, event)
        return bool(poll.poll(None if seconds is None else seconds * 1000))

    def whole(self) -> tuple[int, int] | None:
        """Where the first body in the buffer begins and ends, or None while it is not all there."""
        head, mark, _ = bytes(self._buffer[:_HEADER_BYTES]).partition(b"\r\n\r\n")
        if not mark and len(head) < _HEADER_BYTES:
            return None
        for line in head.lower().split(b"\r\n") if mark else ():
            if line.startswith(b"content-length:") and line[15:].strip().isdigit():
                end = len(head) + 4 + int(line[15:])
                return (len(head) + 4, end) if end <= len(self._buffer) else None
        raise ConnectionLost("what came is no message")


def dial_from_environment() -> Link:
    """The first way that the environment offers and that works. This and the other dials raise NoSidecar."""
    looked = []
    for name, dial in _WAYS:
        text = os.environ.get(name, "")
        try:
            if text:
                return dial(text)
            looked.append(f"{name} is not set")
        except NoSidecar as why:
            looked.append(f"{name} is {text}, but {why}")
    raise NoSidecar("no artifact sidecar is offered here: " + "; ".join(looked))


def dial_socket(path: str) -> Link:
    """Connect to the socket of a role."""
    import socket

    stream = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    folder = -1
    try:
        stream.settimeout(TIMEOUT)
        if len(os.fsencode(path)) > _ADDRESS_BYTES:  # too long for a socket's address: by way of its folder
            folder = os.open(os.path.dirname(path), os.O_RDONLY)
        stream.connect(path if folder < 0 else f"/proc/self/fd/{folder}/{os.path.basename(path)}")
        stream.settimeout(None)
    except OSError as error:
        stream.close()
        raise NoSidecar(f"nobody answers at {path} ({error.strerror or error})") from None
    finally:
        if folder >= 0:
            os.close(folder)
    return Link(stream, path)


_spent: set[int] = set()  # a second session on one descriptor cannot work, in this process or in a forked one


def dial_descriptor(number: str | int) -> Link:
    """Use an inherited descriptor that is connected already; once."""
    import socket

    try:
        if int(number) in _spent:
            raise NoSidecar("it was used before, here or by who forked us, and one that has ended cannot be made anew")
        stream = socket.socket(fileno=os.dup(int(number)))
        stream.getpeername()
    except (OSError, ValueError) as error:
        raise NoSidecar(f"it is no connected socket here ({error}); was it passed on to this program?") from None
    _spent.add(int(number))
    link = Link(stream, f"descriptor {number}")
    link.inherited = True
    return link


def dial_command(command: str | Sequence[str]) -> Link:
    """Start a program that speaks the protocol on its stdin and stdout. A text is split as a shell would."""
    import shlex
    import socket
    import subprocess

    words = shlex.split(command) if isinstance(command, str) else list(command)
    ours, theirs = socket.socketpair()
    try:
        process = subprocess.Popen(words, stdin=theirs, stdout=theirs)
    except OSError as error:
        ours.close()
        raise NoSidecar(f"{words[0]} cannot be started ({error.strerror})") from None
    finally:
        theirs.close()
    return Link(ours, " ".join(words), process)


def _dial_door(_: str) -> Link:
    import importlib.util

    found = importlib.util.find_spec("sidecar")
    places = (found.submodule_search_locations or ()) if found else ()
    if not any(os.path.exists(os.path.join(place, "server", "bridge.py")) for place in places):  # or a namesake
        raise NoSidecar(f"the daemon is not installed for {sys.executable}")
    return dial_command([sys.executable, "-m", "sidecar", "connect", "--role", "exec"])


_WAYS = (
    ("ARTIFACT_SIDECAR_FD", dial_descriptor),
    ("ARTIFACT_SIDECAR_SOCKET", dial_socket),
    ("ARTIFACT_SIDECAR_COMMAND", dial_command),
    ("OUT_DIR", _dial_door),
)
_shared = Client()
call, close = _shared.call, _shared.close
