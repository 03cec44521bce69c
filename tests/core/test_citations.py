"""Tokens become links, whatever way the text arrives; nothing else changes."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from sidecar.core import citations
from sidecar.core.citations import Link, StreamReplacer, extract, replace
from sidecar.core.errors import TooLarge
from sidecar.core.limits import TOKEN_BYTES
from sidecar.core.markdown import LINE_CHARS, SPAN_CHARS, SUP_CHARS, TICKS, MarkdownScanner
from sidecar.core.markup import HtmlScanner

ONE = "[Only Source](https://example.com/only)"
TWO = "[B \\| x \\[y\\]](https://b.io)"
MIMES = ["text/markdown", "text/html", "application/json"]


class Pool:
    """A pool of the links given; a number may be there and have none."""

    def __init__(self, links: dict[int, Link | None]) -> None:
        self.links = links

    @property
    def sids(self) -> Sequence[int]:
        return sorted(self.links)

    def link(self, sid: int) -> Link | None:
        return self.links[sid]


POOL = Pool(
    {
        1: Link("Only Source", "https://example.com/only"),
        2: Link("B | x [y]", "https://b.io"),
        3: Link("NoUrl", None),
        4: Link("C", "https://c.io/a_(b)"),
        6: None,
    }
)


def check(rows: dict[str, str], *, mime: str = "text/markdown", pool: Pool = POOL) -> None:
    assert {text: replace(text, mime, pool).text for text in rows} == rows


@pytest.mark.rule("citations.replaced-by-markdown-links")
def test_a_token_becomes_links_in_markdown() -> None:
    check(
        {
            "Hi [[S:1]].": f"Hi {ONE}.",
            "[[S:1,2]]": f"{ONE} {TWO}",
            "[[S:2-1]]": f"{ONE} {TWO}",
            "[[S:1-3]]": f"{ONE} {TWO} NoUrl",
            "[[S:1,1]]": ONE,
            "[[S:3]]": "NoUrl",
            "[[S:4]]": "[C](https://c.io/a_%28b%29)",
            "x [[S:1]][[S:2]] y": f"x {ONE}{TWO} y",
            "［［s：１,1］］": ONE,
        }
    )


@pytest.mark.rule("citations.unresolved-tokens-stay-verbatim", "citations.other-text-is-never-altered")
def test_what_does_not_resolve_stays_as_it_is() -> None:
    texts = [
        *["[[S:9]]", "[[S:6]]", "[[S:7-9]]", "[[S:0]]", "[[ S :\u200b9–10 ]]", "[[S:]]", "[S:1]", "`[[S:1]]`"],
        *["a — b 👨\u200d👩 ［x］ \u202e", "ends with [", "a [[S: foo bar", "\r\n\0\ud800", "<sup>", ""],
    ]
    for mime in ["", "text/plain", "text/markdown"]:
        check({text: text for text in texts}, mime=mime)


@pytest.mark.rule("citations.unresolved-sids-are-named")
def test_used_and_unresolved_numbers_are_named() -> None:
    replaced = replace("[[S:1,9]] [[S:2-8]] [[S:77]] `[[S:5]]`", "", POOL)
    assert replaced.text == f"{ONE} {TWO} NoUrl [C](https://c.io/a_%28b%29) [[S:77]] `[[S:5]]`"
    assert replaced.sources_used == [1, 2, 3, 4]
    assert replaced.unresolved == [6, 9, 77]


def test_a_title_is_shown_on_one_line_and_a_blank_one_is_stood_in_for() -> None:
    pool = Pool(
        {
            1: Link("a\r\nb\t\\c", "https://e.com"),
            2: Link(" ", "https://e.com/2"),
            3: Link("", None),
            4: Link("d", ""),
        }
    )
    check(
        {
            "[[S:1]]": "[a b \\\\c](https://e.com)",
            "[[S:2]]": "[https://e.com/2](https://e.com/2)",
            "[[S:3]]": "source 3",
            "[[S:4]]": "d",
        },
        pool=pool,
    )


@pytest.mark.parametrize(
    "url", ["https://e.com/a (b) <c>|`d`\\e\nf", "https://e.com/?a=[1]&b=(", "turn_1/files/a b.pdf"]
)
def test_a_link_leads_to_its_url_in_a_markdown_reader(url: str) -> None:
    text = replace("a [[S:1]] b", "", Pool({1: Link("t [x](y) | \\", url)})).text
    anchors = [token for token in MarkdownIt().parseInline(text)[0].children or [] if token.type == "link_open"]
    assert [str(anchor.attrs["href"]).lower() for anchor in anchors] == [
        MarkdownIt().normalizeLink(url).lower().replace("(", "%28").replace(")", "%29")
    ]


def test_a_url_that_would_run_a_script_is_no_link() -> None:
    for url in ["javascript:alert(1)", " JavaScript:x", "java\nscript:x", "\x01data:text/html,x", "vbscript:x"]:
        pool = Pool({1: Link("t", url)})
        check({"[[S:1]]": "t"}, pool=pool)
        check({"[[S:1]]": '<sup class="cite" data-sids="1">[S:1]</sup>'}, mime="text/html", pool=pool)


@pytest.mark.rule("citations.replaced-by-html-sup")
def test_a_token_becomes_a_sup_in_html() -> None:
    one = '<a href="https://example.com/only">[S:1]</a>'
    check(
        {
            "<p>[[S:1]]</p>": f'<p><sup class="cite" data-sids="1">{one}</sup></p>',
            "[[S:1,3,9]]": f'<sup class="cite" data-sids="1,3">{one} [S:3]</sup>',
            "<p title='[[S:1]]'>[[S:9]]</p><code>[[S:1]]</code>": "<p title='[[S:1]]'>[[S:9]]</p><code>[[S:1]]</code>",
        },
        mime="text/html; charset=utf-8",
    )


def test_a_url_cannot_break_out_of_its_attribute() -> None:
    pool = Pool({1: Link("t", "https://e.com/?a=\"><b>'&b")})
    href = "https://e.com/?a=&quot;&gt;&lt;b&gt;&#x27;&amp;b"
    check({"[[S:1]]": f'<sup class="cite" data-sids="1"><a href="{href}">[S:1]</a></sup>'}, mime="text/html", pool=pool)


@pytest.mark.parametrize("mime", MIMES)
def test_replacing_again_changes_nothing(mime: str) -> None:
    text = "<b>[[S:1,2]]</b> [[S:9]]"
    once = replace(json.dumps(text) if mime == "application/json" else text, mime, POOL).text
    assert replace(once, mime, POOL).text == once


def test_json_is_changed_inside_its_strings_and_nowhere_else() -> None:
    pool = Pool({1: Link('say "é"\\', "https://e.com")})
    link = '[say \\"é\\"\\\\\\\\](https://e.com)'
    check(
        {
            '{ "a" :\t"\\u00e9 \\/ [[S:1]]", "[[S:1]]": 1e5 }': f'{{ "a" :\t"\\u00e9 \\/ {link}", "[[S:1]]": 1e5 }}',
            '{"a": "[[S:1]]"': '{"a": "[[S:1]]"',
            '{"citations":[{"sids":[1]}]}': '{"citations":[{"sids":[1]}]}',
        },
        mime="application/ld+json",
        pool=pool,
    )


@pytest.mark.rule("citations.token-grammar", "citations.sources-used-of-an-artifact")
def test_extracted_numbers_ascend_and_stand_once() -> None:
    assert extract("[[S:77,3]] [[S:1,3]] `[[S:2]]`", "text/markdown", POOL.sids) == [1, 3, 77]


@pytest.mark.rule("citations.ranges-are-bounded-by-the-pool")
def test_a_range_yields_the_numbers_of_the_pool_only() -> None:
    assert extract("[[S:2-999999999]]", "text/markdown", POOL.sids) == [2, 3, 4, 6]


@pytest.mark.rule("citations.html-sup-counts", "citations.json-sidecars-count")
def test_what_counts_depends_on_the_kind_of_text() -> None:
    rows = {
        ("text/html", '<sup class="cite" data-sids="1,3">[S:1,3]</sup>'): [1, 3],
        ("text/markdown", '<sup class="cite" data-sids="1,3">[S:1,3]</sup>'): [1, 3],
        ("application/json", '{"citations":[{"sids":[3]}],"text":"[[S:1]]"}'): [1, 3],
        ("TEXT/HTML; charset=utf-8", "<code>[[S:1]]</code>"): [],
        ("text/x-unknown", "<code>[[S:1]]</code>"): [1],
    }
    assert {row: extract(row[1], row[0], POOL.sids) for row in rows} == rows


def streamed(text: str, mime: str, sizes: Iterator[int] | Sequence[int]) -> tuple[str, list[int], list[int]]:
    stream = StreamReplacer(mime, POOL)
    answers: list[str] = []
    at = 0
    for size in sizes:
        answers.append(stream.feed(text[at : at + size]))
        at += size
    answers += (stream.feed(text[at:]), stream.flush())
    return "".join(answers), stream.sources_used, stream.unresolved


fragments = st.sampled_from(
    [
        *[
            "[",
            "]",
            "[[",
            "]]",
            "[[S:",
            "[[S:1]]",
            "[[S:1,2]]",
            "[[S:9]]",
            "［［S：3］］",
            "[[S:1",
            "S",
            ":",
            "1",
            "-",
            "–",
            ",",
        ],
        *[
            "`",
            "``",
            "```",
            "\n```\n",
            "```py\n",
            "~~~",
            "\n~~~\n",
            "\\",
            "\\`",
            "\n",
            "\n\n",
            " ",
            "    ",
            "\t",
            "\r\n",
        ],
        *[
            "- ",
            "\n- ",
            "1. ",
            "# ",
            "|",
            "> ",
            "a",
            "x y",
            "\u200b",
            "\u200d",
            "<",
            ">",
            "<b",
            "<!--",
            "-->",
            "=",
            "'",
            '"',
        ],
        *['<sup class="cite" data-sids="2">', "<sup ", "</sup>", "<code>", "</code>", "<a href='", "{", "}", '{"a":"'],
    ]
)
texts = st.lists(fragments, max_size=30).map("".join)

# Texts that end each wait at its limit, and just beyond.
EDGES = [
    text
    for beyond in (-1, 0, 1, 2)
    for text in (
        f"`[[S:1]]{'x' * (SPAN_CHARS - 7 + beyond)}` [[S:2]]",
        f"``[[S:1]]{' `' * (SPAN_CHARS // 2 - 4 + beyond)}``",
        f"{'`' * (TICKS + beyond)}[[S:1]]{'`' * (TICKS + beyond)} `[[S:2]]`",
        f"```{'x' * (LINE_CHARS + beyond)}\n[[S:1]]\n```\n[[S:2]]",
        f"~~~\n[[S:1]]\n~~~{' ' * (LINE_CHARS + beyond)}\n[[S:2]]",
        f"` [[S:1]]\n{' ' * (LINE_CHARS + beyond)}\n` [[S:2]]",
        f"[[S:{' ' * (TOKEN_BYTES - 7 + beyond)}1]] [[S:2]]",
        f"[[S:1,{'–' * ((TOKEN_BYTES - 8) // 3 + beyond)}]] [[S:2]]",
        f"<sup {'é' * (SUP_CHARS + beyond)} class='cite' data-sids='1'>[[S:2]]",
    )
]


@pytest.mark.rule("citations.stream-equals-batch", "citations.other-text-is-never-altered")
@pytest.mark.parametrize("mime", MIMES)
@settings(deadline=None)
@given(text=texts, sizes=st.lists(st.integers(0, 12), max_size=40))
@example(text="- ```\n```\n- [[S:1]]", sizes=[1] * 20)
@example(text="`<sup x` [[S:1]] `>`", sizes=[1] * 20)
def test_a_stream_cut_anywhere_says_what_the_whole_says(mime: str, text: str, sizes: list[int]) -> None:
    whole = replace(text, mime, POOL)
    assert streamed(text, mime, sizes) == (whole.text, whole.sources_used, whole.unresolved)
    assert streamed(text, mime, [1] * len(text)) == (whole.text, whole.sources_used, whole.unresolved)


@pytest.mark.parametrize("mime", MIMES)
@settings(deadline=None)
@given(text=texts, piece=st.integers(1, 12))
def test_a_text_that_is_read_in_pieces_cites_what_the_whole_cites(mime: str, text: str, piece: int) -> None:
    whole, replaced = extract(text, mime, POOL.sids), replace(text, mime, POOL)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("sidecar.core.citations.PIECE_CHARS", piece)
        assert extract(text, mime, POOL.sids) == whole
        assert replace(text, mime, POOL) == replaced


@pytest.mark.parametrize("mime", MIMES[:2])
def test_a_long_text_is_never_searched_at_one_go(mime: str, monkeypatch: pytest.MonkeyPatch) -> None:
    searched: list[int] = []
    for scanner in (MarkdownScanner, HtmlScanner):
        read = scanner.read

        def counted(self: Any, text: str, *, final: bool, read: Any = read) -> Any:
            searched.append(len(text))
            return read(self, text, final=final)

        monkeypatch.setattr(scanner, "read", counted)
    text = "words [[S:1]] and more\n" * 50_000
    assert extract(text, mime, POOL.sids) == replace(text, mime, POOL).sources_used == [1]
    assert max(searched) < 2 * citations.PIECE_CHARS < len(text)


@pytest.mark.rule("citations.stream-equals-batch")
@pytest.mark.parametrize("mime", MIMES[:2])
@pytest.mark.parametrize("size", [1, 7, 4096])
def test_a_stream_keeps_to_the_same_limits_as_the_whole(mime: str, size: int) -> None:
    for text in EDGES:
        whole = replace(text, mime, POOL)
        expected = (whole.text, whole.sources_used, whole.unresolved)
        assert streamed(text, mime, [size] * (len(text) // size)) == expected


@pytest.mark.parametrize("mime", MIMES)
@settings(deadline=None)
@given(text=texts)
def test_extracting_and_replacing_agree_on_what_is_cited(mime: str, text: str) -> None:
    replaced = replace(text, mime, POOL)
    assert extract(text, mime, POOL.sids) == sorted({*replaced.sources_used, *replaced.unresolved})


@pytest.mark.rule("citations.stream-equals-batch")
def test_every_cut_of_a_token_into_three_gives_the_same_text() -> None:
    text = "Start [[S:1-2]] End"
    for first in range(len(text)):
        for second in range(len(text) - first):
            assert streamed(text, "", [first, second])[0] == f"Start {ONE} {TWO} End"


def check_stream(mime: str, rows: list[tuple[str, str]], rest: str) -> None:
    """Each row: a chunk and what it is answered with; then what the flush answers."""
    stream = StreamReplacer(mime, POOL)
    assert [(chunk, stream.feed(chunk)) for chunk, _ in rows] == rows
    assert stream.flush() == rest


@pytest.mark.rule("citations.only-a-possible-token-is-held-back")
def test_a_stream_holds_back_what_may_become_a_token_and_no_more() -> None:
    check_stream("", [("Start [", "Start "), ("[S:1]] End", f"{ONE} End")], "")
    check_stream("", [("x [[S:1", "x "), ("-2]] y", f"{ONE} {TWO} y")], "")
    check_stream("", [("a [", "a "), ("x] [[T", "[x] [[T"), (" [[S:", " "), ("1] ", "[[S:1] ")], "")
    check_stream("", [("a\n", "a\n"), ("``", "``"), ("`py", "`py"), ("\n[[S:1]]", "\n[[S:1]]")], "")
    check_stream("text/html", [("<a b='[[S:1", "<a b='[[S:1"), ("]]'>[", "]]'>"), ("b", "[b")], "")


@pytest.mark.rule("citations.only-a-possible-token-is-held-back")
def test_a_token_behind_a_backtick_waits_for_the_code_span() -> None:
    check_stream("", [("`a [[S:1]]", "`a "), (" b", ""), ("` c", "[[S:1]] b` c")], "")
    check_stream("", [("`a [[S:1]]", "`a "), (" b\n\n", f"{ONE} b\n\n")], "")
    check_stream("", [("`a [[S:1]] b", "`a ")], f"{ONE} b")


@pytest.mark.rule("citations.only-a-possible-token-is-held-back")
def test_nothing_is_lost_at_the_flush() -> None:
    for text in ["ends with [", "a [[S:", "[[S:1]", "`", "```", "\\", "<sup", "\n- "]:
        assert streamed(text, "", [1] * len(text))[0] == text


def test_an_unclosed_span_or_token_holds_back_a_bounded_text() -> None:
    for opening in ["` [[S:1]] ", "[[S:1,", "``` [[S:1]] "]:
        stream = StreamReplacer("", POOL)
        answered = len(stream.feed(opening))
        fed = "word " * 4000
        answered += sum(len(stream.feed(fed[at : at + 5])) for at in range(0, len(fed), 5))
        assert answered > len(fed) - SPAN_CHARS - 100


@pytest.mark.rule("citations.json-streams-answer-at-flush")
def test_a_json_stream_is_answered_at_the_flush() -> None:
    check_stream("application/json", [('{"a":"[[S:1', ""), (']]"}', "")], f'{{"a":"{ONE}"}}')


@pytest.mark.rule("citations.stream-sources-used-is-cumulative")
def test_the_sources_used_by_a_stream_add_up() -> None:
    stream = StreamReplacer("", POOL)
    stream.feed("[[S:2]] ")
    assert stream.sources_used == [2]
    stream.feed("[[S:1,9]] ")
    assert (stream.sources_used, stream.unresolved) == ([1, 2], [9])


def test_after_the_flush_a_new_text_begins() -> None:
    stream = StreamReplacer("", POOL)
    stream.feed("```\n")
    stream.flush()
    assert stream.feed("[[S:1]]") == ONE


MIB = 2**20
HOSTILE = {
    "ranges": "[[S:1-999999999]]" * (4 * MIB // 17),
    "different ranges": "".join(f"[[S:9-{999999999 - n}]]" for n in range(MIB // 17)),
    "brackets": "[" * (4 * MIB),
    "openings": "[[S:" * MIB,
    "one opening": "[[S:" + "1," * (2 * MIB),
    "zero width": "[" + "\u200b" * (4 * MIB),
    "backticks": "`" * (4 * MIB),
    "runs": " ".join("`" * (n % 90 + 1) for n in range(MIB // 46)),
    "lines": "\n" * (4 * MIB),
    "fences": "```\n" * (MIB // 4),
    "different fences": "".join(f"{'`' * (n % 62 + 3)}\n" for n in range(MIB // 36)),
    "fences in items": "".join(f"{n % 10**9}. ```\n" for n in range(0, 10**10, 10**5 + 1)),
    "tags": "<" * (4 * MIB),
    "sups": "<sup " * MIB,
    "attributes": "<a b='" * (MIB // 4),
    "blanks": " " * (4 * MIB),
}


@pytest.mark.rule("citations.ranges-are-bounded-by-the-pool")
@pytest.mark.timeout(30)
@pytest.mark.parametrize("mime", MIMES[:2])
@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_text_takes_linear_time(name: str, mime: str) -> None:
    # Seconds when linear; a square of any of these lengths would take hours.
    cited = extract(HOSTILE[name], mime, range(1, 4))
    assert cited == ([1, 2, 3] if name == "ranges" else [])


def test_links_that_come_to_more_than_a_message_are_refused() -> None:
    pool = Pool({sid: Link("t" * 1000, f"https://e.com/{sid}") for sid in range(1, 101)})
    with pytest.raises(TooLarge):
        replace("[[S:1-100]]" * 1000, "", pool)


@given(st.text(st.sampled_from("[S:1] `\n😀"), max_size=40), st.integers(1, 9))
def test_what_is_scanned_stands_at_its_place_however_the_text_is_read(text: str, piece: int) -> None:
    whole = [(found.start, found.end) for found in citations.scan(text, "text/markdown")]
    assert all(text[start:end].startswith("[[") and text[start:end].endswith("]]") for start, end in whole)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(citations, "PIECE_CHARS", piece)
        assert [(found.start, found.end) for found in citations.scan(text, "text/markdown")] == whole


@pytest.mark.parametrize("mime", ["text/markdown", "text/html", "text/plain"])
def test_a_text_in_which_no_token_can_stand_is_not_read(mime: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(self: object, text: str, *, final: bool) -> None:
        raise AssertionError("it was read")

    monkeypatch.setattr(citations.MarkdownScanner, "read", refuse)
    monkeypatch.setattr(citations.HtmlScanner, "read", refuse)
    assert extract("x = rows[1]  # S:1, a [link](b) and <em>more</em>\n" * 1000, mime, [1]) == []
    for text in ("[[S:1]]", "[\u200b[S:1]]", "［[S:1]]", '<sup class="cite" data-sids="1">', '<SUP class="cite">'):
        with pytest.raises(AssertionError, match="it was read"):
            extract(text, mime, [1])
