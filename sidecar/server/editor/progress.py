"""Work-done progress in an editor: under the token that the request brought, else under one of ours if it offers that.

The work never waits for the editor: it begins at once, and is told of when the editor has agreed to hear it.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable
from concurrent.futures import Future
from functools import partial
from typing import Any

from sidecar.server.caller import Progress
from sidecar.server.lsp import Editor


class Work:
    """One piece of work. `cancelled` turns True when the user gave it up."""

    __slots__ = ("_editor", "_progress", "_title", "_token", "cancelled", "over")

    def __init__(self, editor: Editor, params: Any, title: str) -> None:
        self._editor = editor
        self._title = title
        self._progress: Progress | None = None
        self._token: str | int | None = getattr(params, "work_done_token", None)
        self.cancelled = False
        self.over = False

    def __enter__(self) -> Work:
        if self._token is not None:
            self._begin(self._token)
        elif self._offers_progress():
            token = uuid.uuid4().hex
            asked = self._editor.protocol.send_request("window/workDoneProgress/create", {"token": token})
            asked.add_done_callback(partial(self._agreed, token))
        return self

    def __exit__(self, *_: object) -> None:
        self.over = True
        if self._token is not None:
            self._editor.works.pop(self._token, None)
        if self._progress is not None:
            self._progress.end()

    def report(self, message: str, percentage: int | None = None) -> None:
        if self._progress is not None:
            self._progress.report(message, percentage)

    def _agreed(self, token: str, done: Future[Any]) -> None:
        if not done.cancelled() and done.exception() is None and not self.over:
            self._begin(token)

    def _begin(self, token: str | int) -> None:
        self._token = token
        self._progress = Progress(token, self._title, post=_Post(self._editor))
        self._editor.works[token] = self._cancel

    def _cancel(self) -> None:
        self.cancelled = True

    def _offers_progress(self) -> bool:
        window = self._editor.client_capabilities.window
        return bool(window is not None and window.work_done_progress)


class _Post:
    """Where progress goes: to the one editor."""

    def __init__(self, editor: Editor) -> None:
        self._send: Callable[[bytes], None] = editor.protocol.wire.send

    def post(self, method: str, params: bytes) -> None:
        self._send(b'{"jsonrpc":"2.0","method":"%b","params":%b}' % (method.encode(), params))

    def notify(self, method: str, params: bytes) -> bool:
        self.post(method, params)
        return True
