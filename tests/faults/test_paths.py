"""Every path that is refused is refused by every method, for every role, and nothing from outside ever comes out.

A canary stands outside OUT_DIR; whatever is asked, no answer holds it, plain or as base64 or as its hash.
"""

from __future__ import annotations

import base64
import ctypes
import hashlib
import json
import os
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from tests.daemon_process import ROLES, Workspace
from tests.rpc_client import Client, RpcError

CANARY = "CANARY-not-yours-to-read-"  # repeated without a rest in base64's groups of three
SECRET = (CANARY * 3).encode()
FILES = "turn_1/files"

UNSAFE: dict[str, str] = {
    "empty": "",
    "absolute": "/etc/passwd",
    "absolute behind the family": "fi:/etc/passwd",
    "up": "../outside/secret.txt",
    "up behind the family": "fi:../outside/secret.txt",
    "up within a turn": f"{FILES}/../../../outside/secret.txt",
    "up within a logical turn": "fi:turn_1.files/../../../outside/secret.txt",
    "up in attachments": "fi:turn_1.user.attachments/../../../outside/secret.txt",
    "only up": "..",
    "only here": ".",
    "here in the middle": f"{FILES}/./a.txt",
    "here twice": f"././{FILES}/a.txt",
    "a backslash": f"{FILES}\\a.txt",
    "up with backslashes": "..\\outside\\secret.txt",
    "NUL": f"{FILES}/a.txt\0.png",
    "a line break": f"{FILES}/a\n.txt",
    "an escape": f"{FILES}/a\x1b[2J.txt",
    "DEL": f"{FILES}/a\x7f.txt",
    "a drive": "C:/secret.txt",
    "a drive behind the family": "fi:C:/secret.txt",
    "a segment of 256 bytes": f"{FILES}/{'a' * 256}",
    "a segment of 256 bytes in UTF-8": f"{FILES}/{'é' * 128}",
    "more than 4,096 bytes": f"{FILES}/{'a/' * 2100}a",
    "a slash at the end": f"{FILES}/a.txt/",
    "an empty segment": f"{FILES}//a.txt",
}
BAD: dict[str, str] = {
    "an unknown family": "xx:turn_1.files/a.txt",
    "a message of no turn": "ar:.user.prompt",
    "a message of a turn with a space": "ar:turn 1.user.prompt",
    "a call without a leaf": "tc:turn_1.tc_1",
    "a call of another leaf": "tc:turn_1.tc_1.other",
    "a summary of another name": "su:turn_1.summary",
    "a selector without an end": "so:sources_pool[1",
    "a pool of another name": "so:pool[1]",
}
REFUSED = [(name, path, "unsafe_path") for name, path in UNSAFE.items()]
REFUSED += [(name, path, "bad_path") for name, path in BAD.items()]

Ask = Callable[[Client, str], str]


def refused_whole(method: str, field: str) -> Ask:
    """A method of one path: the kind of its refusal."""

    def ask(client: Client, path: str) -> str:
        error = client.refused(method, {field: path})
        assert error.code == -32803
        return error.kind or ""

    return ask


def resolve(client: Client, path: str) -> str:
    honest, result = client.call("artifact/resolve", {"paths": [f"{FILES}/a.txt", path]})["results"]
    assert honest["found"], "a bad neighbour failed a good path"
    assert result["path"] == path
    return str(result["reason"]) if not result["found"] else "found"


def read(client: Client, path: str) -> str:
    answer = client.call("artifact/read", {"paths": [f"{FILES}/a.txt", path]})
    honest, status = answer["status"]["paths"]
    assert "missing" not in honest, "a bad neighbour failed a good path"
    assert answer["status"]["missing"] == [path]
    return str(status["missing"])


def read_lines(client: Client, path: str) -> str:
    items = [{"path": path, "line_start": 1, "line_count": 5}]
    (status,) = client.call("artifact/read", {"items": items})["status"]["paths"]
    return str(status["missing"])


def look_at(client: Client, path: str) -> str:
    (status,) = client.call("artifact/read", {"paths": [path], "stats_only": True})["status"]["paths"]
    return str(status["missing"])


def fetch(client: Client, path: str) -> str:
    answer = client.call("artifact/fetch", {"path": path})
    assert answer["ret"] is None
    return str(answer["err"]["code"])


def rehost(client: Client, path: str) -> str:
    answer = client.call("artifact/rehost", {"paths": [f"{FILES}/a.txt", path]})
    assert [one["path"] for one in answer["rehosted"]] == [f"{FILES}/a.txt"]
    (missing,) = answer["missing"]
    assert missing["path"] == path
    return str(missing["reason"])


