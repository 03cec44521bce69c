"""A page as slides: what begins one, what stands on it, what is said and not shown."""

from __future__ import annotations

from artifact_render.outline import Picture, Run, Table, Text, plain, slides_of


def told(html: str) -> list[tuple[str, list[object], list[str]]]:
    """Title, items and notes of each slide; texts as (kind, level, number, text)."""

    def item(one: object) -> object:
        match one:
            case Text(runs, kind, level, number):
                return kind, level, number, plain(runs)
            case Picture(reference, alt):
                return reference, alt
            case Table(rows):
                return [[plain(cell) for cell in row] for row in rows]

    return [(plain(slide.title), [item(one) for one in slide.items], slide.notes) for slide in slides_of(html)]


def test_headings_rules_and_sections_begin_slides_and_empty_ones_are_left_out() -> None:
    html = "<p>before</p><h1>One</h1><h3>sub</h3><h2>Two</h2><hr><p>three</p><hr><section><h2>Four</h2></section>"
    assert told(html) == [
        ("", [("plain", 0, 0, "before")], []),
        ("One", [("heading", 0, 0, "sub")], []),
        ("Two", [], []),
        ("", [("plain", 0, 0, "three")], []),
        ("Four", [], []),
    ]


def test_lists_keep_their_levels_and_numbers() -> None:
    html = "<ol><li>a<ul><li>b<li>c</ul><li><p>d</p><p>e</p></ol>"
    assert told(html)[0][1] == [
        ("number", 1, 1, "a"),
        ("bullet", 2, 1, "b"),
        ("bullet", 2, 2, "c"),
        ("number", 1, 2, "d"),
        ("plain", 1, 0, "e"),
    ]


def test_pictures_tables_code_and_quotes_stand_where_they_are() -> None:
    html = (
        "<p>a <img src='x y.png' alt=X> b</p><pre><code>if x:\n\ty\n</code></pre><blockquote><p>q</p></blockquote>"
        "<table><tr><th>h<td></tr><tr><td>1</table><figure><img src=z></figure>"
    )
    assert told(html)[0][1] == [
        ("x y.png", "X"),
        ("plain", 0, 0, "a b"),
        ("code", 0, 0, "if x:\n    y"),
        ("quote", 0, 0, "q"),
        [["h", ""], ["1"]],
        ("z", ""),
    ]


def test_notes_are_the_speakers_and_scripts_styles_and_comments_are_nobodys() -> None:
    html = (
        "<h1>T</h1><aside class='notes'> say <b>it</b></aside><p>Note: and this</p>"
        "<script>x</script><!-- c --><style>s</style>"
    )
    assert told(html) == [("T", [], ["say it", "and this"])]


def test_runs_keep_their_style_and_citations_their_numbers() -> None:
    html = (
        "a <b>b <i>c</i></b><br><a href='https://e.org'>d</a>"
        "<sup class=cite data-sids='2,11'><a href='u'>[S:2]</a></sup>"
    )
    (slide,) = slides_of(html)
    (text,) = slide.items
    assert isinstance(text, Text)
    assert text.runs == (
        Run("a "),
        Run("b ", bold=True),
        Run("c", bold=True, italic=True),
        Run("\v"),
        Run("d", url="https://e.org"),
        Run("[S:2]", raised=True, url="u"),
    )
    assert slide.cited == {2, 11}


def test_odd_pages_are_slides_too() -> None:
    for html in ("", "\0", "<", "<!--", "</p>" * 100, "<div>" * 100_000, "\udc80", "<frameset><frame></frameset>"):
        assert len(slides_of(html)) == 1
