"""Every legal path has one name, every name one path, and every other text is refused."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from sidecar.core.errors import BadPath, Refusal, UnsafePath
from sidecar.core.numbers import NumberSet
from sidecar.core.paths import (
    NEVER_TURNS,
    STATE_FILES,
    CallPath,
    CodePath,
    FilePath,
    MessagePath,
    Path,
    PoolPath,
    SummaryPath,
    is_call_id,
    is_turn_id,
    parse,
    parse_logical,
    parse_physical,
    rewrite,
)

ids = st.from_regex(r"[A-Za-z0-9_-]{1,12}", fullmatch=True).filter(is_turn_id)
names = st.text(
    st.characters(exclude_categories=("Cs", "Cc"), exclude_characters="/\\"), min_size=1, max_size=8
).filter(lambda name: name not in {".", ".."})
rels = st.lists(
    names | st.sampled_from(["files", "a.files", "turn_1", "user.attachments"]), min_size=1, max_size=4
).map("/".join)


@st.composite
def file_paths(draw: st.DrawFn) -> FilePath:
    """A legal file, in a turn or in none."""
    parts = draw(st.tuples(ids, st.sampled_from(["files", "attachments"])) | st.just(("", "")))
    try:
        return FilePath(*parts, draw(rels))
    except Refusal:
        assume(False)
        raise


paths = st.one_of(
    file_paths(),
    st.builds(CodePath, ids, ids),
    st.builds(MessagePath, ids, names.filter(lambda tail: "\\" not in tail)),
    st.builds(SummaryPath, ids),
    st.builds(CallPath, ids, ids, st.sampled_from(["call", "result", "notice"])),
    st.builds(PoolPath, st.lists(st.integers(0, 99)).map(lambda sids: NumberSet(tuple(sids)).normal())),
)


def check(read: Callable[[str], Path], rows: dict[str, Path]) -> None:
    assert {text: read(text) for text in rows} == rows


def check_refused(read: Callable[[str], object], refusal: type[Refusal], texts: list[str]) -> None:
    for text in texts:
        with pytest.raises(refusal) as refused:
            read(text)
        assert type(refused.value) is refusal, text
        assert refused.value.hint


@pytest.mark.rule("paths.fi-names-files-and-attachments", "paths.ar-names-messages-and-blocks")
@pytest.mark.rule("paths.su-names-the-summary-of-a-range", "paths.tc-names-call-result-and-notice")
@pytest.mark.rule("paths.so-names-rows-of-the-pool", "paths.bare-sources-pool-means-the-same")
@pytest.mark.rule("paths.fi-code-lives-only-in-the-timeline", "paths.fi-generic-names-any-other-readable-file")
def test_a_logical_path_is_read_by_its_family() -> None:
    check(
        parse_logical,
        {
            "fi:turn_1.files/a/b.md": FilePath("turn_1", "files", "a/b.md"),
            "fi:turn_1.user.attachments/x y.pdf": FilePath("turn_1", "attachments", "x y.pdf"),
            "fi:turn_1.code.tc_1": CodePath("turn_1", "tc_1"),
            "fi:logs/docker.err.log": FilePath("", "", "logs/docker.err.log"),
            "fi:./logs/a.log": FilePath("", "", "logs/a.log"),
            "ar:turn_1.user.prompt": MessagePath("turn_1", "user.prompt"),
            "ar:turn_1.assistant.completion": MessagePath("turn_1", "assistant.completion"),
            "ar:turn_1.react.notes.tc_1": MessagePath("turn_1", "react.notes.tc_1"),
            "su:turn_1.conv.range.summary": SummaryPath("turn_1"),
            "tc:turn_1.tc_1.call": CallPath("turn_1", "tc_1", "call"),
            "tc:turn_1.tc_1.result": CallPath("turn_1", "tc_1", "result"),
            "tc:turn_1.tc_1.notice": CallPath("turn_1", "tc_1", "notice"),
            "so:sources_pool[3, 5-6]": PoolPath(NumberSet((3,), ((5, 6),))),
            "so:sources_pool[6,5,3]": PoolPath(NumberSet((3,), ((5, 6),))),
            "sources_pool[1]": PoolPath(NumberSet((1,))),
            "so:sources_pool[1,x]": PoolPath(NumberSet((1,), (), ("x",))),
            "so:sources_pool[]": PoolPath(NumberSet()),
        },
    )


@pytest.mark.rule("paths.physical-is-turn-then-place-then-rest", "paths.physical-is-decided-by-two-segments")
def test_the_first_two_segments_of_a_physical_path_decide() -> None:
    check(
        parse_physical,
        {
            "turn_1/files/a.md": FilePath("turn_1", "files", "a.md"),
            "./turn_1/files/a.md": FilePath("turn_1", "files", "a.md"),
            "turn_1/attachments/b": FilePath("turn_1", "attachments", "b"),
            "turn_1/attachments/files/x": FilePath("turn_1", "attachments", "files/x"),
            "turn_1/files/x/files/y": FilePath("turn_1", "files", "x/files/y"),
            "any-id/files/x": FilePath("any-id", "files", "x"),
            "turn_1/b/files/c": FilePath("", "", "turn_1/b/files/c"),
            "turn_1/x": FilePath("", "", "turn_1/x"),
            "turn_1/files": FilePath("", "", "turn_1/files"),
            "a.b/files/c": FilePath("", "", "a.b/files/c"),
            "logs/files/c": FilePath("", "", "logs/files/c"),
            "~/.x": FilePath("", "", "~/.x"),
        },
    )


@pytest.mark.rule("paths.taken-logical-or-physical")
def test_either_spelling_is_the_same_path() -> None:
    check(
        parse,
        {
            "fi:turn_1.files/a.txt": FilePath("turn_1", "files", "a.txt"),
            "turn_1/files/a.txt": FilePath("turn_1", "files", "a.txt"),
            "fi:turn_1/files/a.txt": FilePath("turn_1", "files", "a.txt"),
            "sources_pool[2]": PoolPath(NumberSet((2,))),
            "./sources_pool[2]": FilePath("", "", "sources_pool[2]"),
            "notes: a.txt": FilePath("", "", "notes: a.txt"),
        },
    )


@pytest.mark.rule("paths.older-attachments-spelling-is-read-never-printed")
def test_the_older_attachments_spelling_is_read_and_never_printed() -> None:
    path = parse_logical("fi:turn_1.attachments/x.png")
    assert path == FilePath("turn_1", "attachments", "x.png")
    assert path.logical == "fi:turn_1.user.attachments/x.png"


@pytest.mark.rule("paths.logical-splits-at-the-first-marker", "paths.a-turn-shape-needs-a-legal-turn-id")
def test_the_first_marker_decides_and_only_behind_a_legal_id() -> None:
    check(
        parse_logical,
        {
            "fi:t.files/a.files/b": FilePath("t", "files", "a.files/b"),
            "fi:t.files/user.attachments/b": FilePath("t", "files", "user.attachments/b"),
            "fi:t.user.attachments/a.files/b": FilePath("t", "attachments", "a.files/b"),
            "fi:t.attachments/a.files/b": FilePath("t", "attachments", "a.files/b"),
            "fi:t/x.files/b": FilePath("", "", "t/x.files/b"),
            "fi:a.b.files/c": FilePath("", "", "a.b.files/c"),
            "fi:.files/c": FilePath("", "", ".files/c"),
            f"fi:{'t' * 129}.files/c": FilePath("", "", f"{'t' * 129}.files/c"),
            "fi:logs.files/c": FilePath("", "", "logs.files/c"),
            "fi:t.code.a/b": FilePath("", "", "t.code.a/b"),
            "fi:t.code.": FilePath("", "", "t.code."),
            "fi:t.user.prompt": FilePath("", "", "t.user.prompt"),
        },
    )


@pytest.mark.rule("paths.turn-ids-are-opaque-and-dotless", "paths.call-ids-have-one-charset")
def test_ids_are_letters_digits_underscores_and_dashes() -> None:
    legal = ["turn_1", "a", "-", "_", "0", "x" * 128, "conv-1_T"]
    illegal = ["", "a.b", "a b", "x" * 129, "é", "a/b", "a\n", "²"]
    assert [text for text in legal + illegal if is_turn_id(text)] == legal
    assert [text for text in legal + illegal if is_call_id(text)] == legal


def test_some_folders_never_name_a_turn() -> None:
    assert [name for name in sorted(NEVER_TURNS) if is_turn_id(name)] == []


@pytest.mark.rule("paths.an-ambiguous-generic-file-has-no-logical-path")
def test_a_file_whose_name_would_be_read_as_a_turns_has_no_logical_path() -> None:
    texts = ["t.files/x", "t.user.attachments/x", "t.attachments/x", "t.code.c1"]
    assert [(parse_physical(text).physical, parse_physical(text).logical) for text in texts] == [
        (text, None) for text in texts
    ]


@pytest.mark.rule("paths.names-are-compared-byte-for-byte")
def test_names_that_look_alike_are_different_paths() -> None:
    composed = unicodedata.normalize("NFC", "turn_1/files/é.txt")
    assert len({parse(composed), parse(unicodedata.normalize("NFD", composed)), parse(composed.upper())}) == 3


@pytest.mark.rule("paths.parse-and-print-are-inverse", "paths.one-canonical-form")
@given(paths)
@example(FilePath("turn_1", "files", "a.files/b"))
@example(FilePath("", "", "fi:t.files/x"))
@example(FilePath("", "", "sources_pool[1]"))
def test_a_printed_path_is_read_as_the_same_path(path: Path) -> None:
    assert path.logical is None or parse_logical(path.logical) == path
    assert path.logical is None or parse(path.logical) == path
    assert not isinstance(path, FilePath) or parse_physical(path.physical) == path


@pytest.mark.rule("refusals.never-an-exception")
@given(
    st.text(max_size=40)
    | st.lists(
        st.sampled_from(["fi:", "so:", "t", ".files/", "files", "/", ".", "..", "\\", "\0", "[", "]", "1-2", "\ud800"]),
        max_size=8,
    ).map("".join)
)
def test_any_text_is_a_path_or_a_refusal(text: str) -> None:
    try:
        path = parse(text)
    except (BadPath, UnsafePath):
        return
    assert path.logical is None or parse(path.logical).logical == path.logical


@pytest.mark.rule("paths.five-families-and-no-other", "paths.bad-path-is-an-unknown-family-or-malformed-id")
def test_unknown_families_and_malformed_ids_are_bad_paths() -> None:
    texts = [
        *["sk:public.pdf", "ef:a:b", "xx:", "http://example.com/x", "FI:t.files/x", "turn_1/files/x", ""],
        *["ar:turn_1", "ar:.user.prompt", "ar:t/1.user.prompt", "ar:turn_1.", "ar:current_turn.user.prompt"],
        *["su:turn_1", "su:turn_1.conv.range", "su:a.b.conv.range.summary", "su:turn_1.conv.range.summary.x"],
        *["tc:turn_1.tc_1", "tc:turn_1.tc_1.other", "tc:turn_1.t c.call", "tc:turn_1.a.b.call", "tc:..call"],
        *["so:", "so:sources_pool", "so:sources_pool[1", "so:pool[1]", "so:sources_pool[1]]", "so:sources_pool[1][2]"],
        "sources_pool[1",
    ]
    check_refused(parse_logical, BadPath, texts)
    check_refused(parse, BadPath, [text for text in texts if text[2:3] == ":" and text[:2].islower()])


UNSAFE = {
    "refusals.empty-is-unsafe": ["", "./"],
    "refusals.absolute-is-unsafe": ["/etc/passwd", "/", ".//a"],
    "refusals.dot-segments-are-unsafe": [".", "..", "../a", "a/../b", "a/./b", "././a", "a/..", "t/files/../../x"],
    "refusals.backslash-is-unsafe": ["\\x.md", "a\\..\\b.md", "a\\"],
    "refusals.control-characters-are-unsafe": ["a\0.md", "a\nb", "\x1b[0m", "a\x7f", "a\x85b"],
    "refusals.drive-letters-are-unsafe": ["C:/x.md", "c:x", "./C:/x"],
    "refusals.long-segments-are-unsafe": ["a" * 256, "a/" + "é" * 128, "𝄞" * 64],
    "refusals.long-paths-are-unsafe": ["a/" * 2048 + "a", "a" * 5_000_000],
    "refusals.trailing-slash-is-unsafe": ["a/", "turn_1/files/"],
    "refusals.empty-segment-is-unsafe": ["a//b", "turn_1/files//x"],
    "refusals.never-an-exception": ["a\ud800", "\udcff/x"],
}


@pytest.mark.parametrize(
    "texts", [pytest.param(texts, marks=pytest.mark.rule(rule), id=rule) for rule, texts in UNSAFE.items()]
)
def test_a_text_that_could_leave_out_dir_is_refused_in_every_spelling(texts: list[str]) -> None:
    check_refused(parse_physical, UnsafePath, texts)
    check_refused(lambda text: rewrite(text, current_turn="turn_1"), UnsafePath, texts)
    below = [text for text in texts if not text.startswith("./")]
    check_refused(lambda text: parse(f"fi:{text}"), UnsafePath, texts)
    check_refused(lambda text: parse(f"fi:turn_1.files/{text}"), UnsafePath, below)
    check_refused(lambda text: FilePath("turn_1", "attachments", text), UnsafePath, below)


@pytest.mark.rule("refusals.a-leading-dot-slash-is-normalised")
def test_one_leading_dot_slash_is_dropped() -> None:
    assert parse_physical("./a.md") == parse_physical("a.md")


@pytest.mark.rule("refusals.long-paths-are-unsafe", "refusals.long-segments-are-unsafe")
def test_the_longest_legal_names_are_taken() -> None:
    longest = ("a" * 254 + "/") * 16
    assert parse_physical("é" * 127 + "a").physical == "é" * 127 + "a"
    assert len(parse_physical(longest + "a" * 16).physical) == 4096
    with pytest.raises(UnsafePath):
        parse_physical(longest + "a" * 17)


@pytest.mark.rule("refusals.long-paths-are-unsafe")
def test_the_physical_spelling_counts_for_the_length() -> None:
    rel = ("a" * 254 + "/") * 15 + "b" * 254
    with pytest.raises(UnsafePath):
        FilePath("t" * 128, "files", rel)


def test_control_characters_in_a_message_path_are_unsafe() -> None:
    check_refused(parse_logical, UnsafePath, ["ar:t.a\nb", "ar:t.a\ud800", "ar:t." + "a" * 5000])


def test_what_a_refusal_is_about_can_be_answered_as_utf8() -> None:
    with pytest.raises(UnsafePath) as refused:
        parse("turn_1/files/\udcff")
    assert refused.value.about == "turn_1/files/\\udcff"


def test_a_refusal_is_about_the_text_that_was_asked() -> None:
    for text in ["fi:turn_1.files/../x", "fi:../x", "turn_1/files/../x", "sk:x"]:
        with pytest.raises(Refusal) as refused:
            parse(text)
        assert refused.value.about == text


def test_a_file_in_a_turn_cannot_be_built_as_a_generic_one() -> None:
    check_refused(lambda rel: FilePath("", "", rel), BadPath, ["turn_1/files/a"])
    check_refused(lambda turn_id: FilePath(turn_id, "", "a"), BadPath, ["turn_1"])
    check_refused(lambda turn_id: FilePath(turn_id, "files", "a"), BadPath, ["", "a.b", "logs", "../x"])


def check_rewrite(rows: list[tuple[str, str, bool]]) -> None:
    """Each row: a write target, the physical path it comes to in `turn_9`, whether that is a real rewrite."""
    got = [rewrite(text, current_turn="turn_9") for text, _, _ in rows]
    assert [(one.original, one.path.physical, one.rewritten) for one in got] == rows


@pytest.mark.rule("rewrite.bare-names-mean-the-current-turn")
def test_a_bare_name_is_the_current_turns_file_and_no_rewrite() -> None:
    check_rewrite(
        [
            ("a.md", "turn_9/files/a.md", False),
            ("./a.md", "turn_9/files/a.md", False),
            ("files/a.md", "turn_9/files/a.md", False),
            ("files/files/a.md", "turn_9/files/files/a.md", False),
            ("demo_proj/report.md", "turn_9/files/demo_proj/report.md", False),
            ("logs/files/x.log", "turn_9/files/logs/files/x.log", False),
            ("timeline.json", "turn_9/files/timeline.json", False),
            ("turn_9/files/a.md", "turn_9/files/a.md", False),
            ("fi:turn_9.files/a.md", "turn_9/files/a.md", False),
        ]
    )


@pytest.mark.rule("rewrite.another-turn-becomes-the-current", "rewrite.physical-is-always-the-full-form")
def test_another_turns_file_becomes_the_current_turns() -> None:
    check_rewrite(
        [
            ("turn_123/files/output.csv", "turn_9/files/output.csv", True),
            ("turn_123/files/sub/a.md", "turn_9/files/sub/a.md", True),
            ("turn_123/files/x/files/y", "turn_9/files/x/files/y", True),
            ("fi:turn_123.files/draft.md", "turn_9/files/draft.md", True),
            ("fi:turn_123/files/draft.md", "turn_9/files/draft.md", True),
        ]
    )


@pytest.mark.rule("rewrite.another-turns-attachment-becomes-a-file")
def test_an_attachment_as_a_target_becomes_a_file() -> None:
    check_rewrite(
        [
            ("turn_1/attachments/a.png", "turn_9/files/a.png", True),
            ("fi:turn_1.user.attachments/a.png", "turn_9/files/a.png", True),
            ("fi:turn_1.attachments/a.png", "turn_9/files/a.png", True),
            ("turn_9/attachments/a.md", "turn_9/files/a.md", True),
        ]
    )


@pytest.mark.rule("paths.current-turn-never-appears-in-output")
def test_the_older_word_for_the_open_turn_is_taken_and_never_answered() -> None:
    check_rewrite(
        [
            ("current_turn/files/a.md", "turn_9/files/a.md", False),
            ("./current_turn/files/a.md", "turn_9/files/a.md", False),
            ("fi:current_turn.files/a.md", "turn_9/files/a.md", False),
            ("fi:current_turn.user.attachments/a.png", "turn_9/files/a.png", True),
        ]
    )


def test_a_rewritten_target_remembers_what_the_text_itself_named() -> None:
    rows = [
        ("turn_1/attachments/a.png", "turn_1/attachments/a.png"),
        ("fi:turn_1.files/a.md", "turn_1/files/a.md"),
        ("fi:current_turn.user.attachments/a.png", "turn_9/attachments/a.png"),
        ("a.md", "turn_9/files/a.md"),
        ("files/a.md", "turn_9/files/a.md"),
    ]
    assert [(text, rewrite(text, current_turn="turn_9").source.physical) for text, _ in rows] == rows


def test_files_outside_every_turn_are_no_write_targets() -> None:
    texts = ["fi:logs/x", "fi:a.md", "fi:./a.md", *(f"fi:{name}" for name in STATE_FILES)]
    check_refused(lambda text: rewrite(text, current_turn="turn_9"), UnsafePath, texts)


def test_what_is_no_file_is_no_write_target() -> None:
    texts = ["ar:turn_1.user.prompt", "fi:turn_1.code.tc_1", "so:sources_pool[1]", "sources_pool[1]", "xx:y"]
    check_refused(lambda text: rewrite(text, current_turn="turn_9"), BadPath, texts)


def test_a_write_needs_a_legal_current_turn() -> None:
    check_refused(lambda turn_id: rewrite("a.md", current_turn=turn_id), BadPath, ["", "a.b", "current_turn"])
