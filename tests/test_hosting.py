"""Hosting: what is wanted reaches the store, whatever happens in between, and nothing else does."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from sidecar.core.entries import HostingWanted
from sidecar.core.errors import Fault, StoreUnavailable
from sidecar.stores.folder_store import FolderStore
from tests.daemon_process import eventually
from tests.server.inside import Inside, awake

A, B = "turn_1/files/a/report.md", "turn_1/files/b/report.md"
SECONDS = 5.0


class Moody(FolderStore):
    """A folder that can be told to fail, for faults that a folder does not show."""

    fault: Fault | None = None
    puts = 0

    def put(self, key: str, *args: Any, **options: Any) -> None:
        if self.fault is not None:
            raise StoreUnavailable("the store", "it is in a mood", fault=self.fault)
        self.puts += key.startswith("cb/")
        super().put(key, *args, **options)

    def copy(self, *args: Any, **options: Any) -> bool:
        if self.fault is not None:
            raise StoreUnavailable("the store", "it is in a mood", fault=self.fault)
        sent = self.puts
        copied = super().copy(*args, **options)
        self.puts = sent  # a copy within the store sends nothing
        return copied


@pytest.fixture
def store(tmp_path: Path) -> Moody:
    return Moody(str(tmp_path / "store"))


@pytest_asyncio.fixture
async def hosting(tmp_path: Path, store: Moody) -> AsyncIterator[Inside]:
    async with awake(tmp_path, store=store) as inside:
        await inside.begin("turn_1")
        yield inside


async def call(inside: Inside, files: dict[str, str], name: str = "tc_1", expect: list[Any] | None = None) -> Any:
    """A call that makes these files."""
    await inside.ask("call/begin", {"tool_call_id": name, "tool_id": "exec", "params": {}})
    for path, content in files.items():
        inside.write(path, content)
    return await inside.ask("call/end", {"tool_call_id": name, "expect": expect or []})


async def hosted(inside: Inside, path: str = A, role: str = "runtime") -> dict[str, Any]:
    """The artifact once all that is wanted is hosted."""
    await inside.assembly.hosting.settle(SECONDS)
    resolved = await inside.ask("artifact/resolve", {"paths": [path]}, role=role)
    return resolved["results"][0]["artifact"]


async def anon(done: Callable[[], bool]) -> bool:
    """It is so before long: a store that was away is asked again after a rest."""
    return await asyncio.to_thread(eventually, done)


def blobs(inside: Inside) -> list[str]:
    """The keys of hosted files that stand in the store; what is saved of the conversation is told elsewhere."""
    store = inside.assembly.hosting.store
    assert store is not None
    return [key for key in store.list("cb/") if "/attachments/" in key]


@pytest.mark.rule("write.exec-makes-files-only")
@pytest.mark.rule("hosting.three-fields-are-recorded")
async def test_what_a_call_made_is_hosted_and_says_where(hosting: Inside) -> None:
    await call(hosting, {A: "one"})
    artifact = await hosted(hosting)
    assert artifact["kind"] == "file"
    assert artifact["hosted_uri"].endswith(artifact["key"])
    assert artifact["rn"].startswith("ef:default:default:chatbot:file:local:")
    assert blobs(hosting) == [artifact["key"]]
    assert (await hosting.ask("sources/list"))["rows"][0]["key"] == artifact["key"]


@pytest.mark.rule("hosting.equal-basenames-never-collide")
async def test_equal_names_and_equal_bytes_have_keys_of_their_own(hosting: Inside, store: Moody) -> None:
    await call(hosting, {A: "same", B: "same"})
    assert (await hosted(hosting, A))["key"] != (await hosted(hosting, B))["key"]
    assert len(blobs(hosting)) == 2
    assert store.puts <= 2


async def test_known_content_is_not_sent_twice(hosting: Inside, store: Moody) -> None:
    await call(hosting, {A: "same"}, "tc_1")
    await hosted(hosting, A)
    await call(hosting, {B: "same"}, "tc_2")
    assert (await hosted(hosting, B))["key"] in blobs(hosting)
    assert store.puts == 1


@pytest.mark.rule("write.internal-is-never-hosted")
async def test_internal_files_are_never_hosted(hosting: Inside) -> None:
    await call(hosting, {A: "secret"}, expect=[{"path": A, "visibility": "internal"}])
    await hosting.ask("turn/end", {"turn_id": "turn_1"})
    assert "key" not in await hosted(hosting)
    assert blobs(hosting) == []


async def test_what_appeared_while_no_call_was_open_is_hosted_at_the_end_of_the_turn(hosting: Inside) -> None:
    hosting.write(A, "one")
    await hosting.sync()
    assert "key" not in await hosted(hosting)
    await hosting.ask("turn/end", {"turn_id": "turn_1"})
    assert "key" in await hosted(hosting)


async def test_many_that_nobody_asked_for_are_wanted_some_at_a_time(
    hosting: Inside, store: Moody, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A turn that ends with many files holds up nobody while they are told to the journal."""
    monkeypatch.setattr("sidecar.hosting.WANTED_AT_ONCE", 10)
    store.fault = "unreachable"
    paths = [f"turn_1/files/{at:02d}.txt" for at in range(35)]
    for path in paths:
        hosting.write(path, path)
    await hosting.ask("workspace/sync")
    workspace, groups = hosting.assembly.workspace, list[int]()
    stage = workspace.stage

    def counted(*entries: Any) -> Any:
        groups.append(sum(isinstance(one, HostingWanted) for one in entries))
        return stage(*entries)

    monkeypatch.setattr(workspace, "stage", counted)
    await hosting.assembly.hosting.want_left_over()
    assert [count for count in groups if count] == [10, 10, 10, 5]
    assert [path for path, _ in workspace.hosting] == paths
    assert hosting.assembly.hosting.left_over() == []


