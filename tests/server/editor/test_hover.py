"""Cards say what is known, in words of ours; what comes from others is never markup."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Callable

import pytest
from markdown_it import MarkdownIt

from tests.daemon_process import Workspace
from tests.server.editor.conftest import Told
from tests.server.editor.desk import CEILING, FULL, Desk, desk_of, story

FILE = "turn_1/files/report.md"
SHOWS_PICTURES = {**FULL, "general": {"markdown": {"parser": "marked"}}}


def card(desk: Desk, word: str, name: str = "notes.md") -> str:
    found = desk.on("textDocument/hover", word, name)
    return "" if found is None else found["contents"]["value"]


def png(side: int = 1, noise: bytes = b"") -> bytes:
    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    head = struct.pack(">IIBBBBB", side, side, 8, 0, 0, 0, 0)
    rows = zlib.compress(b"".join(b"\0" + b"\0" * side for _ in range(side)))
    parts = chunk(b"IHDR", head) + chunk(b"IDAT", rows) + (chunk(b"teXt", noise) if noise else b"")
    return b"\x89PNG\r\n\x1a\n" + parts + chunk(b"IEND", b"")


@pytest.mark.rule("editor.hover-shows-a-card", "editor.positions-in-the-agreed-encoding")
def test_the_card_of_an_artifact(desk: Desk) -> None:
    desk.open(f"é😀 {FILE} 😀")
    found = desk.on("textDocument/hover", FILE)
    assert desk.slice(found["range"]) == FILE
    lines = found["contents"]["value"].splitlines()
    assert lines[0] == "**report.md** · file · text/markdown · 5 bytes"
    assert "`fi:turn_1.files/report.md`" in lines
    assert lines[4].startswith("- turn `turn_1` · tool `react.write` · call `")
    assert lines[5].startswith("- 1 version, the latest of 20")
    assert lines[6] == "- external · on disk"
    assert lines[7].startswith("- source `[[S:")


@pytest.mark.rule("editor.words-of-others-are-no-markup")
def test_the_card_of_a_source_shows_titles_as_words(desk: Desk, told: Told) -> None:
    desk.open(f"😀[[S:{told.good},{told.trap},99]]")
    shown = card(desk, "[[S:")
    page = MarkdownIt("commonmark").enable("table").render(shown)
    assert "A *bold* [title](command:x)" in page
    assert "What is &lt;b&gt;said&lt;/b&gt;" in page
    assert page.count("<a ") == 1
    assert '<a href="https://example.org/a?b=1">' in page
    assert "<code>command:workbench.action.quit</code>" in page
    assert "99" not in shown


@pytest.mark.rule("editor.shows-only-what-the-role-may-see")
def test_what_is_internal_has_no_card(desk: Desk) -> None:
    desk.open("turn_1/files/secret.md turn_1/files/nothing.md [[S:99]] turn_1/files/../x word")
    for word in ("secret", "nothing", "[[S:99]]", "../x", "word"):
        assert card(desk, word) == ""


def test_a_client_without_markdown_gets_plain_words(sit: Callable[..., Desk], told: Told) -> None:
    desk = sit(capabilities={"textDocument": {"hover": {"contentFormat": ["plaintext"]}}})
    desk.open(f"[[S:{told.good}]]")
    contents = desk.on("textDocument/hover", "[[S:")["contents"]
    assert contents["kind"] == "plaintext"
    assert contents["value"].startswith(f"S:{told.good} · A *bold* [title](command:x)\n\nhttps://example.org/a?b=1")


def test_what_was_said_has_a_card_too(desk: Desk, told: Told) -> None:
    shown = card(desk.open("so:sources_pool[1] x"), "sources_pool")
    assert shown.startswith("**S:1 · ")


def test_a_picture_is_shown_where_the_client_shows_pictures(workspace: Workspace) -> None:
    story(workspace)
    runtime = workspace.connect("runtime", ceiling=CEILING)
    workspace.write("turn_2/files/small.png", png())
    workspace.write("turn_2/files/large.png", png(noise=bytes(200_000)))
    runtime.call("workspace/sync")
    text = "turn_2/files/small.png turn_2/files/large.png"
    with desk_of(workspace, capabilities=SHOWS_PICTURES) as desk:
        desk.open(text)
        assert "![](data:image/png;base64,iVBOR" in card(desk, "small.png")
        assert f"![](file://{workspace.out_dir}/turn_2/files/large.png|height=160)" in card(desk, "large.png")
    with desk_of(workspace) as desk:
        assert "![" not in card(desk.open(text), "small.png")


def test_versions_and_absence_are_told(workspace: Workspace) -> None:
    story(workspace)
    runtime = workspace.connect("runtime", ceiling=CEILING)
    workspace.write("turn_2/files/report.md", "# Three")
    runtime.call("workspace/sync")
    (workspace.out_dir / "turn_2/files/report.md").unlink()
    runtime.call("workspace/sync")
    with desk_of(workspace) as desk:
        shown = card(desk.open("turn_2/files/report.md"), "report.md")
    assert "- 2 versions, the latest of " in shown
    assert "- external · not on disk; it can be brought back" in shown


@pytest.mark.rule("editor.words-of-others-are-no-markup")
@pytest.mark.parametrize(
    "title",
    [
        "![x](https://e.org/spy.png)",
        "<img src=x>",
        "`a` **b** __c__ ~~d~~",
        "# x",
        "1. x",
        "- x",
        "a\n\n[b](command:c)",
        "[b]: c",
        "&lt;",
        "a|b",
        "\\[x](command:y)",
        "> x",
        "===",
        "\u202eabc",
    ],
)
def test_no_title_makes_anything_but_words(told: Told, desk: Desk, title: str) -> None:
    row = {"url": f"https://e.org/{desk.encoding}/{len(title)}{title[:1]!r}", "title": title, "text": f"{title} said"}
    runtime = told.workspace.connect("runtime", ceiling=CEILING)
    [merged] = runtime.call("sources/merge", {"rows": [row]})["rows"]
    page = (
        MarkdownIt("commonmark")
        .enable(["table", "strikethrough"])
        .render(card(desk.open(f"[[S:{merged['sid']}]]"), "[[S:"))
    )
    assert not any(tag in page for tag in ("<img", "<em", "<code", "<s>", "<h1", "<h2", "<li", "<table"))
    assert page.count("<a ") == page.count("<strong>") == page.count("<blockquote>") == 1
    assert "\u202e" not in page
    assert len(page.splitlines()) == 5
