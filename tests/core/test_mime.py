"""The name proposes a kind, the first bytes may veto it, and the host has no say."""

from __future__ import annotations

import mimetypes
import struct
import zlib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sidecar.core.mime import HEAD_BYTES, is_text, mime_of

PNG = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR"
JPEG = b"\xff\xd8\xff\xe0\0\x10JFIF"
PDF = b"%PDF-1.7\n%\xe2\xe3\xcf\xd3\n"
ZIP = b"PK\3\4\x14\0\6\0"
OLE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + b"\0" * 16
OOXML = "application/vnd.openxmlformats-officedocument"


def check(rows: list[tuple[str, bytes, str]]) -> None:
    assert [(name, mime_of(name, head)) for name, head, _ in rows] == [(name, mime) for name, _, mime in rows]


def test_texts_are_known_by_their_extension() -> None:
    check(
        [
            ("turn_1/files/a.txt", b"one", "text/plain"),
            ("a.md", b"# One", "text/markdown"),
            ("a.MD", b"# One", "text/markdown"),
            ("a.csv", b"a,b\n1,2\n", "text/csv"),
            ("a.tsv", b"a\tb\n", "text/tab-separated-values"),
            ("a.log", b"\x1b[31mred\x1b[0m", "text/plain"),
            ("a.py", b"print(1)", "text/x-python"),
            ("a.html", b"<p>", "text/html"),
            ("a.css", b"p{}", "text/css"),
            ("a.js", b"1", "text/javascript"),
            ("a.json", b"{}", "application/json"),
            ("a.jsonl", b"{}\n{}\n", "application/x-ndjson"),
            ("a.ipynb", b"{}", "application/x-ipynb+json"),
            ("a.yaml", b"a: 1", "application/yaml"),
            ("a.yml", b"a: 1", "application/yaml"),
            ("a.toml", b"a = 1", "application/toml"),
            ("a.xml", b"<a/>", "application/xml"),
            ("a.svg", b"<svg/>", "image/svg+xml"),
            ("a.sql", b"select 1", "text/x-sql"),
            ("a.ics", b"BEGIN:VCALENDAR", "text/calendar"),
            ("name with.dots.v2.md", "é".encode(), "text/markdown"),
        ]
    )


def test_binaries_are_known_when_name_and_bytes_agree() -> None:
    check(
        [
            ("a.png", PNG, "image/png"),
            ("a.jpg", JPEG, "image/jpeg"),
            ("a.jpeg", JPEG, "image/jpeg"),
            ("a.gif", b"GIF89a\1\0", "image/gif"),
            ("a.webp", b"RIFF\x24\0\0\0WEBPVP8 ", "image/webp"),
            ("a.tiff", b"II*\0\x08", "image/tiff"),
            ("a.bmp", b"BM\x36\0\0\0\0\0\0\0\x36\0\0\0\x28\0\0\0", "image/bmp"),
            ("a.ico", b"\0\0\1\0\1\0", "image/x-icon"),
            ("a.avif", b"\0\0\0\x1cftypavif", "image/avif"),
            ("a.heic", b"\0\0\0\x1cftypheic", "image/heic"),
            ("a.pdf", PDF, "application/pdf"),
            ("a.pdf", b"\xef\xbb\xbf\r\n" + PDF, "application/pdf"),
            ("a.docx", ZIP, f"{OOXML}.wordprocessingml.document"),
            ("a.xlsx", ZIP, f"{OOXML}.spreadsheetml.sheet"),
            ("a.pptx", ZIP, f"{OOXML}.presentationml.presentation"),
            ("a.odt", ZIP, "application/vnd.oasis.opendocument.text"),
            ("a.xls", OLE, "application/vnd.ms-excel"),
            ("a.zip", b"PK\5\6" + b"\0" * 18, "application/zip"),
            ("a.tar.gz", b"\x1f\x8b\x08\0", "application/gzip"),
            ("a.tar", b"name" + b"\0" * 253 + b"ustar\0", "application/x-tar"),
            ("a.sqlite", b"SQLite format 3\0", "application/vnd.sqlite3"),
            ("a.parquet", b"PAR1\x15\x04", "application/vnd.apache.parquet"),
            ("a.npy", b"\x93NUMPY\1\0", "application/x-npy"),
            ("a.wav", b"RIFF\x24\0\0\0WAVEfmt ", "audio/wav"),
            ("a.mp3", b"ID3\4\0", "audio/mpeg"),
            ("a.mp4", b"\0\0\0\x20ftypisom", "video/mp4"),
            ("a.webm", b"\x1a\x45\xdf\xa3\x9f", "video/webm"),
            ("a.woff2", b"wOF2\0\1\0\0", "font/woff2"),
            ("a.pkl", b"\x80\4\x95\0\0", "application/x-pickle"),
        ]
    )