def merge(field: str) -> Ask:
    def ask(client: Client, path: str) -> str:
        error = client.refused("sources/merge", {"rows": [{"source_type": "file", field: path}]})
        return error.kind or ""

    return ask


METHODS: dict[str, tuple[frozenset[str], Ask]] = {
    "artifact/resolve": (frozenset(ROLES), resolve),
    "artifact/read": (frozenset(ROLES), read),
    "artifact/read, some lines": (frozenset(ROLES), read_lines),
    "artifact/read, the size": (frozenset(ROLES), look_at),
    "artifact/fetch": (frozenset(ROLES), fetch),
    "artifact/versions": (frozenset(ROLES), refused_whole("artifact/versions", "path")),
    "artifact/rehost": (frozenset({"runtime", "renderer", "exec"}), rehost),
    "timeline/blocks": (frozenset({"runtime", "editor"}), refused_whole("timeline/blocks", "path")),
}
PAIRS = [(method, role) for method, (roles, _) in METHODS.items() for role in ROLES if role in roles]


class Place:
    """A workspace with an honest file, a secret beside it, and links of every kind."""

    def __init__(self, workspace: Workspace) -> None:
        self.workspace = workspace
        self.outside = workspace.folder / "outside"
        self.outside.mkdir()
        for name in ("secret.txt", "secret.png", "a.txt"):
            (self.outside / name).write_bytes(SECRET)
        workspace.write(f"{FILES}/a.txt", "honest")
        self.files = workspace.out_dir / FILES
        self._clients: dict[str, Client] = {}

    def client(self, role: str) -> Client:
        if role not in self._clients:
            self._clients[role] = self.workspace.connect(role)
            self._clients[role].call("workspace/sync")
        return self._clients[role]

    def plant(self) -> list[str]:
        """What must not be followed or opened; the paths by which one would."""
        (self.files / "link.txt").symlink_to(self.outside / "secret.txt")
        (self.files / "link.png").symlink_to(self.outside / "secret.png")
        (self.files / "relative.txt").symlink_to("../../../outside/secret.txt")
        (self.files / "inner.txt").symlink_to("a.txt")
        (self.files / "folder").symlink_to(self.outside)
        (self.files / "loop").symlink_to("loop")
        (self.files / "all").symlink_to("/")
        (self.files / "self").symlink_to("/proc/self/cwd")
        (self.workspace.out_dir / "turn_2").symlink_to(self.outside)
        os.mkfifo(self.files / "pipe.txt")
        with socket.socket(socket.AF_UNIX) as listener:
            here = os.open(self.files, os.O_PATH)
            listener.bind(f"/proc/self/fd/{here}/socket.txt")
            os.close(here)
        links = ("link.txt", "link.png", "relative.txt", "inner.txt", "folder/secret.txt", "loop", "all/etc/passwd")
        odd = ("self/pyproject.toml", "pipe.txt", "socket.txt")
        return [*(f"{FILES}/{name}" for name in (*links, *odd)), "turn_2/secret.txt", "turn_2/files/secret.txt"]


class Watched(Client):
    """A client that looks for the canary in everything it is told."""

    def _receive(self, deadline: float, what: str) -> dict[str, Any]:
        message = super()._receive(deadline, what)
        no_canary(message)
        return message


