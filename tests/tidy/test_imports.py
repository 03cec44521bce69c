"""Who may import whom, and what stays light."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.tidy.tools import run_tool
from tests.tidy.tree import PROJECT, imported, python_files, relative

LIGHT = tuple(
    f"sidecar/server/{name}.py" for name in ("bridge", "doorway", "upward", "session", "envelopes", "framing")
)
HEAVY = {
    "pygls",
    "lsprotocol",
    "pydantic",
    "pydantic_settings",
    "watchfiles",
    "orjson",
    "boto3",
    "rich",
    "asyncio",
    "apsw",
    "numpy",
    "psycopg",
}
OURS = {"sidecar", "protocol", "artifact_client"}


def third_party(names: set[str]) -> set[str]:
    """What neither Python nor this project brings. Which private C modules there are differs between Pythons."""
    return {name for name in names - set(sys.stdlib_module_names) - OURS if not name.startswith("_")}


def loaded_by(*arguments: str) -> set[str]:
    """The top-level modules in `sys.modules` once this Python command line has run."""
    program = (
        "import atexit, runpy, sys\n"
        "atexit.register(lambda: print('\\n'.join(sys.modules), file=sys.stderr))\n"
        f"sys.argv = {list(arguments)!r}\n"
        "runpy.run_module(sys.argv[0], run_name='__main__', alter_sys=True)\n"
    )
    done = subprocess.run([sys.executable, "-c", program], cwd=PROJECT, capture_output=True, text=True, check=True)
    return {name.partition(".")[0] for name in done.stderr.split()}


@pytest.mark.rule("house.import-directions-hold")
def test_the_import_contracts_hold() -> None:
    run_tool("lint-imports", "--no-cache")


@pytest.mark.rule("cli.the-door-is-standard-library-only")
@pytest.mark.parametrize("module", LIGHT)
def test_the_door_imports_nothing_third_party(module: str) -> None:
    assert third_party(set(imported(PROJECT / module))) == set()


@pytest.mark.rule("client.is-one-standard-library-file")
def test_the_python_client_imports_the_standard_library_alone() -> None:
    assert third_party(set(imported(PROJECT / "clients/python/artifact_client.py"))) == set()


@pytest.mark.parametrize("arguments", [("sidecar", "--help"), ("sidecar", "connect", "--help")], ids=" ".join)
def test_help_loads_nothing_heavy(arguments: tuple[str, ...]) -> None:
    assert loaded_by(*arguments) & HEAVY == set()


def test_only_one_module_of_the_server_knows_pygls_and_only_editors_its_types() -> None:
    assert [relative(p) for p in python_files("sidecar") if "pygls" in set(imported(p))] == ["sidecar/server/lsp.py"]
    typed = [relative(p) for p in python_files("sidecar") if "lsprotocol" in set(imported(p))]
    assert [name for name in typed if not name.startswith(("sidecar/server/lsp.py", "sidecar/server/editor/"))] == []
