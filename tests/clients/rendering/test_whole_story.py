"""A page over the door, with a real daemon, a real store and a real browser."""

from __future__ import annotations

import io
from collections.abc import Callable
from pathlib import Path

import pytest
from pptx import Presentation
from pptx.enum.shapes import MSO_SHAPE_TYPE

from tests.clients.rendering.looking import BLUE, GREEN, RED, links, pages, pixels, require, words
from tests.clients.rendering.story import CHART, HOLE, LOGO, NOBODY, PAGE, PHOTO, Story
from tests.daemon_process import Workspace, eventually
from tests.radosgw import Radosgw

NOTICES = {"tool_call_error.missing_assets": [HOLE], "tool_call_warning.missing_sources": [NOBODY]}


@pytest.fixture(params=["folder", "s3"])
def story(request: pytest.FixtureRequest, tmp_path: Path, make_workspace: Callable[..., Workspace]) -> Story:
    """The third turn has begun; OUT_DIR is empty and the pictures are only in the store."""
    settings = {"store": str(tmp_path / "hosted")}
    if request.param == "s3":
        s3: Radosgw = request.getfixturevalue("s3")
        settings = {"store": f"s3://{s3.make_bucket()}/some/prefix", "store_endpoint_url": s3.http}
    told = Story(make_workspace(settings=settings).start())
    told.first_turns()
    told.leave_it_to_the_store()
    told.third_turn()
    return told


def noticed(answer: dict[str, list[dict[str, list[object]]]]) -> dict[object, object]:
    """What the notices name, by their codes."""
    notices = answer["notices"]
    return {said["code"]: said.get("missing") or said.get("missing_sids") for said in notices}


@pytest.mark.rule("assets.rehosted-before-rendering", "assets.success-even-with-holes")
@pytest.mark.rule("assets.missing-assets-give-a-notice", "assets.unknown-sids-give-a-warning")
@pytest.mark.rule("assets.a-cited-file-is-an-asset")
def test_a_pdf_has_the_pictures_that_are_only_in_the_store_and_tells_of_two_holes(story: Story, tmp_path: Path) -> None:
    require("chromium", "pdftoppm")
    (tmp_path / "page.md").write_text(PAGE)
    ran = story.command("pdf", "page.md", "-o", "turn_3/files/page.pdf", "--json", cwd=tmp_path)
    answer = ran.answer
    assert noticed(answer) == NOTICES
    assert len(answer["notices"]) == 2
    assert [(one["path"], one["reason"]) for one in answer["missing"]] == [(HOLE, "unknown")]
    assert answer["remarks"] == []
    assert [one["path"] for one in answer["lock"]] == [PHOTO, LOGO, CHART]
    assert ran.err.splitlines()[0].startswith("gathering")

    made = story.made(answer)
    assert made.relative_to(story.workspace.out_dir).as_posix() == "turn_3/files/page.pdf"
    drawn = pages(made)[0]
    assert 8000 < pixels(drawn, RED) < 11_000
    assert 8000 < pixels(drawn, BLUE) < 11_000
    assert 1300 < pixels(drawn, GREEN) < 1700
    assert "[S:1] Soup <sells>" in words(made)
    assert "[[S:99]]" in words(made)
    assert links(made).count("https://example.org/a") == 2  # at the citation and in the list
    assert {one for one in links(made) if "example.org" not in one} == set()

    artifact = answer["artifact"]
    assert artifact["sources_used"] == [1, 3]
    assert artifact["mime"] == "application/pdf"
    assert artifact["sid"] == 5
    assert "hosted_uri" not in artifact
    story.runtime.call("turn/end", {"turn_id": "turn_3"})
    eventually(
        lambda: (
            "key"
            in story.runtime.call("artifact/resolve", {"paths": ["turn_3/files/page.pdf"]})["results"][0]["artifact"]
        )
    )


def test_a_page_that_lies_in_the_workspace_is_pictured_from_the_same_inputs_twice(story: Story) -> None:
    require("chromium")
    story.runtime.call("artifact/write", {"path": "page.md", "content": PAGE, "kind": "file"})
    first = story.command("png", "turn_3/files/page.md", "-o", "one.png", "--width", "700", "--json").answer
    again = ("--expect-inputs", first["inputs"])
    second = story.command("png", "fi:turn_3.files/page.md", "-o", "two.png", "--width", "700", "--json", *again).answer
    assert first["lock"] == second["lock"]
    assert [one["path"] for one in first["lock"]] == [PHOTO, LOGO, CHART, "turn_3/files/page.md"]
    assert first["inputs"] == second["inputs"]
    assert story.made(first).read_bytes() == story.made(second).read_bytes()
    for colour in (RED, BLUE):
        assert pixels(story.made(first).read_bytes(), colour) == 120 * 80
    assert pixels(story.made(first).read_bytes(), GREEN) == 40 * 40
    assert noticed(second) == NOTICES

    changed = story.runtime.call("artifact/write", {"path": "page.md", "content": f"{PAGE}\nMore.\n", "kind": "file"})
    assert changed["artifact"]["version"] == 2
    refused = story.command("png", "turn_3/files/page.md", "-o", "three.png", *again)
    assert refused.code == 65
    assert "stale" in refused.err
    assert not (story.workspace.out_dir / "turn_3/files/three.png").exists()


def test_slides_have_the_pictures_the_links_and_the_notes(story: Story) -> None:
    page = f"{PAGE}\nNote: speak slowly.\n\n## Second\n\n- one\n  - two\n\n| a | b |\n|---|---|\n| 1 | **2** |\n"
    answer = story.command("pptx", "-", "-o", "deck.pptx", "--json", text=page).answer
    assert noticed(answer) == NOTICES
    assert answer["remarks"] == []
    deck = Presentation(io.BytesIO(story.made(answer).read_bytes()))
    shapes = [shape for slide in deck.slides for shape in slide.shapes]
    blobs = [shape.image.blob for shape in shapes if shape.shape_type == MSO_SHAPE_TYPE.PICTURE]
    assert [sum(pixels(blob, colour) for blob in blobs) for colour in (RED, BLUE)] == [9600, 9600]
    addresses = {
        run.hyperlink.address
        for shape in shapes
        if shape.has_text_frame
        for paragraph in shape.text_frame.paragraphs
        for run in paragraph.runs
    }
    assert addresses == {None, "https://example.org/a", "https://example.org/b"}
    notes = deck.slides[0].notes_slide.notes_text_frame.text
    assert "speak slowly." in notes
    assert "[S:1] Soup <sells> https://example.org/a" in notes
    titles = [slide.shapes.title.text_frame.text for slide in deck.slides]
    assert titles[0] == "Weekly report"
    assert titles[-1] == "Sources"
    assert "Second" in titles
    tables = [shape.table for shape in shapes if shape.has_table]
    assert [[cell.text for cell in row.cells] for row in tables[0].rows] == [["a", "b"], ["1", "2"]]
    assert any("[nothing]" in shape.text_frame.text for shape in shapes if shape.has_text_frame)
    assert answer["artifact"]["sources_used"] == [1, 3]
