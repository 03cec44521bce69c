"""The TypeScript client: its own suite, run by Node against real daemons, and what its package promises.

The suite is an independent implementation of the wire, on vscode-jsonrpc, whose answers `protocol/schema.json` judges.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests import node
from tests.daemon_process import PROJECT

FOLDER = PROJECT / "clients/typescript"
CEILING = 300.0  # seconds for one suite; the longest takes 20 on a machine that does nothing else
EXACT = re.compile(r"\d+\.\d+\.\d+")

pytestmark = pytest.mark.timeout(900)  # the first test may have to fetch the packages


@pytest.fixture(scope="module")
def compiled() -> node.Node:
    """Node, with the client and its tests compiled; the compiler's complaints are the failure."""
    here = node.required()
    node.installed(FOLDER)
    here.run("node_modules/typescript/bin/tsc", "-b", "test", cwd=FOLDER)
    return here


def passes(here: node.Node, suite: str) -> None:
    """Run one suite; what it says of its failures stands at the end of what it prints."""
    done = subprocess.run(
        [here.program, "--test", "--test-reporter=spec", f"build/{suite}.test.js"],
        cwd=FOLDER,
        env=here.environment(PYTHON=sys.executable),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=CEILING,
        check=False,
    )
    said, _, failures = done.stdout.partition("failing tests:")
    assert done.returncode == 0, f"{suite}.test.ts\n{failures or said[-8000:]}"


@pytest.mark.rule("clients.typescript-asks-every-method")
def test_every_method_is_asked_and_the_schema_judges_the_answer(compiled: node.Node) -> None:
    passes(compiled, "methods")


@pytest.mark.rule("clients.typescript-asks-every-method")
def test_every_command_for_editors_is_run_and_the_schema_judges_the_answer(compiled: node.Node) -> None:
    passes(compiled, "commands")


@pytest.mark.rule("clients.typescript-errors-have-their-numbers")
def test_every_kind_of_failure_has_its_number(compiled: node.Node) -> None:
    passes(compiled, "errors")


@pytest.mark.rule("clients.typescript-every-call-has-an-end")
def test_every_call_ends_whatever_becomes_of_the_daemon(compiled: node.Node) -> None:
    passes(compiled, "client")


@pytest.mark.rule("clients.typescript-finds-the-sidecar-as-python-does")
def test_every_way_leads_to_the_daemon(compiled: node.Node) -> None:
    passes(compiled, "launch")


@pytest.mark.rule("clients.typescript-pulls-the-assets-of-a-page")
def test_the_renderer_of_the_readme_pulls_the_assets_of_a_page(compiled: node.Node) -> None:
    passes(compiled, "example")


def test_no_suite_is_forgotten() -> None:
    suites = {path.name.removesuffix(".test.ts") for path in (FOLDER / "test").glob("*.test.ts")}
    assert suites == {"client", "commands", "errors", "example", "launch", "methods"}


@pytest.mark.rule("clients.typescript-names-no-registry")
def test_its_packages_are_pinned_and_no_registry_is_named() -> None:
    package = json.loads((FOLDER / "package.json").read_text("utf-8"))
    pinned = {**package["dependencies"], **package["devDependencies"]}
    assert {name: version for name, version in pinned.items() if not EXACT.fullmatch(version)} == {}
    assert package["private"] is True
    assert (FOLDER / ".npmrc").read_text("utf-8") == "package-lock=false\n"
    assert not (FOLDER / "package-lock.json").exists()


@pytest.mark.rule("clients.typescript-holds-no-rule")
def test_it_knows_nothing_of_paths_citations_and_visibility() -> None:
    rules = re.compile(
        r"\[\[S:|\b(?:fi|so|ar|tc|su):[\w<]|/files/|/attachments/|sources_pool|internal|external|pending"
    )
    written = [path for path in sorted((FOLDER / "src").glob("*.ts")) if path.name != "protocol.ts"]
    assert written
    assert {path.name: found for path in written if (found := rules.findall(path.read_text("utf-8")))} == {}


@pytest.mark.parametrize("path", sorted((FOLDER / "src").glob("*.ts")), ids=lambda path: path.name)
def test_every_module_opens_with_a_sentence_and_is_one_idea(path: Path) -> None:
    lines = path.read_text("utf-8").splitlines()
    assert lines[0].startswith("// ")
    assert len(lines) < 250 or path.name == "protocol.ts"
