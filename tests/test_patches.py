"""A patch is made of what stands there, all of it or nothing, whoever changes it meanwhile."""

from __future__ import annotations

from collections.abc import AsyncIterator
from itertools import count
from pathlib import Path
from typing import Any

import orjson
import pytest
import pytest_asyncio

from sidecar.core.errors import NotPermitted, StoreUnavailable, UnsafePath
from sidecar.core.paths import FilePath
from sidecar.rehost import Missing
from tests.server.inside import Inside, awake

PATH = FilePath("turn_9", "files", "a.md")
OLD = FilePath("turn_1", "files", "a.md")


@pytest_asyncio.fixture
async def inside(tmp_path: Path) -> AsyncIterator[Inside]:
    async with awake(tmp_path) as workspace:
        await workspace.begin("turn_9")
        yield workspace


async def patch(inside: Inside, text: str, path: FilePath = PATH, **more: Any) -> dict[str, Any]:
    answer: dict[str, Any] = await inside.ask("artifact/patch", {"path": path.physical, "patch": text, **more})
    return answer


async def told_content(inside: Inside, path: FilePath, text: str, **fields: Any) -> None:
    """The runtime tells of a text that never was a file."""
    digest = orjson.dumps({"artifact_path": path.logical, "mime": "text/markdown", **fields}).decode()
    blocks = [
        {"type": "react.tool.result", "mime": "application/json", "text": digest, "meta": {"tool_call_id": "tc_t"}},
        {"type": "react.tool.result", "path": path.logical, "text": text, "meta": {"tool_call_id": "tc_t"}},
    ]
    await inside.ask("timeline/append", {"blocks": blocks})


async def test_what_only_the_timeline_holds_is_patched_and_not_brought_first(inside: Inside) -> None:
    await told_content(inside, OLD, "old\n", kind="file", description="words", channel="canvas")
    answer = await patch(inside, "@@ -1 +1 @@\n-old\n+new\n", OLD)
    artifact = answer["artifact"]
    assert (artifact["kind"], artifact["description"], artifact["channel"]) == ("file", "words", "canvas")
    assert (inside.out / PATH.physical).read_text() == "new\n"
    assert not (inside.out / OLD.physical).exists()


async def test_the_latest_told_is_patched_and_not_an_older_file(inside: Inside) -> None:
    inside.write(OLD.physical, "older\n")
    await inside.sync()
    await told_content(inside, OLD, "latest\n")
    assert (await patch(inside, "@@ -1 +1 @@\n-latest\n+new\n", OLD))["ok"]
    assert (inside.out / PATH.physical).read_text() == "new\n"


@pytest.mark.parametrize(
    ("missing", "refusal"),
    [(Missing("store_unavailable", "timed_out"), StoreUnavailable), (Missing("unsafe_path"), UnsafePath)],
)
async def test_what_cannot_be_brought_now_is_a_refusal(
    inside: Inside, monkeypatch: pytest.MonkeyPatch, missing: Missing, refusal: type[Exception]
) -> None:
    async def failing(_: FilePath) -> Missing:
        return missing

    monkeypatch.setattr(inside.assembly.services.rehoster, "rehost", failing)
    with pytest.raises(refusal):
        await patch(inside, "new", OLD)
    assert not (inside.out / PATH.physical).exists()


async def test_a_file_that_keeps_changing_is_given_up(inside: Inside, monkeypatch: pytest.MonkeyPatch) -> None:
    inside.write(PATH.physical, "0")
    land, numbers = inside.assembly.services.landing.land, count(1)

    async def overtaken(*args: Any) -> dict[str, Any]:
        inside.write(PATH.physical, str(next(numbers)))
        return await land(*args)

    monkeypatch.setattr(inside.assembly.services.landing, "land", overtaken)
    with pytest.raises(NotPermitted, match="keeps changing"):
        await patch(inside, "new")
    assert (inside.out / PATH.physical).read_text() == "5"


@pytest.mark.rule("patch.the-timeline-keeps-the-patched-text")
async def test_a_whole_new_text_is_no_diff_to_be_kept(inside: Inside) -> None:
    inside.write(PATH.physical, "old")
    answer = await patch(inside, "new [[S:3]]")
    assert answer["artifact"]["sources_used"] == [3]
    path = f"tc:turn_9.{answer['artifact']['tool_call_id']}.result"
    told = (await inside.ask("timeline/blocks", {"path": path}))["blocks"]
    assert orjson.loads(told[-1]["text"]) == {"ok": True, "path": PATH.physical}


async def test_a_long_diff_is_kept_in_part(inside: Inside, monkeypatch: pytest.MonkeyPatch) -> None:
    inside.write(PATH.physical, "old\n")
    monkeypatch.setattr("sidecar.core.limits.INLINE_TEXT_BYTES", 10)
    answer = await patch(inside, "@@ -1 +1 @@\n-old\n+new\n")
    path = f"tc:turn_9.{answer['artifact']['tool_call_id']}.result"
    said = orjson.loads((await inside.ask("timeline/blocks", {"path": path}))["blocks"][-1]["text"])
    assert (said["patch"], said["truncated"]) == ("@@ -1 +1 @", True)


@pytest.mark.parametrize(("kind", "channel"), [("display", "timeline_text"), ("file", None)])
async def test_what_it_is_to_be_may_be_said(inside: Inside, kind: str, channel: str | None) -> None:
    inside.write(PATH.physical, "old")
    more = {"channel": channel} if channel else {}
    artifact = (await patch(inside, "new", kind=kind, **more))["artifact"]
    assert (artifact["kind"], artifact.get("channel")) == (kind, channel)
