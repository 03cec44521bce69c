"""Bring back the files that a program names, before it runs.

    from artifact_prefetch import rehost_for
    missing = rehost_for(program)["missing"]

For whoever runs generated programs: a program opens files that earlier turns made, and OUT_DIR may be empty by now.
As a command: `python -m artifact_prefetch program.py`. One file beside `artifact_client.py`, standard library only.
"""

from __future__ import annotations

import ast
import re
import sys

from artifact_client import pull_assets

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

_POOL = re.compile(r"sources_pool\[([^\[\]]{0,4096})\]")
# `f"{out}/turn_1/files/a"` names a file, `f"turn_1/files/{name}"` one that nobody knows yet.
_ROOTED = re.compile(r"\0/(?=[\w-]+/(?:files|attachments)/)")
_UNKNOWN = re.compile(r"\S*\0\S*")


def rehost_for(code: str, *, timeout: float | None = None) -> dict[str, Any]:
    """Bring back what a program names: `{present, rehosted, missing, files_of_sources, ...}` as `assets/pull` answers.

    In a Python program its strings count, arguments of `fetch_ctx` among them; a text in another language counts whole.
    Named are paths of turns (`turn_1/files/a.csv`), `fi:` names, and the files of `so:` names. What only looks alike,
    such as `/tmp/files/x`, is left alone. What the program is going to make itself stands in `missing`.
    Raises SidecarError.
    """
    said = [*strings(code)]
    pools = [numbers for text in said for numbers in _POOL.findall(text)]
    cited = "".join(f"[[S:{numbers}]]\n\n" for numbers in pools)
    named = "\n".join(f'"{text}"' for text in said)
    return pull_assets(cited + named, mime="text/plain", timeout=timeout)


def strings(code: str) -> Iterator[str]:
    """The strings of a Python program, each as far as it is known; what is no Python, whole."""
    try:
        tree = ast.parse(code)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        yield code
        return
    parts: set[int] = set()
    for node in ast.walk(tree):  # a formatted string comes before its parts
        if isinstance(node, ast.JoinedStr):
            parts.update(map(id, node.values))
            pieces = (part.value if isinstance(part, ast.Constant) else "\0" for part in node.values)
            yield _UNKNOWN.sub(" ", _ROOTED.sub(" ", "".join(map(str, pieces))))
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in parts:
            yield node.value


def main() -> None:
    with open(sys.argv[1], encoding="utf-8") if len(sys.argv) > 1 else sys.stdin as program:
        answer = rehost_for(program.read())
    for one in answer["missing"]:
        sys.stderr.write(f"{one['path']}: {one['reason']}\n")


if __name__ == "__main__":
    main()
