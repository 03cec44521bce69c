"""The recorded session replays through a daemon, is read back by a second one, and never says `current_turn`."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import orjson
import pytest

from tests.conformance.case import load
from tests.conformance.play import play
from tests.daemon_process import Workspace
from tests.rpc_client import Client

SESSION = load(Path(__file__).parent / "session.json")
VIEWS = ("context.json", "sources_pool.json")

# Every path that seed 002 prints, with the names of this session in it; what it leads to in a few words.
PRINTED: dict[str, Callable[[Any], bool]] = {
    "current_turn.artifacts.gen_1": lambda ret: ret["artifact_kind"] == "inline",
    "current_turn.artifacts.gen_1.value.content": lambda ret: ret.startswith("# Soup and fish"),
    "current_turn.artifacts.gen_1.value.sources_used": lambda ret: [row["sid"] for row in ret] == [5, 6],
    "current_turn.artifacts.pdf_1": lambda ret: ret["value"]["path"] == "turn_2/files/report.pdf",
    "current_turn.artifacts.pdf_1.value.path": lambda ret: ret == "turn_2/files/report.pdf",
    "current_turn.artifacts.search_1": lambda ret: len(ret["value"]) == 3,
    "current_turn.artifacts.search_1[4,6]": lambda ret: [row["sid"] for row in ret] == [4, 6],
    "current_turn.artifacts.search_1[2:6]": lambda ret: [row["sid"] for row in ret] == [4, 5, 6],
    "current_turn.slots.report_pdf.text": lambda ret: ret.startswith("# Soup and fish"),
    "current_turn.slots.report_pdf.path": lambda ret: ret == "turn_2/files/report.pdf",
    "current_turn.slots.brief.text": lambda ret: ret.startswith("# Soup and fish"),
    "current_turn.slots.brief.sources_used": lambda ret: [row["sid"] for row in ret] == [5, 6],
    "turn_1.slots.menu_md.text": lambda ret: ret == "# Old menu\n",
    "turn_2.slots.report_pdf.sources_used": lambda ret: [row["sid"] for row in ret] == [5, 6],
    "turn_1.user.prompt.text": lambda ret: ret == "What is on the menu?",
    "turn_2.user.prompt.text": lambda ret: ret == "Make a report on soup and fish.",
    "turn_1.assistant.completion.text": lambda ret: ret == "Soup, see the old menu.",
    "turn_1.user.attachments.menu_1_pdf": lambda ret: ret["summary"] == "the menu as it was printed",
    "turn_1.user.attachments.chart_png": lambda ret: ret["mime"] == "image/png",
    "current_turn.files.report.pdf": lambda ret: ret["artifact_id"] == "pdf_1",
    "current_turn.files.report_pdf.text": lambda ret: ret.startswith("# Soup and fish"),
    "turn_1.files.old.md": lambda ret: ret["text"] == "# Old menu\n",
    "sources_pool[1,2,3]": lambda ret: [row["sid"] for row in ret] == [1, 2, 3],
    "sources_pool[6,4]": lambda ret: [row["sid"] for row in ret] == [6, 4],
}
SAYS_CURRENT = re.compile(r"current_turn[./\[]")


class Played:
    """A workspace as the player of cases wants it."""

    def __init__(self, workspace: Workspace) -> None:
        self.workspace = workspace
        self.out_dir = workspace.out_dir

    def connect(self, role: str) -> Client:
        return self.workspace.dial(role)

    def kill(self) -> None:
        self.workspace.restart()


@pytest.fixture(scope="module")
def replayed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Workspace]:
    """One daemon that the session was replayed through, for tests that change nothing there."""
    with Workspace(tmp_path_factory.mktemp("replayed") / "w") as workspace:
        play(SESSION, Played(workspace))
        yield workspace


@pytest.fixture
def first(make_workspace: Callable[..., Workspace], tmp_path: Path) -> Workspace:
    """A daemon that the session was replayed through. It records every message."""
    workspace = make_workspace(settings={"record": str(tmp_path / "record.jsonl")}).start()
    play(SESSION, Played(workspace))
    return workspace


def second_of(first: Workspace, make_workspace: Callable[..., Workspace]) -> Workspace:
    """Another daemon on the files of a session alone: no journal, and no timeline.json."""
    workspace = make_workspace()
    for entry in first.out_dir.iterdir():
        if entry.is_dir():
            shutil.copytree(entry, workspace.out_dir / entry.name)
        elif entry.name in VIEWS:
            shutil.copy(entry, workspace.out_dir / entry.name)
    return workspace.start()


def fetched(client: Client, path: str) -> Any:
    answer = client.call("context/fetch", {"path": path})
    assert answer["err"] is None, (path, answer["err"])
    return answer["ret"]


@pytest.mark.rule("context.older-paths-are-read")
@pytest.mark.rule("context.slots-carry-sources-used")
def test_every_path_that_the_seed_prints_resolves(replayed: Workspace) -> None:
    program = replayed.connect("exec")
    wrong = {path: ret for path, is_right in PRINTED.items() if not is_right(ret := fetched(program, path))}
    assert wrong == {}


@pytest.mark.rule("context.layout-files-are-written")
@pytest.mark.rule("context.pool-is-fully-duplicated")
def test_a_second_daemon_reads_the_session_back_and_every_path_resolves_the_same(
    replayed: Workspace, make_workspace: Callable[..., Workspace]
) -> None:
    second = second_of(replayed, make_workspace)
    one, other = replayed.connect("exec"), second.connect("exec")
    different = {path: (a, b) for path in PRINTED if (a := fetched(one, path)) != (b := fetched(other, path))}
    assert different == {}
    runtime = second.connect("runtime")
    events = [block for block in runtime.call("timeline/blocks")["blocks"] if block["type"] == "context.event"]
    assert [event["event"] for event in events][-2:] == ["error", "exit"]
    runtime.call("timeline/flush")
    before, after = (orjson.loads((w.out_dir / "context.json").read_bytes()) for w in (replayed, second))
    for part in ("current_turn", "prior_turns", "budget_state", "max_sid", "sources_pool"):
        assert before[part] == after[part], part
    second.stop()


@pytest.mark.rule("timeline.flush-writes-the-older-context")
@pytest.mark.rule("context.layout-files-are-written")
@pytest.mark.rule("context.pool-is-fully-duplicated")
def test_the_end_of_a_turn_leaves_both_files_with_the_whole_session(replayed: Workspace) -> None:
    context, pool = (orjson.loads((replayed.out_dir / name).read_bytes()) for name in VIEWS)
    now = context["current_turn"]
    assert context.keys() >= {
        "prior_turns", "current_turn", "max_sid", "sources_pool", "last_persisted_at_ts", "tool_call_index",
        "budget_state",
    }  # fmt: skip
    assert (now["turn_id"], now["tool_result_counter"], list(context["prior_turns"])) == ("turn_2", 3, ["turn_1"])
    assert now["artifacts"].keys() == {"search_1", "gen_1", "pdf_1"}
    assert now["artifacts"]["gen_1"]["content_lineage"] == [
        "ar:turn_2.context.artifact.search_1", "ar:turn_1.context.slot.menu_md",
    ]  # fmt: skip
    assert now["slots"].keys() == {"report_pdf", "brief"}
    kinds = [event["kind"] for event in now["events"]]
    assert set(kinds) == {
        "decision", "param_binding", "tool_started", "tool_finished", "slot_mapped", "exit", "error",
    }  # fmt: skip
    assert context["budget_state"]["used"] == {"searches": 1, "tool_calls": 3}
    assert context["tool_call_index"]["tc_gen"]["artifact_ids"] == ["gen_1"]
    assert context["tool_call_index"]["tc_pdf"]["tool_id"] == "rendering.write_pdf"
    assert context["sources_pool"] == pool["sources_pool"]
    assert [row["sid"] for row in pool["sources_pool"]] == [1, 2, 3, 4, 5, 6, 7]
    assert context["prior_turns"]["turn_1"]["deliverables"]["menu_md"]["path"] == "turn_1/files/old.md"


@pytest.mark.rule("context.files-of-earlier-turns-are-rehosted")
def test_files_of_earlier_turns_come_back_to_their_own_turn_s_folder(first: Workspace) -> None:
    shutil.rmtree(first.out_dir / "turn_1")
    runtime = first.connect("runtime")
    runtime.call("turn/begin", {"turn_id": "turn_3", "rehost": "all"})
    for path in ("turn_1/files/old.md", "turn_1/attachments/menu 1.pdf", "turn_1/attachments/chart.png"):
        assert (first.out_dir / path).is_file()
    assert fetched(runtime, "turn_1.files.old_md.text") == "# Old menu\n"


@pytest.mark.rule("context.older-paths-are-read")
def test_no_path_in_any_output_says_current_turn(first: Workspace, tmp_path: Path) -> None:
    for role in ("runtime", "exec"):
        client = first.connect(role)
        for path in PRINTED:
            fetched(client, path)
            client.call("artifact/resolve", {"paths": [path]})
            client.call("artifact/read", {"paths": [path]})
            client.call("artifact/fetch", {"path": path})
            client.call("context/fetch", {"path": f"{path}.nobody"})
        client.call("context/show_artifacts", {"paths": list(PRINTED)})
    first.stop()
    lines = [json.loads(line) for line in (tmp_path / "record.jsonl").read_text("utf-8").splitlines()]
    said = [json.dumps(line["body"]) for line in lines if line["way"] == "out"]
    assert len(said) > 2 * len(PRINTED)
    written = [path.read_text("utf-8") for path in first.out_dir.glob("*.json")]
    assert len(written) == 3
    assert [text[:2000] for text in [*said, *written] if SAYS_CURRENT.search(text)] == []


@pytest.mark.rule("context.layout-files-are-written")
def test_a_journal_or_a_timeline_is_read_and_these_files_are_not(
    first: Workspace, make_workspace: Callable[..., Workspace]
) -> None:
    second = make_workspace()
    second.write("timeline.json", json.dumps({"version": 1, "blocks": [], "turn_ids": ["turn_7"]}))
    for name in VIEWS:
        shutil.copy(first.out_dir / name, second.out_dir / name)
    runtime = second.start().connect("runtime")
    assert runtime.call("context/fetch", {"path": "turn_2.slots.brief"})["err"]["code"] == "unknown_turn_id"
    first.write("context.json", "{}")
    assert fetched(first.restart().connect("exec"), "turn_2.slots.brief.type") == "inline"


@pytest.mark.parametrize("content", ["no json", "[1]", '{"prior_turns": 3, "current_turn": {"turn_id": "a.b"}}'])
def test_a_foreign_session_that_is_none_is_a_notice(make_workspace: Callable[..., Workspace], content: str) -> None:
    workspace = make_workspace()
    workspace.write("context.json", content)
    client = workspace.start().connect("runtime")
    changes = client.call("workspace/changes", {"since": 0})["changes"]
    assert [change["kind"] for change in changes if change["kind"] == "notice"] == ["notice"]


@pytest.mark.rule("context.current-attachments-are-mirrored")
def test_current_attachments_are_mirrored_where_that_is_wanted(make_workspace: Callable[..., Workspace]) -> None:
    workspace = make_workspace(settings={"context_mirror": "true"}).start()
    runtime = workspace.connect("runtime")
    attached = [{"name": "a.txt", "text": "one"}, {"name": "b/c.txt", "text": "two"}]
    runtime.call("turn/begin", {"turn_id": "turn_1", "attachments": attached})
    mirror = workspace.out_dir / "current_turn/attachments"
    assert (mirror / "a.txt").read_text() == "one"
    assert runtime.call("workspace/sync", {"since": 0})["sources"] == [1, 2]
    assert len(runtime.call("artifact/list")["artifacts"]) == 2
    runtime.call("turn/begin", {"turn_id": "turn_2", "attachments": [{"name": "d.txt", "text": "three"}]})
    assert [path.name for path in sorted(mirror.rglob("*")) if path.is_file()] == ["d.txt"]


@pytest.mark.rule("context.current-attachments-are-mirrored")
def test_nothing_is_mirrored_where_nobody_asks(workspace: Workspace) -> None:
    runtime = workspace.connect("runtime")
    runtime.call("turn/begin", {"turn_id": "turn_1", "attachments": [{"name": "a.txt", "text": "one"}]})
    assert not (workspace.out_dir / "current_turn").exists()
