"""Names of files, messages, calls and rows, in today's and in older spellings, and what becomes of them on a disk."""

from __future__ import annotations

import posixpath
from collections.abc import Iterator
from urllib.parse import unquote

from sidecar.core import older_paths
from sidecar.core.errors import BadPath, BadSelector, Refusal, UnsafePath
from sidecar.core.limits import PATH_BYTES, SEGMENT_BYTES
from sidecar.core.numbers import MISSING_TOLD, NumberSet, parse_numbers, parse_selector, print_numbers
from sidecar.core.paths import FilePath, Path, PoolPath, is_turn_id, parse, parse_logical, parse_physical, rewrite
from sidecar.core.storage_names import KEY_BYTES, Identity, handle_for, is_ours, key_for, key_prefix
from tests.fuzzing.draw import Draw
from tests.fuzzing.target import Target, worded

POOL = (1, 2, 3, 5, 8, 13, 21, 34, 2**53)


def check(data: bytes) -> None:
    draw = Draw(data)
    turn = draw.pick(("turn_1", "files", "current_turn", "a-b"))
    text = draw.text()
    for read in (parse, parse_logical, parse_physical):
        try:
            path: Path = read(text)
        except (BadPath, UnsafePath) as refused:
            sayable(refused)
        else:
            printed_and_read(path)
    written(text, turn)
    numbered(text)
    older(text)


def plainly(data: bytes) -> object:
    return parse_numbers(Draw(data).text())


def sayable(refused: Refusal) -> None:
    """A refusal can be told: it is UTF-8, and not longer than a path can be."""
    refused.about.encode()
    assert len(refused.about) <= 4 * PATH_BYTES
    assert refused.hint


def printed_and_read(path: Path) -> None:
    name = path.logical
    if name is not None:
        name.encode()
        assert parse(name) == parse_logical(name)
        assert parse(name).logical == name
        # What of a selector is no number is told where it was read, and is printed nowhere.
        assert parse(name) == path or (isinstance(path, PoolPath) and path.numbers.malformed)
    if isinstance(path, FilePath):
        inside(path)
        stored(path)


def inside(path: FilePath) -> None:
    physical = path.physical
    assert parse_physical(physical) == path
    assert posixpath.normpath(f"/out/{physical}") == f"/out/{physical}"
    assert not set(physical) & set("\\\0\n\r\x7f\x85")
    assert all(0 < len(segment.encode()) <= SEGMENT_BYTES for segment in physical.split("/"))
    assert len(physical.encode()) <= PATH_BYTES
    assert (path.place == "") == (path.turn_id == "")
    assert path.place == "" or (is_turn_id(path.turn_id) and physical == f"{path.turn_id}/{path.place}/{path.rel}")


def stored(path: FilePath) -> None:
    """A file keeps within its conversation wherever it is stored, and a name never grows a segment or a part."""
    identity = Identity("t:1/..", "p%", path.rel[-40:], "..", path.rel[:40])
    key, handle = key_for(path, "0" * 64, identity), handle_for(path, "0" * 64, identity)
    assert (key + handle).isascii()
    assert len(key) <= KEY_BYTES
    if path.place:
        assert is_ours(key, identity)
        assert key.count("/") == key_prefix(identity).count("/") + 1
        assert handle.count(":") == 9
    ending = unquote(key.rpartition("-")[2], errors="strict")
    assert path.rel.endswith(ending.rpartition("-")[2])


def written(text: str, turn: str) -> None:
    try:
        target = rewrite(text, current_turn=turn)
    except (BadPath, UnsafePath) as refused:
        sayable(refused)
        return
    assert (target.path.turn_id, target.path.place) == (turn, "files")
    inside(target.path)
    inside(target.source)
    assert target.source.rel == target.path.rel
    assert target.rewritten == (target.source != target.path)
    assert rewrite(target.path.physical, current_turn=turn).path == target.path or turn == "files"


