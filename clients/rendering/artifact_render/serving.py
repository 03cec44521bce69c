"""Answers what the browser asks for: the page, once, and the files on the shelf. Everything else is refused.

What it hands out may load nothing from elsewhere and run nothing, whatever it says.
"""

from __future__ import annotations

import base64
from typing import Any

from artifact_render.limits import SERVED_BYTES
from artifact_render.shelf import Shelf

_CSP = (
    "default-src 'none'; img-src 'self' data:; media-src 'self' data:; font-src 'self' data:; "
    "style-src 'self' 'unsafe-inline'; frame-src 'self'; object-src 'self'; "
    "script-src 'none'; base-uri 'none'; form-action 'none'"
)


class Serving:
    """The site of one page. `remarks` are what was asked for and could not be handed out, in sentences."""

    def __init__(self, document: str, shelf: Shelf) -> None:
        self._document = document.encode("utf-8", "replace")
        self._shelf = shelf
        self._page_frame = ""
        self.remarks: list[str] = []

    @property
    def begun(self) -> bool:
        """Whether the page itself was asked for."""
        return bool(self._page_frame)

    def answer(self, paused: dict[str, Any]) -> tuple[str, dict[str, Any]]:
        """What to tell the browser about a request that `Fetch.requestPaused` tells of: a command and its params."""
        identity, frame = paused["requestId"], paused["frameId"]
        is_document = paused.get("resourceType") == "Document"
        if is_document and not self._page_frame:
            self._page_frame = frame
            return _fulfilled(identity, 200, self._document, "text/html; charset=utf-8")
        found = self._file(paused["request"])
        if found is not None and (not is_document or frame != self._page_frame):
            return _fulfilled(identity, 200, *found)
        if is_document:
            # No content: the page stays, where a failure would put the browser's own words in its place.
            return _fulfilled(identity, 204, b"", "text/plain")
        return "Fetch.failRequest", {"requestId": identity, "errorReason": "BlockedByClient"}

    def _file(self, request: dict[str, Any]) -> tuple[bytes, str] | None:
        file = self._shelf.find(request["url"]) if request["method"] == "GET" else None
        if file is None:
            return None
        if file.size > SERVED_BYTES:
            self._remark(f"{request['url']} has more than {SERVED_BYTES} bytes and was not shown")
            return None
        charset = "; charset=utf-8" if file.mime.startswith("text/") else ""
        return self._shelf.content(file), file.mime + charset

    def _remark(self, sentence: str) -> None:
        if sentence not in self.remarks:
            self.remarks.append(sentence)


def _fulfilled(identity: str, code: int, content: bytes, mime: str) -> tuple[str, dict[str, Any]]:
    headers = {"Content-Type": mime, "Content-Security-Policy": _CSP, "X-Content-Type-Options": "nosniff"}
    told = [{"name": name, "value": text} for name, text in headers.items()]
    body = base64.b64encode(content).decode()
    answer = {"requestId": identity, "responseCode": code, "responseHeaders": told, "body": body}
    return "Fetch.fulfillRequest", answer
