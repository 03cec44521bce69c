"""What stands in the .pptx that was drawn."""

from __future__ import annotations

import base64
import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from artifact_render import slides
from artifact_render.documents import SourceLine
from artifact_render.outline import slides_of
from artifact_render.shelf import Shelf
from artifact_render.slides import draw
from PIL import Image
from pptx import Presentation
from pptx.enum.shapes import MSO_SHAPE_TYPE

from tests.clients.rendering.looking import BLUE, RED, picture, pixels

MakeShelf = Callable[..., Shelf]
Drawn = Callable[..., tuple[Any, list[str]]]


@pytest.fixture
def drawn(tmp_path: Path, make_shelf: MakeShelf) -> Drawn:
    def made(html: str, sources: tuple[SourceLine, ...] = (), **files: tuple[bytes, str]) -> tuple[Any, list[str]]:
        shelf = make_shelf({name.replace("_", ".", 1): file for name, file in files.items()})
        remarks = draw(slides_of(html), shelf, sources, tmp_path / "d.pptx", title="T\0itle")
        return Presentation(str(tmp_path / "d.pptx")), remarks

    return made


def texts(deck: Any) -> list[list[str]]:
    return [[shape.text_frame.text for shape in slide.shapes if shape.has_text_frame] for slide in deck.slides]


def test_pictures_of_every_kind_are_drawn_whole_and_beside_the_text(
    drawn: Drawn,
) -> None:
    data = base64.b64encode(picture(BLUE, size=(10, 10))).decode()
    html = "<h1>A</h1><p>text</p><img src=a.png alt='an \x07alt'><img src=b.webp><img src=c.jpg>"
    html += f"<img src='data:image/png;base64,{data}'>"
    deck, remarks = drawn(
        html,
        a_png=(picture(RED, size=(400, 100)), "image/png"),
        b_webp=(picture(BLUE, kind="WEBP"), "image/webp"),
        c_jpg=(picture(BLUE, kind="JPEG"), "image/jpeg"),
    )
    assert remarks == []
    shapes = [shape for slide in deck.slides for shape in slide.shapes if shape.shape_type == MSO_SHAPE_TYPE.PICTURE]
    assert [shape.image.content_type for shape in shapes] == ["image/png", "image/png", "image/jpeg", "image/png"]
    assert pixels(shapes[0].image.blob, RED) == 40_000
    assert round(shapes[0].width / shapes[0].height, 2) == 4
    assert shapes[0]._element.nvPicPr.cNvPr.get("descr") == "an alt"
    for shape in shapes:
        assert 0 <= shape.left < shape.left + shape.width <= deck.slide_width
        assert 0 <= shape.top < shape.top + shape.height <= deck.slide_height
    assert texts(deck) == [["A", "text"], ["A (continued)"]]


def test_holes_keep_their_place_and_what_cannot_be_drawn_is_said(drawn: Drawn, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("artifact_render.pictures.PICTURE_PIXELS", 10_000)
    bomb = io.BytesIO()
    Image.new("1", (20_000, 20_000)).save(bomb, "PNG")
    deck, remarks = drawn(
        "<img src=gone.png alt=gone><hr><img src=a.svg><hr><img src=b.png><hr><img src=c.png><hr><img src=d.png>"
        f"<hr><img src='data:image/png;base64,{'!' * 5000}'>",
        a_svg=(b"<svg/>", "image/svg+xml"),
        b_png=(picture(RED)[:60], "image/png"),
        c_png=(bomb.getvalue(), "image/png"),
        d_png=(picture(RED, size=(101, 100)), "image/png"),
    )
    assert [shape for shape in texts(deck) if "[gone]" in shape]
    assert [remark.partition(" ")[0] for remark in remarks] == [
        "a.svg", "b.png", "c.png", "d.png", f"data:image/png;base64,{'!' * 98}",
    ]  # fmt: skip


def test_what_is_too_long_goes_on_the_next_slide_and_nothing_is_lost(
    drawn: Drawn,
) -> None:
    words = [f"word{number}" for number in range(3000)]
    code = "x\n" * 50
    rows = "".join(f"<tr><td>r{number}" for number in range(40))
    deck, _ = drawn(f"<h2>L</h2><p>{' '.join(words)}</p><table><tr><th>head{rows}</table><pre>{code}</pre>")
    said = " ".join(text for slide in texts(deck) for text in slide)
    assert all(word in said.split() for word in words)
    tables = [shape.table for slide in deck.slides for shape in slide.shapes if shape.has_table]
    cells = [row.cells[0].text for table in tables for row in table.rows]
    assert [cell for cell in cells if cell != "head"] == [f"r{number}" for number in range(40)]
    assert cells.count("head") == len(tables) > 1
    assert said.count("x") - said.count("ex") >= 50


def test_very_many_slides_are_cut_and_said(drawn: Drawn, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(slides, "SLIDES", 3)
    deck, remarks = drawn(
        "".join(f"<h1>{number}</h1>" for number in range(9)), (SourceLine(1, "A", "w", "https://e.org"),)
    )
    assert [slide[0] for slide in texts(deck)] == ["0", "1", "2", "Sources"]
    assert remarks == ["only the first 3 of 9 slides were drawn"]
    assert deck.core_properties.title == "Title"


def test_only_links_that_lead_out_are_links(drawn: Drawn) -> None:
    links = {"1": "https://e.org/a b", "2": "javascript:x", "3": "x.md", "4": "file:///x"}
    deck, _ = drawn("".join(f"<a href='{url}'>{text}</a>" for text, url in links.items()))
    frames = [shape.text_frame for slide in deck.slides for shape in slide.shapes if shape.has_text_frame]
    runs = [run for frame in frames for paragraph in frame.paragraphs for run in paragraph.runs]
    found = [(run.text, run.hyperlink.address) for run in runs]
    assert found == [("1", "https://e.org/a b"), ("2", None), ("3", None), ("4", None)]