def test_bytes_veto_what_a_name_claims() -> None:
    check(
        [
            ("fake.png", b"not a picture", "text/plain"),
            ("fake.png", b"<svg onload=x>", "text/plain"),
            ("fake.png", JPEG, "image/jpeg"),
            ("fake.jpg", b"\0\1\2\3", "application/octet-stream"),
            ("fake.pdf", b"<html>", "text/plain"),
            ("fake.docx", b"plain words", "text/plain"),
            ("fake.docx", OLE, "application/x-ole-storage"),
            ("fake.pkl", b"plain words", "text/plain"),
            ("fake.txt", PNG, "image/png"),
            ("fake.md", PDF, "application/pdf"),
            ("fake.csv", ZIP, "application/zip"),
            ("fake.py", b"\x7fELF\2\1\1\0", "application/x-executable"),
            ("fake.svg", PNG, "image/png"),
            ("fake.html", b"<p>\0</p>", "application/octet-stream"),
            ("movie.ts", b"G\x40\0\x10\0\0\xb0", "application/octet-stream"),
        ]
    )


def test_the_unknown_is_text_or_not() -> None:
    check(
        [
            ("Makefile", b"all:\n\ttrue\n", "text/plain"),
            (".env", b"A=1", "text/plain"),
            (".png", b"a hidden file called png", "text/plain"),
            ("a.", b"x", "text/plain"),
            ("a.unheard", "zwölf".encode(), "text/plain"),
            ("a.unheard", b"\xff\xfe\0x", "application/octet-stream"),
            ("a.unheard", "zwölf".encode("latin-1"), "application/octet-stream"),
            ("no_extension", PNG, "image/png"),
            ("turn.md/no_extension", b"\0\1", "application/octet-stream"),
        ]
    )


def test_a_table_in_an_old_charset_is_still_a_table() -> None:
    check([("a.csv", "Größe;Maß\n1;2\n".encode("latin-1"), "text/csv")])


def test_words_that_begin_like_a_signature_are_words() -> None:
    check(
        [
            ("a.md", b"ID3 tags explained", "text/markdown"),
            ("a.md", b"BMW and others were asked for their opinion", "text/markdown"),
            ("a.md", b"PAR1 is how it begins", "text/markdown"),
            ("a.md", b"RIFFS: WEBPages of guitar", "text/markdown"),
            ("a.py", b"HEADER = b'%PDF-1.7'", "text/x-python"),
            ("a.txt", b"true", "text/plain"),
            ("a.txt", b"OTTO and OggS", "text/plain"),
        ]
    )


def test_an_empty_file_is_a_text() -> None:
    check([("a.md", b"", "text/markdown"), ("a.png", b"", "text/plain"), ("a", b"", "text/plain")])


def test_a_full_head_may_end_inside_a_character() -> None:
    head = (b"a" + "é".encode() * HEAD_BYTES)[:HEAD_BYTES]
    assert not is_text(head)
    check([("a", head, "text/plain"), ("a", head[:-2], "application/octet-stream")])


def test_a_real_picture_is_recognised() -> None:
    def part(kind: bytes, body: bytes) -> bytes:
        return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))

    pixel = part(b"IHDR", struct.pack(">IIBBBBB", 1, 1, 8, 0, 0, 0, 0)) + part(b"IDAT", zlib.compress(b"\0\0"))
    check([("dot.png", b"\x89PNG\r\n\x1a\n" + pixel + part(b"IEND", b""), "image/png")])


def test_the_hosts_table_is_not_asked(tmp_path: Path) -> None:
    table = tmp_path / "mime.types"
    table.write_text("application/x-elsewhere md csv png\n", encoding="utf-8")
    try:
        mimetypes.init([str(table)])
        assert mimetypes.guess_type("a.md")[0] == "application/x-elsewhere"
        check([("a.md", b"#", "text/markdown"), ("a.png", PNG, "image/png")])
    finally:
        mimetypes.init()


@pytest.mark.parametrize(
    ("data", "answer"),
    [
        (b"", True),
        (b"plain", True),
        ("żółw 🐢".encode(), True),
        (b"a\0b", False),
        (b"\xff\xfe", False),
        ("é".encode()[:1], False),
        (b"\xed\xa0\x80", False),
    ],
)
def test_text_is_utf8_without_a_nul(data: bytes, answer: bool) -> None:
    assert is_text(data) is answer


@given(st.text(max_size=40), st.binary(max_size=300))
def test_every_name_and_every_head_have_a_mime(name: str, head: bytes) -> None:
    assert all(mime_of(name, head).partition("/"))


@given(st.binary(max_size=300))
def test_no_text_becomes_active_content_by_its_bytes_alone(head: bytes) -> None:
    assert mime_of("no_extension", head) not in {"text/html", "image/svg+xml", "text/javascript"}
