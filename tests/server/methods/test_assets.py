"""Everything a page needs is brought; what is missing is told, each in its own way, and never as an error."""

from __future__ import annotations

import asyncio
import shutil
from functools import partial
from pathlib import Path
from typing import Any

import orjson
import pytest
import pytest_asyncio

from sidecar.core import limits
from sidecar.core.assets import Room
from sidecar.core.errors import BadPath, JournalUnavailable, NotFound, NotPermitted, Stale, UnknownTurn, UnsafePath
from sidecar.stores.folder_store import FolderStore
from tests.server.inside import Inside, awake

PNG = b"\x89PNG\r\n\x1a\n" + bytes(16)
PAGE = """<img src='turn_1/files/a.png'> ![x](turn_1/attachments/b%20c.png)
<div style="background:url(turn_1/files/bg.png)">see turn_1/files/report.pdf and [[S:2]] [[S:77]]
[h](https://e.com/turn_1/files/no.png)</div>
"""


async def pull(inside: Inside, content: str, *, role: str = "renderer", **params: Any) -> Any:
    return await inside.ask("assets/pull", {"content": content, **params}, role=role)


def places(assets: list[dict[str, Any]]) -> list[str]:
    return [asset["physical_path"] for asset in assets]


def codes(answer: dict[str, Any]) -> list[str]:
    return [notice["code"] for notice in answer["notices"]]


@pytest_asyncio.fixture
async def site(inside: Inside) -> Inside:
    """A turn with pictures and a report, all registered."""
    await inside.begin("turn_1")
    inside.write("turn_1/attachments/b c.png", PNG + b"b")
    inside.write("turn_1/files/a.png", PNG + b"a")
    inside.write("turn_1/files/report.pdf", "%PDF-1.4")
    await inside.sync()
    return inside


@pytest.mark.rule(
    "assets.success-even-with-holes", "assets.missing-assets-give-a-notice", "assets.unknown-sids-give-a-warning"
)
async def test_a_page_with_holes_is_a_success(site: Inside) -> None:
    (site.out / "turn_1/files/a.png").unlink()
    answer = await pull(site, PAGE, tool_id="rendering_tools.write_pdf")
    assert places(answer["rehosted"]) == ["turn_1/files/a.png"]
    assert sorted(places(answer["present"])) == ["turn_1/attachments/b c.png", "turn_1/files/report.pdf"]
    assert answer["missing"] == [
        {"path": "turn_1/files/bg.png", "physical_path": "turn_1/files/bg.png", "reason": "unknown"}
    ]
    assert answer["files_of_sources"] == {"2": "turn_1/files/a.png"}
    assert answer["sources_used"] == [2]
    assert [{**notice, "message": ""} for notice in answer["notices"]] == [
        {
            "code": "tool_call_error.missing_assets",
            "message": "",
            "missing": ["turn_1/files/bg.png"],
            "tool_id": "rendering_tools.write_pdf",
        },
        {
            "code": "tool_call_warning.missing_sources",
            "message": "",
            "missing_sids": [77],
            "tool_id": "rendering_tools.write_pdf",
        },
    ]


@pytest.mark.rule("assets.names-are-decoded-and-cleaned")
async def test_a_page_is_told_which_of_its_spellings_mean_which_file(site: Inside) -> None:
    content = "![x](turn_1/attachments/b%20c.png) [y](./turn_1/attachments/b%20c.png#top) ![z](turn_1/files/a.png)"
    answer = await pull(site, content)
    spellings = {asset["physical_path"]: asset.get("spellings") for asset in answer["present"]}
    assert spellings == {
        "turn_1/attachments/b c.png": ["turn_1/attachments/b%20c.png", "./turn_1/attachments/b%20c.png#top"],
        "turn_1/files/a.png": None,
    }


async def test_a_name_that_really_holds_such_characters_wins(site: Inside) -> None:
    site.write("turn_1/files/a%20b.png", PNG)
    site.write("turn_1/files/a b.png", PNG + b"other")
    site.write("turn_1/files/a.pdf#p2", "%PDF-1")
    answer = await pull(site, "![x](turn_1/files/a%20b.png) [y](turn_1/files/a.pdf#p2) [z](turn_1/files/report.pdf#p2)")
    assert places(answer["present"]) == ["turn_1/files/a%20b.png", "turn_1/files/a.pdf#p2", "turn_1/files/report.pdf"]


