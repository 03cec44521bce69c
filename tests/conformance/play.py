"""Plays a case against a server and says where the server did otherwise."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Protocol

from protocol.errors import REFUSALS
from tests.conformance.case import Case
from tests.conformance.disk import Disk
from tests.conformance.matching import differences, fill, pick
from tests.conformance.wire_check import faults_of_error, faults_of_event, faults_of_result
from tests.rpc_client import Client, RpcError


class Failed(AssertionError):  # noqa: N818 - it is the verdict on a case
    """The server did otherwise than the case says."""


class Playable(Protocol):
    """What a case is played against: a folder, connections by role, and an end by force."""

    out_dir: Path

    def connect(self, role: str) -> Client: ...

    def kill(self) -> None: ...


def prepare(case: Case, out_dir: Path) -> None:
    """Lay out what the case says is there before the server starts."""
    given, outside = case.given, out_dir.parent / "outside"
    out_dir.mkdir(parents=True, exist_ok=True)
    outside.mkdir(exist_ok=True)
    for name, text in given.get("outside", {}).items():
        (outside / name).write_text(text, "utf-8", newline="")
    disk = Disk(out_dir)
    disk.write(given.get("files", {}))
    disk.write_base64(given.get("base64", {}))
    disk.link(given.get("links", {}))
    if "timeline" in given:
        (out_dir / "timeline.json").write_text(json.dumps(given["timeline"], ensure_ascii=False), "utf-8")


def play(case: Case, server: Playable) -> None:
    """Raises Failed with the step and every difference. Ends in order; unread messages of the server are failures."""
    players = _Players(case, server)
    try:
        for number, step in enumerate(case.steps, start=1):
            faults = list(players.take(step))
            if faults:
                shown = json.dumps(step, ensure_ascii=False)
                raise Failed("\n  ".join([f"{case.name}, step {number}: {shown[:600]}", *faults]))
        players.leave()
    finally:
        players.drop()


class _Players:
    """The clients of one case, its disk, and what was kept."""

    def __init__(self, case: Case, server: Playable) -> None:
        self._server = server
        self._acting = case.acting
        self._clients: dict[str, Client] = {}
        self._kept: dict[str, Any] = {}
        self._disk = Disk(server.out_dir)

    def take(self, step: dict[str, Any]) -> Iterable[str]:
        """Take one step; what was not as it must be."""
        match step:
            case {"connect": str(who)}:
                return self._connect(who, step)
            case {"call": str(method)}:
                return self._call(method, step)
            case {"event": str(method), "params": expected}:
                return self._event(self._client(step.get("as", self._acting)), method, expected)
            case {"silence": str(who)}:
                heard = self._client(who).heard()
                return [f"{who} heard {heard}"] if heard else []
            case {"disconnect": str(who)}:
                self._clients.pop(who).close()
                return []
            case {"restart": True}:
                self.drop()
                self._server.kill()
                return []
            case _:
                [(name, argument)] = step.items()
                return self._disk.take(name, argument)

    def leave(self) -> None:
        """Everybody ends in order and must have read everything."""
        while self._clients:
            self._clients.popitem()[1].close()

    def drop(self) -> None:
        for client in self._clients.values():
            client.drop()
        self._clients.clear()
        self._disk.let_go()

    def _client(self, who: str) -> Client:
        if who not in self._clients:
            self._connect(who, {})
        return self._clients[who]

    def _connect(self, who: str, step: dict[str, Any]) -> Iterable[str]:
        client = self._clients[who] = self._server.connect(who.partition("#")[0])
        try:
            welcome = client.initialize(**fill(step.get("options", {}), self._kept))
        except RpcError as error:
            if "error" not in step:
                raise
            self._clients.pop(who).drop()
            return _compare_error("initialize", step["error"], error)
        if "error" in step:
            return [f"{who} was let in"]
        return differences(step.get("result", {}), welcome)

    def _call(self, method: str, step: dict[str, Any]) -> Iterable[str]:
        client = self._client(step.get("as", self._acting))
        params = fill(step.get("params"), self._kept)
        try:
            result = client.call(method, params)
        except RpcError as error:
            if "error" not in step:
                return [f"was refused: {error}"]
            return _compare_error(method, fill(step["error"], self._kept), error)
        if "error" in step:
            return [f"was answered: {json.dumps(result, ensure_ascii=False)[:1000]}"]
        found = [*differences(fill(step["result"], self._kept), result), *faults_of_result(method, result)]
        for name, place in step.get("keep", {}).items():
            try:
                self._kept[name] = pick(result, place)
            except (LookupError, TypeError):
                found.append(f"there is nothing at {place} to keep: {json.dumps(result, ensure_ascii=False)[:500]}")
        return found

    def _event(self, client: Client, method: str, expected: Any) -> Iterable[str]:
        params = client.event(method)
        return [*differences(fill(expected, self._kept), params), *faults_of_event(method, params)]


def _compare_error(method: str, expected: Any, error: RpcError) -> list[str]:
    match expected:
        case str(kind) if kind in REFUSALS:
            wanted: dict[str, Any] = {"code": REFUSALS[kind].number, "data": {"kind": kind}}
        case int(number):
            wanted = {"code": number}
        case str(operator):
            return list(differences(operator, error.error, "error"))
        case _:
            wanted = expected
    return [*differences(wanted, error.error, "error"), *faults_of_error(method, error.error)]
