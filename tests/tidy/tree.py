"""What the tidy tests look at: the project's own files, without caches and environments."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

PROJECT = Path(__file__).resolve().parents[2]
CODE = ("sidecar", "protocol", "clients/python", "clients/rendering/artifact_render")


def python_files(*folders: str) -> list[Path]:
    """The Python files below these folders of the project, in order."""
    found = (path for folder in folders for path in (PROJECT / folder).rglob("*.py"))
    return sorted(path for path in found if "__pycache__" not in path.parts)


def relative(path: Path) -> str:
    return path.relative_to(PROJECT).as_posix()


@cache
def parsed(path: Path) -> ast.Module:
    return ast.parse(path.read_text("utf-8"), filename=str(path))


def imported(path: Path) -> Iterator[str]:
    """The top-level names of the modules that this file imports, wherever in the file."""
    for node in ast.walk(parsed(path)):
        match node:
            case ast.Import(names=names):
                yield from (alias.name.partition(".")[0] for alias in names)
            case ast.ImportFrom(module=str(module), level=0):
                yield module.partition(".")[0]
            case _:
                continue


def names_of_tests(path: Path) -> set[str]:
    """The names of the tests in this file, methods included."""
    return {
        node.name
        for node in ast.walk(parsed(path))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test_")
    }
