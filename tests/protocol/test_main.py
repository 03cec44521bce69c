"""`python -m protocol` writes, and with `--check` names what is stale."""

from __future__ import annotations

from pathlib import Path

import pytest

from protocol import export
from protocol.__main__ import main


def test_a_check_names_stale_files_and_fails(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--check"], root=tmp_path) == 1
    told = capsys.readouterr().err
    assert all(path in told for path in export.generated(tmp_path))


def test_a_check_writes_nothing(tmp_path: Path) -> None:
    main(["--check"], root=tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_after_writing_the_check_is_silent(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([], root=tmp_path) == 0
    capsys.readouterr()
    assert main(["--check"], root=tmp_path) == 0
    assert capsys.readouterr() == ("", "")
