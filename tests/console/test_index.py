"""`index` says where conversations are indexed and how the schema stands, and makes it; a password is never shown."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from sidecar.__main__ import main
from tests.console.conftest import Run
from tests.daemon_process import Workspace
from tests.postgres import PASSWORD, Postgres

pytestmark = pytest.mark.rule("cli.index-says-where-and-makes-the-schema")


@pytest.fixture(autouse=True)
def clean(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OUT_DIR", "ARTIFACT_SIDECAR_INDEX"):
        monkeypatch.delenv(name, raising=False)


def test_looking_makes_nothing_and_migrating_makes_the_schema(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "index.db"
    assert main(["index", "--index", str(file)]) == 0
    assert "not made yet" in capsys.readouterr().out
    assert not file.exists()
    assert main(["index", "--index", str(file), "--migrate"]) == 0
    assert "applied 0001_" in capsys.readouterr().out
    assert main(["index", "--index", str(file), "--migrate", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["kind"], told["where"], told["migrated"]) == ("sqlite", str(file), [])
    assert all(step["applied"] for step in told["schema"])
    assert (told["conversations"], told["rows"], told["latest"]) == (0, 0, None)


def test_a_workspace_has_its_own(workspace: Workspace, command: Run) -> None:
    runtime = workspace.connect("runtime")
    runtime.call("turn/begin", {"turn_id": "turn_1", "prompt": "hello"})
    runtime.call("turn/end", {"turn_id": "turn_1", "completion": {"text": "there"}})
    code, out, _ = command(workspace, "index", "--json")
    told = json.loads(out)
    assert (code, told["kind"], told["where"]) == (0, "sqlite", str(workspace.state_dir / "index.db"))
    assert told["conversations"] == 1
    assert told["rows"] > 0


def test_postgresql_is_made_by_one_command(
    postgres_database: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ARTIFACT_SIDECAR_INDEX", postgres_database)
    assert main(["index", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["kind"] == "postgresql"
    assert not any(step["applied"] for step in told["schema"])
    assert main(["index", "--migrate"]) == 0
    out = capsys.readouterr().out
    assert "applied 0001_" in out
    assert "conversations  0" in out


def test_a_password_is_shown_to_nobody(postgres: Postgres, capsys: pytest.CaptureFixture[str]) -> None:
    for password in (PASSWORD, "wrong-and-secret"):
        url = postgres.loopback_url("postgres", user="locked", password=password)
        main(["index", "--index", url])
        told = capsys.readouterr()
        assert password not in told.out + told.err
        assert "locked@127.0.0.1" in told.out + told.err


def test_an_index_that_does_not_answer_is_said_with_what_to_do(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["index", "--index", "postgresql://nobody:secret@127.0.0.1:1/none"]) == 75
    told = capsys.readouterr().err
    assert "unreachable" in told
    assert "check --index" in told
    assert "secret" not in told


@pytest.mark.parametrize("words", [[], ["--index", "mysql://u:secret@h/d"]])
def test_without_an_index_that_can_be_nothing_is_guessed(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["index", *words]) == 64
    assert "secret" not in capsys.readouterr().err


def test_an_index_of_a_newer_version_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    import sqlite3

    file = tmp_path / "index.db"
    assert main(["index", "--index", str(file), "--migrate"]) == 0
    with sqlite3.connect(file) as index:
        index.execute("INSERT INTO conv_schema VALUES (9999, 'later', 'then')")
    index.close()
    capsys.readouterr()
    assert main(["index", "--index", str(file)]) == 75
    assert "newer version" in capsys.readouterr().err


def test_a_daemon_started_by_the_console_gets_the_index(
    make_workspace: Callable[..., Workspace], command: Run, tmp_path: Path
) -> None:
    workspace = make_workspace()
    from sidecar.console.place import Place

    flags = dict(zip(("out_dir", "state_dir", "socket_dir"), workspace.arguments[1::2], strict=True))
    place = Place({**flags, "index": str(tmp_path / "elsewhere.db"), "store": str(tmp_path / "store")})
    try:
        with place.client() as client:
            client.call("workspace/sync")
        assert (tmp_path / "elsewhere.db").exists()
    finally:
        place.end()