async def test_what_is_there_decides_where_a_name_in_prose_ends(site: Inside) -> None:
    site.write("turn_1/files/my big report (final).pdf", "%PDF-1")
    answer = await pull(
        site, "It is in turn_1/files/my big report (final).pdf and nowhere else. See turn_1/files/a.png."
    )
    assert places(answer["present"]) == ["turn_1/files/my big report (final).pdf", "turn_1/files/a.png"]
    assert answer["missing"] == []


async def test_words_that_only_look_like_paths_are_no_holes(site: Inside) -> None:
    answer = await pull(site, "Look into docs/files/readme.md, [there](chapter2.html) or [here](/about). /tmp/files/x")
    assert (answer["missing"], answer["notices"]) == ([], [])


@pytest.mark.rule("assets.nested-documents-are-followed")
async def test_nested_documents_are_followed_around_in_circles(site: Inside) -> None:
    site.write("turn_1/files/site/index.html", "<link rel=stylesheet href=css/s.css><iframe src=index.html></iframe>")
    site.write("turn_1/files/site/css/s.css", "@import 't.css'; a{b:url(../img/x.png)}")
    site.write("turn_1/files/site/css/t.css", "@import 's.css'; a{b:url(/no.png)} b{c:url(turn_1/files/a.png)}")
    site.write("turn_1/files/site/img/x.png", PNG)
    answer = await pull(site, '<iframe src="turn_1/files/site/index.html"></iframe>')
    assert places(answer["present"]) == [
        "turn_1/files/site/index.html", "turn_1/files/site/css/s.css", "turn_1/files/site/css/t.css",
        "turn_1/files/site/img/x.png", "turn_1/files/a.png",
    ]  # fmt: skip
    assert answer["missing"] == [{"path": "/no.png", "reason": "unsafe_path"}]


@pytest.mark.rule("assets.nested-documents-are-followed")
async def test_documents_are_followed_five_levels_deep(site: Inside) -> None:
    for level in range(9):
        site.write(f"turn_1/files/{level}.html", f"<iframe src={level + 1}.html></iframe>")
    answer = await pull(site, "<iframe src=turn_1/files/0.html></iframe>", mime="text/html")
    assert places(answer["present"]) == [f"turn_1/files/{level}.html" for level in range(limits.ASSET_DEPTH + 1)]
    assert [notice["limit"] for notice in answer["notices"]] == ["asset_depth"]


async def test_documents_are_read_as_far_as_there_is_room(site: Inside, monkeypatch: pytest.MonkeyPatch) -> None:
    site.write("turn_1/files/long.html", " " * 2000 + "<img src=no.png>")
    monkeypatch.setattr("sidecar.pulling.Room", partial(Room, bytes=1000))
    answer = await pull(site, "<iframe src=turn_1/files/long.html></iframe>", mime="text/html")
    assert places(answer["present"]) == ["turn_1/files/long.html"]
    assert [notice["limit"] for notice in answer["notices"]] == ["asset_bytes"]


async def test_a_page_may_be_a_file(site: Inside) -> None:
    page = site.write("turn_1/files/site/page.md", "![x](../a.png) ![y](no.png) [[S:1]]")
    await site.sync()
    page.unlink()
    answer = await site.ask("assets/pull", {"path": "fi:turn_1.files/site/page.md"}, role="exec")
    assert page.is_file()
    assert sorted(places(answer["present"])) == ["turn_1/attachments/b c.png", "turn_1/files/a.png"]
    assert answer["missing"] == [{"path": "no.png", "physical_path": "turn_1/files/site/no.png", "reason": "unknown"}]
    assert answer["notices"][0]["missing"] == ["turn_1/files/site/no.png"]
    assert [one["path"] for one in answer["lock"]] == [
        "turn_1/attachments/b c.png", "turn_1/files/a.png", "turn_1/files/site/page.md",
    ]  # fmt: skip


