"""When a file of OUT_DIR gets another name, open documents call it by that."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from sidecar.server.editor.renaming import _renamed
from tests.server.editor.conftest import Told
from tests.server.editor.desk import Desk


def renamed(desk: Desk, **names: str) -> Any:
    files = [{"oldUri": desk.uri(old), "newUri": desk.uri(new)} for old, new in names.items()]
    return desk.client.call("workspace/willRenameFiles", {"files": files})


def after(desk: Desk, answer: dict[str, Any]) -> dict[str, str]:
    """What becomes of each document, by its name."""
    names = {desk.uri(name): name for name in desk.texts}
    changes = {change["textDocument"]["uri"]: change["edits"] for change in answer["documentChanges"]}
    return {names[uri]: desk.applied(edits, names[uri]) for uri, edits in changes.items()}


@pytest.mark.rule("editor.renamed-files-are-renamed-in-open-documents", "editor.positions-in-the-agreed-encoding")
def test_every_form_is_kept(desk: Desk) -> None:
    page = "turn_1/files/page.md"
    desk.open("😀 turn_1/files/report.md é fi:turn_1.files/report.md, turn_2/files/report.md").open(
        "![x](report.md)", page
    )
    answer = renamed(desk, **{"turn_1/files/report.md": "turn_1/files/new name.md"})
    assert after(desk, answer) == {
        "notes.md": "😀 turn_1/files/new name.md é fi:turn_1.files/new name.md, turn_2/files/report.md",
        page: "![x](new%20name.md)",
    }
    assert {change["textDocument"]["version"] for change in answer["documentChanges"]} == {1}


def test_a_folder_takes_its_files_along(desk: Desk) -> None:
    desk.open("turn_1/files/sub/a.md turn_1/files/subway.md")
    answer = renamed(desk, **{"turn_1/files/sub": "turn_1/files/other"})
    assert after(desk, answer) == {"notes.md": "turn_1/files/other/a.md turn_1/files/subway.md"}


@pytest.mark.parametrize(
    ("text", "old", "new", "expected"),
    [
        ("[a](old.md#sec)", "old.md", "new.md", "[a](new.md#sec)"),
        ("[a](report.md#sec)", "report.md", "new.md", "[a](new.md#sec)"),
        ("[a](sub/a.md#sec) ![a](sub/a.png?v=2)", "sub", "neu", "[a](neu/a.md#sec) ![a](neu/a.png?v=2)"),
    ],
)
def test_what_follows_a_path_in_a_link_stays_there(desk: Desk, text: str, old: str, new: str, expected: str) -> None:
    page = "turn_1/files/linking.md"
    desk.open(text, page)
    answer = renamed(desk, **{f"turn_1/files/{old}": f"turn_1/files/{new}"})
    assert after(desk, answer) == {page: expected}


def test_what_resolves_decides_which_path_is_meant(desk: Desk) -> None:
    desk.open("turn_1/files/plan (final).md")
    assert renamed(desk, **{"turn_1/files/plan": "turn_1/files/other"}) is None
    answer = renamed(desk, **{"turn_1/files/plan (final).md": "turn_1/files/x.md"})
    assert after(desk, answer) == {"notes.md": "turn_1/files/x.md"}


def test_the_nearest_of_many_renamed_folders_counts() -> None:
    moved = {"a": "b", "a/c": "d", **{f"x/{number}": "y" for number in range(1000)}}
    assert [_renamed(one, moved) for one in ("a/e", "a/c/e", "a/c", "x/7/z", "x/z", "")] == [
        "b/e", "d/e", "d", "y/z", None, None,
    ]  # fmt: skip


def test_a_page_that_moves_keeps_what_it_refers_to(desk: Desk) -> None:
    page = "turn_1/files/page.md"
    desk.open("![x](data.csv) ![y](nothing.png)", page)
    answer = renamed(desk, **{page: "turn_1/files/sub/page.md"})
    assert after(desk, answer) == {page: "![x](../data.csv) ![y](nothing.png)"}


@pytest.mark.parametrize(
    ("old", "new"), [("a.md", "b.md"), ("turn_1/files/report.md", "b.md"), ("turn_9/x", "turn_9/y")]
)
def test_other_files_are_nobodys_concern(desk: Desk, old: str, new: str) -> None:
    desk.open("turn_1/files/report.md a.md")
    assert renamed(desk, **{old: new}) is None


def test_the_client_tells_of_every_file_since_a_link_may_lead_to_ours(desk: Desk, sit: Callable[..., Desk]) -> None:
    [wanted] = desk.client.welcome["workspace"]["fileOperations"]["willRename"]["filters"]
    assert wanted == {"scheme": "file", "pattern": {"glob": "**"}}
    assert "fileOperations" not in sit(capabilities={}).client.welcome.get("workspace", {})


def test_a_file_is_ours_also_by_a_link_above_out_dir(desk: Desk, told: Told, tmp_path: Path) -> None:
    (tmp_path / "home").symlink_to(told.workspace.out_dir.parent)
    desk.open("turn_1/files/report.md")
    by_link = {
        key: f"file://{tmp_path}/home/{told.workspace.out_dir.name}/turn_1/files/{name}"
        for key, name in (("oldUri", "report.md"), ("newUri", "new.md"))
    }
    answer = desk.client.call("workspace/willRenameFiles", {"files": [by_link]})
    assert after(desk, answer) == {"notes.md": "turn_1/files/new.md"}


def test_a_client_without_versions_gets_plain_changes(sit: Callable[..., Desk]) -> None:
    desk = sit(capabilities={"workspace": {"fileOperations": {"willRename": True}}})
    desk.open("turn_1/files/report.md")
    answer = renamed(desk, **{"turn_1/files/report.md": "turn_1/files/new.md"})
    assert desk.applied(answer["changes"][desk.uri("notes.md")]) == "turn_1/files/new.md"
