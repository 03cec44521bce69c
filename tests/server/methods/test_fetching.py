"""What a program fetches."""

from __future__ import annotations

import pytest

from tests.server.inside import Inside

PNG = b"\x89PNG\r\n\x1a\n" + bytes(16)
FILE = "fi:turn_1.files/a.md"


async def told_prompt(inside: Inside) -> None:
    await inside.ask("turn/begin", {"turn_id": "turn_1", "prompt": "make a report"})


async def test_fetch_answers_rows_and_what_is_missing(inside: Inside) -> None:
    inside.write("turn_1/files/a.md", "# hi")
    await inside.sync()
    fetched = await inside.ask("artifact/fetch", {"path": "so:sources_pool[1-3]"}, role="exec")
    assert [row["sid"] for row in fetched["ret"]] == [1]
    assert (fetched["err"], fetched["missing"]) == (None, [2, 3])


@pytest.mark.parametrize(
    ("path", "text"),
    [("ar:turn_1.user.prompt", "make a report"), (FILE, "# hi"), ("turn_1/files/a.md", "# hi")],
)
async def test_fetch_answers_texts(inside: Inside, path: str, text: str) -> None:
    await told_prompt(inside)
    inside.write("turn_1/files/a.md", "# hi")
    fetched = await inside.ask("artifact/fetch", {"path": path}, role="exec")
    assert (fetched["ret"]["text"], fetched["err"]) == (text, None)


@pytest.mark.parametrize(
    ("path", "code"),
    [("", "unsafe_path"), ("zz:x", "bad_path"), ("../x", "unsafe_path"), ("fi:turn_1.files/no", "not_found"),
     ("ar:turn_1.user.prompt", "not_found"), ("tc:turn_1.tc.result", "not_found")],
)  # fmt: skip
async def test_fetch_puts_what_is_wrong_into_err(inside: Inside, path: str, code: str) -> None:
    fetched = await inside.ask("artifact/fetch", {"path": path}, role="exec")
    assert (fetched["ret"], fetched["err"]["code"]) == (None, code)


async def test_several_texts_of_a_call_are_joined(inside: Inside) -> None:
    await inside.begin()
    blocks = [{"type": "react.tool.result", "path": "tc:turn_1.tc_1.result", "text": text} for text in ("a", "b")]
    await inside.ask("timeline/append", {"blocks": blocks})
    assert (await inside.ask("artifact/fetch", {"path": "tc:turn_1.tc_1.result"}))["ret"]["text"] == "a\n\nb"


async def test_a_files_own_text_is_never_cut(inside: Inside) -> None:
    text = '{"artifact_path": "x", "key": "mine", "rn": "mine", "hosted_uri": "mine"}'
    inside.write("turn_1/files/a.json", text)
    fetched = await inside.ask("artifact/fetch", {"path": "turn_1/files/a.json"}, role="exec")
    assert fetched["ret"]["text"] == text


async def test_fetching_what_was_only_told_makes_no_file_of_it(inside: Inside) -> None:
    await inside.begin()
    block = {"type": "react.tool.result", "path": FILE, "text": "shown", "meta": {"tool_call_id": "tc_1"}}
    await inside.ask("timeline/append", {"blocks": [block]})
    fetched = await inside.ask("artifact/fetch", {"path": FILE}, role="exec")
    assert (fetched["ret"]["text"], fetched["ret"]["kind"]) == ("shown", "display")
    assert not (inside.out / "turn_1").exists()
