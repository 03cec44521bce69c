"""The rival of every round trip: bare asyncio streams and orjson, answering each request with its own params.

    python -m tests.bench.echo SOCKET FILL

Every answer carries FILL more bytes, so that it is as long as the answer it stands against.
"""

from __future__ import annotations

import asyncio
import sys

import orjson


async def main(socket: str, fill: str) -> None:
    padding = "x" * int(fill)

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                header = await reader.readuntil(b"\r\n\r\n")
                message = orjson.loads(await reader.readexactly(int(header[16:-4])))
                body = orjson.dumps(answer(message, padding))
                writer.write(b"Content-Length: %d\r\n\r\n" % len(body) + body)
                await writer.drain()
        except asyncio.IncompleteReadError:
            writer.close()

    async with await asyncio.start_unix_server(serve, socket) as server:
        await server.serve_forever()


def answer(message: dict[str, object], padding: str) -> dict[str, object]:
    return {"jsonrpc": "2.0", "id": message["id"], "result": {"params": message["params"], "fill": padding}}


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