async def test_a_page_that_is_no_text_needs_nothing(site: Inside) -> None:
    answer = await site.ask("assets/pull", {"path": "turn_1/files/a.png"})
    assert (answer["present"], [one["path"] for one in answer["lock"]]) == ([], ["turn_1/files/a.png"])


@pytest.mark.parametrize(
    ("path", "refusal"),
    [
        ("turn_1/files/none.html", NotFound),
        ("../x", UnsafePath),
        ("ar:turn_1.user.prompt", BadPath),
        ("xx:what", BadPath),
    ],
)
async def test_a_page_that_is_not_there_is_refused(site: Inside, path: str, refusal: type[Exception]) -> None:
    with pytest.raises(refusal):
        await site.ask("assets/pull", {"path": path})


@pytest.mark.rule("assets.a-cited-file-is-an-asset")
async def test_a_citation_in_the_place_of_a_picture_brings_its_file(site: Inside) -> None:
    shutil.rmtree(site.out / "turn_1")
    answer = await pull(site, "<img src='[[S:1]]'> ![x]([[S:2-3]]) [[S:1-999999999]]")
    assert answer["files_of_sources"] == {
        "1": "turn_1/attachments/b c.png",
        "2": "turn_1/files/a.png",
        "3": "turn_1/files/report.pdf",
    }
    assert sorted(asset["sid"] for asset in answer["rehosted"]) == [1, 2, 3]
    assert answer["sources_used"] == [1, 2, 3]


@pytest.mark.rule("assets.unbringable-sid-files-give-a-warning")
async def test_a_cited_file_that_cannot_be_brought_is_a_warning_of_its_own(site: Inside) -> None:
    row = {"source_type": "file", "physical_path": "turn_1/files/lost.png", "title": "lost"}
    await site.ask("sources/merge", {"rows": [row, {"url": "https://e.com/"}]})
    answer = await pull(site, "[[S:4]] [[S:5]]")
    assert answer["missing"] == [
        {"path": "turn_1/files/lost.png", "physical_path": "turn_1/files/lost.png", "reason": "not_hosted", "sid": 4}
    ]
    assert (codes(answer), answer["sources_used"]) == (["tool_call_warning.missing_sid_assets"], [4, 5])
    assert (answer["notices"][0]["missing"], answer["notices"][0]["missing_sids"]) == (["turn_1/files/lost.png"], [4])


@pytest.mark.rule("assets.embedded-files-join-the-pool")
async def test_an_embedded_file_is_a_source_afterwards(site: Inside) -> None:
    site.write("turn_1/files/new.png", PNG + b"new")
    answer = await pull(site, "![x](turn_1/files/new.png) ![y](turn_1/files/a.png)")
    assert {asset["physical_path"]: asset["sid"] for asset in answer["present"]} == {
        "turn_1/files/new.png": 4,
        "turn_1/files/a.png": 2,
    }
    assert (await site.ask("sources/list", {"selector": "4"}))["rows"][0]["physical_path"] == "turn_1/files/new.png"


@pytest.mark.rule("assets.embedded-files-join-the-pool")
async def test_a_file_that_has_no_row_yet_gets_one_when_it_is_embedded(site: Inside) -> None:
    site.assembly.looker._eligible = ()
    site.write("turn_1/files/new.png", PNG + b"new")
    await site.sync()
    assert (await pull(site, "![x](turn_1/files/new.png)", request_id="r"))["present"][0]["sid"] == 4
    assert (await pull(site, "![x](turn_1/files/new.png)"))["present"][0]["sid"] == 4
    assert (await site.ask("sources/list"))["rows"][-1]["artifact_path"] == "fi:turn_1.files/new.png"


async def test_a_file_outside_every_turn_is_brought_and_no_source(site: Inside) -> None:
    site.write("logs/chart.png", PNG)
    answer = await pull(site, "![x](logs/chart.png)")
    assert places(answer["present"]) == ["logs/chart.png"]
    assert "sid" not in answer["present"][0]


