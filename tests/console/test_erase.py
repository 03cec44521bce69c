"""What is erased is found nowhere any more, what is not is as it was, and every number stays given."""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import pytest

from sidecar.console import erase as module
from sidecar.stores.journal_file import JournalFile
from tests.console.conftest import Run
from tests.daemon_process import PROJECT, Workspace, environment
from tests.postgres import Postgres

pytestmark = pytest.mark.rule("cli.erase-forgets-a-turn-or-conversation")

SECRETS = (b"rhubarb prompt", b"rhubarb file", b"rhubarb answer", b"rhubarb source", b"rhubarb tool", b"rhubarb large")
KEPT = (b"quince prompt", b"quince file", b"quince answer", b"quince source")
LARGE = "rhubarb large " * 50_000


def play(workspace: Workspace, turn: str, fruit: str) -> None:
    """A turn that leaves its words everywhere: timeline, pool, files, kept versions, store, index."""
    runtime = workspace.connect("runtime")
    runtime.call("turn/begin", {"turn_id": turn, "prompt": f"{fruit} prompt"})
    row = {
        "url": f"https://{turn}.example.com/{fruit}",
        "title": fruit,
        "text": f"{fruit} source",
        "source_type": "web",
    }
    (sid,) = runtime.call("sources/merge", {"rows": [row]})["added"]
    params = {"code": f"{fruit} tool"}
    runtime.call("call/begin", {"tool_call_id": f"tc_{turn}", "tool_id": "exec", "params": params})
    workspace.write(f"{turn}/files/a.txt", f"{fruit} file, first")
    runtime.call("workspace/sync")
    workspace.write(f"{turn}/files/a.txt", f"{fruit} file, second")
    workspace.write(f"{turn}/files/large.txt", LARGE if fruit == "rhubarb" else "small")
    runtime.call("call/end", {"tool_call_id": f"tc_{turn}", "result": {"said": f"{fruit} tool"}})
    said = {"text": f"{fruit} answer [[S:{sid}]]"}
    runtime.call("turn/end", {"turn_id": turn, "completion": said, "embeddings": {"chat:user": [0.1, 0.2]}})


def played(workspace: Workspace) -> Workspace:
    play(workspace, "turn_1", "rhubarb")
    play(workspace, "turn_2", "quince")
    workspace.stop()
    return workspace


def holding(words: bytes, *folders: Path) -> list[str]:
    """Every file that holds these words, whatever it is."""
    files = (path for folder in folders for path in folder.rglob("*") if path.is_file())
    return [str(path) for path in files if words in path.read_bytes()]


def left_of(wanted: Iterable[bytes], workspace: Workspace) -> dict[bytes, list[str]]:
    """Which of these words the state folder, the store in it or OUT_DIR still hold, and where."""
    found = {words: holding(words, workspace.state_dir, workspace.out_dir) for words in wanted}
    return {words: files for words, files in found.items() if files}


def count_blocks(workspace: Workspace) -> tuple[int, list[int]]:
    runtime = workspace.connect("runtime")
    counts = runtime.call("workspace/status")["counts"]
    return counts["blocks"], [row["sid"] for row in runtime.call("sources/list")["rows"]]


@pytest.fixture
def workspace(make_workspace: Callable[..., Workspace]) -> Workspace:
    return make_workspace().start()


def test_a_turn_is_found_nowhere_afterwards(workspace: Workspace, command: Run) -> None:
    blocks, sids = _counted(workspace)
    assert all(holding(words, workspace.state_dir) for words in (*SECRETS, *KEPT))
    code, out, err = command(workspace, "erase", "--turn", "turn_1", "--files", "--yes")
    assert (code, err) == (0, "")
    assert "turn turn_1 is erased" in out
    assert left_of(SECRETS, workspace) == {}
    assert all(holding(words, workspace.state_dir) for words in KEPT)
    assert not (workspace.out_dir / "turn_1").exists()
    workspace.start()
    assert count_blocks(workspace) == (blocks, sids)


def _counted(workspace: Workspace) -> tuple[int, list[int]]:
    play(workspace, "turn_1", "rhubarb")
    play(workspace, "turn_2", "quince")
    before = count_blocks(workspace)
    workspace.stop()
    return before