def no_canary(message: object) -> None:
    said = json.dumps(message)
    for trace in (CANARY, base64.b64encode(CANARY.encode() * 3).decode()[:30], hashlib.sha256(SECRET).hexdigest()):
        assert trace not in said, f"something from outside came out: {said[:1000]}"


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Iterator[Place]:
    """Reading changes nothing, so all of it is asked of one daemon."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("tests.daemon_process.Client", Watched)
        workspace = Workspace(tmp_path_factory.mktemp("paths")).start()
        yield Place(workspace)
        workspace.clean_up(failed=request.session.testsfailed > 0)


@pytest.fixture
def own_place(make_workspace: Callable[..., Workspace], monkeypatch: pytest.MonkeyPatch) -> Place:
    monkeypatch.setattr("tests.daemon_process.Client", Watched)
    return Place(make_workspace().start())


@pytest.mark.parametrize(("method", "role"), PAIRS)
def test_every_bad_path_is_refused_with_its_reason(place: Place, method: str, role: str) -> None:
    client = place.client(role)
    ask = METHODS[method][1]
    answers = {name: ask(client, path) for name, path, _ in REFUSED}
    assert answers == {name: kind for name, _, kind in REFUSED}


@pytest.mark.parametrize("role", ["runtime", "renderer"])
@pytest.mark.parametrize("field", ["physical_path", "artifact_path", "local_path"])
def test_no_source_row_names_a_bad_path(place: Place, role: str, field: str) -> None:
    ask = merge(field)
    before = place.client(role).call("sources/list")
    for name, path, _ in REFUSED:
        # Where a physical path is meant, `fi:` and its kin are the name of a folder.
        if field != "artifact_path" and ":" in path[:3] and name != "a drive":
            continue
        assert ask(place.client(role), path) in ("bad_path", "unsafe_path"), name
    assert place.client(role).call("sources/list") == before


@pytest.mark.parametrize("role", ROLES)
def test_a_search_stays_below_out_dir(place: Place, role: str) -> None:
    client = place.client(role)
    for name, path in UNSAFE.items():
        if name not in ("empty", "only here"):  # both mean all of OUT_DIR here
            assert client.refused("artifact/search", {"root": path, "name_regex": "."}).kind == "unsafe_path", name
    assert client.refused("artifact/search", {"root": "xx:a", "name_regex": "."}).kind in ("bad_path", "not_found")


def test_a_bad_path_that_a_call_expects_is_missing_and_fails_no_other(own_place: Place) -> None:
    client = own_place.client("runtime")
    client.call("turn/begin", {"turn_id": "turn_1"})
    client.call("call/begin", {"tool_call_id": "tc_1", "tool_id": "exec", "params": {}})
    own_place.workspace.write(f"{FILES}/made.txt", "made")
    bad = [path for _, path, _ in REFUSED]
    ended = client.call("call/end", {"tool_call_id": "tc_1", "expect": [f"{FILES}/made.txt", *bad]})
    assert ended["missing"] == bad
    assert [artifact["physical_path"] for artifact in ended["artifacts"]] == [f"{FILES}/made.txt"]


def test_a_block_is_told_at_no_bad_path(own_place: Place) -> None:
    client = own_place.client("runtime")
    client.call("turn/begin", {"turn_id": "turn_1"})
    before = client.call("timeline/blocks")["next_since"]
    for name, path, _ in REFUSED:
        if path:  # a block needs no path
            block = {"type": "react.tool.result", "path": path, "text": "x"}
            assert client.refused("timeline/append", {"blocks": [block]}).kind in ("bad_path", "unsafe_path"), name
    assert client.call("timeline/blocks")["next_since"] == before


REASONS = {"unsafe_path", "not_found", "unknown", "gone", "not_hosted"}


@pytest.mark.parametrize("role", ROLES)
def test_links_pipes_and_sockets_are_neither_followed_nor_opened(own_place: Place, role: str) -> None:
    paths = own_place.plant()
    client = own_place.client(role)
    for path in paths:
        asked = [
            ask for roles, ask in METHODS.values() if role in roles and ask not in (METHODS["timeline/blocks"][1],)
        ]
        for ask in asked:
            assert ask(client, path) in REASONS, path
    found = client.call("artifact/search", {"root": "", "content_regex": "."})
    assert [hit["path"] for hit in found["hits"]] == [f"{FILES}/a.txt"]
    for root in (f"{FILES}/folder", f"{FILES}/all/etc", "turn_2"):
        with suppress(RpcError):
            assert client.call("artifact/search", {"root": root, "name_regex": "."})["hits"] == []
    assert [a["physical_path"] for a in client.call("artifact/list")["artifacts"]] == [f"{FILES}/a.txt"]
    assert [row["physical_path"] for row in client.call("sources/list")["rows"]] == [f"{FILES}/a.txt"]


def exchange(first: Path, second: Path) -> None:
    """Swap two names at once, as only the kernel can (RENAME_EXCHANGE)."""
    at_cwd, flag = -100, 2
    ctypes.CDLL(None).renameat2(at_cwd, os.fsencode(first), at_cwd, os.fsencode(second), flag)


@contextmanager
def swapping(first: Path, second: Path) -> Iterator[list[int]]:
    """Swap two names as fast as possible; yields a list of one number, how often."""
    over = threading.Event()
    count = [0]

    def swap() -> None:
        while not over.is_set():
            exchange(first, second)
            count[0] += 1

    worker = threading.Thread(target=swap)
    worker.start()
    try:
        yield count
    finally:
        over.set()
        worker.join()


def test_a_folder_swapped_for_a_link_while_it_is_read_lets_nothing_out(own_place: Place) -> None:
    folder, link = own_place.files / "d", own_place.files / "other"
    folder.mkdir()
    (folder / "a.txt").write_text("honest too")
    link.symlink_to(own_place.outside)
    client = own_place.client("exec")
    paths = [f"{FILES}/d/a.txt", f"{FILES}/other/a.txt"]
    read_honestly = 0
    with swapping(folder, link) as swaps:
        for trial in range(600):
            path = paths[trial % 2]
            match trial % 5:
                case 0:
                    answer = client.call("artifact/read", {"paths": [path]})
                    read_honestly += any(block.get("text") == "honest too" for block in answer["blocks"])
                case 1:
                    answer = client.call("artifact/fetch", {"path": path})
                    read_honestly += (answer["ret"] or {}).get("text") == "honest too"
                case 2:
                    client.call("artifact/search", {"root": FILES, "content_regex": "CANARY"})
                case 3:
                    client.call("workspace/sync")
                case _:
                    client.call("artifact/resolve", {"paths": paths})
    print(f"{swaps[0]} swaps, read honestly {read_honestly} times")
    assert read_honestly > 0, "a test in which everything is refused proves nothing"


def test_a_file_swapped_for_a_link_while_it_is_read_lets_nothing_out(own_place: Place) -> None:
    file, link = own_place.files / "f.txt", own_place.files / "g.txt"
    file.write_text("honest too")
    link.symlink_to(own_place.outside / "secret.txt")
    client = own_place.client("exec")
    read_honestly = 0
    with swapping(file, link) as swaps:
        for _ in range(300):
            answer = client.call("artifact/fetch", {"path": f"{FILES}/f.txt"})
            read_honestly += (answer["ret"] or {}).get("text") == "honest too"
            client.call("workspace/sync")
    print(f"{swaps[0]} swaps, read honestly {read_honestly} times")
    assert read_honestly > 0, "a test in which everything is refused proves nothing"


def test_a_rehost_into_a_folder_swapped_for_a_link_writes_nothing_outside(own_place: Place) -> None:
    folder, link = own_place.files / "d", own_place.files / "other"
    folder.mkdir()
    (folder / "b.txt").write_text("brought back")
    client = own_place.client("renderer")
    client.call("workspace/sync")
    link.symlink_to(own_place.outside)
    before = {path.name: path.read_bytes() for path in own_place.outside.iterdir()}
    rehosted = 0
    with swapping(folder, link) as swaps:
        for _ in range(200):
            for place in (folder, link):
                with suppress(OSError):
                    if not place.is_symlink():
                        (place / "b.txt").unlink()
            answer = client.call("artifact/rehost", {"paths": [f"{FILES}/d/b.txt"]})
            rehosted += len(answer["rehosted"])
    print(f"{swaps[0]} swaps, {rehosted} rehosted")
    assert {path.name: path.read_bytes() for path in own_place.outside.iterdir()} == before


def test_a_rehost_over_a_hard_link_leaves_the_other_name_alone(own_place: Place) -> None:
    path = own_place.files / "b.txt"
    path.write_text("first")
    client = own_place.client("renderer")
    path.write_text("second")
    client.call("workspace/sync")
    # The older state comes back under the same name, as one more name of a file outside.
    outside = own_place.outside / "kept.txt"
    outside.write_text("first")
    path.unlink()
    os.link(outside, path)
    answer = client.call("artifact/rehost", {"paths": [f"{FILES}/b.txt"]})
    assert [one["origin"] for one in answer["rehosted"]] == ["kept"]
    assert path.read_text() == "second"
    assert outside.read_text() == "first"


def test_a_link_in_the_place_of_a_known_file_is_not_written_through(own_place: Place) -> None:
    path = own_place.files / "b.txt"
    path.write_text("known")
    client = own_place.client("renderer")
    path.unlink()
    path.symlink_to(own_place.outside / "secret.txt")
    answer = client.call("artifact/rehost", {"paths": [f"{FILES}/b.txt"]})
    assert answer["missing"] == [{"path": f"{FILES}/b.txt", "reason": "unsafe_path"}]
    assert (own_place.outside / "secret.txt").read_bytes() == SECRET


def test_the_view_is_not_written_through_a_link(own_place: Place) -> None:
    (own_place.workspace.out_dir / "timeline.json").unlink(missing_ok=True)
    (own_place.workspace.out_dir / "timeline.json").symlink_to(own_place.outside / "secret.txt")
    client = own_place.client("runtime")
    client.call("turn/begin", {"turn_id": "turn_1", "prompt": "hello"})
    with suppress(RpcError):
        client.call("timeline/flush")
    assert (own_place.outside / "secret.txt").read_bytes() == SECRET


def test_the_watch_for_canaries_would_see_one() -> None:
    for message in (SECRET.decode(), base64.b64encode(SECRET).decode(), hashlib.sha256(SECRET).hexdigest()):
        with pytest.raises(AssertionError, match="from outside"):
            no_canary({"result": message})