async def test_what_a_role_may_not_see_is_missing(site: Inside) -> None:
    await site.ask("call/begin", {"tool_call_id": "tc_1", "tool_id": "exec", "params": {}})
    site.write("turn_1/files/made.png", PNG + b"made")
    await site.sync()
    content = "![x](turn_1/files/made.png)"
    assert places((await pull(site, content, role="exec"))["present"]) == ["turn_1/files/made.png"]
    assert (await pull(site, content))["missing"][0]["reason"] == "unknown"
    await site.ask("call/end", {"tool_call_id": "tc_1"})
    assert places((await pull(site, content))["present"]) == ["turn_1/files/made.png"]


async def test_a_page_is_pulled_from_the_store_into_an_empty_folder(tmp_path: Path) -> None:
    async with awake(tmp_path, store=FolderStore(str(tmp_path / "store"))) as inside:
        await inside.begin("turn_1")
        inside.write("turn_1/files/a.png", PNG)
        await inside.ask("turn/end", {"turn_id": "turn_1"})
        await inside.assembly.hosting.settle(5)
        sha256 = (await inside.ask("artifact/list"))["artifacts"][0]["sha256"]
        shutil.rmtree(inside.out / "turn_1")
        inside.assembly.blobs.evict(sha256)
        for role in ("renderer", "exec"):
            answer = await pull(inside, "<img src=turn_1/files/a.png> [[S:1]]", role=role)
            assert answer["rehosted" if role == "renderer" else "present"] == [
                {"path": "turn_1/files/a.png", "physical_path": "turn_1/files/a.png", "sha256": sha256, "sid": 1}
            ]
        assert (inside.out / "turn_1/files/a.png").read_bytes() == PNG


@pytest.mark.rule("assets.rehosted-before-rendering")
async def test_three_renderers_cost_one_fetch_and_one_leaves(site: Inside, monkeypatch: pytest.MonkeyPatch) -> None:
    shutil.rmtree(site.out / "turn_1")
    written: list[str] = []
    put_back = site.assembly.outdir.put_back
    loop, begun = asyncio.get_running_loop(), asyncio.Event()

    def counted(path: str, *args: object, **options: object) -> object:
        written.append(path)
        loop.call_soon_threadsafe(begun.set)
        return put_back(path, *args, **options)

    monkeypatch.setattr(site.assembly.outdir, "put_back", counted)
    pulls = [asyncio.create_task(pull(site, PAGE)) for _ in range(3)]
    await begun.wait()
    pulls[0].cancel()
    answers = await asyncio.gather(*pulls[1:])
    assert sorted(written) == ["turn_1/attachments/b c.png", "turn_1/files/a.png", "turn_1/files/report.pdf"]
    assert all((site.out / path).is_file() for path in written)
    assert [len(answer["missing"]) for answer in answers] == [1, 1]


async def noted(inside: Inside, call: str = "tc_1") -> list[str]:
    blocks = (await inside.ask("timeline/blocks", {"path": f"tc:turn_1.{call}.notice"}))["blocks"]
    assert {block["type"] for block in blocks} <= {"react.notice"}
    return [orjson.loads(block["text"])["code"] for block in blocks]


async def test_notices_of_a_call_are_told_once_for_each_code(site: Inside) -> None:
    await site.ask("call/begin", {"tool_call_id": "tc_1", "tool_id": "rendering_tools.write_pdf", "params": {}})
    answers = await asyncio.gather(*(pull(site, PAGE, role="runtime", tool_call_id="tc_1") for _ in range(3)))
    both = ["tool_call_error.missing_assets", "tool_call_warning.missing_sources"]
    assert [codes(answer) for answer in answers] == [both] * 3
    assert {notice["tool_id"] for answer in answers for notice in answer["notices"]} == {"rendering_tools.write_pdf"}
    assert await noted(site) == both
    await pull(site, "![x](turn_1/files/other.png)", role="runtime", tool_call_id="tc_1")
    assert await noted(site) == both
    await pull(site, PAGE, role="runtime", tool_call_id="tc_2")
    assert await noted(site, "tc_2") == both


