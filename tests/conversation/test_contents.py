"""Contents of rows, read for an answer."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import orjson

from sidecar.conversation.archive import Content
from sidecar.conversation.contents import Contents
from sidecar.core.index_rows import Filters, IndexRow
from sidecar.pieces import Pieces
from sidecar.server.wire import encode_in_pieces
from tests.conversation.inside import EVERYTHING, Inside, inside

ROOM = 10_000_000


async def rows_of(one: Inside, *contents: dict[str, Any]) -> list[IndexRow]:
    for content in contents:
        await one.save(content=content)
    rows = await one.archive.ask(one.archive.index.rows, one.archive.scope, Filters(kinds=("my.note",)))
    return rows[::-1]


def stored_at(row: IndexRow) -> Path:
    return Path(unquote(urlsplit(row.hosted_uri).path))


def told(read: list[dict[str, Any]]) -> list[Any]:
    return orjson.loads(b"".join(encode_in_pieces(read, "runtime")))


async def test_contents_come_in_the_order_of_the_rows_however_many_there_are(tmp_path: Path) -> None:
    async with inside(tmp_path) as one:
        rows = await rows_of(one, *({"n": n} for n in range(20)))
        read = await Contents(one.archive).of(rows, EVERYTHING, room=ROOM)
        assert told(read.told) == [{"payload": {"n": n}} for n in range(20)]
        assert read.size == sum(len(orjson.dumps({"n": n})) for n in range(20))


async def test_what_an_answer_cannot_carry_says_so(tmp_path: Path) -> None:
    async with inside(tmp_path) as one:
        rows = await rows_of(one, {"n": "x" * 500}, {"n": "y" * 500}, {"n": 1}, {"n": 2})
        read = await Contents(one.archive).of(rows, EVERYTHING, room=600)
        assert [sorted(one) for one in read.told] == [["payload"], ["missing"], ["payload"], ["payload"]]
        assert read.told[1] == {"missing": "too_much"}
        alone = await Contents(one.archive).of(rows[:1], EVERYTHING, room=10)
        assert "payload" in alone.told[0]


async def test_a_content_that_is_not_to_be_had_says_why_and_fails_no_other(tmp_path: Path) -> None:
    async with inside(tmp_path) as one:
        rows = await rows_of(one, {"n": 1}, {"n": 2}, {"n": 3}, {"n": 4}, {"n": 5})
        stored_at(rows[1]).unlink()
        stored_at(rows[2]).write_bytes(b"no json")
        rows = [*rows[:3], replace(rows[3], key=""), replace(rows[4], key="cb/tenants/else/x.json", message_id="x")]
        read = await Contents(one.archive).of(rows, EVERYTHING, room=ROOM)
        reasons = [{"missing": why} for why in ("gone", "store_unavailable", "no_blob", "gone")]
        assert told(read.told) == [{"payload": {"n": 1}}, *reasons]


async def test_an_onlooker_gets_what_is_for_them_and_no_kind_that_is_withheld(tmp_path: Path) -> None:
    async with inside(tmp_path) as one:
        rows = await rows_of(one, {"n": 1, "secret": 2})
        cutting = replace(EVERYTHING, sees_all=False, cut=lambda content, _: {"n": content["n"]})
        assert told((await Contents(one.archive).of(rows, cutting, room=ROOM)).told) == [{"payload": {"n": 1}}]
        withheld = replace(cutting, withheld=frozenset({"my.note"}))
        assert (await Contents(one.archive).of(rows, withheld, room=ROOM)).told == [{"missing": "not_for_this_role"}]


async def test_members_that_an_answer_does_not_list_are_left_out(tmp_path: Path) -> None:
    async with inside(tmp_path) as one:
        rows = await rows_of(one, {"n": 1, "blocks": [1, 2]})
        leave_out = {"my.note": frozenset({"blocks"})}
        read = await Contents(one.archive).of(rows, EVERYTHING, room=ROOM, leave_out=leave_out)
        assert told(read.told) == [{"payload": {"n": 1}}]


async def test_a_payload_that_is_no_object_is_told_as_a_member(tmp_path: Path) -> None:
    async with inside(tmp_path) as one:
        blob = await one.archive.put(Content("my.note", "", 1.0, Pieces([b"[1]"]), "x"))
        row = one.archive.row(Content("my.note", "", 1.0, Pieces([b"[1]"]), "x"), blob, tags=())
        read = await Contents(one.archive).of([row], EVERYTHING, room=ROOM)
        assert told(read.told) == [{"payload": {"value": [1]}}]
