"""Events reach those who asked for them and may know."""

from __future__ import annotations

from dataclasses import dataclass, field

import orjson
import pytest

from protocol.methods import EVENTS
from sidecar.core.entries import Noticed
from sidecar.core.notices import Notice
from sidecar.server.caller import Client, Peer
from sidecar.server.telling import Telling
from tests.server.inside import Inside

ALL = frozenset({"sources", "artifacts", "timeline", "notices"})


@dataclass
class Listener:
    """A connection that takes events down, each checked against the protocol."""

    client: Client
    queued: int = 0
    heard: list[tuple[str, dict[str, object]]] = field(default_factory=list)

    def notify(self, method: str, params: bytes) -> bool:
        EVENTS[method].payload.model_validate_json(params)
        self.heard.append((method, orjson.loads(params)))
        return True

    def methods(self) -> list[str]:
        return [method for method, _ in self.heard]


def listen(telling: Telling, role: str, events: frozenset[str] = ALL) -> Listener:
    listener = Listener(Client(len(telling.guests) + 1, role, Peer(1, 0), events=events))
    telling.join(listener)
    return listener


@pytest.fixture
def telling(inside: Inside) -> Telling:
    return Telling(inside.workspace, inside.assembly.services.reader)


async def test_a_new_file_is_an_artifact_and_a_source(inside: Inside, telling: Telling) -> None:
    listener = listen(telling, "exec")
    inside.write("turn_1/files/a.txt")
    await inside.sync()
    assert sorted(listener.methods()) == ["artifacts/changed", "sources/added"]


async def test_only_what_was_asked_for_is_told(inside: Inside, telling: Telling) -> None:
    listener = listen(telling, "runtime", frozenset({"sources"}))
    await inside.ask("sources/merge", {"rows": [{"title": "a"}]})
    await inside.ask("timeline/append", {"blocks": [{"type": "x", "turn_id": "t"}]})
    assert listener.methods() == ["sources/added"]


async def test_blocks_are_told_to_those_who_may_read_them(inside: Inside, telling: Telling) -> None:
    listeners = {role: listen(telling, role) for role in ("runtime", "editor", "exec", "renderer")}
    await inside.ask("timeline/append", {"blocks": [{"type": "x", "turn_id": "t", "path": "ar:t.x"}]})
    assert {role for role, listener in listeners.items() if listener.heard} == {"runtime", "editor"}
    assert listeners["editor"].heard[0][1]["blocks"] == [{"index": 0, "type": "x", "turn_id": "t", "path": "ar:t.x"}]


async def test_pending_files_are_told_to_programs_and_not_to_people(inside: Inside, telling: Telling) -> None:
    await inside.begin()
    await inside.ask("call/begin", {"tool_call_id": "tc_1", "tool_id": "exec", "params": {}})
    program, person = listen(telling, "exec"), listen(telling, "editor", frozenset({"artifacts"}))
    inside.write("turn_1/files/a.txt")
    await inside.sync()
    assert (program.methods(), person.methods()) == (["artifacts/changed"], [])
    await inside.ask("call/end", {"tool_call_id": "tc_1"})
    assert person.methods() == ["artifacts/changed"]


async def test_a_changed_row_is_no_new_source(inside: Inside, telling: Telling) -> None:
    await inside.ask("sources/merge", {"rows": [{"url": "https://e.com", "title": "a"}]})
    listener = listen(telling, "runtime")
    await inside.ask("sources/merge", {"rows": [{"url": "https://e.com", "title": "longer"}]})
    assert listener.methods() == []


async def test_an_oddity_is_posted_as_a_notice(inside: Inside, telling: Telling) -> None:
    listener = listen(telling, "runtime")
    inside.out.joinpath("turn_1/files").mkdir(parents=True)
    inside.out.joinpath("turn_1/files/l").symlink_to("/etc/passwd")
    await inside.sync()
    await inside.sync()
    assert [params["notice"]["code"] for _, params in listener.heard] == ["link_skipped"]


async def test_one_who_left_is_told_nothing(inside: Inside, telling: Telling) -> None:
    listener = listen(telling, "runtime")
    telling.leave(listener)
    await inside.ask("sources/merge", {"rows": [{"title": "a"}]})
    assert listener.heard == []
    assert telling.clients() == []


async def test_a_notice_names_only_what_its_listener_may_know_of(inside: Inside, telling: Telling) -> None:
    await inside.begin()
    await inside.ask("artifact/write", {"path": "s.md", "content": "a", "kind": "file", "visibility": "internal"})
    secret, shown = "turn_1/files/s.md", "turn_1/files/a.md"
    said: list[Notice] = [
        {"code": "still_open", "message": "m", "paths": [secret, shown]},
        {"code": "still_open", "message": "m", "paths": [secret]},
        {"code": "read_paths_missing", "message": "m", "missing": ["fi:turn_1.files/s.md", ".."]},
        {"code": "oversize", "message": "m", "path": secret},
    ]
    person, program = (listen(telling, role, frozenset({"notices"})) for role in ("editor", "exec"))
    await inside.workspace.stage(*map(Noticed, said))
    heard = [[payload["notice"] for _, payload in one.heard] for one in (person, program)]
    assert heard == [[{**said[0], "paths": [shown]}, {**said[2], "missing": [".."]}], said]
