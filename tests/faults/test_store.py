"""A store that fails: each way has its own reason, nothing half is written, and the next try works."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from sidecar.stores.s3_client import Timing
from sidecar.stores.s3_store import S3Store
from tests.daemon_process import eventually
from tests.faulty_front import (
    Answer,
    Behaviour,
    CutBody,
    Drip,
    FaultyFront,
    Garbage,
    Hang,
    HangUp,
    Instead,
    Slow,
    WrongBytes,
    WrongLength,
)
from tests.server.inside import Inside, awake

FILE = "turn_1/files/big.bin"
VIEWS = ("timeline.json", "context.json", "sources_pool.json")
CONTENT = bytes(range(256)) * 1024
QUICK = Timing(connect=0.3, read=0.5)


@asynccontextmanager
async def over(front: FaultyFront, bucket: str, folder: Path) -> AsyncIterator[Inside]:
    store = S3Store(bucket, folder.name, endpoint_url=front.url, region="us-east-1", timing=QUICK)
    async with awake(folder, store=store) as inside:
        yield inside


@pytest_asyncio.fixture
async def gone(front: FaultyFront, bucket: str, tmp_path: Path) -> AsyncIterator[Inside]:
    """A file that was hosted, and is neither here nor kept."""
    async with over(front, bucket, tmp_path) as inside:
        await inside.begin("turn_1")
        inside.write(FILE, CONTENT)
        await inside.ask("turn/end", {"turn_id": "turn_1"})
        (artifact,) = (await inside.ask("artifact/list"))["artifacts"]
        assert "key" in artifact
        (inside.out / FILE).unlink()
        inside.assembly.blobs.evict(artifact["sha256"])
        yield inside


async def rehost(inside: Inside) -> dict[str, Any]:
    return await asyncio.wait_for(inside.ask("artifact/rehost", {"paths": [FILE]}, role="exec"), 20)


@pytest.mark.rule("rehost.says-why-it-is-missing")
@pytest.mark.parametrize(
    ("behaviour", "fault"),
    [
        (Answer(500), "server_error"),
        (Answer(503, "SlowDown"), "server_error"),
        (Answer(403, "AccessDenied"), "denied"),
        (Answer(403, "SignatureDoesNotMatch"), "denied"),
        (Answer(404, "NoSuchBucket"), "no_bucket"),
        (Hang(), "timed_out"),
        (Drip(60.0), "timed_out"),
        (CutBody(1000), "cut_off"),
        (WrongBytes(), "wrong_bytes"),
        (HangUp(), "cut_off"),
        (Garbage(), "cut_off"),
        (Instead(b"<html>Sign in to the guests' network</html>"), "wrong_bytes"),
        (Instead(b"<Error><Code>InternalError</Code></Error>", "application/xml"), "wrong_bytes"),
        (WrongLength(-1000), "wrong_bytes"),
        (WrongLength(1000), "cut_off"),
    ],
    ids=lambda value: str(value),
)
async def test_a_download_that_fails_says_how(
    gone: Inside, front: FaultyFront, behaviour: Behaviour, fault: str
) -> None:
    front.behave(behaviour, method="GET")
    assert (await rehost(gone))["missing"] == [{"path": FILE, "reason": "store_unavailable", "fault": fault}]
    assert not list(gone.out.rglob("*.bin"))
    assert [path for path in gone.out.rglob("*") if path.is_file() and path.name not in VIEWS] == []
    front.heal()
    assert [one["origin"] for one in (await rehost(gone))["rehosted"]] == ["store"]
    assert (gone.out / FILE).read_bytes() == CONTENT


async def test_nobody_there_is_unreachable(gone: Inside, front: FaultyFront) -> None:
    front.refuse()
    try:
        assert (await rehost(gone))["missing"][0]["fault"] == "unreachable"
    finally:
        front.accept()
    assert (await rehost(gone))["rehosted"]


async def test_what_the_store_has_lost_is_gone(gone: Inside) -> None:
    store = gone.assembly.hosting.store
    assert store is not None
    await asyncio.to_thread(store.delete, await asyncio.to_thread(store.list, "cb/"))
    assert (await rehost(gone))["missing"] == [{"path": FILE, "reason": "gone"}]


@pytest.mark.parametrize(
    "behaviour", [Answer(500), Answer(403, "AccessDenied"), HangUp(), Hang()], ids=lambda value: str(value)
)
async def test_an_upload_that_fails_is_tried_again_and_holds_up_nothing(
    front: FaultyFront, bucket: str, tmp_path: Path, behaviour: Behaviour
) -> None:
    async with over(front, bucket, tmp_path) as inside:
        await inside.assembly.hosting.ask(lambda: None)
        front.behave(behaviour, method="PUT", path="/cb/")
        await inside.begin("turn_1")
        await inside.ask("call/begin", {"tool_call_id": "tc_1", "tool_id": "exec", "params": {}})
        inside.write(FILE, CONTENT)
        (made,) = (await asyncio.wait_for(inside.ask("call/end", {"tool_call_id": "tc_1"}), 5))["artifacts"]
        assert "key" not in made
        await until(lambda: inside.assembly.hosting.fault is not None)
        assert (await inside.ask("workspace/status"))["store"]["state"] == "unavailable"
        front.heal()
        await until(lambda: not inside.workspace.hosting)
        resolved = await inside.ask("artifact/resolve", {"paths": [FILE]})
        assert "key" in resolved["results"][0]["artifact"]
        assert (await inside.ask("workspace/status"))["store"]["state"] == "ok"


async def test_a_store_that_is_slow_loses_and_mixes_up_nothing(front: FaultyFront, bucket: str, tmp_path: Path) -> None:
    async with over(front, bucket, tmp_path) as inside:
        front.behave(Slow(0.2))
        await inside.begin("turn_1")
        for at in range(6):
            inside.write(f"turn_1/files/{at}.bin", CONTENT[at:])
        await inside.ask("turn/end", {"turn_id": "turn_1"})
        await until(lambda: not inside.workspace.hosting)
        for artifact in inside.workspace.artifacts:
            (inside.out / artifact.path.physical).unlink()
            inside.assembly.blobs.evict(artifact.versions[-1].sha256 or "")
        paths = [f"turn_1/files/{at}.bin" for at in range(6)]
        assert len((await inside.ask("artifact/rehost", {"paths": paths}))["rehosted"]) == 6
        assert [(inside.out / path).read_bytes() for path in paths] == [CONTENT[at:] for at in range(6)]


async def test_a_copy_that_failed_behind_a_success_is_not_taken_for_one(
    front: FaultyFront, bucket: str, tmp_path: Path
) -> None:
    """S3 answers 200 to a copy before it is made, and tells in the body that it failed."""
    async with over(front, bucket, tmp_path) as inside:
        await inside.begin("turn_1")
        inside.write("turn_1/files/first.bin", CONTENT)
        await inside.ask("turn/end", {"turn_id": "turn_1"})
        await until(lambda: not inside.workspace.hosting)
        failed = b"<?xml version='1.0'?><Error><Code>InternalError</Code><Message>as told</Message></Error>"
        front.behave(Instead(failed, "application/xml"), method="PUT", header="x-amz-copy-source")
        await inside.begin("turn_2")
        inside.write("turn_2/files/second.bin", CONTENT)
        await inside.ask("turn/end", {"turn_id": "turn_2"})
        assert any("x-amz-copy-source" in seen.headers for seen in front.seen), "nothing was copied"
        front.heal()
        await until(lambda: not inside.workspace.hosting)
        store = inside.assembly.hosting.store
        assert store is not None
        for artifact in inside.workspace.artifacts:
            for version in artifact.versions:
                (key,) = inside.assembly.hosting.keys_of(version.facts)
                assert b"".join(await asyncio.to_thread(lambda key=key: [*store.get(key)])) == CONTENT


async def test_a_store_that_is_away_ends_no_turn_late(front: FaultyFront, bucket: str, tmp_path: Path) -> None:
    async with over(front, bucket, tmp_path) as inside:
        await inside.assembly.hosting.ask(lambda: None)
        front.behave(Answer(503, "SlowDown"))
        await inside.begin("turn_1")
        inside.write(FILE, CONTENT)
        await asyncio.wait_for(inside.ask("turn/end", {"turn_id": "turn_1"}), 5)
        assert "turn_id" not in await inside.ask("workspace/status")
        front.heal()
        await until(lambda: not inside.workspace.hosting)


async def until(done: Callable[[], bool]) -> None:
    """Wait without holding up the loop: a store that was away is asked again after a rest."""
    await asyncio.to_thread(lambda: eventually(done, ceiling=20))