def test_what_was_erased_is_answered_as_unknown_and_the_rest_as_before(workspace: Workspace, command: Run) -> None:
    played(workspace)
    assert command(workspace, "erase", "--turn", "turn_1", "--files", "--yes")[0] == 0
    runtime = workspace.start().connect("runtime")
    paths = ["fi:turn_1.files/a.txt", "ar:turn_1.user.prompt", "fi:turn_2.files/a.txt", "ar:turn_2.user.prompt"]
    found = [one["found"] for one in runtime.call("artifact/resolve", {"paths": paths})["results"]]
    assert found == [False, False, True, True]
    rows = runtime.call("sources/list")["rows"]
    assert rows[0]["erased"] is True
    assert "quince source" in [row.get("text") for row in rows]
    assert "rhubarb" not in runtime.call("timeline/render", {"as": "text", "include_sources": True})["text"]
    refusal = runtime.refused("turn/begin", {"turn_id": "turn_1", "prompt": "again"})
    assert refusal.kind == "not_permitted"
    row = {"url": "https://turn_1.example.com/rhubarb", "title": "anew", "source_type": "web"}
    assert runtime.call("sources/merge", {"rows": [row]})["added"] == [max(row["sid"] for row in rows) + 1]


def test_the_next_turn_is_saved_without_the_erased_one(workspace: Workspace, command: Run) -> None:
    played(workspace)
    assert command(workspace, "erase", "--turn", "turn_1", "--files", "--yes")[0] == 0
    workspace.start()
    play(workspace, "turn_3", "quince")
    runtime = workspace.connect("runtime")
    assert runtime.call("workspace/status")["revision"]
    workspace.stop()
    assert left_of(SECRETS, workspace) == {}
    from_index = set(_turns_in_index(workspace))
    assert "turn_1" not in from_index
    assert {"turn_2", "turn_3"} <= from_index


def _turns_in_index(workspace: Workspace) -> Iterator[str]:
    from sidecar.core.conversation_names import scope_of
    from sidecar.core.index_rows import Filters
    from sidecar.core.storage_names import Identity
    from sidecar.stores.indexes import open_index

    index = open_index(str(workspace.state_dir / "index.db"))
    index.open()
    try:
        identity = Identity.of(_conversation(workspace))
        for row in index.rows(scope_of(identity), Filters()):
            yield row.turn_id
    finally:
        index.close()


def _conversation(workspace: Workspace) -> dict[str, str]:
    from sidecar.core.erasing import whose

    file = JournalFile.open(str(workspace.state_dir / "journal.db"))
    try:
        return whose((row[0], row[1], row[2], row[3]) for rows in file.scan(after=0) for row in rows)[0]
    finally:
        file.close()


def test_a_whole_conversation_is_found_nowhere_afterwards(workspace: Workspace, command: Run) -> None:
    _, sids = _counted(workspace)
    before = _conversation(workspace)
    code, out, err = command(workspace, "erase", "--conversation", "--files", "--yes")
    assert (code, err) == (0, "")
    assert "the whole conversation is erased" in out
    assert left_of((*SECRETS, *KEPT), workspace) == {}
    assert _conversation(workspace)["conversation_id"] == before["conversation_id"]
    workspace.start()
    assert count_blocks(workspace)[0] == 0
    runtime = workspace.connect("runtime")
    row = {"url": "https://new.example.com", "title": "new", "source_type": "web"}
    assert runtime.call("sources/merge", {"rows": [row]})["added"] == [max(sids) + 1]
    play(workspace, "turn_9", "quince")


def test_files_in_out_dir_stay_unless_they_are_named(workspace: Workspace, command: Run) -> None:
    played(workspace)
    code, out, _ = command(workspace, "erase", "--turn", "turn_1", "--yes")
    assert code == 0
    assert "OUT_DIR keeps 1 folders of turns" in out
    assert (workspace.out_dir / "turn_1/files/a.txt").read_text() == "rhubarb file, second"
    assert holding(b"rhubarb prompt", workspace.out_dir, workspace.state_dir) == []


def test_bytes_that_another_turn_names_are_kept(workspace: Workspace, command: Run) -> None:
    for turn in ("turn_1", "turn_2"):
        workspace.write(f"{turn}/files/same.txt", "the very same")
        workspace.write(f"{turn}/files/own.txt", f"of {turn} alone")
    workspace.connect("runtime").call("workspace/sync")
    workspace.stop()
    assert command(workspace, "erase", "--turn", "turn_1", "--files", "--yes")[0] == 0
    kept = workspace.state_dir / "kept"
    assert len(holding(b"the very same", kept)) == 1
    assert holding(b"of turn_1 alone", kept) == []
    assert len(holding(b"of turn_2 alone", kept)) == 1


