"""Which file is newer than its namesake, and what a wrong name may have meant."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from sidecar.core.happened import Happened
from sidecar.core.paths import FilePath, parse_physical
from sidecar.server.editor.names import AT_ONCE, LOOKED_AT, Names, closest


def path(text: str) -> FilePath:
    return parse_physical(text)


def workspace(*paths: str) -> Any:
    turns = tuple(dict.fromkeys(one.partition("/")[0] for one in paths))
    artifacts = [SimpleNamespace(path=path(one)) for one in paths]
    return SimpleNamespace(artifacts=artifacts, turn_ids=turns, revision=1, listeners=[])


async def names(*paths: str) -> Names:
    made = Names(workspace(*paths))
    await made.ready()
    return made


async def test_later_is_what_comes_later_in_the_order_of_turns() -> None:
    made = await names("b/files/x.md", "a/files/x.md", "c/files/x.md", "c/files/sub/x.md", "c/attachments/x.md")
    assert made.later(path("b/files/x.md")) == [path("c/files/x.md"), path("a/files/x.md")]
    assert made.later(path("c/files/x.md")) == made.later(path("logs/x.md")) == []
    assert made.is_later("c", "a")
    assert not made.is_later("b", "a")
    assert not made.is_later("a", "nowhere")


async def test_names_are_found_whatever_their_case() -> None:
    made = await names("a/files/Report.md", "b/files/sub/report.md", "b/files/report.txt")
    assert set(made.same_name("REPORT.md")) == {path("a/files/Report.md"), path("b/files/sub/report.md")}
    assert closest("repotr.md", made.like("repotr.md")) == ["report.md"]


async def test_what_comes_later_is_taken_in_as_it_comes() -> None:
    there = workspace("a/files/x.md")
    made = Names(there)
    assert there.listeners == []  # nobody asked yet
    await made.ready()
    there.turn_ids, there.revision = ("a", "b"), 2
    for listener in there.listeners:
        listener(Happened(artifacts={"": SimpleNamespace(path=path("b/files/x.md"))}))  # type: ignore[dict-item]
    assert made.later(path("a/files/x.md")) == [path("b/files/x.md")]


async def test_many_are_taken_in_and_few_are_compared() -> None:
    made = await names(*(f"a/files/{number}.md" for number in range(3 * AT_ONCE)))
    assert len(made.like("x.md")) == LOOKED_AT
    assert made.same_name("5999.md")


async def test_namesakes_are_put_in_order_once_for_each_state() -> None:
    made = await names(*(f"t{number}/files/x.md" for number in range(2000)))
    assert len(made.later(path("t0/files/x.md"))) == 1999
    [known] = made._sorted.values()
    assert made.later(path("t1997/files/x.md")) == [path("t1999/files/x.md"), path("t1998/files/x.md")]
    assert next(iter(made._sorted.values())) is known
