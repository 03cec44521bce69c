"""What kind of file this is: the name proposes, the first bytes may veto.

The table is our own, so that the same file is citable on every host (spec section 5). A name that claims a picture over
bytes that are text is not believed, and no claim is taken from inside a file that could choose to be dangerous: text
under a false name is plain text, never HTML or SVG.
"""

from __future__ import annotations

import codecs
import re

HEAD_BYTES = 4096
TEXT = "text/plain"
BINARY = "application/octet-stream"


def mime_of(path: str, head: bytes) -> str:
    """The mime of a file from its path and its first bytes, at most `HEAD_BYTES` of them.

    Text of no known extension is `text/plain`, anything else unknown `application/octet-stream`.
    """
    extension = _extension(path)
    claimed = _TEXTS.get(extension)
    if claimed is not None and _may_be_text(head):
        return claimed
    claimed = _BINARIES.get(extension)
    if claimed is not None and _agrees(claimed, head):
        return claimed
    return _sniffed(head)


def mime_by_name(path: str) -> str:
    """What the name alone claims, for a file whose bytes are not at hand."""
    extension = _extension(path)
    return _TEXTS.get(extension) or _BINARIES.get(extension) or BINARY


def is_textual(mime: str) -> bool:
    """Whether contents of this type are text by their name, when nobody has looked at the bytes."""
    kind = mime.partition(";")[0].strip().lower()
    return kind.startswith("text/") or kind.endswith(("+json", "+xml")) or kind in _TEXTUAL


def is_packed(mime: str) -> bool:
    """Whether content of this type travels as base64: pictures that are no text, and PDF."""
    return (mime.startswith("image/") and mime != "image/svg+xml") or mime == "application/pdf"


def is_text(data: bytes) -> bool:
    """Whether these are the bytes of a text: UTF-8 without a NUL (spec section 8)."""
    if b"\0" in data:
        return False
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True


def _extension(path: str) -> str:
    name = path[path.rfind("/") + 1 :]
    stem, dot, extension = name.rpartition(".")
    return extension.lower() if dot and stem else ""


def _may_be_text(head: bytes) -> bool:
    """Looser than `is_text`: a CSV in an old 8-bit charset is still a CSV, though nobody reads it as text."""
    return len(head.translate(None, _CONTROLS)) == len(head) and _signature(head) is None


def _agrees(claimed: str, head: bytes) -> bool:
    wanted = _CONTAINERS.get(claimed, claimed)
    if wanted in _SIGNED:
        return _signature(head) == wanted
    # Formats without a signature we know are believed, unless the bytes say that they are text or something else.
    return not is_text_head(head) and _signature(head) is None


def _sniffed(head: bytes) -> str:
    return _signature(head) or (TEXT if is_text_head(head) else BINARY)


def _signature(head: bytes) -> str | None:
    found = _SIGNED_HEAD.match(head)
    return None if found is None else _SIGNATURES[(found.lastindex or 0) - 1][0]


def is_text_head(head: bytes) -> bool:
    """The same of the first `HEAD_BYTES` of a file, or of all of a shorter one."""
    if b"\0" in head:
        return False
    try:
        # A full head may end inside a character; a shorter one is the whole file and must not.
        codecs.getincrementaldecoder("utf-8")().decode(head, len(head) < HEAD_BYTES)
    except UnicodeDecodeError:
        return False
    return True


# Bytes that no text in any 8-bit charset holds: controls other than \b \t \n \v \f \r and escape, which logs have.
_CONTROLS = bytes({*range(0x20)} - {*b"\b\t\n\v\f\r\x1b"})


def _starts(*prefixes: bytes) -> bytes:
    return b"|".join(map(re.escape, prefixes))


def _riff(form: bytes) -> bytes:
    return b"RIFF.{4}" + form


def _boxes(*brands: bytes) -> bytes:
    return rb"\x00.{3}ftyp(?:%b)" % b"|".join(map(re.escape, brands))


