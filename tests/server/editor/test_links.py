"""A click leads to the web page or to the file, and to nothing else that a row may name."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.daemon_process import Workspace
from tests.server.editor.conftest import Told
from tests.server.editor.desk import CEILING, Desk, desk_of, story

FILE = "turn_1/files/report.md"


@pytest.mark.rule("editor.links-lead-to-pages-and-files", "editor.positions-in-the-agreed-encoding")
def test_paths_and_citations_are_links(desk: Desk, told: Told) -> None:
    desk.open(f"😀 {FILE} 😀 [[S:{told.good}]] fi:turn_1.files/plan (final).md ar:turn_9.user.prompt [[S:99]]")
    links = desk.ask("textDocument/documentLink")
    root = f"file://{told.workspace.out_dir}/turn_1/files"
    assert [(desk.slice(link["range"]), link["target"]) for link in links] == [
        (FILE, f"{root}/report.md"),
        (f"[[S:{told.good}]]", "https://example.org/a?b=1"),
        ("fi:turn_1.files/plan (final).md", f"{root}/plan%20%28final%29.md"),
    ]
    assert "fi:turn_1.files/report.md" in links[0]["tooltip"]
    assert links[1]["tooltip"] == f"S:{told.good} · A *bold* [title](command:x)"


@pytest.mark.rule("editor.nothing-but-the-web-is-opened")
def test_a_row_that_names_a_command_is_no_link(desk: Desk, told: Told) -> None:
    assert desk.open(f"[[S:{told.trap}]]").ask("textDocument/documentLink") == []
    assert desk.on("textDocument/definition", "[[S:") is None


@pytest.mark.rule("editor.shows-only-what-the-role-may-see")
def test_what_is_internal_is_as_what_is_not_there(desk: Desk) -> None:
    desk.open("turn_1/files/secret.md turn_1/files/nothing.md")
    assert desk.ask("textDocument/documentLink") == []
    for name in ("secret", "nothing"):
        assert desk.on("textDocument/definition", name) is None
        link = {"range": desk.range(0, 1), "data": {"path": f"turn_1/files/{name}.md"}}
        refusal = desk.client.refused("documentLink/resolve", link)
        assert (refusal.kind, refusal.data["hint"]) == ("not_found", "the file cannot be brought back (unknown)")


def test_definition_answers_the_same(desk: Desk, told: Told) -> None:
    desk.open(f"é😀 `{FILE}` x")
    [link] = desk.ask("textDocument/documentLink")
    assert desk.on("textDocument/definition", FILE)["uri"] == link["target"]
    assert desk.ask("textDocument/definition", position=desk.position(len(desk.texts["notes.md"]))) is None


def test_a_relative_link_leads_beside_its_page(desk: Desk, told: Told) -> None:
    desk.open("![x](data.csv) [y](../../turn_1/files/plan%20(final).md)", "turn_1/files/page.md")
    targets = [link["target"] for link in desk.ask("textDocument/documentLink", "turn_1/files/page.md")]
    root = f"file://{told.workspace.out_dir}/turn_1/files"
    assert targets == [f"{root}/data.csv", f"{root}/plan%20%28final%29.md"]


def test_a_file_that_is_no_artifact_is_a_link_too(desk: Desk, told: Told) -> None:
    told.workspace.write("logs/out.log", "x")
    [link] = desk.open("see fi:logs/out.log").ask("textDocument/documentLink")
    assert link["target"].endswith("/out/logs/out.log")


def test_what_is_no_reference_of_ours_is_refused_in_order(desk: Desk) -> None:
    link = {"range": desk.open("").range(0, 0), "data": {"path": "../../etc/passwd"}}
    assert desk.client.refused("documentLink/resolve", link).kind == "unsafe_path"
    assert desk.client.call("documentLink/resolve", {**link, "data": ["x"]})["data"] == ["x"]


def test_a_web_page_is_shown_where_there_are_no_links(sit: Callable[..., Desk], told: Told) -> None:
    desk = sit(capabilities={"window": {"showDocument": {"support": True}}})
    assert "documentLinkProvider" not in desk.client.welcome
    assert desk.open(f"[[S:{told.good}]]").on("textDocument/definition", "[[S:") is None
    shown = desk.client.event("window/showDocument")
    assert (shown["uri"], shown["external"]) == ("https://example.org/a?b=1", True)


@pytest.mark.rule("editor.links-lead-to-pages-and-files")
@pytest.mark.parametrize("has_links", [True, False])
def test_an_absent_file_is_brought_by_the_click(workspace: Workspace, has_links: bool) -> None:
    story(workspace)
    file = workspace.out_dir / FILE
    file.unlink()
    workspace.connect("runtime", ceiling=CEILING).call("workspace/sync")
    with desk_of(workspace, capabilities=None if has_links else {}) as desk:
        desk.open(f"😀 {FILE}")
        if has_links:
            [link] = desk.ask("textDocument/documentLink")
            assert "target" not in link
            assert desk.on("textDocument/definition", FILE) is None
            assert not file.exists()
            assert desk.client.call("documentLink/resolve", link)["target"] == f"file://{file}"
        else:
            assert desk.on("textDocument/definition", FILE)["uri"] == f"file://{file}"
        assert file.read_text() == "# One"
