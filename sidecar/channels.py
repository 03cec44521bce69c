"""Which connection is whose: the runtime says which call one of the connections is for, by the name the kernel gave it.

A client that binds its socket before it connects has a name that no other socket has while it is open, and that it
cannot change (unix(7), autobind). So the runtime can connect in a program's stead, have the connection bound to the
program's call, and hand it down; the program itself claims nothing.
"""

from __future__ import annotations

import asyncio
from typing import Protocol

from sidecar.core.errors import NotFound, NotPermitted

ARRIVAL_SECONDS = 2.0
BOUND = frozenset({"exec", "renderer"})  # the runtime itself may name any call


class Channel(Protocol):
    """A connection: its role, its name or the empty text, and the call that it is bound to or the empty text."""

    role: str
    channel: str
    call: str


class Channels:
    """The connections that have a name."""

    def __init__(self) -> None:
        self._named: dict[str, list[Channel]] = {}
        self._awaited: dict[str, asyncio.Event] = {}

    def join(self, channel: Channel) -> None:
        if channel.channel and channel.role in BOUND:
            self._named.setdefault(channel.channel, []).append(channel)
            if (awaited := self._awaited.get(channel.channel)) is not None:
                awaited.set()

    def leave(self, channel: Channel) -> None:
        same = self._named.get(channel.channel, [])
        if channel in same:
            same.remove(channel)
            if not same:
                del self._named[channel.channel]

    async def arrival(self, name: str) -> None:
        """Wait a moment for a connection that was made before it was spoken of: it may still be at the door."""
        if name in self._named:
            return
        awaited = self._awaited.setdefault(name, asyncio.Event())
        try:
            await asyncio.wait_for(awaited.wait(), ARRIVAL_SECONDS)
        except TimeoutError:
            return
        finally:
            self._awaited.pop(name, None)

    def free(self, name: str) -> Channel:
        """The connection of this name. Raises NotFound, and NotPermitted when it is bound or not the only one.

        A name is unique among the sockets of one network namespace; another namespace may have it as well.
        """
        same = self._named.get(name, [])
        if not same:
            raise NotFound(f"channel {name}", "no exec or renderer connection has this name; connect it first")
        if len(same) > 1:
            raise NotPermitted(f"channel {name}", "several connections have this name; make another one")
        if same[0].call:
            raise NotPermitted(f"channel {name}", "this connection is bound to a call; every call has its own")
        return same[0]