async def test_a_new_version_is_hosted_beside_the_old_one_and_the_row_follows(hosting: Inside) -> None:
    await call(hosting, {A: "one"}, "tc_1")
    first = await hosted(hosting)
    await call(hosting, {A: "two!"}, "tc_2")
    second = await hosted(hosting)
    assert first["key"] != second["key"]
    assert len(blobs(hosting)) == 2
    (row,) = (await hosting.ask("sources/list"))["rows"]
    assert (row["key"], row["rn"]) == (second["key"], second["rn"])


async def test_a_row_forgets_where_old_bytes_were_hosted(hosting: Inside) -> None:
    await call(hosting, {A: "one"})
    await hosted(hosting)
    hosting.write(A, "two!")
    await hosting.sync()
    (row,) = (await hosting.ask("sources/list"))["rows"]
    assert row.keys().isdisjoint({"hosted_uri", "rn", "key"})


async def test_a_store_that_is_away_is_told_once_and_asked_again(hosting: Inside, store: Moody) -> None:
    store.fault = "denied"
    await call(hosting, {A: "one", B: "two"})
    await hosting.assembly.hosting.settle(SECONDS)
    await hosting.workspace.stage()
    status = (await hosting.ask("workspace/status"))["store"]
    status.pop("abilities", None)
    assert status == {"state": "unavailable", "kind": "folder", "reason": "denied", "waiting": 2}
    changes = (await hosting.ask("workspace/changes", {"since": 0}))["changes"]
    assert [change["kind"] for change in changes].count("notice") == 1
    store.fault = None
    assert await anon(lambda: not hosting.workspace.hosting)
    assert (await hosting.ask("workspace/status"))["store"]["state"] == "ok"
    assert len(blobs(hosting)) == 2


async def test_a_restart_goes_on_with_what_was_wanted(tmp_path: Path, store: Moody) -> None:
    store.fault = "unreachable"
    async with awake(tmp_path, store=store) as inside:
        await inside.begin("turn_1")
        await call(inside, {A: "one"})
    store.fault = None
    async with awake(tmp_path, store=store) as inside:
        assert "key" in await hosted(inside)


async def test_bytes_that_are_gone_are_waived_with_a_notice(tmp_path: Path, store: Moody) -> None:
    store.fault = "unreachable"
    async with awake(tmp_path, store=store) as inside:
        await inside.begin("turn_1")
        await call(inside, {A: "one"})
        sha256 = inside.workspace.artifacts.get("fi:turn_1.files/a/report.md").sha256()  # type: ignore[union-attr]
        inside.assembly.blobs.evict(str(sha256))
        inside.write(A, "two")
        await inside.sync()
    store.fault = None
    async with awake(tmp_path, store=store) as inside:
        await inside.assembly.hosting.settle(SECONDS)
        assert not inside.workspace.hosting
        assert blobs(inside) == []


async def test_what_became_internal_meanwhile_is_not_hosted(tmp_path: Path, store: Moody) -> None:
    async with awake(tmp_path, store=store) as inside:
        await inside.begin("turn_1")
        await call(inside, {A: "one"}, expect=[{"path": A, "visibility": "internal"}])
        sha256 = inside.workspace.artifacts.get("fi:turn_1.files/a/report.md").sha256()  # type: ignore[union-attr]
        await inside.workspace.stage(HostingWanted(A, str(sha256)))
        await inside.assembly.hosting.settle(SECONDS)
        assert blobs(inside) == []


async def test_without_a_store_nothing_is_wanted(tmp_path: Path) -> None:
    async with awake(tmp_path) as inside:
        await inside.begin("turn_1")
        await call(inside, {A: "one"})
        await inside.ask("turn/end", {"turn_id": "turn_1"})
        assert (await inside.ask("workspace/status"))["store"] == {"state": "unset", "kind": "none"}
        assert "key" not in await hosted(inside)


@pytest.mark.rule("rehost.from-the-store")
async def test_a_file_that_is_nowhere_else_comes_back_from_the_store(hosting: Inside) -> None:
    await call(hosting, {A: "one"})
    sha256 = (await hosted(hosting))["sha256"]
    (hosting.out / A).unlink()
    hosting.assembly.blobs.evict(sha256)
    answer = await hosting.ask("artifact/rehost", {"paths": [A]}, role="exec")
    assert [(one["origin"], one["sha256"]) for one in answer["rehosted"]] == [("store", sha256)]
    assert (hosting.out / A).read_text() == "one"


