"""What cannot be interrupted ends with its process, in time and within its memory."""

from __future__ import annotations

import pytest
from artifact_render import worker
from artifact_render.failures import RenderError


def test_markdown_is_read_elsewhere() -> None:
    assert worker.run("markdown", {"text": "*a* \u2028 [[S:1]](x)", "citations": ["[[S:1]]"]}, seconds=20) == {
        "html": "<p><em>a</em> \u2028 [[S:1]](x)</p>\n"
    }


@pytest.mark.parametrize("seconds", [0, 0.01])
def test_time_runs_out(seconds: float) -> None:
    with pytest.raises(RenderError) as failed:
        worker.run("markdown", {"text": "x", "citations": []}, seconds=seconds)
    assert failed.value.kind == "timed_out"


def test_what_fails_there_is_told_here_without_its_traceback() -> None:
    with pytest.raises(RenderError, match="slides failed: KeyError") as failed:
        worker.run("slides", {}, seconds=20)
    assert failed.value.kind == "failed"
    assert "Traceback" not in str(failed.value)
