"""The Python client: one file, from any Python, with a clear end to every call."""

from __future__ import annotations

import ast
import json
import math
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time
import warnings
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import artifact_client
import pytest
from artifact_client import (
    Client,
    ConnectionLost,
    Link,
    MissingSources,
    NoAnswer,
    NoSidecar,
    RpcError,
    dial_command,
    dial_descriptor,
    dial_socket,
)

from protocol.version import PROTOCOL_VERSION
from tests.clients.scripted import Message, Scripted, echo

SOURCE = Path(artifact_client.__file__)
VARIABLES = ("ARTIFACT_SIDECAR_FD", "ARTIFACT_SIDECAR_SOCKET", "ARTIFACT_SIDECAR_COMMAND", "OUT_DIR")


@pytest.fixture
def path() -> Iterator[Path]:
    folder = Path(tempfile.mkdtemp(prefix="as-"))
    yield folder / "s.sock"
    shutil.rmtree(folder)


@pytest.fixture
def server(path: Path) -> Iterator[Scripted]:
    with Scripted().listen(path) as scripted:
        yield scripted


@pytest.fixture
def client(server: Scripted, path: Path) -> Iterator[Client]:
    with Client(lambda: dial_socket(str(path)), timeout=5) as made:
        yield made


@pytest.fixture
def environment(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str, str], None]]:
    """Sets variables for the functions of the module, whose shared connection is new before and gone after."""
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)
    artifact_client.close()
    yield monkeypatch.setenv
    artifact_client.close()


def methods(server: Scripted) -> list[str]:
    return [message["method"] for message in server.heard]


def answers(result: Any) -> Callable[[Message], Iterable[Message]]:
    return lambda request: [{"jsonrpc": "2.0", "id": request["id"], "result": result}]


# What it is made of


@pytest.mark.rule("client.is-one-standard-library-file")
def test_importing_it_imports_nothing_else() -> None:
    code = "import os, sys; before = set(sys.modules); import artifact_client; print(sorted(set(sys.modules) - before))"
    done = subprocess.run([sys.executable, "-S", "-c", code], cwd=SOURCE.parent, capture_output=True, check=True)
    assert set(ast.literal_eval(done.stdout.decode())) <= {"artifact_client", "__future__", "_collections"}


@pytest.mark.rule("client.is-one-standard-library-file")
def test_it_is_written_for_python_3_9() -> None:
    ast.parse(SOURCE.read_text("utf-8"), feature_version=(3, 9))


@pytest.mark.rule("client.is-one-standard-library-file")
def test_python_3_9_runs_it(server: Scripted, path: Path) -> None:
    found = sorted(Path(sys.base_prefix).parent.glob("3.9*/bin/python3.9")) or [shutil.which("python3.9")]
    if found[0] is None:
        pytest.skip("there is no Python 3.9 here")
    code = "import artifact_client; print(artifact_client.sources('1')['params'])"
    environment = {"ARTIFACT_SIDECAR_SOCKET": str(path), "PYTHONPATH": str(SOURCE.parent), "PATH": os.environ["PATH"]}
    done = subprocess.run([str(found[0]), "-c", code], env=environment, capture_output=True, text=True, check=False)
    if "not installed" in done.stderr:
        pytest.skip("there is no Python 3.9 here")
    assert done.stdout.strip() == "{'selector': '1'}", done.stderr


def test_it_speaks_the_protocol_of_the_daemon() -> None:
    assert artifact_client.PROTOCOL_VERSION == PROTOCOL_VERSION


# Calls


def test_the_greeting_comes_once_and_with_the_first_call(server: Scripted, path: Path) -> None:
    with Client(lambda: dial_socket(str(path)), events=["sources"], turn_id="turn_1") as client:
        assert server.heard == []
        client.call("workspace/status")
        client.call("sources/list", {"selector": "1"})
    assert methods(server) == ["initialize", "initialized", "workspace/status", "sources/list"]
    options = server.heard[0]["params"]["initializationOptions"]
    assert options == {"protocol_version": PROTOCOL_VERSION, "events": ["sources"], "turn_id": "turn_1"}


