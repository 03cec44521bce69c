"""The tests mirror the code: `sidecar/core/paths.py` has `tests/core/test_paths.py`."""

from __future__ import annotations

import ast

import pytest

from tests.tidy.tree import PROJECT, parsed, python_files, relative

pytestmark = pytest.mark.rule("house.tests-mirror-the-code")

MIRRORED = {"sidecar/core": "tests/core", "sidecar/stores": "tests/stores", "sidecar/server": "tests/server"}


def says_something(node: ast.stmt) -> bool:
    """Whether a statement could be wrong: a function or a class with methods, not a name or an import."""
    return any(isinstance(inner, ast.FunctionDef | ast.AsyncFunctionDef) for inner in ast.walk(node))


def expected_tests() -> dict[str, str]:
    """Module -> the test file it must have. A module of constants alone needs none."""
    pairs = {}
    for folder, tests in MIRRORED.items():
        for path in python_files(folder):
            inner = path.relative_to(PROJECT / folder)
            if path.name != "__init__.py" and any(map(says_something, parsed(path).body)):
                pairs[relative(path)] = f"{tests}/{(inner.parent / f'test_{inner.name}').as_posix()}"
    return pairs


def test_every_module_has_its_test_file() -> None:
    lonely = {module: test for module, test in expected_tests().items() if not (PROJECT / test).is_file()}
    assert lonely == {}


def test_the_code_is_where_we_look_for_it() -> None:
    assert {module.rsplit("/", 1)[0] for module in expected_tests()} >= set(MIRRORED)