@pytest.mark.rule("hosting-trust.only-the-configured-store-is-contacted")
@pytest.mark.parametrize(
    "fields",
    [
        {"hosted_uri": "s3://stranger/x", "key": "x"},
        {"hosted_uri": "https://example.com/x"},
        {"hosted_uri": "file:///etc/passwd"},
        {"key": "../../etc/passwd"},
        {"key": "cb/tenants/default/projects/default/attachments/registered/local/another/turn_1/x"},
    ],
)
async def test_bytes_named_elsewhere_are_unknown(hosting: Inside, fields: dict[str, str]) -> None:
    meta = {"tool_call_id": "tc_9", "physical_path": "turn_1/files/x.bin", **fields}
    block = {"type": "react.tool.result", "path": "fi:turn_1.files/x.bin", "mime": "application/zip", "meta": meta}
    await hosting.ask("timeline/append", {"blocks": [block]})
    answer = await hosting.ask("artifact/rehost", {"paths": ["fi:turn_1.files/x.bin"]})
    assert answer["missing"] == [{"path": "fi:turn_1.files/x.bin", "reason": "unknown"}]


@pytest.mark.rule("hosting.three-fields-are-not-interchangeable")
async def test_the_three_fields_are_not_taken_for_each_other(hosting: Inside) -> None:
    await call(hosting, {A: "one"})
    artifact = await hosted(hosting)
    for wrong in ({"hosted_uri": artifact["key"]}, {"key": artifact["hosted_uri"]}, {"key": artifact["rn"]}):
        assert hosting.assembly.hosting.keys_of(wrong) == []
    assert hosting.assembly.hosting.keys_of({"hosted_uri": artifact["hosted_uri"]}) == [artifact["key"]]


@pytest.mark.rule("hosting.rn-is-the-download-handle")
async def test_editors_get_the_handle_and_programs_nothing(hosting: Inside) -> None:
    await call(hosting, {A: "one"})
    await hosted(hosting)
    seen = {role: (await hosted(hosting, A, role)).keys() for role in ("runtime", "editor", "renderer", "exec")}
    fields = {"hosted_uri", "rn", "key"}
    assert {role: sorted(fields & keys) for role, keys in seen.items()} == {
        "runtime": ["hosted_uri", "key", "rn"],
        "editor": ["rn"],
        "renderer": ["rn"],
        "exec": [],
    }


async def test_what_becomes_internal_while_it_is_sent_is_taken_out_again(hosting: Inside, store: Moody) -> None:
    sending, go_on = threading.Event(), threading.Event()
    put = store.put

    def slow(key: str, *args: Any, **options: Any) -> None:
        sending.set()
        assert go_on.wait(SECONDS)
        put(key, *args, **options)

    store.put = slow  # type: ignore[method-assign]
    await call(hosting, {A: "secret"})
    await asyncio.to_thread(sending.wait, SECONDS)
    await call(hosting, {}, "tc_2", expect=[{"path": A, "visibility": "internal"}])
    go_on.set()
    artifact = await hosted(hosting)
    assert (artifact["visibility"], "rn" in artifact, blobs(hosting)) == ("internal", False, [])


async def test_an_upload_that_fails_by_itself_leaves_the_store_in_use(hosting: Inside, store: Moody) -> None:
    put = store.put

    def odd(key: str, *args: Any, **options: Any) -> None:
        if key.endswith("-odd.md"):
            raise RuntimeError("what nobody thought of")
        put(key, *args, **options)

    store.put = odd  # type: ignore[method-assign]
    await call(hosting, {"turn_1/files/odd.md": "odd", A: "plain"})
    assert "key" in await hosted(hosting)
    assert (await hosting.ask("workspace/status"))["store"]["state"] == "ok"


async def test_a_file_told_to_be_hosted_elsewhere_is_hosted_here(hosting: Inside) -> None:
    hosting.write(A, "one")
    meta = {"tool_call_id": "tc_0", "hosted_uri": "s3://stranger/x"}
    block = {"type": "react.tool.result", "path": "fi:turn_1.files/a/report.md", "text": "one", "meta": meta}
    await hosting.ask("timeline/append", {"blocks": [block]})
    await hosting.sync()
    await hosting.ask("turn/end", {"turn_id": "turn_1"})
    assert len(blobs(hosting)) == 1


async def test_bytes_that_another_store_has_are_not_called_gone(tmp_path: Path) -> None:
    async with awake(tmp_path, store=FolderStore(str(tmp_path / "one"))) as inside:
        await inside.begin("turn_1")
        await call(inside, {A: "no text: \0"})
        sha256 = (await hosted(inside))["sha256"]
    (tmp_path / "out" / A).unlink()
    async with awake(tmp_path, store=FolderStore(str(tmp_path / "other"))) as inside:
        inside.assembly.blobs.evict(sha256)
        answer = await inside.ask("artifact/rehost", {"paths": [A]})
        assert answer["missing"] == [{"path": A, "reason": "unknown"}]