@pytest.mark.parametrize(
    ("ask", "method", "params"),
    [
        (lambda c: c.read("fi:a"), "artifact/read", {"paths": ["fi:a"]}),
        (lambda c: c.read(("a", "b"), stats_only=True), "artifact/read", {"paths": ["a", "b"], "stats_only": True}),
        (lambda c: c.rehost(["fi:a"], timeout=3), "artifact/rehost", {"paths": ["fi:a"]}),
        (lambda c: c.sources(), "sources/list", {}),
        (lambda c: c.sources("1,3-5"), "sources/list", {"selector": "1,3-5"}),
        (lambda c: c.sync(), "workspace/sync", {}),
        (lambda c: c.sync(7), "workspace/sync", {"since": 7}),
        (lambda c: c.call("citations/extract", {"text": "é"}), "citations/extract", {"text": "é"}),
    ],
)
def test_every_function_asks_its_method(
    server: Scripted,
    path: Path,
    environment: Callable[[str, str], None],
    ask: Callable[[Any], Any],
    method: str,
    params: Message,
) -> None:
    environment("ARTIFACT_SIDECAR_SOCKET", str(path))
    assert ask(artifact_client) == {"method": method, "params": params}


def test_resolve_answers_one_entry_per_path(path: Path, environment: Callable[[str, str], None]) -> None:
    environment("ARTIFACT_SIDECAR_SOCKET", str(path))
    with Scripted(answers({"results": [{"path": "a", "found": False}]})).listen(path):
        assert artifact_client.resolve("a") == [{"path": "a", "found": False}]


@pytest.mark.rule("client.fetch-ctx-returns-raw-rows")
@pytest.mark.parametrize(
    "result",
    [
        {"ret": [{"sid": 1}], "err": None, "notices": []},
        {"ret": None, "err": {"code": "not_found", "message": "nothing there", "details": {}}},
        {"ret": [], "err": None, "a field of a later version": 1},
    ],
)
def test_fetch_ctx_answers_ret_and_err_and_nothing_else(
    path: Path, environment: Callable[[str, str], None], result: Message
) -> None:
    environment("ARTIFACT_SIDECAR_SOCKET", str(path))
    with Scripted(answers(result)).listen(path), warnings.catch_warnings():
        warnings.simplefilter("error")
        assert artifact_client.fetch_ctx("so:sources_pool[1]") == {"ret": result["ret"], "err": result["err"]}


def test_fetch_ctx_warns_of_numbers_that_no_source_has(path: Path, environment: Callable[[str, str], None]) -> None:
    environment("ARTIFACT_SIDECAR_SOCKET", str(path))
    with (
        Scripted(answers({"ret": [], "err": None, "missing": [4, 9]})).listen(path),
        pytest.warns(MissingSources, match=r"4, 9 \(so:sources_pool\[4,9\]\)") as warned,
    ):
        artifact_client.fetch_ctx("so:sources_pool[4,9]")
    assert warned[0].filename == __file__


def test_a_refusal_says_what_it_is_about(path: Path) -> None:
    error = {
        "code": -32803,
        "message": "The path would leave OUT_DIR",
        "data": {"kind": "unsafe_path", "about": "../x", "hint": "stay below OUT_DIR"},
    }
    with (
        Scripted(lambda request: [{"id": request["id"], "error": error}]).listen(path),
        Client(lambda: dial_socket(str(path))) as client,
        pytest.raises(RpcError, match=r"The path would leave OUT_DIR; \.\./x; stay below OUT_DIR") as refused,
    ):
        client.call("artifact/versions", {"path": "../x"})
    assert (refused.value.code, refused.value.kind) == (-32803, "unsafe_path")
    assert (refused.value.about, refused.value.hint) == ("../x", "stay below OUT_DIR")


def test_faults_of_the_params_are_in_the_message() -> None:
    faults = [{"where": "paths", "problem": "a list is meant"}]
    assert "paths: a list is meant" in str(RpcError({"code": -32602, "message": "no", "data": {"faults": faults}}))


@pytest.mark.parametrize("params", [{"n": math.nan}, {"text": "\ud800"}])
def test_params_that_are_no_json_cost_no_connection(server: Scripted, client: Client, params: Message) -> None:
    with pytest.raises(ValueError):
        client.call("x/y", params)
    assert client.call("x/y", {"n": 1})["params"] == {"n": 1}
    assert server.connections == 1


