"""The limits are those of the specification, in bytes, counts and seconds."""

from __future__ import annotations

import pytest

from sidecar.core import limits


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("PATH_BYTES", 4096),
        ("SEGMENT_BYTES", 255),
        ("FILES_REGISTERED", 200_000),
        ("FOLDERS_WATCHED", 20_000),
        ("FOLDER_DEPTH", 64),
        ("HASHED_BYTES", 2 * 1024**3),
        ("STILL_OPEN_WAIT", 2.0),
        ("KEPT_FILE_BYTES", 64 * 1024**2),
        ("KEEP_BYTES", 5 * 1024**3),
        ("FREE_DISK_SHARE", 0.05),
        ("MERGE_ROWS", 1000),
        ("ROW_BYTES", 256 * 1024),
        ("ROW_BASE64_CHARS", 4000),
        ("PROPOSED_SID_AHEAD", 1000),
        ("TOKEN_BYTES", 4 * 1024),
        ("STREAMS_PER_CONNECTION", 64),
        ("STREAM_IDLE", 600.0),
        ("INLINE_TEXT_BYTES", 256 * 1024),
        ("INLINE_BASE64_BYTES", 4 * 1024**2),
        ("CHANGES_KEPT", 100_000),
        ("CHANGES_PAGE", 1000),
        ("ANSWERS_KEPT", 10_000),
        ("SEARCH_PATTERN_BYTES", 1000),
        ("SEARCH_FILE_BYTES", 1_000_000),
        ("SEARCH_FILES", 2000),
        ("SEARCH_SECONDS", 10.0),
        ("REHOSTS_AT_ONCE", 8),
    ],
)
def test_a_limit_is_as_specified(name: str, value: float) -> None:
    assert getattr(limits, name) == value
