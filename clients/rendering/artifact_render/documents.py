"""The HTML that is rendered: a page as its author wrote it, and the list of sources at its end."""

from __future__ import annotations

import html
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

MARKDOWN = ("text/markdown", "text/x-markdown", "text/plain")
HTML = ("text/html", "application/xhtml+xml")


@dataclass(frozen=True, slots=True)
class SourceLine:
    """One line of the list: a number, a name, and where it is; `url` only where one can go there."""

    sid: int
    title: str
    where: str
    url: str | None


def source_lines(rows: Iterable[dict[str, Any]]) -> tuple[SourceLine, ...]:
    """The rows of the pool as lines. A file is named by its logical path; hosting fields are never looked at."""
    lines: list[SourceLine] = []
    for row in rows:
        url = str(row.get("url") or "")
        is_web = row.get("source_type") not in ("file", "attachment") and goes_somewhere(url)
        where = url if is_web else str(row.get("artifact_path") or row.get("physical_path") or "")
        title = str(row.get("title") or where or f"Source {row['sid']}")
        lines.append(SourceLine(int(row["sid"]), title, where, url if is_web else None))
    return tuple(lines)


def goes_somewhere(url: str) -> bool:
    """Whether a link to it may stand in a document: nothing that runs, and nothing on the reader's own disk."""
    try:
        return urlsplit(url.strip()).scheme.lower() in ("http", "https", "mailto")
    except ValueError:
        return False


def sources_section(lines: Iterable[SourceLine]) -> str:
    """The list at the end of a page, empty when nothing is cited."""
    items = "".join(_item(line) for line in lines)
    return f'<section style="{_SECTION}"><h2>Sources</h2>{items}</section>' if items else ""


def whole(body: str, title: str) -> str:
    """A document of our own around a body; one that is a document already stays as it is."""
    if body.lstrip("\ufeff \t\r\n").lower().startswith(("<!doctype", "<html", "<?xml")):
        return body
    head = f'<meta charset="utf-8"><title>{html.escape(title)}</title><style>{_STYLE}</style>'
    return f"<!doctype html><html><head>{head}</head><body>\n{body}\n</body></html>"


def _item(line: SourceLine) -> str:
    shown = html.escape(line.title)
    where = html.escape(line.where) if line.where != line.title else ""
    if line.url is not None:
        shown = f'<a href="{html.escape(line.url)}">{shown}</a>'
    tail = f' <span style="color:#555">{where}</span>' if where else ""
    return f'<p id="source-{line.sid}" style="{_ITEM}">[S:{line.sid}] {shown}{tail}</p>'


_SECTION = (
    "display:block;visibility:visible;clear:both;position:static;margin:2em 0 0;padding:0.5em 0 0;"
    "border-top:1px solid #999;font:0.85em/1.4 sans-serif;overflow-wrap:anywhere"
)
_ITEM = "margin:0.2em 0;break-inside:avoid"
_STYLE = (
    "body{font:16px/1.5 'DejaVu Sans',sans-serif;color:#111;margin:2em auto;padding:0 1em;max-width:60em}"
    "@media print{body{margin:0;padding:0;font-size:11pt}}"
    "img,svg,video{max-width:100%;height:auto}"
    "pre{background:#f4f4f4;padding:0.8em;white-space:pre-wrap;overflow-wrap:anywhere}"
    "code{font-family:'DejaVu Sans Mono',monospace;font-size:0.9em}"
    "table{border-collapse:collapse}td,th{border:1px solid #999;padding:0.25em 0.6em;text-align:left}"
    "blockquote{margin-left:0;padding-left:1em;border-left:4px solid #ccc;color:#444}"
    "h1,h2,h3{line-height:1.25;break-after:avoid}img,tr{break-inside:avoid}"
)
