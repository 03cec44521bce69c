"""Pages, style sheets and Markdown, and the files that they are found to ask for."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator
from time import thread_time

from sidecar.core import limits
from sidecar.core.asset_reference import PATHS, SHOWN_CHARS, Wanted
from sidecar.core.assets import Document, Room, plan
from sidecar.core.paths import FilePath
from tests.fuzzing.draw import Draw
from tests.fuzzing.target import Target, worded

MIMES = ("text/html", "text/css", "text/markdown", "", "image/svg+xml", "text/plain")
PLACES = (FilePath("turn_1", "files", "site/index.html"), FilePath("", "", "logs/a.md"), None)
PLAIN_SECONDS = 4.0
LIMITS = {"asset_references", "asset_markdown_bytes", "asset_css_bytes", "asset_css_rule_bytes", "asset_seconds"}


class Patience:
    """Says stop at the n-th time it is asked."""

    def __init__(self, times: int) -> None:
        self.left = times

    def __call__(self) -> bool:
        self.left -= 1
        return self.left < 0


def check(data: bytes) -> None:
    draw = Draw(data)
    mime, path = draw.pick(MIMES), draw.pick(PLACES)
    small, patience = draw.flag(), draw.number(255)
    text = draw.text()
    document = Document(text, mime, path, "turn_2")
    room = Room()
    found = plan(document, room)
    assert not room.exceeded
    assert room.references == limits.ASSET_REFERENCES - len(found.wanted)
    assert len({(one.spelled, one.how, one.asked) for one in found.wanted}) <= len(found.wanted)
    for one in found.wanted:
        asked_for(one, text)
    assert found.numbers == found.numbers.normal()
    hurried = Room(references=2, markdown=60, css=60) if small else Room()
    asked = Patience(patience)
    some = plan(document, hurried, stop=asked)
    assert set(hurried.exceeded) <= LIMITS
    assert min(hurried.references, hurried.markdown, hurried.css) >= 0
    assert ("asset_seconds" in hurried.exceeded) == (asked.left < 0)
    if not small:
        assert some.wanted == found.wanted[: len(some.wanted)] or "asset_seconds" not in hurried.exceeded
        assert some == found or "asset_seconds" in hurried.exceeded


def plainly(data: bytes) -> object:
    """For some seconds at most, as the product does: the parser of Markdown takes the square for some quotations."""
    draw = Draw(data)
    mime, path = draw.pick(MIMES), draw.pick(PLACES)
    until = thread_time() + PLAIN_SECONDS
    return plan(Document(draw.text(), mime, path, "turn_2"), Room(), stop=lambda: thread_time() > until)


def asked_for(one: Wanted, text: str) -> None:
    """A file that is asked for is below OUT_DIR, can be spoken of, and stands in the text."""
    assert 0 < len(one.paths) <= PATHS or one.refused in ("unsafe_path", "bad_path")
    assert (one.usual is None) == (one.refused is not None)
    assert one.usual is None or one.usual in one.paths
    assert len(one.spelled) <= SHOWN_CHARS
    one.asked.encode()
    for path in one.paths:
        assert path.logical is not None
        assert posixpath.normpath(f"/out/{path.physical}") == f"/out/{path.physical}"
        path.physical.encode()
    if one.how != "named" and not _ESCAPED.search(text):
        # A paragraph of Markdown is escaped before it is read as HTML, its links and pictures are tags in it, and a
        # style is not read back.
        assert all(word in text or word in "lt gt amp a img" for word in _WORD.findall(one.spelled)), one.spelled


_ESCAPED = re.compile(r"[&\\]")
_WORD = re.compile(r"[A-Za-z0-9]+")


def seeds() -> Iterator[bytes]:
    texts = (
        '<!doctype html><img src="a.png" srcset="b.png 1x, c.png 2x"><link rel=stylesheet href="../s.css">'
        '<style>a{b:url(e.png)}@import "f.css";</style><p style="c:url(\'g.png\')"><a href=d>turn_1/files/h.png',
        '@import url("a.css") supports(x);@namespace "n";.a{src:image-set("b.png" 1x);background:URL(c%20d.png)}\\62',
        "![a](b.png 't') [c](d%20e.md) <img src=x.png>\n\n[r]: f.pdf\n\n![r] `turn_1/files/g.png` <style>a{b:url(c)}",
        "# T\n\n| a | ![x](y.png) |\n|-|-|\n\n> ![q](fi:turn_1.files/z.png)\n\n```\nturn_2/files/k l.pdf\n```\n[[S:3]]",
        '<svg><image xlink:href="a.svg"/><use href="#x"/></svg><noscript><img src=n.png></noscript><object data=o.pdf>',
        "See (turn_1/files/a b.pdf), 'fi:turn_1.user.attachments/c.xlsx'; \"./turn_1/files/d.tar.gz\".",
        '<img src="[[S:3]]"><img src="so:sources_pool[1,2]"><img src="//x/y"><img src="http://a/b"><img src="/etc/x">',
        '<img src="../../../etc/passwd"><img src="turn_1/files/../../x"><img src="a&#46;png"><base href="z">',
    )  # fmt: skip
    for number, text in enumerate(texts):
        for mime in (number % 3, 3):
            yield text.encode() + bytes([200, number % 2, number % 3, mime])


TARGET = Target(
    "assets",
    "whatever a page says, its files are below OUT_DIR and stand in the page, limits are met and told, and reading"
    " stops when it is to",
    check,
    worded(
        "<img src= srcset= <a href= <link rel=stylesheet <style> </style> style= url( ) @import @namespace image-set("
        " <noscript> </noscript> <script> </script> <svg> <object data= <base xlink:href poster= <!-- -->"
        " ![ ]( ) [a]: < > ` ``` ~~~ # | > - 1. turn_1/files/ turn_1/attachments/ fi:turn_1.files/ ../ ./ / // http://"
        " data: ;base64, %20 %2e %2f %00 # ? & &amp; &#46; \\ \" ' ( ) 1x , 2x a.png b.css [[S:1]] so:sources_pool[",
        "\n\n", "\n", " ", "\t", "\r\n", "    ", "\u2028",
    ),
    seeds,
    longest=900,
    plainly=plainly,
)  # fmt: skip
