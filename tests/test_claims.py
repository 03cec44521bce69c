"""A look waits for files that are held, and knows which were held while it read."""

from __future__ import annotations

import asyncio

from sidecar.claims import Claims


async def test_whoever_looks_waits_for_the_holder() -> None:
    claims = Claims()
    with claims.hold("a"):
        assert ["a" in claims, "b" in claims] == [True, False]
        waiting = asyncio.create_task(claims.released(["a", "b"]))
        await claims.released(["b"])
        await asyncio.sleep(0)
        assert not waiting.done()
    async with asyncio.timeout(5):
        await waiting
    assert claims.met(["a", "b"]) == set()


async def test_what_was_held_while_a_look_read_is_named_once() -> None:
    claims = Claims()
    await claims.released(["a", "b"])
    with claims.hold("a"), claims.hold("c"):
        pass
    assert claims.met(["a", "b"]) == {"a"}
    assert claims.met(["a", "b"]) == set()


async def test_nothing_is_noted_while_nobody_looks() -> None:
    claims = Claims()
    with claims.hold("a"):
        pass
    await claims.released(["a"])
    assert claims.met(["a"]) == set()


async def test_a_holder_that_fails_lets_go() -> None:
    claims = Claims()
    try:
        with claims.hold("a"):
            raise OSError
    except OSError:
        pass
    async with asyncio.timeout(5):
        await claims.released(["a"])
