"""A shelf with pictures on it, and a browser that shows a page from it."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path

import pytest
from artifact_render.browser import browsing
from artifact_render.shelf import Shelf, Shelved
from artifact_render.showing import Showing

from tests.clients.rendering.looking import require

Files = dict[str, tuple[bytes, str]]


@pytest.fixture
def make_shelf(tmp_path: Path) -> Callable[..., Shelf]:
    """A factory: files by physical path, as their bytes and media type; their numbers begin with 1."""
    folder = tmp_path / "shelf"
    folder.mkdir()

    def make(files: Files, *, cited: dict[str, str] | None = None, page: str = "", **spelled: str) -> Shelf:
        shelved = {}
        for sid, (path, (content, mime)) in enumerate(files.items(), start=1):
            digest = hashlib.sha256(content).hexdigest()
            (folder / digest).write_bytes(content)
            shelved[path] = Shelved(digest, mime, len(content), sid)
        return Shelf(folder, shelved, cited or {}, page, spelled)

    return make


@pytest.fixture
def pictured(tmp_path: Path) -> Callable[..., bytes]:
    """A function that shows a page and answers its picture, 600 pixels wide."""
    require("chromium")

    def show(shelf: Shelf, html: str, section: str = "") -> bytes:
        with browsing(tmp_path, seconds=30) as tools:
            showing = Showing(tools, shelf)
            showing.show(html, section, width=600, scale=1)
            return showing.png(width=600, scale=1)

    return show
