"""What texts cite, whole and in streams, in Markdown, HTML and JSON."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from unittest.mock import patch

from sidecar.core import citations
from sidecar.core.citations import Link, StreamReplacer, extract, replace, scan
from sidecar.core.tokens import print_token, token_numbers
from tests.fuzzing.draw import Draw, cuts
from tests.fuzzing.target import Target, worded

MIMES = ("text/markdown", "text/html", "application/json", "")


class Pool:
    """Some sources: with and without a URL, with one that would run, and a number that may not be shown."""

    def __init__(self, links: dict[int, Link | None]) -> None:
        self._links = links

    @property
    def sids(self) -> Sequence[int]:
        return sorted(self._links)

    def link(self, sid: int) -> Link | None:
        return self._links.get(sid)


FULL = Pool(
    {
        1: Link("One", "https://one.example/a"),
        2: Link("T[w]o|`<b>", "https://two.example/(x) y?a=1&b=\"'"),
        3: Link("Three", None),
        4: Link("Four\n", "java\nscript:alert(1)"),
        5: None,
        7: Link(" ", "https://seven.example/"),
    }
)
EMPTY = Pool({})


def check(data: bytes) -> None:
    draw = Draw(data)
    mime = draw.pick(MIMES)
    places = cuts(draw, len(data), most=9)
    piece = 1 + draw.number(12)
    text = draw.text()
    whole = replace(text, mime, FULL)
    for ends in (places, range(1, len(text))):
        assert streamed(text, mime, ends) == (whole.text, whole.sources_used, whole.unresolved)
    cited = extract(text, mime, FULL.sids)
    assert cited == sorted({*whole.sources_used, *whole.unresolved})
    assert set(whole.sources_used) <= {1, 2, 3, 4, 7}
    with patch.object(citations, "PIECE_CHARS", piece):
        assert extract(text, mime, FULL.sids) == cited
    assert replace(text, mime, EMPTY).text == text
    assert extract(whole.text, mime, ()) is not None
    found = stand_apart(text, mime)
    if mime != "application/json":
        assert whole.text == spelled_out(text, mime, found)
    elif whole.text != text:
        json.loads(whole.text)
    if cited:
        numbers = token_numbers(print_token(cited))
        assert numbers is not None
        assert numbers.among(cited) == cited


def plainly(data: bytes) -> object:
    draw = Draw(data)
    return replace(draw.text(), draw.pick(MIMES), FULL)


def streamed(text: str, mime: str, ends: Sequence[int]) -> tuple[str, list[int], list[int]]:
    stream = StreamReplacer(mime, FULL)
    answer = ""
    for begin, end in zip([0, *ends], [*ends, len(text)], strict=True):
        answer += stream.feed(text[begin:end])
    answer += stream.flush()
    return answer, stream.sources_used, stream.unresolved


def stand_apart(text: str, mime: str) -> list[citations.Found]:
    """What is cited, in order and none within another."""
    found = list(scan(text, mime))
    at = 0
    for one in found:
        assert at <= one.start <= one.end <= len(text)
        at = one.end
    return found


def spelled_out(text: str, mime: str, found: Sequence[citations.Found]) -> str:
    """The text with each token replaced as if it stood alone, and nothing else changed."""
    at, spelled = 0, ""
    for one in found:
        token = text[one.start : one.end]
        alone = token if one.settled else replace(token, mime, FULL).text
        spelled += text[at : one.start] + alone
        at = one.end
    return spelled + text[at:]


def seeds() -> Iterator[bytes]:
    for number, text in enumerate((
        "See [[S:1]] and [[S:1-3, 7]], not `[[S:2]]` nor\n\n```\n[[S:3]]\n```\n",
        '<p title="[[S:1]]">x [[S:1,2]]<!-- [[S:2]] --><code>[[S:3]]</code><sup class="cite" data-sids="1,3">x</sup>',
        '{"a": "b [[S:1]]", "sources_used": [1, 2], "c": ["[[S:9]]", {"sids": [3]}]}',
        "［［S：1–3］］ [\u200b[s : 2]\u200b] [[S:]] [[S:x]] [[S:99999999999999999999]]",
        "- [[S:1]]\n- ```\n  [[S:2]]\n  ```\n\n    [[S:3]]\n\n|a|`[[S:1]]`|\n|-|-|\n~~~x\n[[S:2]]\n~~~~\n",
        "<script>[[S:1]]</script ><textarea>[[S:2]]</textarea><![CDATA[ [[S:3]] ]]><a href='>' [[S:1]]>[[S:2]]",
        "``[[S:1]] ` `` \\`[[S:2]]` <sup class='cite' data-sids=1>[1]</sup>[[S:1]]",
    )):  # fmt: skip
        yield text.encode() + bytes([number, 30, 20, 10, 4, number % 4])


TARGET = Target(
    "citations",
    "a stream cut anywhere says what the whole text says; only tokens change, each as it would alone; what is used is"
    " in the pool; what is extracted is what is replaced or unresolved",
    check,
    worded(
        "[[S: ]] [[S:1]] [[S:1-3]] [[S:2,7]] [[ ]] [ ] S : 1 , - – — ［ ］ ： ` `` ``` ~~~ - 1. # | > < </ <!-- -->"
        " <!DOCTYPE <![CDATA[ ]]> <code> </code> <pre> <script> </script> <style> <textarea> </textarea> <title>"
        " <sup </sup> class=cite data-sids= ' \" = { } \" \\ sources_used : null \\u005b",
        '<sup class="cite" data-sids="2">', "\n\n", "    ", "\t", "\r\n", "\u200b", "\ufeff", "\u00ad",
    ),
    seeds,
    longest=700,
    plainly=plainly,
)  # fmt: skip
