"""Tables for people, JSON for programs, and no name that could move a cursor."""

from __future__ import annotations

import json
import sys

import pytest

from sidecar.console import output
from sidecar.console.output import cell, details, printable, progress, say_json, size, table


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(output, "on_terminal", lambda: True)
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.setenv("TERM", "dumb")


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain é 汉字", "plain é 汉字"),
        ("red\x1b[31m", r"red\x1b[31m"),
        ("two\nlines\r", r"two\nlines\r"),
        ("\u202etxt.exe", r"\u202etxt.exe"),
        ("zero\u200bwidth", r"zero\u200bwidth"),
        ("half\udc80", r"half\udc80"),
    ],
)
def test_names_cannot_write_on_the_terminal(text: str, shown: str) -> None:
    assert printable(text) == shown
    assert cell(text) == shown


def test_text_keeps_the_characters_it_is_laid_out_with() -> None:
    assert printable("a\n\tb\x07", keep="\n\t") == "a\n\tb\\x07"


@pytest.mark.parametrize(
    ("value", "shown"), [(None, "-"), (True, "yes"), (False, "no"), (7, "7"), ([], "-"), ((1, "a\n"), r"1, a\n")]
)
def test_values_are_words(value: object, shown: str) -> None:
    assert cell(value) == shown


def test_a_table_in_a_pipe_is_aligned_text(capsys: pytest.CaptureFixture[str]) -> None:
    table(("path", "size", "note"), [("a", 5, "x"), ("longer", 1234, None)])
    assert capsys.readouterr().out.splitlines() == [
        "PATH    SIZE  NOTE",
        "a          5  x",
        "longer  1234  -",
    ]


def test_an_empty_table_has_its_columns(capsys: pytest.CaptureFixture[str]) -> None:
    table(("path", "size"), [])
    assert capsys.readouterr().out == "PATH  SIZE\n"


@pytest.mark.rule("cli.people-get-tables-programs-get-json")
@pytest.mark.usefixtures("terminal")
def test_a_table_on_a_terminal_takes_names_as_they_are(capsys: pytest.CaptureFixture[str]) -> None:
    table(("path", "size"), [("[bold]no markup[/bold]", 5), ("\x1b[2J", 6)])
    drawn = capsys.readouterr().out
    assert not drawn.startswith("PATH")
    assert "[bold]no markup[/bold]" in drawn
    assert r"\x1b[2J" in drawn
    assert "\x1b[2J" not in drawn


@pytest.mark.usefixtures("terminal")
@pytest.mark.parametrize(
    ("count", "shown"), [(None, "-"), (0, "0"), (1023, "1023"), (1024, "1.0 KiB"), (5 * 1024**3, "5.0 GiB")]
)
def test_people_read_sizes_in_units(count: int | None, shown: str) -> None:
    assert size(count) == shown


def test_programs_read_sizes_in_bytes(capsys: pytest.CaptureFixture[str]) -> None:
    assert size(5 * 1024**3) == str(5 * 1024**3)


def test_details_leave_out_what_is_not_there(capsys: pytest.CaptureFixture[str]) -> None:
    details([("path", "a"), ("turn", None), ("long name", False)])
    assert capsys.readouterr().out.splitlines() == ["path       a", "long name  no"]


def test_json_is_json(capsys: pytest.CaptureFixture[str]) -> None:
    say_json({"é": [1, None]})
    out = capsys.readouterr().out
    assert json.loads(out) == {"é": [1, None]}
    assert "é" in out


def test_nobody_sees_a_bar_in_a_pipe(capsys: pytest.CaptureFixture[str]) -> None:
    with progress() as heard:
        assert heard is None


def test_a_bar_follows_the_progress_of_a_request(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    with progress() as heard:
        assert heard is not None
        heard({"kind": "begin", "title": "Looking\x1b[2J"})
        heard({"kind": "report", "percentage": 40, "message": "4 of 10"})
        heard({"kind": "end"})
    told = capsys.readouterr()
    assert told.out == ""
    assert "\x1b[2J" not in told.err
