"""Gathers all that one rendering needs: the page, its citations as links, and a private copy of its files.

What comes out is closed: two gatherings with the same `inputs` hash draw from the same bytes.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from artifact_render import worker
from artifact_render.asking import Daemon, Locked, Pulled
from artifact_render.documents import HTML, MARKDOWN, SourceLine, source_lines, sources_section, whole
from artifact_render.failures import RenderError
from artifact_render.limits import PAGE_BYTES, SPELLINGS
from artifact_render.markdown import doubtful
from artifact_render.shelf import CANDIDATE, Shelf, Shelved
from artifact_render.staging import Changed, stage

_TRIES = 3


@dataclass(frozen=True, slots=True)
class Asked:
    """What is to be rendered: exactly one of `content` and `page`, a path of the workspace."""

    content: str | None
    page: str | None
    mime: str | None
    title: str | None
    tool_id: str
    tool_call_id: str | None


@dataclass(frozen=True, slots=True)
class Gathered:
    """The inputs of one rendering. `html` has no list of sources yet; `section` is that list as HTML."""

    html: str
    section: str
    title: str
    sources: tuple[SourceLine, ...]
    sources_used: tuple[int, ...]
    shelf: Shelf
    lock: tuple[Locked, ...]
    notices: tuple[dict[str, Any], ...]
    missing: tuple[dict[str, Any], ...]
    remarks: tuple[str, ...]

    @property
    def inputs(self) -> str:
        """The sha256 of everything that is drawn from, in hex."""
        texts = {name: _hash(text) for name, text in (("document", self.html), ("sources", self.section))}
        names = [sorted(names.items()) for names in (self.shelf.cited, self.shelf.spelled)]
        told = [texts, self.title, self.shelf.page, names]
        return _hash(json.dumps([told, sorted((file.path, file.sha256) for file in self.lock)]))


def gather(daemon: Daemon, asked: Asked, scratch: Path, *, seconds: float) -> Gathered:
    """Bring what the page needs and copy it below `scratch`. Raises RenderError and SidecarError.

    A file that changes between the daemon's answer and the copy makes us ask again, three times in all.
    `seconds` bound the reading of Markdown.
    """
    last = ""
    for number in range(_TRIES):
        folder = scratch / f"staged-{number}"
        folder.mkdir()
        try:
            return _gather_once(daemon, asked, folder, seconds)
        except Changed as changed:
            last = str(changed)
    raise RenderError("changed", f"{last} changed whenever it was read")


def _gather_once(daemon: Daemon, asked: Asked, folder: Path, seconds: float) -> Gathered:
    where, mime = _place(daemon, asked)
    source = {"content": asked.content} if asked.page is None else {"path": where}
    pulled = daemon.pull({**source, "mime": mime, "tool_id": asked.tool_id, "tool_call_id": asked.tool_call_id})
    sizes = stage(daemon.out_dir, pulled.files, folder)
    text = _text(asked, pulled, where, folder)
    title = asked.title or Path(where).stem or "page"
    if mime != HTML[0]:
        text = _from_markdown(daemon, text, seconds)
    linked, cited = daemon.linked(whole(text, title))
    used = tuple(sorted({*pulled.sources_used, *cited}))
    lines = source_lines(daemon.rows(used))
    files = _shelved(daemon, pulled, sizes)
    shelf = Shelf(folder, files, _cited_files(daemon, linked, pulled), where, pulled.spelled)
    remarks = tuple(f"{path} was left out: somebody is writing to it" for path in pulled.unfinished)
    section = sources_section(lines)
    return Gathered(linked, section, title, lines, used, shelf, pulled.files, pulled.notices, pulled.missing, remarks)


def _place(daemon: Daemon, asked: Asked) -> tuple[str, str]:
    """Where the page lies below OUT_DIR, or nowhere, and as what it is read: Markdown or HTML."""
    if asked.page is None:
        return "", _checked(asked.mime or MARKDOWN[0])
    where = daemon.bring(asked.page)
    if where is None:
        daemon.pull({"path": asked.page})  # which says why in its own words
        raise RenderError("not_found", f"there is no page at {asked.page}")
    return where, _checked(asked.mime or daemon.kinds([where]).get(where, ""))


def _text(asked: Asked, pulled: Pulled, where: str, folder: Path) -> str:
    """The page as it was sent, or as it was staged."""
    if asked.page is None:
        content = (asked.content or "").encode("utf-8", "replace")
    else:
        staged = next((file.sha256 for file in pulled.files if file.path == where), None)
        if staged is None:
            raise Changed(where)
        with (folder / staged).open("rb") as page:
            content = page.read(PAGE_BYTES + 1)
    if len(content) > PAGE_BYTES:
        raise RenderError("too_large", f"the page has more than {PAGE_BYTES} bytes")
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise RenderError("bad_page", f"{where} is no UTF-8 text") from None


def _checked(mime: str) -> str:
    kind = mime.partition(";")[0].strip().lower()
    if kind not in (*MARKDOWN, *HTML):
        raise RenderError("bad_page", f"a page is Markdown or HTML, and this is {kind or 'of unknown type'}")
    return HTML[0] if kind in HTML else MARKDOWN[0]


def _from_markdown(daemon: Daemon, text: str, seconds: float) -> str:
    citations = [piece for piece in doubtful(text)[:SPELLINGS] if daemon.cited(piece)]
    given = {"text": text, "citations": citations}
    return str(worker.run("markdown", given, seconds=seconds)["html"])


def _shelved(daemon: Daemon, pulled: Pulled, sizes: Mapping[str, int]) -> dict[str, Shelved]:
    kinds = daemon.kinds(file.path for file in pulled.files)
    return {
        file.path: Shelved(file.sha256, kinds.get(file.path, "application/octet-stream"), sizes[file.sha256], file.sid)
        for file in pulled.files
    }


def _cited_files(daemon: Daemon, html: str, pulled: Pulled) -> dict[str, str]:
    """What citations mean that still stand in the page: those in prose are links by now, the rest may name files."""
    found: dict[str, str] = {}
    if pulled.files_of_sources:
        decoded = unquote(html) if "%5B" in html or "%5b" in html else html  # Markdown readers encode what is in a URL
        for token in list(dict.fromkeys(CANDIDATE.findall(decoded)))[:SPELLINGS]:
            paths = (pulled.files_of_sources.get(sid) for sid in daemon.cited(token))
            if path := next(filter(None, paths), None):
                found[token] = path
    return found


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
