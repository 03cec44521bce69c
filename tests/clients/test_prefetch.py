"""The files that a program names are there before it runs; what only looks alike is left alone."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import artifact_client
import pytest
from artifact_prefetch import rehost_for, strings

from tests.daemon_process import Workspace, environment

CLIENT = Path(artifact_client.__file__).parent
PROGRAM = '''
"""Reads turn_1/files/doc.txt and writes a chart."""
import os
from artifact_client import fetch_ctx
OUT = os.environ["OUT_DIR"]
rows = fetch_ctx("so:sources_pool[1]")["ret"]
fetch_ctx(path="fi:turn_1.files/b c.csv")
open(os.path.join(OUT, 'turn_1/files/a (1).csv'))
open(f"{OUT}/turn_1/files/joined.txt")
open(f"turn_1/files/{len(rows)}.txt")
open("/tmp/files/x"); open("/tmp/turn_1/files/x"); open("src/files/x")
# turn_1/files/comment.txt
open(OUT + "/out.csv", "w")
'''
FILES = ("a (1).csv", "b c.csv", "joined.txt", "doc.txt", "comment.txt")


@pytest.fixture
def emptied(workspace: Workspace, monkeypatch: pytest.MonkeyPatch) -> Workspace:
    """Files of a turn that are known and no longer there; the first one is source 1."""
    monkeypatch.setenv("ARTIFACT_SIDECAR_SOCKET", str(workspace.socket("exec")))
    artifact_client.close()
    workspace.write("turn_1/files/source.txt", "x")
    artifact_client.sync(timeout=10)
    for name in FILES:
        workspace.write(f"turn_1/files/{name}", name)
    artifact_client.sync(timeout=10)
    shutil.rmtree(workspace.out_dir / "turn_1")
    return workspace


@pytest.fixture(autouse=True)
def hang_up() -> object:
    yield
    artifact_client.close()


def names(workspace: Workspace) -> set[str]:
    return {path.name for path in (workspace.out_dir / "turn_1/files").iterdir()}


def test_what_a_python_program_names_is_there_before_it_runs(emptied: Workspace) -> None:
    answer = rehost_for(PROGRAM)
    assert names(emptied) == {"source.txt", "doc.txt", "b c.csv", "a (1).csv", "joined.txt"}
    assert answer["missing"] == []
    assert answer["files_of_sources"] == {"1": "turn_1/files/source.txt"}


def test_a_program_in_another_language_is_looked_through_whole(emptied: Workspace) -> None:
    answer = rehost_for("cat turn_1/files/doc.txt 'turn_1/files/a (1).csv' > turn_1/files/new.txt; rm /tmp/files/x")
    assert names(emptied) == {"doc.txt", "a (1).csv"}
    assert [one["path"] for one in answer["missing"]] == ["turn_1/files/new.txt"]


def test_it_is_a_command_too(emptied: Workspace, tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text('open("turn_1/files/doc.txt"); open("turn_1/files/new.txt", "w")', encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-m", "artifact_prefetch", str(program)],
        cwd=CLIENT,
        env=environment(ARTIFACT_SIDECAR_SOCKET=os.environ["ARTIFACT_SIDECAR_SOCKET"]),
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stderr == "turn_1/files/new.txt: unknown\n"
    assert names(emptied) == {"doc.txt"}


def test_a_page_is_pulled_by_its_text_or_by_its_file(emptied: Workspace) -> None:
    assert artifact_client.pull_assets("<img src='turn_1/files/doc.txt'>")["missing"] == []
    emptied.write("turn_1/files/page.html", "<img src='joined.txt'>")
    answer = artifact_client.pull_assets(path="turn_1/files/page.html", tool_id="rendering_tools.write_pdf")
    assert [one["physical_path"] for one in answer["rehosted"]] == ["turn_1/files/joined.txt"]


@pytest.mark.parametrize(
    ("code", "said"),
    [
        ("x = 'a' 'b'", ["ab"]),
        ("f'{x}/turn_1/files/a.csv'", [" turn_1/files/a.csv"]),
        ("f'{x}/tmp/a.csv'", [" "]),
        ("f'turn_1/files/{n}.csv and turn_1/files/b.csv'", ["  and turn_1/files/b.csv"]),
        ("f'{x!r:>{w}} turn_1/files/a.csv'", ["  turn_1/files/a.csv", " "]),
        ("b'turn_1/files/a.csv'", []),
        ("x = 1 # turn_1/files/a.csv", []),
        ("cat turn_1/files/a.csv |", ["cat turn_1/files/a.csv |"]),
        ("x = '\0'", ["x = '\0'"]),
        ("(" * 100_000, ["(" * 100_000]),
        ("", []),
    ],
)
def test_the_strings_of_a_program_are_its_literals(code: str, said: list[str]) -> None:
    assert [*strings(code)] == said


@pytest.mark.parametrize("name", ["artifact_client.py", "artifact_prefetch.py"])
def test_both_files_travel_with_the_client(name: str) -> None:
    assert name in (CLIENT / "pyproject.toml").read_text("utf-8")
