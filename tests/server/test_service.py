"""The limits of a connection are those that the daemon tells."""

from __future__ import annotations

from sidecar.core import limits
from sidecar.server.service import Bounds, nobody
from tests.server.joined import Workbench, join, service


def test_the_bounds_are_the_limits_of_the_house() -> None:
    bounds = Bounds()
    assert (bounds.message_bytes, bounds.header_bytes) == (limits.MESSAGE_BYTES, limits.HEADER_BYTES)
    assert (bounds.soft_bytes, bounds.hard_bytes) == (limits.OUT_SOFT_BYTES, limits.OUT_HARD_BYTES)
    assert bounds.in_flight == limits.REQUESTS_IN_FLIGHT


async def test_those_who_keep_the_list_of_clients_hear_of_each_coming_and_going() -> None:
    bench = Workbench()
    made = service(bench)
    one, two = await join(made), await join(made)
    assert [guest.client.id for guest in bench.guests] == [1, 2]
    await one.drop()
    assert [guest.client.id for guest in bench.guests] == [2]
    nobody(bench.guests[0])
    await two.drop()
    assert bench.guests == []
