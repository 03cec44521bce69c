"""The rival of the whole: a language server as one writes it in an afternoon, with pygls, lists and one JSON file.

    python -m tests.bench.rivals.linear OUT_DIR STATE_FILE

It speaks on its stdin and stdout. The state is `{"blocks": [...], "rows": [...], "files": {...}}`, read whole at the
start and written whole after each change, under a temporary name.
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
from pathlib import Path
from typing import Any

from pygls.lsp.server import LanguageServer


class Afternoon:
    """All that it knows, in lists."""

    def __init__(self, out_dir: Path, state: Path) -> None:
        self.out_dir = out_dir
        self._state = state
        known: dict[str, Any] = json.loads(state.read_text("utf-8"))
        self._blocks: list[dict[str, Any]] = known["blocks"]
        self._rows: list[dict[str, Any]] = known["rows"]
        self._files: dict[str, dict[str, Any]] = known["files"]

    def resolve(self, path: str) -> dict[str, Any]:
        """The latest block at a path wins."""
        for block in reversed(self._blocks):
            if block.get("path") == path:
                return {"path": path, "found": True, "meta": block["meta"], "on_disk": self._place(path).exists()}
        return {"path": path, "found": False}

    def row(self, sid: int) -> dict[str, Any] | None:
        return next((row for row in self._rows if row["sid"] == sid), None)

    def read(self, path: str) -> str:
        return self._place(path).read_text("utf-8")

    def list(self, prefix: str) -> Any:
        return [{"path": path, **known} for path, known in self._files.items() if path.startswith(prefix)]

    def sync(self) -> Any:
        """Walk through all there is; hash what is new or was touched, and write everything down."""
        found: list[str] = []
        for where, _, names in os.walk(self.out_dir):
            for name in names:
                path = os.path.join(where, name)
                stat = os.stat(path)
                logical = os.path.relpath(path, self.out_dir)
                known = self._files.get(logical)
                if known is None or (known["mtime"], known["size"]) != (stat.st_mtime_ns, stat.st_size):
                    with open(path, "rb") as file:
                        digest = hashlib.file_digest(file, "sha256").hexdigest()
                    self._files[logical] = {"mtime": stat.st_mtime_ns, "size": stat.st_size, "sha256": digest}
                    found.append(logical)
        if found:
            self._save()
        return found

    def _save(self) -> None:
        aside = self._state.with_suffix(".tmp")
        aside.write_text(json.dumps({"blocks": self._blocks, "rows": self._rows, "files": self._files}), "utf-8")
        aside.rename(self._state)

    def _place(self, path: str) -> Path:
        """`fi:turn_1.files/a.txt` is `turn_1/files/a.txt`."""
        return (
            self.out_dir / path.removeprefix("fi:").replace(".", "/", 1)
            if path.startswith("fi:")
            else self.out_dir / path
        )


def server(known: Afternoon) -> LanguageServer:
    made = LanguageServer("afternoon", "0")

    @made.feature("artifact/resolve")
    def resolve(params: Any) -> Any:
        return {"results": [known.resolve(path) for path in params.paths]}

    @made.feature("sources/rows")
    def rows(params: Any) -> Any:
        return {"rows": [known.row(sid) for sid in params.sids]}

    @made.feature("artifact/read")
    def read(params: Any) -> Any:
        return {"text": known.read(params.path)}

    @made.feature("artifact/list")
    def listed(params: Any) -> Any:
        return {"artifacts": known.list(params.prefix)}

    @made.feature("workspace/sync")
    def sync(_: Any) -> Any:
        return {"artifacts": known.sync()}

    return made


if __name__ == "__main__":
    server(Afternoon(Path(sys.argv[1]), Path(sys.argv[2]))).start_io()