def test_nobody_is_erased_without_a_yes(workspace: Workspace, command: Run) -> None:
    command(workspace, "sync")
    code, _, err = command(workspace, "erase", "--conversation")
    assert code == 64
    assert "--yes" in err
    assert workspace.answers()


@pytest.mark.parametrize(("answer", "code"), [("yes\n", 0), ("no\n", 64), ("\n", 64)])
def test_a_person_is_asked(
    make_workspace: Callable[..., Workspace], command: Run, monkeypatch: pytest.MonkeyPatch, answer: str, code: int
) -> None:
    class Terminal:
        def isatty(self) -> bool:
            return True

        def readline(self) -> str:
            return answer

    workspace = played(make_workspace().start())
    monkeypatch.setattr(module.sys, "stdin", Terminal())
    got, out, _ = command(workspace, "erase", "--turn", "turn_1")
    assert got == code
    assert "for ever" in out
    assert bool(holding(b"rhubarb prompt", workspace.state_dir)) is (code != 0)


def test_what_is_not_there_is_said(workspace: Workspace, command: Run) -> None:
    workspace.stop()
    assert command(workspace, "erase", "--turn", "turn_9", "--yes")[:2] == (66, "")
    assert command(workspace, "erase", "--turn", "../x", "--yes")[0] == 64


def test_nothing_is_erased_where_nobody_was_served(make_workspace: Callable[..., Workspace], command: Run) -> None:
    code, _, err = command(make_workspace(), "erase", "--conversation", "--yes")
    assert code == 66
    assert "nothing to erase" in err


STEPS = (
    "sidecar.console.cleaning.delete_pending",
    "sidecar.console.erase._forget_blobs",
    "sidecar.console.erase._forget_journalled",
    "sidecar.stores.blobs.Blobs.evict",
    "sidecar.console.erase._forget_copies",
)
KILLED = """
import importlib, os, signal, sys
from sidecar.__main__ import main
module, _, name = sys.argv[1].rpartition(".")
try:
    owner = importlib.import_module(module)
except ModuleNotFoundError:
    module, _, inner = module.rpartition(".")
    owner = getattr(importlib.import_module(module), inner)
importlib.import_module("sidecar.console.erase").__dict__
setattr(owner, name, lambda *_: os.kill(os.getpid(), signal.SIGKILL))
for user in ("sidecar.console.erase",):
    if name in vars(importlib.import_module(user)):
        setattr(importlib.import_module(user), name, getattr(owner, name))
sys.exit(main(sys.argv[2:]))
"""


@pytest.mark.parametrize("words", [("--turn", "turn_1"), ("--conversation",)], ids=["turn", "conversation"])
@pytest.mark.parametrize("step", STEPS)
def test_an_erase_that_was_killed_is_finished_by_the_next(
    workspace: Workspace, command: Run, step: str, words: tuple[str, ...]
) -> None:
    if step.endswith("delete_pending") and words == ("--conversation",):
        words = ("--turn", "turn_1")
    played(workspace)
    killed = subprocess.run(
        [sys.executable, "-c", KILLED, step, "erase", *words, "--files", "--yes", *workspace.arguments],
        cwd=PROJECT,
        env=environment(),
        capture_output=True,
        check=False,
        timeout=60,
    )
    assert killed.returncode == -signal.SIGKILL, killed.stderr.decode()
    assert command(workspace, "erase", *words, "--files", "--yes")[0] == 0
    assert left_of(SECRETS, workspace) == {}
    assert left_of(KEPT, workspace).keys() == (set(KEPT) if words[0] == "--turn" else set())
    workspace.start()
    play(workspace, "turn_4", "quince")