# First match wins: the narrow brands stand before the wide ones. Words that a text could begin with count only with the
# byte behind them that no text has.
_SIGNATURES: tuple[tuple[str, bytes], ...] = (
    ("image/png", _starts(b"\x89PNG\r\n\x1a\n")),
    ("image/jpeg", _starts(b"\xff\xd8\xff")),
    ("image/gif", _starts(b"GIF87a", b"GIF89a")),
    ("image/webp", _riff(b"WEBP")),
    ("image/tiff", _starts(b"II*\0", b"MM\0*")),
    ("image/bmp", rb"BM.{4}\0\0\0\0.{4}[\x0c\x28\x34\x38\x40\x6c\x7c]\0\0\0"),
    ("image/x-icon", rb"\x00\x00\x01\x00[^\x00]\x00"),
    ("image/avif", _boxes(b"avif", b"avis")),
    ("image/heic", _boxes(b"heic", b"heix", b"hevc", b"mif1")),
    ("image/vnd.adobe.photoshop", _starts(b"8BPS\0")),
    ("application/pdf", rb"(?:\xef\xbb\xbf)?\s{0,16}%PDF-\d"),
    ("application/zip", _starts(b"PK\3\4", b"PK\5\6")),
    ("application/gzip", _starts(b"\x1f\x8b\x08")),
    ("application/x-bzip2", rb"BZh[1-9](?:1AY&SY|\x17\x72\x45\x38\x50\x90)"),
    ("application/x-xz", _starts(b"\xfd7zXZ\0")),
    ("application/zstd", _starts(b"\x28\xb5\x2f\xfd")),
    ("application/x-7z-compressed", _starts(b"7z\xbc\xaf\x27\x1c")),
    ("application/vnd.rar", _starts(b"Rar!\x1a\x07")),
    ("application/x-tar", rb".{257}ustar[\0 ]"),
    ("application/x-ole-storage", _starts(b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1")),
    ("application/vnd.sqlite3", _starts(b"SQLite format 3\0")),
    ("application/vnd.apache.parquet", rb"PAR1[^\x20-\x7e]"),
    ("application/vnd.apache.arrow.file", _starts(b"ARROW1\0\0")),
    ("application/x-hdf5", _starts(b"\x89HDF\r\n\x1a\n")),
    ("application/x-npy", _starts(b"\x93NUMPY")),
    ("application/x-executable", _starts(b"\x7fELF")),
    ("application/wasm", _starts(b"\0asm")),
    ("audio/wav", _riff(b"WAVE")),
    ("audio/flac", _starts(b"fLaC\0", b"fLaC\x80")),
    ("audio/ogg", _starts(b"OggS\0")),
    ("audio/mpeg", _starts(b"ID3\2", b"ID3\3", b"ID3\4", b"\xff\xfb", b"\xff\xf3", b"\xff\xf2")),
    ("audio/mp4", _boxes(b"M4A ", b"M4B ")),
    ("video/quicktime", _boxes(b"qt  ")),
    ("video/mp4", _boxes(b"")),
    ("video/x-msvideo", _riff(b"AVI ")),
    ("video/x-matroska", _starts(b"\x1a\x45\xdf\xa3")),
    ("font/woff", rb"wOFF[\0tO]"),
    ("font/woff2", rb"wOF2[\0tO]"),
    ("font/otf", _starts(b"OTTO\0")),
    ("font/ttf", _starts(b"\0\1\0\0\0", b"true\0")),
)
_SIGNED = frozenset(mime for mime, _ in _SIGNATURES)
# One pattern for all, since every file is asked: the number of the group that matched is the signature's.
_SIGNED_HEAD = re.compile(b"|".join(b"(%b)" % pattern for _, pattern in _SIGNATURES), re.DOTALL)

_TEXTS: dict[str, str] = {
    "txt": TEXT,
    "text": TEXT,
    "log": TEXT,
    "out": TEXT,
    "err": TEXT,
    "ini": TEXT,
    "cfg": TEXT,
    "conf": TEXT,
    "env": TEXT,
    "properties": TEXT,
    "md": "text/markdown",
    "markdown": "text/markdown",
    "mdx": "text/markdown",
    "qmd": "text/markdown",
    "rst": "text/x-rst",
    "adoc": "text/asciidoc",
    "org": "text/org",
    "tex": "text/x-tex",
    "bib": "text/x-bibtex",
    "html": "text/html",
    "htm": "text/html",
    "css": "text/css",
    "csv": "text/csv",
    "tsv": "text/tab-separated-values",
    "tab": "text/tab-separated-values",
    "ics": "text/calendar",
    "vcf": "text/vcard",
    "vtt": "text/vtt",
    "srt": TEXT,
    "diff": "text/x-diff",
    "patch": "text/x-diff",
    "js": "text/javascript",
    "mjs": "text/javascript",
    "cjs": "text/javascript",
    "jsx": "text/javascript",
    "ts": "text/x-typescript",
    "tsx": "text/x-typescript",
    "py": "text/x-python",
    "pyi": "text/x-python",
    "r": "text/x-r",
    "rmd": "text/markdown",
    "jl": "text/x-julia",
    "sh": "text/x-shellscript",
    "bash": "text/x-shellscript",
    "zsh": "text/x-shellscript",
    "c": "text/x-c",
    "h": "text/x-c",
    "cc": "text/x-c++",
    "cpp": "text/x-c++",
    "cxx": "text/x-c++",
    "hpp": "text/x-c++",
    "cs": "text/x-csharp",
    "go": "text/x-go",
    "rs": "text/x-rust",
    "java": "text/x-java",
    "kt": "text/x-kotlin",
    "scala": "text/x-scala",
    "swift": "text/x-swift",
    "rb": "text/x-ruby",
    "php": "text/x-php",
    "pl": "text/x-perl",
    "lua": "text/x-lua",
    "m": TEXT,
    "sql": "text/x-sql",
    "dot": "text/vnd.graphviz",
    "gv": "text/vnd.graphviz",
    "mmd": "text/vnd.mermaid",
    "mermaid": "text/vnd.mermaid",
    "json": "application/json",
    "json5": "application/json5",
    "jsonl": "application/x-ndjson",
    "ndjson": "application/x-ndjson",
    "geojson": "application/geo+json",
    "jsonld": "application/ld+json",
    "ipynb": "application/x-ipynb+json",
    "yaml": "application/yaml",
    "yml": "application/yaml",
    "toml": "application/toml",
    "xml": "application/xml",
    "xsd": "application/xml",
    "xsl": "application/xml",
    "rss": "application/rss+xml",
    "atom": "application/atom+xml",
    "kml": "application/vnd.google-earth.kml+xml",
    "gpx": "application/gpx+xml",
    "rtf": "application/rtf",
    "eml": "message/rfc822",
    "svg": "image/svg+xml",
}

_OOXML = "application/vnd.openxmlformats-officedocument"
_ODF = "application/vnd.oasis.opendocument"

_BINARIES: dict[str, str] = {
    "png": "image/png",
    "jpg": "image/jpeg",
    "jpeg": "image/jpeg",
    "gif": "image/gif",
    "webp": "image/webp",
    "tif": "image/tiff",
    "tiff": "image/tiff",
    "bmp": "image/bmp",
    "ico": "image/x-icon",
    "avif": "image/avif",
    "heic": "image/heic",
    "heif": "image/heic",
    "psd": "image/vnd.adobe.photoshop",
    "pdf": "application/pdf",
    "docx": f"{_OOXML}.wordprocessingml.document",
    "xlsx": f"{_OOXML}.spreadsheetml.sheet",
    "pptx": f"{_OOXML}.presentationml.presentation",
    "docm": "application/vnd.ms-word.document.macroenabled.12",
    "xlsm": "application/vnd.ms-excel.sheet.macroenabled.12",
    "odt": f"{_ODF}.text",
    "ods": f"{_ODF}.spreadsheet",
    "odp": f"{_ODF}.presentation",
    "epub": "application/epub+zip",
    "jar": "application/java-archive",
    "whl": "application/zip",
    "npz": "application/zip",
    "doc": "application/msword",
    "xls": "application/vnd.ms-excel",
    "ppt": "application/vnd.ms-powerpoint",
    "msg": "application/vnd.ms-outlook",
    "zip": "application/zip",
    "gz": "application/gzip",
    "tgz": "application/gzip",
    "svgz": "application/gzip",
    "bz2": "application/x-bzip2",
    "xz": "application/x-xz",
    "zst": "application/zstd",
    "7z": "application/x-7z-compressed",
    "rar": "application/vnd.rar",
    "tar": "application/x-tar",
    "sqlite": "application/vnd.sqlite3",
    "sqlite3": "application/vnd.sqlite3",
    "db": "application/vnd.sqlite3",
    "parquet": "application/vnd.apache.parquet",
    "feather": "application/vnd.apache.arrow.file",
    "arrow": "application/vnd.apache.arrow.file",
    "h5": "application/x-hdf5",
    "hdf5": "application/x-hdf5",
    "npy": "application/x-npy",
    "wasm": "application/wasm",
    "wav": "audio/wav",
    "flac": "audio/flac",
    "ogg": "audio/ogg",
    "oga": "audio/ogg",
    "mp3": "audio/mpeg",
    "m4a": "audio/mp4",
    "mov": "video/quicktime",
    "mp4": "video/mp4",
    "m4v": "video/mp4",
    "avi": "video/x-msvideo",
    "mkv": "video/x-matroska",
    "webm": "video/webm",
    "woff": "font/woff",
    "woff2": "font/woff2",
    "otf": "font/otf",
    "ttf": "font/ttf",
    "pkl": "application/x-pickle",
    "pickle": "application/x-pickle",
    "pyc": "application/x-python-bytecode",
}

# What the outside of a format looks like when it is another format's: the extension says what is inside.
_CONTAINERS: dict[str, str] = {
    _BINARIES[extension]: outside
    for outside, extensions in {
        "application/zip": ("docx", "xlsx", "pptx", "docm", "xlsm", "odt", "ods", "odp", "epub", "jar"),
        "application/x-ole-storage": ("doc", "xls", "ppt", "msg"),
        "video/x-matroska": ("webm",),
    }.items()
    for extension in extensions
}

_TEXTUAL = frozenset({
    "application/json", "application/xml", "application/yaml", "application/x-yaml", "application/javascript",
    "application/sql", "application/x-python", "application/xhtml+xml", "application/toml",
})  # fmt: skip
