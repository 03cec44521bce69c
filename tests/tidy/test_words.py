"""The words of the house: none of a single machine, none that says nothing, none said to the wrong place."""

from __future__ import annotations

import ast
import re
import statistics
import subprocess
from pathlib import Path

import pytest

from tests.tidy.tree import CODE, PROJECT, parsed, python_files, relative

pytestmark = pytest.mark.rule("house.words-are-the-houses-own")

MACHINE = re.compile(
    "|".join(
        [
            r"(?<![\w.])/work/",
            r"(?<![\w.])/(?:root|home)/[a-z]",
            r"\bpypi\.org\b",
            r"pythonhosted\.org",
            r"registry\.npmjs\.org",
            r"deb\.debian\.org",
        ]
    )
)
EMPTY_NAMES = re.compile(r"(^|_)(utils?|helpers?|managers?|misc|common|data|stuff)(_|$)")
PRINTERS = (
    "sidecar/console/",
    "sidecar/__main__.py",
    "protocol/__main__.py",
    "clients/rendering/artifact_render/__main__.py",
)
LONGEST, MEDIAN = 400, 200


def text_files() -> list[Path]:
    """Every text file that git knows or would take in."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=PROJECT,
        capture_output=True,
        check=True,
    )
    paths = (PROJECT / name.decode() for name in listed.stdout.split(b"\0") if name)
    return [path for path in paths if path.is_file() and b"\0" not in path.read_bytes()[:4096]]


def lines_of(path: Path) -> int:
    return len(path.read_text("utf-8").splitlines())


def test_no_file_names_a_machine_or_a_registry() -> None:
    here = Path(__file__).resolve()
    found = {
        f"{relative(path)}: {hit.group()}"
        for path in text_files()
        if path != here
        for hit in MACHINE.finditer(path.read_text("utf-8", "replace"))
    }
    assert found == set()


def test_no_module_has_a_name_that_says_nothing() -> None:
    assert [relative(p) for p in python_files(*CODE, "tests") if EMPTY_NAMES.search(p.stem)] == []


def test_nothing_prints_outside_the_console() -> None:
    def prints(path: Path) -> bool:
        calls = (node.func for node in ast.walk(parsed(path)) if isinstance(node, ast.Call))
        return any(isinstance(func, ast.Name) and func.id == "print" for func in calls)

    loud = [relative(p) for p in python_files(*CODE) if prints(p) and not relative(p).startswith(PRINTERS)]
    assert loud == []


def test_no_module_is_longer_than_one_idea() -> None:
    long = {relative(p): lines_of(p) for p in python_files(*CODE) if lines_of(p) > LONGEST}
    # The client is one file by contract, so that it can be copied into an image.
    assert long.keys() <= {"clients/python/artifact_client.py"}
    assert all(lines <= LONGEST + 50 for lines in long.values())


def test_the_median_module_is_short() -> None:
    sizes = [lines_of(p) for p in python_files(*CODE) if p.name != "__init__.py"]
    assert statistics.median(sizes) < MEDIAN


def test_every_module_opens_with_a_sentence() -> None:
    silent = [relative(p) for p in python_files(*CODE, "tests") if not ast.get_docstring(parsed(p))]
    assert silent == []


def test_nothing_is_left_for_later_in_the_code() -> None:
    unfinished = re.compile(r"\b(TO[D]O|FIX[M]E|X[X]X)\b|NotImplemented[E]rror")
    assert [relative(p) for p in python_files(*CODE, "tests") if unfinished.search(p.read_text("utf-8"))] == []
