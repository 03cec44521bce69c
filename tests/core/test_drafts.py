"""What is drafted says what it will be: its type, its kind, its audience, and what its block carries."""

from __future__ import annotations

import hashlib
from typing import Any

import pytest

from sidecar.core import limits
from sidecar.core.artifacts import Artifact, Artifacts, Visibility
from sidecar.core.blocks import Defaults, tell
from sidecar.core.drafts import Draft, body_of, content_for, digest_for, kind_at, text_of, visibility_at
from sidecar.core.paths import FilePath
from sidecar.core.told_blocks import content_block, digest_of

PATH = FilePath("turn_1", "files", "a.md")
PNG = b"\x89PNG\r\n\x1a\n" + bytes(16)


def draft(content: bytes = b"one", path: FilePath = PATH, mime: str | None = None, **more: Any) -> Draft:
    body = body_of(content, path, mime=mime, sources_used=None, sids=())
    return Draft(path, "turn_1", body, **{"kind": "file", **more})


def known(kind: str, visibility: Visibility = "external") -> Artifact:
    artifacts = Artifacts()
    artifact = artifacts.at(PATH)
    digest = digest_of({"artifact_path": PATH.logical, "kind": kind, "mime": "text/markdown"})
    told = tell(content_block(digest, content="shown", packed=None), Defaults("turn_1", 1.0))
    assert told.part is not None
    artifacts.tell(artifact, told.head, told.part, 0)
    artifact.visibility = visibility
    return artifact


@pytest.mark.parametrize(
    ("content", "text"),
    [(b"", ""), (b"t\xc3\xabxt\r\n", "tëxt\r\n"), (b"a\0b", None), (b"\xff\xfe", None), (b"\xef\xbb\xbfx", "\ufeffx")],
)
def test_text_is_utf8_without_nul(content: bytes, text: str | None) -> None:
    assert text_of(content) == text


@pytest.mark.parametrize(
    ("content", "name", "told", "mime"),
    [
        (b"# hi", "a.md", None, "text/markdown"),
        (PNG, "a.png", None, "image/png"),
        (b"# hi", "a.png", None, "text/plain"),
        (b"# hi", "a.md", "text/x-own", "text/x-own"),
    ],
)
def test_the_type_is_told_or_found(content: bytes, name: str, told: str | None, mime: str) -> None:
    body = body_of(content, FilePath("turn_1", "files", name), mime=told, sources_used=None, sids=())
    assert (body.mime, body.sha256) == (mime, hashlib.sha256(content).hexdigest())


def test_sources_are_told_or_found_ascending() -> None:
    cited = b"B [[S:2]] A [[S:1]] and [[S:4-9]]"
    assert body_of(cited, PATH, mime=None, sources_used=None, sids=(1, 2, 5, 6)).sources_used == (1, 2, 5, 6)
    assert body_of(cited, PATH, mime=None, sources_used=[9, 3, 9], sids=()).sources_used == (3, 9)
    assert body_of(PNG, PATH, mime=None, sources_used=None, sids=()).sources_used == ()


@pytest.mark.rule("write.file-and-display-at-one-path-are-one")
@pytest.mark.parametrize(
    ("asked", "standing", "content", "kind"),
    [
        ("file", None, b"x", "file"),
        ("display", None, b"x", "display"),
        ("file", "file", b"x", "file"),
        ("display", "file", b"x", "display"),
        ("file", "display", b"x", "display"),
        ("file", "display", PNG, "file"),
        ("file", "display", b"x" * (limits.DISPLAY_BYTES + 1), "file"),
    ],
)
def test_a_display_stays_one_as_long_as_it_can_be_shown(
    asked: str, standing: str | None, content: bytes, kind: str
) -> None:
    assert kind_at(draft(content, kind=asked), known(standing) if standing else None) == kind


@pytest.mark.parametrize(
    ("asked", "standing", "calls", "visibility"),
    [
        (None, None, False, "external"),
        ("internal", None, False, "internal"),
        (None, "external", True, "external"),
        (None, "internal", False, "internal"),
        ("external", "internal", False, "external"),
        (None, "pending", True, "pending"),
        (None, "pending", False, "external"),
        ("internal", "pending", True, "internal"),
    ],
)
def test_who_may_see_it_stays_unless_it_is_said(
    asked: Visibility | None, standing: Visibility | None, visibility: str, *, calls: bool
) -> None:
    artifact = known("file", standing) if standing else None
    assert visibility_at(draft(visibility=asked), artifact, calls_are_open=calls) == visibility


def test_the_digest_says_what_it_will_be() -> None:
    one = draft(b"[[S:1]]", description="words", channel="canvas")
    assert digest_for(one, known("file"), "pending", call_id="tc_1", ts="now") == {
        "artifact_path": "fi:turn_1.files/a.md",
        "physical_path": "turn_1/files/a.md",
        "mime": "text/markdown",
        "kind": "file",
        "visibility": "external",
        "channel": "canvas",
        "tool_call_id": "tc_1",
        "edited": True,
        "ts": "now",
        "size_bytes": 7,
        "sha256": hashlib.sha256(b"[[S:1]]").hexdigest(),
        "description": "words",
        "sources_used": [1],
    }
    assert digest_for(one, None, "internal", call_id="tc_1", ts="now").items() >= {
        ("edited", False), ("visibility", "internal"),
    }  # fmt: skip


@pytest.mark.parametrize(
    ("content", "kind", "held"),
    [
        (b"x", "file", "text"),
        (b"", "file", "text"),
        (b"x" * limits.INLINE_TEXT_BYTES, "file", "text"),
        (b"x" * (limits.INLINE_TEXT_BYTES + 1), "file", None),
        (b"x" * (limits.INLINE_TEXT_BYTES + 1), "display", "text"),
        (PNG, "file", "base64"),
        (PNG + bytes(limits.INLINE_BASE64_BYTES), "file", None),
        (b"\0", "file", None),
    ],
)
def test_a_block_carries_what_blocks_carry(content: bytes, kind: str, held: str | None) -> None:
    path = FilePath("turn_1", "files", "a.png" if content.startswith(PNG) else "a.txt")
    one = draft(content, path, kind=kind)
    block = content_for(one, digest_for(one, None, "external", call_id="tc_1", ts="now"), tool_id="react.write")
    assert [key for key in ("text", "base64") if key in block] == ([held] if held else [])
    assert block["type"] == "react.tool.result"


@pytest.mark.rule("write.internal-channel-is-a-note")
def test_what_goes_to_the_internal_channel_is_a_note() -> None:
    one = draft(channel="internal", kind="display")
    digest = digest_for(one, None, "internal", call_id="tc_1", ts="now")
    assert content_for(one, digest, tool_id="react.write")["type"] == "react.note"
