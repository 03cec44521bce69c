"""What a browser is made to show, and what no page makes it do."""

from __future__ import annotations

import socket
from collections.abc import Callable
from pathlib import Path

import pytest
from artifact_render.browser import browsing
from artifact_render.documents import SourceLine, sources_section, whole
from artifact_render.shelf import Shelf
from artifact_render.showing import Showing

from tests.clients.rendering.looking import BLUE, GREEN, RED, links, picture, pixels, require, words

WHOLE = 120 * 80
PNG = "image/png"

MakeShelf = Callable[..., Shelf]
Pictured = Callable[..., bytes]


@pytest.mark.parametrize(
    "reference",
    [
        '<img src="turn_1/files/a b.png">',
        '<img src="turn_1/files/a%20b.png?v=2#x">',
        '<img src="./turn_1/files/a%20b.png">',
        '<img src="../turn_1/files/a%20b.png">',
        '<img src="[[S:1]]">',
        '<img src="[[S: 1, 9]]">',
        '<img srcset="turn_1/files/a%20b.png 1x">',
        '<img loading=lazy src="turn_1/files/a%20b.png" style="display:block;margin-top:3000px">',
        '<div style="width:120px;height:80px;background:url(turn_1/files/a%20b.png)"></div>',
        '<link rel=stylesheet href="turn_1/files/s.css"><div class=c></div>',
        '<link rel=stylesheet href="turn_1/files/t.css"><div class=c></div>',
        '<iframe src="turn_1/files/in.html" width=200 height=200></iframe>',
    ],
)
def test_every_kind_of_reference_shows_the_picture(make_shelf: MakeShelf, pictured: Pictured, reference: str) -> None:
    box = ".c{width:120px;height:80px;background:url(%s)}"
    shelf = make_shelf(
        {
            "turn_1/files/a b.png": (picture(RED), PNG),
            "turn_1/files/s.css": ((box % "a%20b.png").encode(), "text/css"),
            "turn_1/files/t.css": ((box % "turn_1/files/a%20b.png").encode(), "text/css"),
            "turn_1/files/in.html": (b"<img src='a b.png'>", "text/html"),
        },
        cited={"[[S:1]]": "turn_1/files/a b.png", "[[S: 1, 9]]": "turn_1/files/a b.png"},
    )
    assert pixels(pictured(shelf, whole(reference, "t")), RED) == WHOLE


@pytest.mark.parametrize(
    "attempt",
    [
        "<script>document.body.style.background='rgb(201,31,57)'</script>",
        "<img src=x onerror=\"document.body.style.background='rgb(201,31,57)'\">",
        "<svg onload=\"document.body.style.background='rgb(201,31,57)'\"></svg>",
        "<iframe srcdoc=\"<script>parent.document.body.style.background='rgb(201,31,57)'</script>\"></iframe>",
        '<iframe src="turn_1/files/in.html"></iframe>',
        '<meta http-equiv="refresh" content="0;url=turn_1/files/in.html">',
        '<meta http-equiv="refresh" content="0"><img name="images"><form name="body"><input name="querySelectorAll">',
        "<!-- <textarea> unclosed",
    ],
)
def test_no_page_runs_a_script_or_leaves(make_shelf: MakeShelf, pictured: Pictured, attempt: str) -> None:
    paint = "<script>for (const w of [window, parent]) w.document.body.style.background='rgb(201,31,57)'</script>"
    blank = f"{paint}<body style='background:rgb(201,31,57)'>" if "refresh" in attempt else paint
    shelf = make_shelf({"g.png": (picture(GREEN), PNG), "turn_1/files/in.html": (blank.encode(), "text/html")})
    drawn = pictured(shelf, whole(f'<img src="g.png">{attempt}', "t"), sources_section(LINES))
    assert pixels(drawn, RED) == 0
    assert pixels(drawn, GREEN) == WHOLE


def test_nothing_is_fetched_from_elsewhere_and_no_file_of_this_machine_is_shown(
    make_shelf: MakeShelf, pictured: Pictured, tmp_path: Path
) -> None:
    (tmp_path / "red.png").write_bytes(picture(RED))
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.setblocking(False)
        port = listener.getsockname()[1]
        places = [f"http://127.0.0.1:{port}/x", f"http://localhost:{port}/x", f"ws://127.0.0.1:{port}/x"]
        places.append((tmp_path / "red.png").as_uri())
        tags = "".join(
            f'<img src="{place}"><link rel=preconnect href="{place}"><link rel=prefetch href="{place}">'
            f'<link rel=stylesheet href="{place}"><iframe src="{place}"></iframe><object data="{place}"></object>'
            f'<video src="{place}" poster="{place}" autoplay></video><style>@import "{place}"; @font-face'
            f"{{font-family:f;src:url({place})}} body{{font-family:f;background:url({place})}}</style>"
            f'<link rel=dns-prefetch href="{place}"><link rel=preload as=image href="{place}"><embed src="{place}">'
            for place in places
        )
        base = f'<base href="http://127.0.0.1:{port}/">'
        shelf = make_shelf({"g.png": (picture(GREEN), PNG)})
        drawn = pictured(shelf, f'<!doctype html><head>{base}</head><body>{tags}<img src="/g.png">')
        assert pixels(drawn, RED) == 0
        with pytest.raises(BlockingIOError):
            listener.accept()


def test_links_lead_to_the_list_of_sources_or_out_of_the_document_or_nowhere(
    make_shelf: MakeShelf, tmp_path: Path
) -> None:
    require("chromium", "pdftotext", "pdfinfo")
    shelf = make_shelf({"turn_1/files/a.png": (picture(RED), PNG), "turn_1/files/b.png": (picture(BLUE), PNG)})
    html = whole(
        '<a href="turn_1/files/a.png">listed</a> <a href="turn_1/files/b.png">unlisted</a> <a href="gone">gone</a> '
        '<a href="file:///etc/passwd">file</a> <a href="javascript:alert(1)">js</a> <a href="https://e.org/x">out</a> '
        '<svg width=50 height=20><a href="https://e.org/y"><text y="15">svg</text></a></svg> <a href="#here">in</a>',
        "A & B",
    )
    with browsing(tmp_path, seconds=30) as tools:
        showing = Showing(tools, shelf, [1])
        showing.show(html, sources_section(LINES), width=700, scale=1)
        made = tmp_path / "made.pdf"
        made.write_bytes(showing.pdf())
    assert sorted(set(links(made))) == ["https://e.org/a?x=1&y=2", "https://e.org/x", "https://e.org/y"]
    assert b"page.invalid" not in made.read_bytes()
    assert "[S:2] Two & <more> https://e.org/a?x=1&y=2" in words(made)
    assert "[S:1] a.png fi:turn_1.files/a.png" in words(made)


def test_a_page_that_is_too_tall_is_cut_and_says_so(make_shelf: MakeShelf, tmp_path: Path) -> None:
    require("chromium")
    with browsing(tmp_path, seconds=30) as tools:
        showing = Showing(tools, make_shelf({}))
        showing.show('<div style="height:99999px;width:1px"></div>', "", width=100, scale=1)
        showing.png(width=100, scale=1)
        assert len(showing.remarks) == 1
        assert "ends after 16000 of" in showing.remarks[0]


LINES = (
    SourceLine(1, "a.png", "fi:turn_1.files/a.png", None),
    SourceLine(2, "Two & <more>", "https://e.org/a?x=1&y=2", "https://e.org/a?x=1&y=2"),
)
