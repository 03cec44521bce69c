"""A door whose daemon does as it is told: it writes down what it was asked and never answers a search.

`python fake_door.py FOLDER` keeps its notes in FOLDER. A file `die` in it makes the next `assets/pull` the end of this
door, once. With a file `refuse` no greeting is taken, with a file `mute` none is answered, and with a file `wait` each
is as soon as that file is gone.
"""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path
from typing import Any


def main(folder: Path) -> None:
    while (message := receive()) is not None:
        with (folder / "heard.jsonl").open("a", encoding="utf-8") as notes:
            notes.write(json.dumps({**message, "door": os.getpid()}) + "\n")
        match message:
            case {"method": "initialize"} if (folder / "mute").exists():
                pass
            case {"id": number, "method": "initialize"} if (folder / "refuse").exists():
                send({"id": number, "error": {"code": -32803, "message": "not now"}})
            case {"id": number, "method": "initialize"}:
                while (folder / "wait").exists():
                    time.sleep(0.01)
                ours = {"revision": 0, "role": "exec"}
                send({"id": number, "result": {"capabilities": {"experimental": {"artifact_sidecar": ours}}}})
            case {"id": number, "method": "assets/pull", "params": params}:
                if (folder / "die").exists():
                    os.unlink(folder / "die")
                    return
                value = {"kind": "report", "percentage": 40, "message": "two of five"}
                if "workDoneToken" in params:
                    send({"method": "$/progress", "params": {"token": params["workDoneToken"], "value": value}})
                send({"id": number, "result": {"present": []}})
            case {"id": number, "method": method} if method != "artifact/search":
                send({"id": number, "result": {"asked": method}})


def receive() -> dict[str, Any] | None:
    line = sys.stdin.buffer.readline()
    if not line:
        return None
    sys.stdin.buffer.readline()
    return json.loads(sys.stdin.buffer.read(int(line.split(b":")[1])))


def send(message: dict[str, Any]) -> None:
    body = json.dumps({"jsonrpc": "2.0", **message}).encode()
    sys.stdout.buffer.write(b"Content-Length: %d\r\n\r\n%b" % (len(body), body))
    sys.stdout.buffer.flush()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
