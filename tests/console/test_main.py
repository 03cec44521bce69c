"""The command line starts light, knows its commands and says what is wrong in one line."""

from __future__ import annotations

import subprocess
import sys

import pytest

from sidecar import __main__, __version__
from sidecar.console import commands
from tests.tidy.tree import PROJECT


def run(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "sidecar", *words], cwd=PROJECT, capture_output=True, text=True, check=False, timeout=30
    )


def modules_after(*words: str) -> set[str]:
    """What is imported when this command has run, beyond what Python itself brings."""
    code = (
        "import sys; before = set(sys.modules); sys.argv[1:] = %r\n"
        "from sidecar.__main__ import main\n"
        "main()\n"
        "print(*sorted(set(sys.modules) - before), file=sys.stderr)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code % (words,)], cwd=PROJECT, capture_output=True, text=True, check=True
    )
    return set(done.stderr.split())


@pytest.mark.rule("cli.the-door-is-standard-library-only")
@pytest.mark.parametrize("words", [("--help",), ("--version",), ("connect", "--help")], ids=" ".join)
def test_what_needs_no_daemon_imports_nothing_of_ours_but_the_start(words: tuple[str, ...]) -> None:
    assert modules_after(*words) == {"sidecar", "sidecar.__main__", "__future__"}


def test_a_door_imports_only_itself() -> None:
    code = (
        "import sys; before = set(sys.modules)\n"
        "from sidecar.__main__ import main\n"
        "code = main(['connect', '--out-dir', '/nowhere', '--role', 'nobody'])\n"
        "print(code, *sorted(set(sys.modules) - before))"
    )
    done = subprocess.run(
        [sys.executable, "-S", "-c", f"import os; {code}"], cwd=PROJECT, capture_output=True, check=True
    )
    code, *modules = done.stdout.decode().split()
    assert code == "64"
    assert set(modules) - {"sidecar", "sidecar.__main__", "sidecar.server", "sidecar.server.bridge", "__future__"} <= {
        "_socket",
        "_thread",
        "time",
    }


@pytest.mark.rule("cli.module-and-command-are-one")
def test_the_module_is_the_command() -> None:
    assert run("--version").stdout == f"artifact-sidecar {__version__}\n"
    scripts = (PROJECT / "pyproject.toml").read_text("utf-8")
    assert 'artifact-sidecar = "sidecar.__main__:main"' in scripts


@pytest.mark.rule("cli.version-is-told")
def test_the_version_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    assert __main__.main(["--version"]) == 0
    assert capsys.readouterr().out == f"artifact-sidecar {__version__}\n"


def test_help_lists_every_command(capsys: pytest.CaptureFixture[str]) -> None:
    assert __main__.main(["--help"]) == 0
    listed = capsys.readouterr().out
    assert all(f"\n  {name} " in listed for name in __main__.COMMANDS)


@pytest.mark.parametrize("name", [name for name in __main__.COMMANDS if name != "connect"])
def test_every_command_has_help_of_its_own(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        __main__.main([name, "--help"])
    assert ended.value.code == 0
    told = capsys.readouterr().out
    assert told.startswith(f"usage: artifact-sidecar {name}")
    assert ("--out-dir" in told) == (name != "demo")


@pytest.mark.parametrize("words", [[], ["frob"], ["--frob"]])
def test_what_is_no_command_is_wrong_usage(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert __main__.main(words) == 64
    assert capsys.readouterr().err


@pytest.mark.parametrize("words", [["ls", "--frob"], ["show"], ["sync", "--since", "x"], ["serve", "--role", "nobody"]])
def test_a_wrong_option_is_wrong_usage_in_one_line(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        __main__.main(words)
    assert ended.value.code == 64
    assert capsys.readouterr().err.count("\n") == 1


@pytest.mark.rule("cli.out-dir-from-flag-or-environment")
@pytest.mark.parametrize("name", ["status", "serve", "connect"])
def test_a_workspace_must_be_named(
    name: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("OUT_DIR", raising=False)
    monkeypatch.setattr("threading.enumerate", list)  # those that other tests left behind are not the daemon's
    assert __main__.main([name]) == 64
    assert "no workspace: give --out-dir DIR or set OUT_DIR" in capsys.readouterr().err


def test_the_console_has_every_command_but_those_that_speak_for_others() -> None:
    import importlib

    for name in __main__.COMMANDS.keys() - {"connect", "serve", "mcp"}:
        module = importlib.import_module(f"sidecar.console.{commands._MODULES.get(name, 'listing')}")
        assert callable(getattr(module, name)), name
