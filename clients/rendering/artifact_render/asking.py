"""What a rendering asks of the daemon. Paths, citations and media types are the daemon's business, so all go there."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from artifact_client import Client, Link, NoSidecar, dial_command, dial_descriptor, dial_socket

from artifact_render.limits import ASK_SECONDS

_WAYS = (
    ("ARTIFACT_SIDECAR_FD", dial_descriptor),
    ("ARTIFACT_SIDECAR_SOCKET", dial_socket),
    ("ARTIFACT_SIDECAR_COMMAND", dial_command),
)


def connect(out_dir: str | None = None) -> Client:
    """A connection that asks as role `renderer`, made at the first call.

    With `out_dir` it is the door of that workspace; else the first of `ARTIFACT_SIDECAR_FD`, `_SOCKET` and `_COMMAND`
    that is set, else the door of the workspace in `OUT_DIR`. The role of what the variables name is not ours to choose.
    """
    return Client(lambda: _dial(out_dir), timeout=ASK_SECONDS)


def _dial(out_dir: str | None) -> Link:
    if out_dir is None:
        for name, dial in _WAYS:
            if text := os.environ.get(name):
                return dial(text)
        out_dir = os.environ.get("OUT_DIR")
    if not out_dir:
        raise NoSidecar("no workspace is named: give --out-dir or set OUT_DIR")
    return dial_command([sys.executable, "-m", "sidecar", "connect", "--role", "renderer", "--out-dir", out_dir])


@dataclass(frozen=True, slots=True)
class Locked:
    """A file that a page uses: where it lies below OUT_DIR, what it holds, and its number if it has one."""

    path: str
    sha256: str
    sid: int | None = None


@dataclass(frozen=True, slots=True)
class Pulled:
    """What a pull came to: all that was used, the page's own file included, in order of path.

    `spelled` is how the page writes files, where that is not their path. `missing` is `{path, reason}` as the daemon
    says it. A file that somebody is writing to has no hash yet; it is in `unfinished` and not in `files`.
    """

    files: tuple[Locked, ...]
    unfinished: tuple[str, ...]
    spelled: Mapping[str, str]
    missing: tuple[dict[str, Any], ...]
    files_of_sources: Mapping[int, str]
    sources_used: tuple[int, ...]
    notices: tuple[dict[str, Any], ...]


class Daemon:
    """The daemon's side of a rendering. Every method raises `artifact_client.SidecarError`."""

    def __init__(self, client: Client, out_dir: str | None = None) -> None:
        self._client = client
        self._out_dir = out_dir or os.environ.get("OUT_DIR")
        self._cited: dict[str, tuple[int, ...]] = {}

    @property
    def out_dir(self) -> str:
        """Where OUT_DIR lies for us; the daemon knows when nobody said."""
        if not self._out_dir:
            self._out_dir = str(self._client.call("workspace/status")["out_dir"])
        return self._out_dir

    def bring(self, path: str) -> str | None:
        """Make sure that one file lies in OUT_DIR: where it is there, or None."""
        found = self._client.call("artifact/rehost", {"paths": [path]})["rehosted"]
        return str(found[0]["physical_path"]) if found else None

    def pull(self, asked: Mapping[str, Any]) -> Pulled:
        """Bring every file that a page needs. `asked` are the params of `assets/pull`; what is None is not sent."""
        answer = self._client.call("assets/pull", {name: value for name, value in asked.items() if value is not None})
        assets = (*answer["present"], *answer["rehosted"])
        sids = {one["physical_path"]: one.get("sid") for one in assets}
        lock = [Locked(one["path"], one["sha256"], sids.get(one["path"])) for one in answer["lock"]]
        return Pulled(
            tuple(file for file in lock if file.sha256),
            tuple(file.path for file in lock if not file.sha256),
            {text: one["physical_path"] for one in assets for text in one.get("spellings", ())},
            tuple(answer["missing"]),
            {int(sid): str(path) for sid, path in answer["files_of_sources"].items()},
            tuple(answer["sources_used"]),
            tuple(answer["notices"]),
        )

    def kinds(self, paths: Iterable[str]) -> dict[str, str]:
        """The media type of each file that the daemon knows."""
        asked = sorted(set(paths))
        kinds: dict[str, str] = {}
        for start in range(0, len(asked), _PATHS_AT_ONCE):
            batch = asked[start : start + _PATHS_AT_ONCE]
            results = self._client.call("artifact/resolve", {"paths": batch})["results"]
            kinds.update({one["path"]: one["artifact"]["mime"] for one in results if one["found"]})
        return kinds

    def linked(self, html: str) -> tuple[str, tuple[int, ...]]:
        """The HTML with its citations as links, and the sources that were linked."""
        answer = self._client.call("citations/replace", {"text": html, "mime": "text/html"})
        return answer["text"], tuple(answer["sources_used"])

    def cited(self, text: str) -> tuple[int, ...]:
        """The numbers that a short text cites; asked once for each text."""
        if text not in self._cited:
            self._cited[text] = tuple(self._client.call("citations/extract", {"text": text})["sids"])
        return self._cited[text]

    def rows(self, sids: Iterable[int]) -> tuple[dict[str, Any], ...]:
        """The source rows of these numbers, ascending; numbers without a row are left out."""
        selector = ",".join(map(str, sorted(set(sids))))
        return tuple(self._client.call("sources/list", {"selector": selector})["rows"]) if selector else ()

    def write(self, asked: Mapping[str, Any]) -> dict[str, Any]:
        """Write the result: `{artifact, notices}`. `asked` are the params of `artifact/write`, None left out."""
        return self._client.call("artifact/write", {name: value for name, value in asked.items() if value is not None})


_PATHS_AT_ONCE = 500
