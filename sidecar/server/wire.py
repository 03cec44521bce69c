"""From values to JSON bytes, cut to the role that gets them. This is the only way out of the daemon."""

from __future__ import annotations

from functools import partial
from typing import Any

import orjson

from sidecar.core.glances import may_hold_hosting
from sidecar.core.hosting import CUT_FOR, without
from sidecar.pieces import Pieces

ITEMS_AT_ONCE = 32


def encode(result: Any, role: str) -> bytes:
    """Serialise a result or an event for a role. Raises TypeError for what is no JSON.

    A spliced `orjson.Fragment` must have been cut before: it is passed on as it is.
    """
    body = orjson.dumps(result)
    fields = CUT_FOR[role]
    if fields and may_hold_hosting(body):
        return orjson.dumps(without(result, fields))
    return body


def encode_in_pieces(result: Any, role: str) -> bytes | list[bytes]:
    """The same for a result that may hold `Pieces`: what lies between them is serialised, and they are left alone."""
    try:
        return encode(result, role)
    except TypeError:
        made: list[Pieces] = []
        body = orjson.dumps(result, default=partial(_leave_room, made))
        fields = CUT_FOR[role]
        if fields and may_hold_hosting(body):
            made.clear()
            body = orjson.dumps(without(result, fields), default=partial(_leave_room, made))
    first, *others = body.split(_ROOM)
    pieces = [first]
    for one, after in zip(made, others, strict=True):
        pieces += [*one.pieces, after]
    return pieces


class LongList:
    """The items of a long answer, serialised some at a time: whoever adds them gives others a turn in between."""

    def __init__(self, role: str) -> None:
        self.count = 0
        self._role = role
        self._waiting: list[Any] = []
        self._made: list[bytes] = []

    def add(self, item: Any) -> None:
        self.count += 1
        self._waiting.append(item)
        if len(self._waiting) >= ITEMS_AT_ONCE:
            self._serialise()

    def whole(self) -> Pieces:
        """All of them, as they go out."""
        self._serialise()
        return Pieces([b"[", b",".join(self._made), b"]"])

    def _serialise(self) -> None:
        if self._waiting:
            self._made.append(encode(self._waiting, self._role)[1:-1])
            self._waiting = []


_ROOM = b"\0"  # which stands in no JSON


def _leave_room(made: list[Pieces], value: Any) -> orjson.Fragment:
    if not isinstance(value, Pieces):
        raise TypeError(type(value).__name__)
    made.append(value)
    return orjson.Fragment(_ROOM)


def cut_block(body: bytes, role: str) -> bytes:
    """A block's JSON for a role. Only called for blocks that are known to hold a hosting field."""
    fields = CUT_FOR[role]
    return orjson.dumps(without(orjson.loads(body), fields)) if fields else body
