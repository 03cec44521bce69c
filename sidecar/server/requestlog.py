"""One line for each request: client, role, method, what it was about, how long it took, its end. Never contents.

Handing each line to `logging` by itself would cost more than the request. So lines are gathered and go to the
`sidecar.request` logger together, each with its own time, at most `GATHER_SECONDS` later.
"""

from __future__ import annotations

import asyncio
import logging
import time

from sidecar.server.caller import Caller

requests = logging.getLogger("sidecar.request")

GATHER_SECONDS = 0.05
GATHER_LINES = 500
WORD_CHARS = 200
_SUBJECTS = ("path", "paths", "tool_call_id", "turn_id", "stream_id", "selector", "root")


class RequestLog:
    """The lines that are not written yet. Used on the loop's thread only."""

    def __init__(self) -> None:
        self._lines: list[tuple[float, int, str, str, str, float, str]] = []
        self._second = 0
        self._stamp = ""
        self._timer: asyncio.TimerHandle | None = None

    def note(self, caller: Caller, outcome: str, about: str = "") -> None:
        """Take down what the line of a request that has just been answered will say."""
        if not requests.isEnabledFor(logging.INFO):
            return
        seconds = time.perf_counter() - caller.began
        subject = (about or _subject(caller))[:WORD_CHARS]
        method = caller.method[:WORD_CHARS]
        self._lines.append((time.time(), caller.client.id, caller.role, method, subject, seconds, outcome))
        if len(self._lines) >= GATHER_LINES:
            self.flush()
        elif self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(GATHER_SECONDS, self.flush)

    def flush(self) -> None:
        """Write what was gathered, one record of many lines."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._lines:
            requests.info("%s", "\n".join(map(self._line, self._lines)))
            self._lines.clear()

    def _line(self, said: tuple[float, int, str, str, str, float, str]) -> str:
        at, client, role, method, about, seconds, outcome = said
        second = int(at)
        if second != self._second:  # printing a date is slow, and most lines share their second
            self._second, self._stamp = second, time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(second))
        return (
            f"{self._stamp}.{int((at - second) * 1000):03d}Z client={client} role={role} method={word(method)} "
            f"about={word(about)} ms={seconds * 1000:.2f} outcome={outcome}"
        )


def word(text: str) -> str:
    """The text as one word of a log line: bounded, without spaces and line breaks that would make two of it."""
    text = text[:WORD_CHARS]
    return text if text.isprintable() and " " not in text else ascii(text).replace(" ", "\\x20")


def _subject(caller: Caller) -> str:
    """What its handler says it was about, else the first name among its params."""
    if caller.about:
        return caller.about
    given: dict[str, object] = getattr(caller.params, "__dict__", {})  # a model is slow to say that it lacks a field
    for name in _SUBJECTS:
        subject = given.get(name)
        if isinstance(subject, str) and subject:
            return subject
        if isinstance(subject, list) and subject and isinstance(subject[0], str):
            return subject[0] if len(subject) == 1 else f"{subject[0][:WORD_CHARS]}+{len(subject) - 1}"
    return "-"
