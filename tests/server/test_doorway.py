"""An open door through the deaths of its daemons, which do as they are told; real ones die in `tests/faults`."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.daemon_process import eventually
from tests.rpc_client import RpcError, frame
from tests.server.door_site import CEILING, Door, Site


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    made = Site(tmp_path)
    yield made
    made.close()


def lost(door: Door, number: int) -> str:
    """What the refusal of a request that its daemon took with it is about."""
    with pytest.raises(RpcError) as refused:
        door.client.answer(number)
    assert (refused.value.code, refused.value.kind) == (-32803, "shutting_down")
    about: str = refused.value.data["about"]
    return about


def kill(daemon: int) -> None:
    """SIGKILL, and its connections are closed when this returns."""
    os.kill(daemon, signal.SIGKILL)
    eventually(lambda: not alive(daemon))


def alive(process: int) -> bool:
    """Whether any thread of it runs. Its parent may be a door, which leaves a zombie until it asks."""
    place = Path(f"/proc/{process}")
    try:
        ended = "\nState:\tZ" in (place / "status").read_text("utf-8")
        return not ended or len([*(place / "task").iterdir()]) > 1
    except (FileNotFoundError, ProcessLookupError):
        return False


# What passes while all is well


def test_bytes_that_are_no_messages_pass_as_they_are_both_ways(site: Site) -> None:
    sent = b"no message\n" + os.urandom(3_000_000)
    assert site.door().end(sent) == (0, sent, "")


def test_messages_pass_as_they_are_however_large(site: Site) -> None:
    door = site.door()
    door.greet()
    text = "ä" * 2_000_000
    assert door.client.call("big", {"text": text})["params"]["text"] == text


def test_what_is_no_json_is_the_daemons_affair(site: Site) -> None:
    door = site.door()
    door.greet()
    door.client.send_bytes(frame(b'{"id": 1, "method"'))
    assert door.client.receive()["error"]["code"] == -32700
    assert door.end() == (0, b"", "")


def test_a_daemon_that_hangs_up_with_a_last_word_to_this_client_has_no_successor(site: Site) -> None:
    door = site.door()
    door.greet()
    silent = door.client.ask("silence")
    door.client.notify("hang up")
    assert door.client.receive()["error"]["message"] == "I had enough"
    assert lost(door, silent) == "silence"
    assert door.process.wait(CEILING) == 0
    assert len(site.daemons()) == 1


# Death


@pytest.mark.parametrize("code", [70, 0, 1])
def test_another_daemon_follows_one_that_ends(site: Site, code: int) -> None:
    door = site.door()
    first = door.greet()
    last = door.client.ask("die", {"code": code})
    assert lost(door, last) == "die"
    answer = door.client.call("anything")
    assert answer["greeted"]
    assert answer["daemon"] == site.daemons()[1] != first


def test_only_what_was_under_way_is_refused(site: Site) -> None:
    door = site.door()
    daemon = door.greet()
    # The daemon has both when it answers what was asked behind them.
    silent, also, answered = (door.client.ask(method) for method in ("silence", "silence", "a"))
    assert door.client.answer(answered)["method"] == "a"
    kill(daemon)
    assert (lost(door, also), lost(door, silent)) == ("silence", "silence")
    assert door.client.call("b")["method"] == "b"


def test_ids_may_be_texts(site: Site) -> None:
    door = site.door()
    door.greet()
    door.client.send({"jsonrpc": "2.0", "id": 'a "ä"\\', "method": "silence"})
    door.client.ask("die", {"code": 70})
    assert door.client.receive()["id"] == 'a "ä"\\'


def test_half_an_answer_is_not_passed_on(site: Site) -> None:
    door = site.door()
    door.greet()
    assert lost(door, door.client.ask("half an answer")) == "half an answer"
    assert door.client.call("whole")["method"] == "whole"


def test_half_a_request_waits_for_its_other_half_and_goes_to_the_next_daemon(site: Site) -> None:
    door = site.door()
    daemon = door.greet()
    whole = site.request("split", "late", {"text": "x" * 100_000})
    door.client.send_bytes(whole[:70_000])
    kill(daemon)
    door.client.send_bytes(whole[70_000:])
    assert door.client.answer("split")["daemon"] == site.daemons()[1] != daemon


def test_requests_that_find_no_daemon_wait_for_the_next(site: Site) -> None:
    door = site.door()
    kill(door.greet())
    numbers = [door.client.ask("late", {"text": "x" * 1000}) for _ in range(200)]
    assert {door.client.answer(number)["daemon"] for number in numbers} == {site.daemons()[1]}


def test_a_client_that_says_nothing_has_no_daemon_started_for_it(site: Site) -> None:
    door = site.door()
    kill(door.greet())
    number = door.client.ask("wake")
    door.client.answer(number)
    assert len(site.daemons()) == 2
    kill(site.daemons()[1])
    assert door.end() == (0, b"", "")
    assert len(site.daemons()) == 2


def test_a_client_of_events_gets_the_next_daemon_at_once_and_hears_that_it_missed_something(site: Site) -> None:
    door = site.door()
    kill(door.greet(events=["sources"]))
    assert door.client.event("heard")["method"] == "initialized"
    notice = door.client.event("notice/posted")
    assert notice["revision"] == 7
    assert (notice["notice"]["code"], notice["notice"]["count"]) == ("events_dropped", 0)
    assert len(site.daemons()) == 2


def test_the_client_hears_of_no_second_greeting(site: Site) -> None:
    door = site.door()
    kill(door.greet())
    assert door.client.call("a")["greeted"]
    assert [m["params"]["method"] for m in door.client.mail.notifications] == ["initialized"]
    assert set(door.client.mail.answers) == set()


def test_a_greeting_that_was_not_answered_is_told_to_the_next_daemon_with_all_that_waits_behind_it(site: Site) -> None:
    door = site.door("hangs-up-on-the-first")
    door.client.send_bytes(b"".join(site.request(at, method) for at, method in enumerate(("initialize", "a", "b"))))
    answers = [door.client.answer(number) for number in range(3)]
    assert [answer["method"] for answer in answers] == ["initialize", "a", "b"]
    assert {answer["daemon"] for answer in answers} == {site.daemons()[1]}


def test_open_documents_are_open_with_the_next_daemon(site: Site) -> None:
    door = site.door()
    daemon = door.greet()
    document = {"textDocument": {"uri": "file:///a"}}
    for method in ("textDocument/didOpen", "textDocument/didChange"):
        door.client.notify(method, document)
        door.client.event("heard")
    kill(daemon)
    door.client.call("a")
    heard = [door.client.event("heard") for _ in range(3)]
    assert [what["method"] for what in heard] == ["initialized", "textDocument/didOpen", "textDocument/didChange"]
    assert {what["daemon"] for what in heard} == {site.daemons()[1]}


def test_half_a_citation_stream_is_refused_and_not_gone_on_with(site: Site) -> None:
    door = site.door()
    daemon = door.greet()
    chunk = {"stream_id": "s", "chunk": "[[S:"}
    assert door.client.call("citations/stream", chunk)["params"] == chunk
    kill(daemon)
    assert lost(door, door.client.ask("citations/stream", {"stream_id": "s", "chunk": "1]]"})) == "citations/stream"
    assert door.client.call("citations/stream", chunk)["params"] == chunk


def test_an_answer_to_a_daemon_that_has_ended_is_not_told_to_the_next(site: Site) -> None:
    door = site.door()
    door.greet()
    first = door.client.call("ask me")["daemon"]
    question = door.client.mail.take("question")
    assert question is not None
    kill(first)
    second = door.client.call("ask me")["daemon"]
    assert second != first
    for answer in ("to the first", "to the second"):
        door.client.send({"jsonrpc": "2.0", "id": question["id"], "result": answer})
    door.client.call("a")
    heard = [m["params"] for m in door.client.mail.notifications if m["method"] == "heard"]
    answers = [what["answer"]["result"] for what in heard if "answer" in what]
    assert answers == ["to the second"]


# The end


def test_after_shutdown_no_daemon_follows(site: Site) -> None:
    door = site.door()
    daemon = door.greet()
    door.client.call("shutdown")
    kill(daemon)
    assert door.process.wait(CEILING) == 0
    assert len(site.daemons()) == 1


def test_a_shutdown_that_finds_no_daemon_has_come_true(site: Site) -> None:
    door = site.door()
    kill(door.greet())
    assert door.client.call("shutdown") is None
    assert door.process.wait(CEILING) == 0
    assert len(site.daemons()) == 1


def test_a_client_that_leaves_while_there_is_no_daemon_leaves(site: Site) -> None:
    door = site.door()
    kill(door.greet())
    door.client.notify("exit")
    assert door.process.wait(CEILING) == 0
    assert len(site.daemons()) == 1


def test_daemons_that_die_again_and_again_end_the_door(site: Site) -> None:
    door = site.door("dies-while-waking-again")
    door.greet(events=["sources"])
    kill(site.daemons()[0])
    assert door.process.wait(60) == 70
    assert len(site.daemons()) == 6
    _, heard, errors = door.end()
    assert heard == b""
    assert errors.startswith("the daemon ended 6 times in a row before it gave a result; the daemon ended with exit ")
    assert errors.endswith("70: out of memory")


def test_what_waits_when_the_door_gives_up_is_refused(site: Site) -> None:
    door = site.door("dies-while-waking-again")
    kill(door.greet())
    door.client.ceiling = 60
    assert lost(door, door.client.ask("late")) == "late"
    assert door.process.wait(CEILING) == 70


def test_a_daemon_of_use_is_followed_as_often_as_need_be(site: Site) -> None:
    door = site.door()
    door.greet()
    for _ in range(8):
        kill(door.client.call("a")["daemon"])
    assert door.client.call("a")["daemon"] == site.daemons()[8]


def test_a_daemon_that_no_longer_speaks_with_the_client_ends_the_door(site: Site) -> None:
    door = site.door("takes-no-second-greeting")
    kill(door.greet())
    assert lost(door, door.client.ask("late")) == "late"
    code, _, errors = door.end()
    assert code == 69
    assert errors == "the next daemon does not take this client: I speak 2.0 only"
