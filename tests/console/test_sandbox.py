"""What a program in the sandbox sees, decided without one; whether there can be one, and why not."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from sidecar.console import sandbox
from sidecar.console.sandbox import View, within


def view(folder: Path, *protected: str) -> View:
    return View(str(folder / "out"), str(folder / "work"), str(folder / "client"), protected)


def bound(words: list[str], option: str) -> list[str]:
    return [words[at + 2] for at, word in enumerate(words) if word == option]


def test_only_two_folders_can_be_written(tmp_path: Path) -> None:
    words = sandbox.arguments("bwrap", view(tmp_path))
    assert bound(words, "--bind") == [str(tmp_path / "out"), str(tmp_path / "work")]
    assert words[words.index("--proc") :][:4] == ["--proc", "/proc", "--remount-ro", "/proc"]
    assert [words[at + 1] for at, word in enumerate(words) if word == "--remount-ro"] == ["/proc", "/"]
    assert {"--dev-bind", "--share-net"}.isdisjoint(words)


def test_of_etc_it_shows_nothing_that_is_anybodys(tmp_path: Path) -> None:
    shown = bound(sandbox.arguments("bwrap", view(tmp_path)), "--ro-bind-try")
    assert shown
    assert not any("passwd" in path or "shadow" in path or "private" in path for path in shown)


def test_this_pythons_own_folders_are_shown_and_no_folder_that_holds_a_home(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "prefix", str(tmp_path / "venv"))
    monkeypatch.setattr(sys, "base_prefix", "/usr")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    words = sandbox.arguments("bwrap", view(tmp_path))
    assert str(tmp_path / "venv") in bound(words, "--ro-bind")
    monkeypatch.setattr(sys, "prefix", str(tmp_path))
    assert str(tmp_path) not in bound(sandbox.arguments("bwrap", view(tmp_path)), "--ro-bind")


def test_its_environment_is_a_short_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LANG", "C.UTF-8")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "x")
    made = sandbox.environment(view(tmp_path))
    assert (made["LANG"], made["HOME"]) == ("C.UTF-8", str(tmp_path / "work"))
    assert made.keys() <= {*sandbox.KEPT, "PATH", "HOME", "TMPDIR"}


def test_what_is_protected_may_lie_in_no_folder_that_is_shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sandbox.shutil, "which", lambda name: "/bin/false")
    state = str(tmp_path / "out/state")
    assert state in sandbox.obstacle(view(tmp_path, state))


@pytest.mark.parametrize(
    ("program", "says"),
    [(None, "not installed"), ("/bin/false", "does not work here"), ("/nowhere/bwrap", "cannot be")],
)
def test_why_there_is_none_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, program: str | None, says: str
) -> None:
    monkeypatch.setattr(sandbox.shutil, "which", lambda name: program)
    assert says in sandbox.obstacle(view(tmp_path))


@pytest.mark.parametrize(
    ("path", "folder", "inside"),
    [("/a/b", "/a", True), ("/a", "/a", True), ("/ab", "/a", False), ("/a", "/a/b", False), ("/a", "/", True)],
)
def test_within_is_by_whole_names(path: str, folder: str, inside: bool) -> None:
    assert within(path, folder) is inside