async def test_notices_told_before_a_restart_are_not_told_again(tmp_path: Path) -> None:
    for _ in range(2):
        async with awake(tmp_path) as inside:
            if not inside.workspace.turn_id:
                await inside.begin("turn_1")
            await pull(inside, PAGE, role="runtime", tool_call_id="tc_1")
            assert len(await noted(inside)) == 2


async def test_a_notice_that_was_refused_is_told_by_the_next_pull(
    site: Inside, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as broken:
        broken.setattr(site.workspace, "stage", refuse)
        with pytest.raises(JournalUnavailable):
            await pull(site, "[[S:77]]", role="runtime", tool_call_id="tc_1")
    await pull(site, "[[S:77]]", role="runtime", tool_call_id="tc_1")
    assert await noted(site) == ["tool_call_warning.missing_sources"]


async def refuse(*_: object) -> None:
    raise JournalUnavailable("journal", "the disk is full")


async def test_a_call_is_the_runtimes_to_name(site: Inside) -> None:
    for role in ("renderer", "exec"):
        with pytest.raises(NotPermitted):
            await pull(site, "x", role=role, tool_call_id="tc_1")
    assert (await pull(site, "x", role="renderer", tool_id="rendering_tools.write_pdf"))["notices"] == []


async def test_a_call_without_a_turn_is_refused(inside: Inside) -> None:
    with pytest.raises(UnknownTurn):
        await pull(inside, "x", role="runtime", tool_call_id="tc_1")


async def test_the_same_request_is_answered_once(site: Inside) -> None:
    first = await pull(site, "![x](turn_1/files/a.png)", request_id="r1")
    (site.out / "turn_1/files/a.png").unlink()
    assert await pull(site, "![x](turn_1/files/a.png)", request_id="r1") == first
    with pytest.raises(Stale):
        await pull(site, "another page", request_id="r1")


@pytest.mark.rule("assets.rehosted-before-rendering")
async def test_the_same_page_has_the_same_lock_until_something_changes(site: Inside) -> None:
    first = await pull(site, PAGE)
    again = await pull(site, PAGE, lock=first["lock"])
    assert (again["lock"], again["drift"]) == (first["lock"], [])
    assert "drift" not in first
    site.write("turn_1/files/a.png", PNG + b"changed")
    site.write("turn_1/files/bg.png", PNG + b"came")
    drift = (await pull(site, PAGE.replace("turn_1/files/report.pdf", ""), lock=first["lock"]))["drift"]
    assert [(one["path"], "expected" in one, "actual" in one) for one in drift] == [
        ("turn_1/files/a.png", True, True),
        ("turn_1/files/bg.png", False, True),
        ("turn_1/files/report.pdf", True, False),
    ]


@pytest.mark.rule("assets.absolute-urls-are-left-out")
async def test_nothing_is_contacted_for_an_absolute_url(site: Inside) -> None:
    answer = await pull(site, "<img src='https://e.com/turn_1/files/a.png'><a href='mailto:a@b.c'>x</a>")
    assert (answer["present"], answer["missing"], answer["lock"]) == ([], [], [])


async def test_paths_out_of_the_folder_are_told_and_never_looked_for(site: Inside) -> None:
    answer = await pull(site, "<img src='../../x'><img src='turn_2/files/../../y'><img src='/etc/passwd'>")
    assert answer["missing"] == [
        {"path": path, "reason": "unsafe_path"} for path in ("../../x", "turn_2/files/../../y", "/etc/passwd")
    ]


async def test_only_the_named_files_are_looked_at(site: Inside, monkeypatch: pytest.MonkeyPatch) -> None:
    def survey(scope: str = "") -> None:
        raise AssertionError(f"{scope} was surveyed")

    monkeypatch.setattr(site.assembly.outdir, "survey", survey)
    assert len((await pull(site, PAGE))["present"]) == 3


async def test_a_hundred_thousand_links_are_answered_with_a_notice(inside: Inside) -> None:
    await inside.begin("turn_1")
    links = "".join(f"<a href=turn_1/files/{number}>x</a>" for number in range(20_000))
    answer = await pull(inside, links, mime="text/html")
    assert len(answer["missing"]) == limits.ASSET_REFERENCES
    assert [notice.get("limit") for notice in answer["notices"]] == [None, "asset_references"]
