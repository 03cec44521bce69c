"""The extension in real builds of VS Code, the newest and the oldest: inside the extension host, and in the page.

`ARTIFACT_SIDECAR_SCREENSHOTS=dir` keeps the pictures; without it they are kept, with all logs, when a test fails.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest

from tests.conftest import has_failed
from tests.daemon_process import Workspace
from tests.editors import process_tree
from tests.editors.agent_work import FIRST, REPORT, SECOND, SOURCES, UNSEEN, AgentWork
from tests.editors.vscode_server import BUILDS, DRIVERS, Build, Server, door_of, package, require

pytestmark = pytest.mark.timeout(900)  # it waits for conditions; the ceilings are for a busy machine
INSIDE = DRIVERS / "inside"


@pytest.fixture(params=BUILDS, ids=str)
def build(request: pytest.FixtureRequest) -> Build:
    require(request.param)
    return request.param


@pytest.fixture(scope="session")
def vsix(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The extension, packaged anew."""
    return package(tmp_path_factory.mktemp("vsix"))


@pytest.fixture
def work(make_workspace: Callable[..., Workspace]) -> Iterator[AgentWork]:
    """A daemon, and what an agent made so far. A daemon that a door started after it is ended too."""
    workspace = make_workspace().start()
    yield AgentWork(workspace).two_turns()
    process_tree.end(process_tree.daemons(str(workspace.out_dir), but=workspace.daemon))


@pytest.fixture
def vscode(
    build: Build, vsix: Path, tmp_path: Path, request: pytest.FixtureRequest
) -> Iterator[Callable[[Mapping[str, str]], Server]]:
    """A function that starts VS Code with the extension in it and these variables; ended when the test is."""
    name = request.node.name.replace("/", "-")
    wanted = os.environ.get("ARTIFACT_SIDECAR_SCREENSHOTS")
    pictures = Path(wanted).resolve() / name if wanted else tmp_path / "pictures"
    started: list[Server] = []

    def start(variables: Mapping[str, str]) -> Server:
        server = Server(build, tmp_path / f"vscode{len(started)}", pictures=pictures, variables=variables)
        started.append(server)
        server.install(vsix)
        return server.start()

    yield start
    for server in started:
        server.stop()
        server.keep_logs()
    left = process_tree.outliving(str(tmp_path / "vscode"))
    process_tree.end(left)
    if has_failed(request):
        print(f"pictures and logs are in {pictures}")
    else:
        assert not left, "processes of VS Code outlived it"


def scene(work: AgentWork, folder: Path, tests: str) -> dict[str, str]:
    """What the tests inside the extension host know, in a file that a variable names."""
    workspace = work.workspace
    assert workspace.daemon is not None
    told = {
        "tests": tests,
        "outDir": str(workspace.out_dir),
        "report": str(workspace.out_dir / REPORT),
        "first": FIRST,
        "second": SECOND,
        "titles": [title for _, title, _ in SOURCES],
        "unseen": [Path(UNSEEN).name],
        "daemon": workspace.daemon.pid,
        "program": door_of(workspace)["ARTIFACT_SIDECAR_PROGRAM"],
    }
    file = folder / "scene.json"
    file.write_text(json.dumps(told), "utf-8")
    return {"SCENE": str(file)}


@pytest.mark.rule("clients.vscode-inside-the-extension-host")
def test_the_extension_does_what_it_says_inside_the_extension_host(
    work: AgentWork, vscode: Callable[[Mapping[str, str]], Server], tmp_path: Path
) -> None:
    server = vscode({**door_of(work.workspace), **scene(work, tmp_path, "configured")})
    print(server.drive("run_inside.mjs", inside=str(INSIDE), folder=str(work.workspace.out_dir)))
    work.runtime.drop()  # its daemon was killed


@pytest.mark.rule("clients.vscode-is-never-a-dead-client")
def test_where_nothing_is_configured_the_extension_says_so_and_recovers(
    work: AgentWork, vscode: Callable[[Mapping[str, str]], Server], tmp_path: Path
) -> None:
    door = door_of(work.workspace)
    empty = tmp_path / "project"
    empty.mkdir()
    folders = {name: door[name] for name in ("ARTIFACT_SIDECAR_SOCKET_DIR", "ARTIFACT_SIDECAR_STATE_DIR")}
    server = vscode({**folders, **scene(work, tmp_path, "unconfigured")})
    print(server.drive("run_inside.mjs", inside=str(INSIDE), folder=str(empty)))


@pytest.mark.rule("clients.vscode-shows-what-the-agent-made")
def test_a_person_sees_what_the_agent_made(
    work: AgentWork, vscode: Callable[[Mapping[str, str]], Server], tmp_path: Path
) -> None:
    server = vscode(door_of(work.workspace))

    editor = work.workspace.connect("editor", ceiling=60.0)

    def land() -> dict[str, int]:
        work.call("tc_outlook", "write_tools.write_file", {"turn_3/files/outlook.md": "# Outlook\n\nBright.\n"})
        return editor.call("workspace/status")["counts"]

    titles = [title for _, title, _ in SOURCES]
    print(server.drive("drive.mjs", acts={"land": land}, folder=str(work.workspace.out_dir), titles=titles))
