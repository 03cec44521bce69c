"""Quick fixes say what they do, do it in the form that was written, and offer nothing that may not be seen."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.daemon_process import Workspace
from tests.server.editor.conftest import Told
from tests.server.editor.desk import CEILING, Desk, desk_of, story


def fixed(desk: Desk, word: str, name: str = "notes.md") -> dict[str, str]:
    """Each fix by its title, with what it makes of the document."""
    return {fix["title"]: desk.applied(edits_of(fix), name) for fix in desk.fixes(word, name) if "edit" in fix}


def edits_of(fix: dict[str, Any]) -> list[dict[str, Any]]:
    [document] = fix["edit"]["documentChanges"]
    return document["edits"]


@pytest.mark.rule("editor.quick-fixes-mend-what-is-wrong", "editor.positions-in-the-agreed-encoding")
def test_a_stale_path_is_replaced_by_the_newer_one_as_it_is_written(desk: Desk) -> None:
    desk.open("😀 turn_1/files/report.md and é fi:turn_1.files/report.md")
    assert fixed(desk, "turn_1/files/report.md") == {
        "Replace by turn_2/files/report.md": "😀 turn_2/files/report.md and é fi:turn_1.files/report.md"
    }
    assert fixed(desk, "fi:turn_1") == {
        "Replace by fi:turn_2.files/report.md": "😀 turn_1/files/report.md and é fi:turn_2.files/report.md"
    }


@pytest.mark.rule("editor.quick-fixes-mend-what-is-wrong")
def test_a_wrong_path_is_replaced_by_what_was_meant(desk: Desk) -> None:
    desk.open("😀turn_1/files/repot.md, turn_2/files/data.csv, turn_1/files/zzz.xyz")
    assert list(fixed(desk, "repot")) == ["Replace by turn_1/files/report.md", "Replace by turn_2/files/report.md"]
    assert fixed(desk, "data") == {
        "Replace by turn_1/files/data.csv": "😀turn_1/files/repot.md, turn_1/files/data.csv, turn_1/files/zzz.xyz"
    }
    assert fixed(desk, "zzz") == {}


def test_a_page_is_mended_from_its_own_folder(desk: Desk) -> None:
    desk.open("![x](data.cvs)", "turn_2/files/sub/page.md")
    assert fixed(desk, "data.cvs", "turn_2/files/sub/page.md") == {}  # another ending is another kind of file
    desk.open("![x](dta.csv)", "turn_2/files/sub/page2.md")
    assert fixed(desk, "dta.csv", "turn_2/files/sub/page2.md") == {
        "Replace by ../../../turn_1/files/data.csv": "![x](../../../turn_1/files/data.csv)"
    }


def test_the_section_that_a_link_leads_to_is_kept(desk: Desk) -> None:
    desk.open("[x](repot.md#sec)", "turn_1/files/page3.md")
    assert fixed(desk, "repot", "turn_1/files/page3.md")["Replace by report.md#sec"] == "[x](report.md#sec)"


@pytest.mark.rule("editor.quick-fixes-mend-what-is-wrong")
def test_a_wrong_number_is_replaced_by_a_near_one_or_taken_out(desk: Desk, told: Told) -> None:
    desk.open(f"é😀[[S:1,{told.good}1,{told.trap}]] [[S:99]]")
    found = fixed(desk, "[[S:1,")
    title = f"Cite [S:{told.good}] A *bold* [title](command:x) instead of {told.good}1"
    assert found[title] == f"é😀[[S:1,{told.good}-{told.trap}]] [[S:99]]".replace(
        "-", "," if told.trap - told.good > 1 else "-"
    )
    assert found[f"Remove {told.good}1 from the citation"] == f"é😀[[S:1,{told.trap}]] [[S:99]]"
    assert fixed(desk, "[[S:99]]")["Remove the citation"] == f"é😀[[S:1,{told.good}1,{told.trap}]] "


@pytest.mark.rule("editor.shows-only-what-the-role-may-see")
def test_nothing_internal_is_offered(desk: Desk) -> None:
    desk.open("turn_1/files/secrt.md turn_2/files/secret.md")
    assert "secret" not in str(desk.fixes("secrt"))
    assert "turn_1/files/secret.md" not in str(desk.fixes("turn_2/files/secret.md"))


def test_what_is_right_needs_no_fix(desk: Desk, told: Told) -> None:
    desk.open(f"turn_2/files/report.md [[S:{told.good}]] word")
    assert desk.fixes("turn_2/files/report.md") == desk.fixes("[[S:") == desk.fixes("word") == []


def test_a_fix_names_the_diagnostic_it_mends(desk: Desk) -> None:
    desk.open("turn_1/files/report.md")
    [wrong] = desk.published()
    context = {"diagnostics": [wrong, {**wrong, "source": "other"}]}
    [fix] = desk.ask("textDocument/codeAction", range=wrong["range"], context=context)
    assert (fix["kind"], fix["diagnostics"], fix["isPreferred"]) == ("quickfix", [wrong], True)
    only = {"diagnostics": [], "only": ["refactor"]}
    assert desk.ask("textDocument/codeAction", range=wrong["range"], context=only) == []


def test_a_client_without_literals_is_offered_none(sit: Callable[..., Desk]) -> None:
    assert "codeActionProvider" not in sit(capabilities={"textDocument": {"codeAction": {}}}).client.welcome


@pytest.mark.rule("editor.quick-fixes-mend-what-is-wrong")
def test_an_absent_file_is_brought_back_and_an_older_spelling_mended(workspace: Workspace) -> None:
    story(workspace)
    runtime = workspace.connect("runtime", ceiling=CEILING)
    workspace.write("turn_1/attachments/x.txt", "x")
    runtime.call("workspace/sync")
    file = workspace.out_dir / "turn_1/files/data.csv"
    file.unlink()
    runtime.call("workspace/sync")
    with desk_of(workspace) as desk:
        desk.open("fi:turn_1.attachments/x.txt turn_1/files/data.csv")
        assert fixed(desk, "fi:turn_1") == {
            "Replace by fi:turn_1.user.attachments/x.txt": "fi:turn_1.user.attachments/x.txt turn_1/files/data.csv"
        }
        [fix] = desk.fixes("data.csv")
        command = fix["command"]
        assert (fix["title"], command["command"]) == ("Bring the file back", "artifact-sidecar.rehost")
        assert command["arguments"] == [{"paths": ["fi:turn_1.files/data.csv"]}]
        desk.client.call("workspace/executeCommand", {key: command[key] for key in ("command", "arguments")})
    assert file.read_text() == "a,b"
