"""Prints what 10,000 artifacts and 1,000 sources cost a real VS Code: `python -m tests.editors.measure_vscode`.

Nothing here is asserted: the machine may be busy. Figures of the protocol alone, beside a bare server, are in
`tests/bench`; these have the whole editor in them.
"""

from __future__ import annotations

import json
import tempfile
from pathlib import Path

from tests.daemon_process import Workspace
from tests.editors.agent_work import AgentWork
from tests.editors.test_vscode import scene
from tests.editors.vscode_server import BUILDS, DRIVERS, Server, door_of, package

TURNS, PARTS, SOURCES = 10, 1000, 1000


def fill(work: AgentWork) -> None:
    """Turns with many files each, of a kind that is no source, and web sources up to the number wanted."""
    ask, write = work.runtime.call, work.workspace.write
    have = len(ask("sources/list")["rows"])
    rows = [{"url": f"https://example.org/{n}", "title": f"Page {n} of very many"} for n in range(have, SOURCES)]
    ask("sources/merge", {"rows": rows})
    ask("turn/end", {"turn_id": "turn_3"})
    for turn in range(TURNS):
        prompt = "The first of many" if turn == 0 else f"More of the same, {turn}"
        ask("turn/begin", {"turn_id": f"many_{turn}", "prompt": prompt})
        tool = "exec_tools.first" if turn == 0 else "exec_tools.run"
        ask("call/begin", {"tool_call_id": f"tc_many_{turn}", "tool_id": tool, "params": {}})
        for part in range(PARTS):
            write(f"many_{turn}/files/part-{part:04}.bin", f"{turn}.{part}\0")
        ask("call/end", {"tool_call_id": f"tc_many_{turn}"})
        ask("turn/end", {"turn_id": f"many_{turn}"})


def main() -> None:
    with tempfile.TemporaryDirectory(prefix="as-measure-") as name:
        folder = Path(name)
        vsix = package(folder)
        with Workspace(folder / "w") as workspace:
            work = AgentWork(workspace).two_turns()
            fill(work)
            for build in BUILDS:
                variables = {**door_of(workspace), **scene(work, folder, "many")}
                server = Server(build, folder / f"vscode-{build}", pictures=folder / "pictures", variables=variables)
                server.install(vsix)
                server.start()
                try:
                    print(f"VS Code {build}")
                    print(server.drive("run_inside.mjs", inside=str(DRIVERS / "inside"), folder=str(workspace.out_dir)))
                    print(server.drive("measure.mjs", folder=str(workspace.out_dir)), flush=True)
                finally:
                    server.stop()
            print(json.dumps(work.runtime.call("workspace/status")["counts"]))


if __name__ == "__main__":
    main()
