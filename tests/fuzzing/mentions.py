"""The paths, links and citations that are found in any text, with their places."""

from __future__ import annotations

import posixpath
from collections.abc import Iterator

from sidecar.core.paths import FilePath, parse
from sidecar.core.references import Reference, chosen, is_older_spelling, references, respelled
from tests.fuzzing.draw import Draw
from tests.fuzzing.target import Target, worded

MIMES = ("text/markdown", "text/html", "application/json", "text/plain", "")
FOLDERS = ("turn_1/files/a", "", None)
OTHER = FilePath("turn_9", "files", "new folder/b c.md")


def check(data: bytes) -> None:
    draw = Draw(data)
    mime, folder = draw.pick(MIMES), draw.pick(FOLDERS)
    text = draw.text()
    at = 0
    for one in references(text, mime, folder=folder):
        assert at <= one.start < one.end <= len(text)
        at = one.end
        assert one.written == text[one.start : one.end]
        if one.kind == "citation":
            assert one.numbers is not None
        elif one.kind == "unsafe":
            assert not one.readings
        else:
            leads(one, text, folder)


def plainly(data: bytes) -> object:
    draw = Draw(data)
    mime, folder = draw.pick(MIMES), draw.pick(FOLDERS)
    return references(draw.text(), mime, folder=folder)


def leads(one: Reference, text: str, folder: str | None) -> None:
    """Each reading of it stands in the text and stays below OUT_DIR, and it can be written to mean another file."""
    assert one.readings
    for written, path in one.readings:
        assert text.startswith(written, one.start)
        physical = path.physical if isinstance(path, FilePath) else "x"
        assert posixpath.normpath(f"/out/{physical}") == f"/out/{physical}"
        reference, meant = chosen(one, lambda other, path=path: other == path)
        assert meant == path
        assert text[reference.start : reference.end] == reference.written
        if isinstance(path, FilePath):
            is_older_spelling(reference, path)
            again = respelled(reference, OTHER, folder, instead_of=path)
            if one.form == "logical":
                assert parse(again.partition("?")[0].partition("#")[0]) == OTHER
            else:
                assert "new%20folder" in again or "new folder" in again
    assert chosen(one, lambda _: False) == (one, one.usual)
    assert one.furthest >= one.end


def seeds() -> Iterator[bytes]:
    for number, text in enumerate((
        "See fi:turn_1.files/a/b.md, `turn_1/files/my report.pdf` and (turn_2/attachments/x (1).png). [[S:1-3]]",
        "[a](b.md#top) ![p](<c d.png>) [r]: ../files/e.md 'x'\n\nso:sources_pool[1,3] tc:turn_1.c1.result",
        '<a href="b%20c.html?x=1">x</a><img src=\'../../x.png\'><sup class="cite" data-sids="2">2</sup> [[S:4]]',
        '{"path": "fi:turn_1.user.attachments/a.pdf", "text": "./turn_1/files/b.md: [[S:1]]"}',
        "fi:turn_1.attachments/old.pdf ar:turn_1.user.prompt su:turn_1.conv.range.summary fi:turn_1.code.c1.",
    )):  # fmt: skip
        yield text.encode() + bytes([number % 3, number % 4])


TARGET = Target(
    "mentions",
    "references stand in order at their places, none over another; every reading stays below OUT_DIR, and each can be"
    " written anew to mean another file",
    check,
    worded(
        "fi: ar: so:sources_pool[ ] su: tc: turn_1 .files/ .attachments/ .user.attachments/ turn_1/files/"
        " turn_1/attachments/ ./ ../ [ ]( ) ![ ]: < > ` ``` ~~~ \" ' ( ) . , ; : ! ? # %20 %2e%2e &amp; <a href="
        ' <img src= srcset= <sup class="cite" data-sids= <!-- --> <script> </script> [[S:1-3]] .md .user.prompt',
        "\n\n", "\n", " ", "\\", "“", "”", "\u2028", "[[S:",
    ),
    seeds,
    longest=600,
    plainly=plainly,
)  # fmt: skip