def test_another_daemon_that_writes_the_conversation_is_waited_for(
    make_workspace: Callable[..., Workspace], command: Run, tmp_path: Path
) -> None:
    workspace = played(make_workspace().start())
    from sidecar.core.conversation_names import scope_of
    from sidecar.core.storage_names import Identity
    from sidecar.stores.indexes import open_index

    index = open_index(str(workspace.state_dir / "index.db"))
    index.open()
    index.claim(scope_of(Identity.of(_conversation(workspace))), "somebody", "a daemon elsewhere", seconds=60)
    code, _, err = command(workspace, "erase", "--turn", "turn_1", "--yes")
    index.close()
    assert code == 75
    assert "a daemon elsewhere writes this conversation" in err
    assert holding(b"rhubarb prompt", workspace.state_dir)
    assert os.path.exists(workspace.out_dir / "turn_1")


def test_a_turn_is_gone_from_postgresql_and_from_what_later_turns_saved(
    make_workspace: Callable[..., Workspace], command: Run, postgres: Postgres, tmp_path: Path
) -> None:
    database = postgres.database()
    options = ["--index", postgres.url(database), "--store", str(tmp_path / "elsewhere")]
    workspace = played(make_workspace(options=options).start())

    def said(words: str) -> list[tuple[str, str]]:
        query = f"SELECT turn_id, kind FROM conv_messages WHERE text LIKE '%{words}%' ORDER BY turn_id, kind"
        return [(turn, kind) for turn, kind in postgres.execute(query, database=database)]

    assert {turn for turn, _ in said("rhubarb")} == {"turn_1", "turn_2"}
    assert holding(b"rhubarb source", tmp_path / "elsewhere")
    assert command(workspace, "erase", "--turn", "turn_1", "--files", "--yes")[0] == 0
    assert said("rhubarb") == []
    assert said("quince")
    for words in SECRETS:
        assert holding(words, tmp_path / "elsewhere", workspace.state_dir, workspace.out_dir) == []
    assert holding(b"quince source", tmp_path / "elsewhere")
    postgres.drop(database)


def test_another_index_than_the_workspace_saved_to_changes_nothing(
    make_workspace: Callable[..., Workspace], command: Run, postgres: Postgres
) -> None:
    """An index with a password is not remembered, and the file that would be taken for it knows nothing of this."""
    url = postgres.loopback_url(postgres.database(), password="Sesam-5")
    workspace = played(make_workspace(options=["--index", url]).start())
    before = {path: path.read_bytes() for path in workspace.state_dir.rglob("*") if path.is_file()}
    for words in (("--turn", "turn_1"), ("--conversation",)):
        code, out, err = command(workspace, "erase", *words, "--files", "--yes")
        assert code == 78
        assert "nothing is erased: this workspace saves to postgresql://postgres@127.0.0.1" in err
        assert "Sesam" not in out + err
    after = {path: path.read_bytes() for path in workspace.state_dir.rglob("*") if path.is_file()}
    assert {path.name for path in before if after.get(path) != before[path]} <= {"journal.lock"}
    assert command(workspace, "erase", "--turn", "turn_1", "--files", "--yes", "--index", url)[0] == 0
    assert left_of(SECRETS, workspace) == {}


@pytest.mark.parametrize("words", [("--turn", "turn_1"), ("--conversation",)], ids=["turn", "conversation"])
@pytest.mark.parametrize("killed", [False, True], ids=["at-once", "killed"])
def test_what_was_saved_under_another_user_type_goes_as_well(
    workspace: Workspace, command: Run, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...], killed: bool
) -> None:
    """Also when a kill came after the rows were gone, which alone knew of it."""
    played(workspace)
    _spread(workspace)
    assert holding(b"rhubarb", workspace.state_dir / "store")
    if killed:
        with monkeypatch.context() as patch:
            patch.setattr(module, "_forget_blobs", _interrupted)
            assert command(workspace, "erase", *words, "--files", "--yes")[0] != 0
    assert command(workspace, "erase", *words, "--files", "--yes")[0] == 0
    assert left_of(SECRETS, workspace) == {}
    assert left_of(KEPT, workspace).keys() == (set(KEPT) if words[0] == "--turn" else set())


def _spread(workspace: Workspace) -> None:
    """Have every record of the conversation lie under a user type that only its rows name."""
    (folder,) = (workspace.state_dir / "store").glob("cb/tenants/*/projects/*/conversation/registered")
    folder.rename(folder.with_name("paid"))
    with sqlite3.connect(workspace.state_dir / "index.db") as index:
        index.execute("UPDATE conv_messages SET user_type='paid', key=replace(key, '/registered/', '/paid/')")


def _interrupted(*_: object) -> None:
    raise KeyboardInterrupt
