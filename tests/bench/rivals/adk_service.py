"""Google ADK's artifact services in a process of their own; run by the Python of their environment, as a file.

    python adk_service.py file|memory FOLDER

Reads lines of JSON `{"do": "save" | "load" | "list" | "versions", "names": [...], "text": "..."}` and answers each
with the median seconds of one such operation, or the seconds of the one listing, and how many there were.
"""

from __future__ import annotations

import asyncio
import json
import sys
from statistics import median
from time import perf_counter
from typing import Any

from google.adk.artifacts import FileArtifactService, InMemoryArtifactService  # type: ignore[import-not-found]
from google.genai import types  # type: ignore[import-not-found]

SCOPE: dict[str, Any] = {"app_name": "bench", "user_id": "ann", "session_id": "s1"}


async def done(service: Any, asked: dict[str, Any]) -> tuple[float, int]:
    spent: list[float] = []
    found = 0
    for name in asked["names"]:
        part = types.Part.from_text(text=asked.get("text", ""))
        began = perf_counter()
        match asked["do"]:
            case "save":
                found += await service.save_artifact(filename=name, artifact=part, **SCOPE) is not None
            case "load":
                found += await service.load_artifact(filename=name, **SCOPE) is not None
            case "versions":
                found += len(await service.list_artifact_versions(filename=name, **SCOPE))
            case _:
                found += len(await service.list_artifact_keys(**SCOPE))
        spent.append(perf_counter() - began)
    return median(spent), found


async def main(kind: str, folder: str) -> None:
    service = FileArtifactService(root_dir=folder) if kind == "file" else InMemoryArtifactService()
    print(json.dumps("ready"), flush=True)
    for line in sys.stdin:
        print(json.dumps(await done(service, json.loads(line))), flush=True)


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
