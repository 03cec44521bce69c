"""The workspace as a whole, through its methods."""

from __future__ import annotations

from tests.server.inside import Inside


async def test_the_status_counts_everything(inside: Inside) -> None:
    await inside.begin()
    inside.write("turn_1/files/a.txt")
    await inside.sync()
    status = await inside.ask("workspace/status")
    assert status["counts"] == {"turns": 1, "blocks": 1, "artifacts": 1, "sources": 1, "versions": 1}
    assert (status["turn_id"], status["revision"]) == ("turn_1", inside.workspace.revision)


async def test_sync_tells_what_is_new_since_the_last_one(inside: Inside) -> None:
    inside.write("turn_1/files/a.txt")
    assert (await inside.sync())["artifacts"] == ["fi:turn_1.files/a.txt"]
    inside.write("turn_1/files/b.txt")
    again = await inside.sync()
    assert (again["artifacts"], again["sources"]) == (["fi:turn_1.files/b.txt"], [2])
    assert (await inside.sync())["artifacts"] == []


async def test_sync_names_what_somebody_still_writes(inside: Inside) -> None:
    with inside.write("turn_1/files/a.txt").open("a") as writer:
        writer.write("half")
        answer = await inside.sync()
    assert (answer["artifacts"], answer["unsettled"]) == ([], ["turn_1/files/a.txt"])


async def test_changes_are_replayed_page_by_page(inside: Inside) -> None:
    await inside.begin()
    for name in "abc":
        inside.write(f"turn_1/files/{name}.txt")
    await inside.sync()
    seen = []
    since = 0
    while True:
        page = await inside.ask("workspace/changes", {"since": since, "limit": 2})
        if not page["changes"]:
            break
        seen += page["changes"]
        since = page["changes"][-1]["revision"]
    revisions = [change["revision"] for change in seen]
    assert revisions == sorted(revisions)
    whole = await inside.ask("workspace/changes", {"since": 0})
    assert seen == whole["changes"]
    assert [change["sid"] for change in seen if "sid" in change] == [1, 2, 3]


async def test_a_revision_of_the_future_means_starting_over(inside: Inside) -> None:
    answer = await inside.ask("workspace/changes", {"since": inside.workspace.revision + 1})
    assert (answer["fresh"], answer["changes"]) == (True, [])


async def test_an_editor_hears_nothing_of_pending_files(inside: Inside) -> None:
    await inside.begin()
    await inside.ask("call/begin", {"tool_call_id": "tc_1", "tool_id": "exec", "params": {}})
    inside.write("turn_1/files/a.txt")
    await inside.sync()
    changes = (await inside.ask("workspace/changes", {"since": 0}, role="editor"))["changes"]
    assert [change for change in changes if change["kind"] == "artifact"] == []


async def test_what_an_editor_may_not_see_is_not_counted_for_it(inside: Inside) -> None:
    await inside.begin()
    await inside.ask("call/begin", {"tool_call_id": "tc_1", "tool_id": "exec", "params": {}})
    inside.write("turn_1/files/a.txt")
    inside.write("turn_1/files/b.txt")
    expected = [{"path": "turn_1/files/b.txt", "visibility": "internal"}]
    await inside.ask("call/end", {"tool_call_id": "tc_1", "expect": expected})
    counts = {role: (await inside.ask("workspace/status", role=role))["counts"] for role in ("runtime", "editor")}
    assert [counts[role]["artifacts"] for role in ("runtime", "editor")] == [2, 1]
    assert [counts[role]["sources"] for role in ("runtime", "editor")] == [1, 1]


async def test_turns_and_blocks_are_counted_alike_for_every_role(inside: Inside) -> None:
    await inside.begin()
    await inside.ask("call/begin", {"tool_call_id": "tc_1", "tool_id": "x", "params": {}})
    inside.write("turn_1/files/a.txt")
    expect = [{"path": "turn_1/files/a.txt", "visibility": "internal"}]
    await inside.ask("call/end", {"tool_call_id": "tc_1", "expect": expect})
    counts = [
        (await inside.ask("workspace/status", role=role))["counts"]
        for role in ("runtime", "exec", "renderer", "editor")
    ]
    told = len((await inside.ask("timeline/blocks"))["blocks"])
    assert {(one["turns"], one["blocks"]) for one in counts} == {(1, told)}
    assert len((await inside.ask("timeline/blocks", role="editor"))["blocks"]) < told, "some are not for editors"
