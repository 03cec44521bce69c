"""Citations through their methods."""

from __future__ import annotations

import orjson
import pytest

from protocol.requests.citations import ReplaceParams
from sidecar.core import limits
from sidecar.core.errors import TooLarge
from sidecar.server.caller import Caller, Client, Peer
from sidecar.server.methods import citations
from sidecar.server.methods.citations import SHORT_CHARS
from sidecar.server.wire import encode_in_pieces
from tests.daemon_process import Workspace
from tests.server.inside import Inside, Silence


async def with_sources(inside: Inside) -> None:
    rows = [{"url": "https://e.com/a", "title": "A"}, {"title": "a note"}]
    await inside.ask("sources/merge", {"rows": rows})
    inside.write("turn_1/files/f.txt")
    await inside.sync()


async def test_numbers_are_extracted(inside: Inside) -> None:
    await with_sources(inside)
    assert await inside.ask("citations/extract", {"text": "x [[S:3,1-2]] [[S:9]]"}) == {"sids": [1, 2, 3, 9]}


async def test_web_sources_become_links_and_others_their_titles(inside: Inside) -> None:
    await with_sources(inside)
    assert await inside.ask("citations/replace", {"text": "[[S:1]] [[S:2]] [[S:3]] [[S:1,9]] [[S:9]]"}) == {
        "text": "[A](https://e.com/a) a note f.txt [A](https://e.com/a) [[S:9]]",
        "sources_used": [1, 2, 3],
        "unresolved": [9],
    }


async def test_a_stream_uses_the_pool_of_its_first_chunk(inside: Inside) -> None:
    await with_sources(inside)
    first = await inside.ask("citations/stream", {"stream_id": "s", "chunk": "a [[S:"})
    await inside.ask("sources/merge", {"rows": [{"url": "https://n.io", "title": "N"}]})
    last = await inside.ask("citations/stream", {"stream_id": "s", "chunk": "1]] [[S:4]]", "flush": True})
    assert first["text"] + last["text"] == "a [A](https://e.com/a) [[S:4]]"
    assert last["sources_used"] == [1]


async def test_chunks_of_a_stream_follow_each_other_however_long_they_are(workspace: Workspace) -> None:
    chunks = [f"{number} " + ("y" * SHORT_CHARS + "z " if number % 5 == 2 else "") for number in range(20)]
    client = workspace.connect("exec")
    asked = [
        client.ask("citations/stream", {"stream_id": "s", "chunk": chunk, "flush": chunk is chunks[-1]})
        for chunk in chunks
    ]
    assert "".join(client.answer(number)["text"] for number in asked) == "".join(chunks)
    assert client.call("citations/stream", {"stream_id": "s", "chunk": "anew", "flush": True})["text"] == "anew"


async def test_streams_of_two_connections_are_apart(inside: Inside) -> None:
    await inside.ask("citations/stream", {"stream_id": "s", "chunk": "a ["})
    other = await inside.ask("citations/stream", {"stream_id": "s", "chunk": "b", "flush": True}, role="exec")
    assert other["text"] == "b"


async def test_too_many_open_streams_are_refused(inside: Inside) -> None:
    for number in range(limits.STREAMS_PER_CONNECTION):
        await inside.ask("citations/stream", {"stream_id": str(number), "chunk": "["})
    with pytest.raises(TooLarge):
        await inside.ask("citations/stream", {"stream_id": "one more", "chunk": "["})


@pytest.mark.rule("faults.a-crowd-of-clients-is-bounded")
async def test_all_streams_of_a_connection_hold_back_one_message_at_most(
    inside: Inside, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "MESSAGE_BYTES", 1000)

    async def feed(stream: str, chunk: str, *, flush: bool = False) -> str:
        asked = {"stream_id": stream, "chunk": chunk, "mime": "application/json", "flush": flush}
        return str((await inside.ask("citations/stream", asked))["text"])

    for stream in ("a", "b"):
        assert await feed(stream, '"' + "x" * 400) == ""
    with pytest.raises(TooLarge):
        await feed("c", "x" * 300)
    client = inside.clients["runtime"]
    assert (client.kept, [*client.streams]) == (802, ["a", "b"])
    assert len(await feed("a", '"', flush=True)) == 402
    assert client.kept == 401
    assert await feed("c", "x" * 300) == ""
    with pytest.raises(TooLarge):
        await feed("b", "x" * 300)
    assert (client.kept, [*client.streams]) == (300, ["c"])  # one that was refused is of no use any more


@pytest.mark.rule("answers.a-long-one-leaves-in-turns")
async def test_a_long_text_is_answered_in_pieces_and_unaltered(inside: Inside) -> None:
    await with_sources(inside)
    long = '{"hosted_uri": "mine", "sid": 1}\n' * 10_000
    params = ReplaceParams(text=f"{long}[[S:1]]")
    caller = Caller(Client(9, "exec", Peer(1, 0)), 1, "citations/replace", size=0, post=Silence())
    answer = await citations.replace(inside.assembly.services, caller, params)
    pieces = encode_in_pieces(answer, "exec")
    assert isinstance(pieces, list)
    assert max(map(len, pieces)) <= 2 * SHORT_CHARS
    assert orjson.loads(b"".join(pieces))["text"] == f"{long}[A](https://e.com/a)"
    streamed = await inside.ask("citations/stream", {"stream_id": "s", "chunk": f"{long}[[S:1]]", "flush": True})
    assert streamed["text"] == f"{long}[A](https://e.com/a)"