def numbered(text: str) -> None:
    selected(parse_numbers(text))
    selected(parse_numbers(text, dashes="-–—"))
    try:
        selected(parse_selector(text))
    except BadSelector as refused:
        sayable(refused)


def selected(numbers: NumberSet) -> None:
    found = numbers.select(POOL)
    assert found.found == [sid for sid in POOL if holds(numbers, sid)] == numbers.among(POOL)
    assert len(found.missing) <= MISSING_TOLD
    assert found.missing == sorted(set(found.missing) - set(POOL))
    assert all(holds(numbers, sid) for sid in found.missing)
    again = parse_numbers(str(numbers))
    assert (again.singles, again.ranges, again.malformed) == (numbers.normal().singles, numbers.normal().ranges, ())
    assert parse_numbers(print_numbers(found.found)).among(POOL) == found.found


def holds(numbers: NumberSet, sid: int) -> bool:
    return sid in numbers.singles or any(low <= sid <= high for low, high in numbers.ranges)


def older(text: str) -> None:
    for turn in ("turn_1", ""):
        again = older_paths.respelled(text, turn)
        assert again == text or "current_turn" in text
        older_paths.sayable(text, turn)
    older_paths.normal_name(text)
    try:
        path = older_paths.parse(text)
    except older_paths.OlderRefusal as refused:
        refused.message.encode()
        return
    if isinstance(path, older_paths.Sliced):
        sliced(path.rows)
    else:
        assert path.turn == older_paths.CURRENT or is_turn_id(path.turn)


def sliced(rows: older_paths.Slice) -> None:
    chosen = rows.select(POOL)
    assert set(chosen) == {sid for sid in POOL if any(within(sid, low, high) for low, high in rows.items)}
    assert len(chosen) == len(set(chosen))
    assert not set(rows.missing(POOL)) & set(POOL)
    if rows.logical is not None:
        parse(rows.logical)


def within(sid: int, low: int | None, high: int | None) -> bool:
    return (low is None or low <= sid) and (high is None or sid <= high)


def seeds() -> Iterator[bytes]:
    for text in (
        "fi:turn_1.files/a/b.md", "turn_1/files/a/b.md", "fi:turn_1.user.attachments/x.pdf", "fi:turn_1.attachments/é",
        "turn_1/attachments/x.pdf", "logs/out.log", "fi:logs/out.log", "fi:turn_1.code.tc_1", "ar:turn_1.user.prompt",
        "ar:t.react.notes.1", "su:turn_1.conv.range.summary", "tc:turn_1.tc_1.result", "so:sources_pool[3, 5-6]",
        "sources_pool[1,3-5,x]", "files/a.md", "./a.md", "../a", "a//b", "C:/x", "fi:current_turn.files/a",
        "current_turn/files/a", "files/files/a", "1, 3-5, 9 - 7, 99999999999999999999", "current_turn.user.prompt.text",
        "turn_2.user.attachments.menu_pdf", "7.files.report.pdf", "artifacts.search_1[2:6]", "turn_2.slots.report.text",
        "current_turn.artifacts.gen_1.value.content", "sources_pool[3,1]", "sources_pool[:6]", "literal:x",
    ):  # fmt: skip
        yield text.encode() + b"\0"


TARGET = Target(
    "paths",
    "a text is a path or a known refusal; what is printed is read as the same; no path and no key of a store leaves"
    " its folder; sets of numbers select what they say",
    check,
    worded(
        "fi: ar: so: su: tc: xx: sources_pool[ ] turn_1 files/ attachments/ user.attachments/ .files/ .attachments/"
        " .user.attachments/ .code. .user.prompt .assistant.completion .conv.range.summary .call .result .notice logs/"
        " work/ current_turn executed_programs/ timeline.json ./ ../ / // . .. \\ : - , 1-3 3-1 9007199254740992"
        " literal: .artifacts. .slots. .value. .text [1:3] [:6] %2e%2e%2f ～ – C:",
        "\0", " ", "\n", "\u202e", "e\u0301",
    ),
    seeds,
    longest=600,
    plainly=plainly,
)  # fmt: skip