def test_threads_get_their_own_answers(server: Scripted, client: Client) -> None:
    wrong: list[int] = []

    def ask(number: int) -> None:
        for turn in range(50):
            if client.call("x/y", {"n": number * 100 + turn})["params"]["n"] != number * 100 + turn:
                wrong.append(number)

    threads = [threading.Thread(target=ask, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(10)
    assert wrong == []
    assert (server.connections, len(server.heard)) == (1, 402)


def test_progress_is_heard_before_the_answer(path: Path) -> None:
    def answer(request: Message) -> Iterable[Message]:
        token = request["params"]["workDoneToken"]
        for value in ({"kind": "begin", "title": "Looking"}, {"kind": "report", "percentage": 50}, {"kind": "end"}):
            yield {"method": "$/progress", "params": {"token": token, "value": value}}
        yield {"method": "$/progress", "params": {"token": "another", "value": {"kind": "begin"}}}
        yield {"id": request["id"], "result": "done"}

    heard: list[str] = []
    with Scripted(answer).listen(path), Client(lambda: dial_socket(str(path))) as client:
        assert client.call("workspace/sync", progress=lambda value: heard.append(value["kind"])) == "done"
    assert heard == ["begin", "report", "end"]


# Events


def test_events_told_during_a_call_are_kept(path: Path) -> None:
    def answer(request: Message) -> Iterable[Message]:
        yield {"method": "sources/added", "params": {"revision": 1}}
        yield {"id": request["id"], "result": None}
        yield {"method": "sources/added", "params": {"revision": 2}}

    with Scripted(answer).listen(path), Client(lambda: dial_socket(str(path)), events=["sources"]) as client:
        client.call("workspace/sync")
        events = client.events(timeout=5)
        told = [next(events), next(events)]
    assert told == [("sources/added", {"revision": 1}), ("sources/added", {"revision": 2})]


def test_events_end_when_nothing_comes_and_calls_go_on(server: Scripted, client: Client) -> None:
    assert list(client.events(timeout=0.05)) == []
    assert client.call("x/y")["method"] == "x/y"


def test_a_question_of_the_server_and_an_answer_to_another_are_passed_over(path: Path) -> None:
    def answer(request: Message) -> Iterable[Message]:
        yield {"id": 7, "method": "window/showMessageRequest", "params": {}}
        yield {"id": "1-1", "result": "of a process before us"}
        yield {"id": request["id"], "result": "ours"}

    with Scripted(answer).listen(path), Client(lambda: dial_socket(str(path))) as client:
        assert client.call("x/y") == "ours"
        assert list(client.events(timeout=0)) == []


# The stream


@pytest.mark.parametrize("pace", [1, 2, 7, 60])
def test_an_answer_may_come_in_pieces(path: Path, pace: int) -> None:
    with Scripted(echo, pace=pace).listen(path), Client(lambda: dial_socket(str(path))) as client:
        for text in ("", "é" * 50, "\r\n\r\n"):
            assert client.call("x/y", {"text": text})["params"] == {"text": text}


def test_large_messages_pass_both_ways(client: Client) -> None:
    text = "x" * 8_000_000
    assert client.call("x/y", {"text": text}, timeout=20)["params"]["text"] == text


@pytest.mark.parametrize(
    "garbage",
    [
        b"HTTP/1.1 400 Bad Request\r\n\r\n",
        b"Content-Length: many\r\n\r\n{}",
        b"x" * 5000,
        b"Content-Length: 3\r\n\r\n{]}",
        b"Content-Length: 2\r\n\r\n[]",
        b"Content-Length: 4\r\n\r\n\xff\xff\xff\xff",
    ],
)
def test_garbage_ends_the_connection_and_the_next_call_makes_a_new_one(path: Path, garbage: bytes) -> None:
    said = [garbage]
    with Scripted(lambda request: [said.pop()] if said else echo(request)).listen(path) as server:
        with Client(lambda: dial_socket(str(path)), timeout=5) as client:
            with pytest.raises(ConnectionLost):
                client.call("x/y")
            assert client.call("x/y")["method"] == "x/y"
        assert server.connections == 2


@pytest.mark.rule("client.every-call-has-a-deadline")
def test_a_deadline_closes_the_connection_so_that_a_late_answer_meets_nobody(path: Path) -> None:
    late = threading.Event()

    def answer(request: Message) -> Iterable[Message]:
        if request["params"].get("slow"):
            late.wait(5)
        return echo(request)

    with Scripted(answer).listen(path) as server, Client(lambda: dial_socket(str(path))) as client:
        began = time.monotonic()
        with pytest.raises(NoAnswer):
            client.call("x/y", {"slow": True}, timeout=0.1)
        assert time.monotonic() - began < 2
        assert client.call("x/y", {"n": 2}, timeout=5)["params"] == {"n": 2}
        late.set()
        assert server.connections == 2


@pytest.mark.rule("client.every-call-has-a-deadline")
def test_a_deadline_holds_while_the_other_side_does_not_read() -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs, pytest.raises(NoAnswer):
        Link(ours, "a pair").send(b"x" * 10_000_000, time.monotonic() + 0.05)


@pytest.mark.rule("client.every-call-has-a-deadline")
def test_a_deadline_holds_while_another_thread_waits_for_its_answer(path: Path) -> None:
    asked, late = threading.Event(), threading.Event()

    def answer(request: Message) -> Iterable[Message]:
        asked.set()
        late.wait(5)
        return echo(request)

    with Scripted(answer).listen(path), Client(lambda: dial_socket(str(path)), timeout=5) as client:
        first: list[Any] = []
        patient = threading.Thread(target=lambda: first.append(client.call("x/y")["method"]))
        patient.start()
        assert asked.wait(5)
        with pytest.raises(NoAnswer, match="another thread"):
            client.call("x/y", timeout=0.05)
        late.set()
        patient.join(5)
        assert first == ["x/y"]


def test_a_hang_up_is_told_as_such(path: Path) -> None:
    with Scripted(lambda request: []).listen(path) as server, Client(lambda: dial_socket(str(path))) as client:
        server.answer = lambda request: (_ for _ in ()).throw(OSError("gone"))
        conversation = threading.Timer(0.05, server.close)
        conversation.start()
        with pytest.raises(ConnectionLost, match="hung up"):
            client.call("x/y", timeout=5)
        conversation.join()


# Connections that end


def hang_up(server: Scripted) -> Iterable[Message]:
    """What a server does whose daemon ends: nothing is said any more, and the next connection is served."""
    for stream in server._open[1:]:
        try:
            stream.shutdown(socket.SHUT_RDWR)
        except OSError:
            continue  # it has ended before
    return []


def times(server: Scripted, method: str) -> int:
    return methods(server).count(method)


def test_a_connection_that_has_ended_between_calls_is_made_anew(server: Scripted, client: Client) -> None:
    client.call("x/y")
    for _ in range(3):
        hang_up(server)
        assert client.call("x/y")["method"] == "x/y"
    assert server.connections == times(server, "initialize") == times(server, "x/y") == 4


def test_a_call_that_was_not_delivered_is_asked_again(
    server: Scripted, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    client.call("x/y")
    send = Link.send

    def fail_once(link: Link, frame: bytes, deadline: float) -> None:
        monkeypatch.setattr(Link, "send", send)
        raise BrokenPipeError("it has just ended")

    monkeypatch.setattr(Link, "send", fail_once)
    assert client.call("timeline/append")["method"] == "timeline/append"
    assert (server.connections, times(server, "timeline/append")) == (2, 1)


def test_a_change_whose_answer_was_lost_is_not_asked_again(server: Scripted, client: Client) -> None:
    server.answer = lambda request: hang_up(server)
    with pytest.raises(ConnectionLost, match="repeat timeline/append with the same request_id"):
        client.call("timeline/append")
    assert times(server, "timeline/append") == 1
    server.answer = echo
    assert client.call("timeline/append")["method"] == "timeline/append"


def test_a_plain_read_whose_answer_was_lost_is_asked_once_more(server: Scripted, client: Client) -> None:
    server.answer = lambda request: echo(request) if times(server, "artifact/fetch") > 1 else hang_up(server)
    assert client.call("artifact/fetch")["method"] == "artifact/fetch"
    assert times(server, "artifact/fetch") == 2
    server.answer = lambda request: hang_up(server)
    with pytest.raises(ConnectionLost):
        client.call("artifact/fetch")
    assert times(server, "artifact/fetch") == 4


def test_a_plain_read_that_a_daemon_refuses_because_it_ends_is_asked_once_more(
    server: Scripted, client: Client
) -> None:
    error = {"code": -32803, "message": "it ends", "data": {"kind": "shutting_down", "about": "", "hint": ""}}
    server.answer = lambda request: (
        echo(request) if server.connections > 1 else [{"jsonrpc": "2.0", "id": request["id"], "error": error}]
    )
    with pytest.raises(RpcError, match="it ends"):
        client.call("timeline/append")
    assert client.call("sources/list")["method"] == "sources/list"
    assert server.connections == 2


def test_a_client_waits_a_while_for_the_daemon_that_follows(path: Path) -> None:
    first = Scripted().listen(path)
    with Client(lambda: dial_socket(str(path)), timeout=5) as client:
        client.call("x/y")
        first.close()
        path.unlink()
        second = Scripted()
        coming = threading.Timer(0.2, lambda: second.listen(path))
        coming.start()
        assert client.call("x/y")["method"] == "x/y"
        coming.join()
        second.close()


def test_a_client_waits_for_no_daemon_that_it_never_had(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(artifact_client, "PATIENCE", 1000.0)
    with pytest.raises(NoSidecar, match="nobody answers"):
        Client(lambda: dial_socket(str(path))).call("x/y")


def test_a_client_gives_up_when_no_daemon_follows(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(artifact_client, "PATIENCE", 0.1)
    with Scripted().listen(path) as server, Client(lambda: dial_socket(str(path))) as client:
        client.call("x/y")
        server.close()
        with pytest.raises(NoSidecar, match="nobody answers"):
            client.call("x/y")


def test_a_descriptor_that_has_ended_cannot_be_made_anew(
    server: Scripted, environment: Callable[[str, str], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(artifact_client, "PATIENCE", 1000.0)
    ours, theirs = socket.socketpair()
    server.serve(theirs)
    number = ours.detach()
    environment("ARTIFACT_SIDECAR_FD", str(number))
    try:
        artifact_client.call("x/y")
        theirs.shutdown(socket.SHUT_RDWR)
        with pytest.raises(NoSidecar, match="one that has ended cannot be made anew"):
            artifact_client.call("x/y")
    finally:
        os.close(number)
        artifact_client._spent.discard(number)


def test_who_wants_events_hears_that_some_may_be_missing(server: Scripted, path: Path) -> None:
    server.answer = answers({"revision": 7})
    with Client(lambda: dial_socket(str(path)), events=["sources"], timeout=5) as client:
        client.call("x/y")
        hang_up(server)
        client.call("x/y")
        ((method, params),) = client.events(timeout=0.05)
        assert (method, params["revision"], params["notice"]["code"]) == ("notice/posted", 7, "events_dropped")
        hang_up(server)
        with pytest.raises(ConnectionLost, match="hung up"):
            next(client.events(timeout=5))


# Processes


def test_a_forked_child_connects_anew(server: Scripted, client: Client) -> None:
    client.call("x/y")
    reader, writer = os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # later Pythons warn of threads, and this is about them
        child = os.fork()
    if child == 0:
        try:
            os.write(writer, json.dumps(client.call("child")["method"]).encode())
        finally:
            os._exit(0)
    os.close(writer)
    with os.fdopen(reader) as told:
        assert json.loads(told.read()) == "child"
    os.waitpid(child, 0)
    assert client.call("parent")["method"] == "parent"
    assert server.connections == 2
    assert methods(server).count("initialize") == 2


# Ways to reach a sidecar


@pytest.mark.rule("client.says-when-there-is-no-sidecar")
def test_without_any_sidecar_the_error_names_all_that_was_looked_for(environment: Callable[[str, str], None]) -> None:
    with pytest.raises(NoSidecar) as nothing:
        artifact_client.fetch_ctx("fi:a")
    assert all(f"{name} is not set" in str(nothing.value) for name in VARIABLES)


@pytest.mark.rule("client.says-when-there-is-no-sidecar")
@pytest.mark.parametrize(
    ("name", "value", "why"),
    [
        ("ARTIFACT_SIDECAR_FD", "many", "no connected socket"),
        ("ARTIFACT_SIDECAR_FD", "999", "was it passed on"),
        ("ARTIFACT_SIDECAR_FD", "0", "no connected socket"),
        ("ARTIFACT_SIDECAR_SOCKET", "/nowhere/s.sock", "nobody answers at /nowhere/s.sock"),
        ("ARTIFACT_SIDECAR_COMMAND", "/nowhere/door --role exec", "/nowhere/door cannot be started"),
    ],
)
def test_what_cannot_work_is_named_with_its_reason(
    environment: Callable[[str, str], None], name: str, value: str, why: str
) -> None:
    environment(name, value)
    with pytest.raises(NoSidecar, match=f"{name} is {value}, but .*{why}"):
        artifact_client.fetch_ctx("fi:a")


def test_out_dir_alone_needs_our_daemon_and_not_a_stranger_of_that_name(
    tmp_path: Path, environment: Callable[[str, str], None]
) -> None:
    (tmp_path / "sidecar").mkdir()
    (tmp_path / "sidecar" / "__init__.py").touch()
    code = "import artifact_client; artifact_client.sync()"
    variables = {"OUT_DIR": str(tmp_path), "PYTHONPATH": f"{tmp_path}{os.pathsep}{SOURCE.parent}"}
    run = [sys.executable, "-S", "-c", code]
    done = subprocess.run(run, cwd=tmp_path, env=variables, capture_output=True, text=True, check=False)
    assert "the daemon is not installed for" in done.stderr


def test_a_door_that_ends_at_once_is_no_sidecar() -> None:
    with pytest.raises(NoSidecar, match=r"raise SystemExit\(69\)"):
        Client(lambda: dial_command([sys.executable, "-c", "raise SystemExit(69)"])).call("x/y")


@pytest.mark.parametrize("then", ["pass", "sys.stdin.buffer.read(1)"])
def test_a_door_that_refuses_tells_its_exit_code_and_where_its_words_are(
    then: str, capfd: pytest.CaptureFixture[str]
) -> None:
    code = f"import sys; sys.stderr.write('no journal: disk full'); {then}; raise SystemExit(75)"
    with pytest.raises(NoSidecar, match="it ended with exit code 75, and said why on stderr"):
        Client(lambda: dial_command([sys.executable, "-c", code])).call("x/y")
    assert capfd.readouterr().err == "no journal: disk full"


DOOR = """
import socket, sys
sys.path[:0] = %r
from tests.clients.scripted import Scripted
server = Scripted()
server.serve(socket.socket(fileno=0))
for thread in server._threads: thread.join()
"""


def test_a_command_is_spoken_to_over_its_stdio() -> None:
    door = [sys.executable, "-c", DOOR % [str(SOURCE.parents[2])]]
    link = dial_command(door)
    with Client(lambda: link) as client:
        assert client.call("x/y", {"n": 1})["params"] == {"n": 1}
    assert link._process is not None
    assert link._process.returncode is not None


@pytest.mark.rule("client.three-transports")
def test_an_inherited_descriptor_serves_one_program_after_another(server: Scripted) -> None:
    ours, theirs = socket.socketpair()
    server.serve(theirs)
    code = "import artifact_client; print(artifact_client.call('x/y')['method'])"
    with ours:
        variables = {**os.environ, "ARTIFACT_SIDECAR_FD": str(ours.fileno()), "PYTHONPATH": str(SOURCE.parent)}
        run = [sys.executable, "-S", "-c", code]
        first = subprocess.run(run, env=variables, pass_fds=[ours.fileno()], capture_output=True, check=True)
        server._respond = lambda message: (  # a daemon greets once per connection
            [{"id": message["id"], "error": {"code": -32600, "message": "greeted already"}}]
            if message["method"] == "initialize"
            else echo(message)
        )
        second = subprocess.run(run, env=variables, pass_fds=[ours.fileno()], capture_output=True, check=True)
        assert os.get_blocking(ours.fileno())
    assert first.stdout == second.stdout == b"x/y\n"


def test_a_descriptor_is_used_once_per_process(server: Scripted) -> None:
    ours, theirs = socket.socketpair()
    server.serve(theirs)
    number = ours.detach()
    try:
        with Client(lambda: dial_descriptor(number)) as client:
            client.call("x/y")
        with pytest.raises(NoSidecar, match="used before"):
            client.call("x/y")
    finally:
        os.close(number)
        artifact_client._spent.discard(number)


@pytest.mark.parametrize("wrong", [[1], "x", 7, [("a", 1)]])
def test_params_that_are_no_dict_are_refused_and_the_client_goes_on(wrong: Any) -> None:
    client = Client(lambda: pytest.fail("nothing is to be sent"))
    for _ in range(2):
        with pytest.raises(ValueError, match="params are a dict"):
            client.call("artifact/fetch", wrong, timeout=0.2)
