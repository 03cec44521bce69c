"""The limit of appending by a socket in Python: takes the same frames, answers each when one commit of many holds it.

    python -m tests.bench.appender SOCKET DATABASE

Bare asyncio and orjson receive, a thread of its own commits with the journal's settings; no block is checked, numbered
in an index, or remembered.
"""

from __future__ import annotations

import asyncio
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import orjson

from tests.bench.engine import Engine, Row


class Appender:
    """Gathers what comes while a commit is under way into the next one."""

    def __init__(self, database: Path) -> None:
        self._engine = Engine(database)
        self._thread = ThreadPoolExecutor(1)
        self._waiting: list[tuple[asyncio.StreamWriter, int, int, list[Row]]] = []
        self._next = 1
        self._busy = False

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                header = await reader.readuntil(b"\r\n\r\n")
                self._take(writer, orjson.loads(await reader.readexactly(int(header[16:-4]))))
        except asyncio.IncompleteReadError:
            writer.close()

    def _take(self, writer: asyncio.StreamWriter, message: dict[str, Any]) -> None:
        rows: list[Row] = [
            (at, "block", b"[]", orjson.dumps(block), 0)
            for at, block in enumerate(message["params"].get("blocks", ()), self._next)
        ]
        self._next += len(rows)
        self._waiting.append((writer, message["id"], self._next, rows))
        if not self._busy:
            self._busy = True
            asyncio.get_running_loop().call_soon(self._commit)

    def _commit(self) -> None:
        batch, self._waiting = self._waiting, []
        rows = [row for _, _, _, some in batch for row in some]
        written = asyncio.get_running_loop().run_in_executor(self._thread, self._engine.write, rows)
        written.add_done_callback(lambda _: self._answer(batch))

    def _answer(self, batch: list[tuple[asyncio.StreamWriter, int, int, list[Row]]]) -> None:
        self._busy = bool(self._waiting)
        if self._busy:
            self._commit()
        for writer, number, last, rows in batch:
            blocks = [{"index": row[0]} for row in rows]
            body = orjson.dumps({"jsonrpc": "2.0", "id": number, "result": {"revision": last, "blocks": blocks}})
            writer.write(b"Content-Length: %d\r\n\r\n" % len(body) + body)


async def main(socket: str, database: str) -> None:
    appender = Appender(Path(database))
    async with await asyncio.start_unix_server(appender.serve, socket, limit=1 << 26) as server:
        await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
