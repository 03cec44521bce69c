"""The measuring client for MCP: JSON-RPC in lines, by a program's stdin and stdout."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from itertools import count
from statistics import median
from time import perf_counter
from typing import Any

import orjson

from tests.daemon_process import PROJECT, environment

VERSION = "2025-06-18"


class Lines:
    """One session with an MCP server that we started."""

    def __init__(self, command: Sequence[str]) -> None:
        self._server = subprocess.Popen(
            command,
            cwd=PROJECT,
            env=environment(),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
        self._ids = count(1)
        hello = {"protocolVersion": VERSION, "capabilities": {}, "clientInfo": {"name": "bench", "version": "0"}}
        self._ask("initialize", hello)
        self._send({"jsonrpc": "2.0", "method": "notifications/initialized"})

    def __enter__(self) -> Lines:
        return self

    def __exit__(self, *_: object) -> None:
        assert self._server.stdin is not None
        self._server.stdin.close()
        try:
            self._server.wait(10)
        except subprocess.TimeoutExpired:
            self._server.kill()
            self._server.wait()

    def call(self, tool: str, arguments: dict[str, Any]) -> dict[str, Any]:
        """The result of a tool. Raises ValueError when that is an error."""
        result: dict[str, Any] = self._ask("tools/call", {"name": tool, "arguments": arguments})
        if result.get("isError"):
            raise ValueError(f"{tool} {arguments} was answered with {str(result)[:500]}")
        return result

    def one_at_a_time(self, calls: Sequence[tuple[str, dict[str, Any]]]) -> float:
        """Median seconds from asking to having the whole answer, parsed."""
        spent: list[float] = []
        for tool, arguments in calls:
            began = perf_counter()
            self.call(tool, arguments)
            spent.append(perf_counter() - began)
        return median(spent)

    def _ask(self, method: str, params: dict[str, Any]) -> Any:
        id_ = next(self._ids)
        self._send({"jsonrpc": "2.0", "id": id_, "method": method, "params": params})
        assert self._server.stdout is not None
        while line := self._server.stdout.readline():
            message = orjson.loads(line)
            if message.get("id") == id_ and "method" not in message:
                if "error" in message:
                    raise ValueError(f"{method} was answered with {message['error']}")
                return message["result"]
        raise ConnectionError("the server hung up")

    def _send(self, message: dict[str, Any]) -> None:
        assert self._server.stdin is not None
        self._server.stdin.write(orjson.dumps(message) + b"\n")
        self._server.stdin.flush()
