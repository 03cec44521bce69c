"""`demo`: the main job, once, in a small workspace of its own that is gone afterwards.

A turn begins, a tool call runs a program, and what the program wrote gets a number. A second program, with nothing but
the exec socket, fetches it. A deleted file comes back, and a citation becomes a link.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import artifact_client
from artifact_client import Client

from sidecar.console.output import say, size, table
from sidecar.console.place import Place

OK = 0
TURN, CALL = "turn_demo", "call_1"

# A tool: it writes real files below OUT_DIR and knows nothing of the sidecar.
TOOL = """
import os, struct, zlib
folder = os.path.join(os.environ["OUT_DIR"], "turn_demo", "files")
os.makedirs(os.path.join(folder, "charts"))
with open(os.path.join(folder, "report.md"), "w", encoding="utf-8") as file:
    file.write("# Sales\\n\\nNorth grew, South did not [[S:3]].\\n")
with open(os.path.join(folder, "sales.csv"), "w", encoding="utf-8") as file:
    file.write("region,sales\\nNorth,120\\nSouth,80\\n")
def chunk(kind, body):
    return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))
rows = b"".join(b"\\0" + bytes([40 * y, 120, 200] * 4) for y in range(4))
with open(os.path.join(folder, "charts", "sales.png"), "wb") as file:
    file.write(b"\\x89PNG\\r\\n\\x1a\\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", 4, 4, 8, 2, 0, 0, 0)))
    file.write(chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b""))
"""

# A program that the agent wrote: it finds its inputs by their stable names.
PROGRAM = """
import json
from artifact_client import fetch_ctx
rows = fetch_ctx("so:sources_pool[1-2]")
text = fetch_ctx("fi:turn_demo.files/sales.csv")
print(json.dumps([rows, text]))
"""


def demo(_: argparse.Namespace) -> int:
    """Ends by itself, takes its workspace away and stops its daemon."""
    base = Path(tempfile.mkdtemp(prefix="artifact-sidecar-demo-"))
    try:
        out_dir = base / "out"
        out_dir.mkdir()
        flags = {"out_dir": str(out_dir), "state_dir": str(base / "state"), "socket_dir": str(base / "run")}
        place = Place(flags)
        try:
            with place.client(serve=("--idle-exit", "60")) as client:
                _play(place, client, out_dir)
        finally:
            place.end()
    finally:
        shutil.rmtree(base, ignore_errors=True)
    say()
    say("The daemon was ended and the workspace removed.")
    return OK


def _play(place: Place, client: Client, out_dir: Path) -> None:
    _step(f"A daemon serves {out_dir}. A turn begins, and a tool call in it.")
    client.call("turn/begin", {"turn_id": TURN, "prompt": "How were sales?"})
    client.call("call/begin", {"tool_call_id": CALL, "tool_id": "demo.write_report", "params": {}})

    _step("The tool, an ordinary program, writes three files. When the call ends they are registered and numbered:")
    _run(TOOL, OUT_DIR=str(out_dir))
    made = client.call("call/end", {"tool_call_id": CALL, "result": {"ok": True}})["artifacts"]
    table(
        ("source", "path", "type", "size"),
        [(a.get("sid"), a["artifact_path"], a["mime"], size(a.get("size_bytes"))) for a in made],
    )

    _step('Another program has only the exec socket. It calls fetch_ctx("so:sources_pool[1-2]") and fetch_ctx("fi:…"):')
    rows, text = json.loads(_run(PROGRAM, ARTIFACT_SIDECAR_SOCKET=place.socket("exec")))
    for row in rows["ret"]:
        _show({"sid": row["sid"], "physical_path": row["physical_path"], "mime": row["mime"]})
    _show({"text": text["ret"]["text"], "physical_path": text["ret"]["physical_path"]})

    _step("The report is deleted, and brought back from the kept bytes:")
    report = out_dir / TURN / "files" / "report.md"
    before = report.read_bytes()
    report.unlink()
    answer = client.call("artifact/rehost", {"paths": [f"fi:{TURN}.files/report.md"]})
    (back,) = answer["rehosted"]
    _show({"physical_path": back["physical_path"], "origin": back["origin"], "sha256": back["sha256"][:16] + "…"})
    say(f"  the same bytes: {'yes' if report.read_bytes() == before else 'no'}")

    _step("A citation in the answer becomes a link:")
    sources = [{"url": "https://example.com/sales", "title": "Sales of the year", "source_type": "web"}]
    (sid,) = client.call("sources/merge", {"rows": sources})["added"]
    cited = f"North grew by half [[S:{sid}]]."
    say(f"  {cited}")
    say(f"  {client.call('citations/replace', {'text': cited})['text']}")


def _step(text: str) -> None:
    say()
    say(text)


def _show(value: dict[str, Any]) -> None:
    say("  " + json.dumps(value, ensure_ascii=False))


def _run(program: str, **variables: str) -> str:
    """Run a program as a process of its own, with these variables and the client to import."""
    path = os.pathsep.join(filter(None, [os.path.dirname(artifact_client.__file__), os.environ.get("PYTHONPATH")]))
    kept = {name: value for name, value in os.environ.items() if not name.startswith("ARTIFACT_SIDECAR_")}
    done = subprocess.run(
        [sys.executable, "-c", program],
        env={**kept, "PYTHONPATH": path, **variables},
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    return done.stdout
