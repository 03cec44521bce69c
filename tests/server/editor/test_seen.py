"""What a role may know, and what of a row may be shown or opened."""

from __future__ import annotations

from typing import Any

import pytest

from sidecar.core.numbers import NumberSet
from sidecar.core.paths import parse
from sidecar.core.references import references
from sidecar.server.editor.seen import NUMBERS_LOOKED_AT, Seen, file_of, one_line, title, web_address
from tests.server.inside import Inside


@pytest.mark.rule("editor.nothing-but-the-web-is-opened")
@pytest.mark.parametrize(
    ("url", "opens"),
    [
        ("https://e.org/a?b=1", True),
        (" HTTP://e.org ", True),
        ("command:workbench.action.quit", False),
        ("javascript:alert(1)", False),
        ("file:///etc/passwd", False),
        ("vscode://x/y", False),
        ("https://e.org/a b", False),
        ("https://e.org/\u202egpj", False),
        ("https://" + "e" * 5000, False),
        ("", False),
        (7, False),
    ],
)
def test_only_the_web_is_opened(url: Any, opens: bool) -> None:
    assert (web_address({"sid": 1, "url": url}) is not None) is opens


def test_a_files_row_leads_to_its_file() -> None:
    row = {"sid": 1, "source_type": "file", "physical_path": "turn_1/files/a.md", "url": "https://e.org"}
    assert (web_address(row), file_of(row)) == (None, "turn_1/files/a.md")
    assert file_of({"sid": 1, "source_type": "web", "physical_path": "x"}) is None


def test_titles_stand_on_one_line() -> None:
    assert title({"sid": 3}) == "Source 3"
    assert title({"sid": 3, "title": "a\n\u202eb\t  c"}) == "a b c"
    assert one_line("x" * 50, 10) == "x" * 9 + "…"


@pytest.mark.rule("editor.shows-only-what-the-role-may-see")
async def test_roles_meet_different_things(inside: Inside) -> None:
    await inside.begin()
    for visibility in ("external", "internal"):
        asked = {"path": f"fi:turn_1.files/{visibility}.md", "content": "x", "kind": "file", "visibility": visibility}
        await inside.ask("artifact/write", asked)
    inside.write("logs/out.log")
    await inside.sync()
    files = "fi:turn_1.files/external.md fi:turn_1.files/internal.md fi:logs/out.log fi:turn_1.files/no.md"
    text = f"{files} ar:turn_1.user.prompt"
    states = {
        role: [met.state for met in await Seen(inside.assembly.services, role).met(references(text, "text/plain"))]
        for role in ("editor", "runtime")
    }
    assert states["editor"] == ["here", "unknown", "here", "unknown", "unknown"]
    assert states["runtime"] == ["here", "here", "here", "unknown", "unknown"]


async def test_numbers_lead_to_rows_or_nowhere(inside: Inside) -> None:
    rows = [{"url": f"https://e.org/{number}", "title": "t"} for number in range(5)]
    await inside.ask("sources/merge", {"rows": rows})
    seen = Seen(inside.assembly.services, "editor")
    numbers = NumberSet((2, 9), ((3, 99),))
    assert [row["sid"] for row in seen.rows(numbers, 2)] == [2, 3]
    assert seen.unknown(numbers) == [9]
    assert len(seen.unknown(NumberSet(tuple(range(100, 2000))))) == NUMBERS_LOOKED_AT
    assert seen.knows(parse("so:sources_pool[5-9]"))
    assert not seen.knows(parse("so:sources_pool[6-9]"))
