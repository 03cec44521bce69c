"""Told and seen are one artifact: who comes first gives the number, the latest version answers alone."""

from __future__ import annotations

import hashlib
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sidecar.core.artifacts import Artifact, Artifacts, Visibility, describe, describe_versions
from sidecar.core.blocks import Defaults, tell
from sidecar.core.inventory import FileFact, StatKey
from sidecar.core.paths import FilePath, parse

PATH = "fi:turn_1.files/a.md"


def sha(text: str | bytes) -> str:
    return hashlib.sha256(text.encode() if isinstance(text, str) else text).hexdigest()


class Story:
    """Tells and sees one thing after the other at one path; a tick of the clock per event."""

    def __init__(self, path: str = PATH) -> None:
        self.artifacts = Artifacts()
        parsed = parse(path)
        assert isinstance(parsed, FilePath)
        self.path = parsed
        self.clock = 0

    @property
    def artifact(self) -> Artifact:
        found = self.artifacts.get(self.path.logical or "")
        assert found is not None
        return found

    def block(self, **block: Any) -> Story:
        self.clock += 1
        told = tell({"type": "react.tool.result", **block}, Defaults("turn_1", float(self.clock)))
        assert told.part is not None
        self.artifacts.tell(self.artifacts.at(self.path), told.head, told.part, self.clock)
        return self

    def digest(self, call: str = "", **fields: Any) -> Story:
        text = orjson.dumps({"artifact_path": self.path.logical, **fields}).decode()
        return self.block(mime="application/json", text=text, meta={"tool_call_id": call})

    def content(self, text: str, call: str = "", mime: str = "text/markdown", **meta: Any) -> Story:
        return self.block(path=self.path.logical, text=text, mime=mime, meta={"tool_call_id": call, **meta})

    def see(self, text: str, call: str = "", visibility: Visibility = "external", **fact: Any) -> Story:
        self.clock += 1
        key = StatKey(1, 2, len(text), fact.pop("mtime", self.clock), self.clock)
        seen = FileFact(self.path.physical, key, fact.pop("sha256", sha(text)), "text/markdown", **fact)
        self.artifacts.see(self.path, seen, ts=float(self.clock), call=call, visibility=visibility)
        return self

    def see_again(self, call: str = "", visibility: Visibility = "external") -> Story:
        fact = self.artifact.fact
        assert fact is not None
        self.clock += 1
        self.artifacts.see(self.path, fact, ts=float(self.clock), call=call, visibility=visibility)
        return self

    def lose(self) -> Story:
        self.artifacts.lose(self.path)
        return self

    def record(self) -> dict[str, Any]:
        return describe(self.artifact, {"tc_1": "react.write", "tc_2": "react.patch"})

    def versions(self) -> list[tuple[str, str | None, str | None]]:
        """Origin, call and the first letters of the hash, oldest first."""
        return [
            (row["origin"], row.get("tool_call_id"), (row.get("sha256") or "")[:8] or None)
            for row in describe_versions(self.artifact)
        ]


def v(origin: str, call: str | None, text: str | None) -> tuple[str, str | None, str | None]:
    return origin, call, None if text is None else sha(text)[:8]


@pytest.mark.rule(
    "discovery.groups-by-call-and-path",
    "discovery.told-and-seen-are-joined",
    "discovery.changed-bytes-are-a-new-seen-version",
    "watch.rehosted-files-are-no-news",
)
@pytest.mark.parametrize(
    ("story", "versions"),
    [
        # One call's digest and content are one version, in either order.
        (Story().digest("tc_1").content("a", "tc_1"), [v("told", "tc_1", "a")]),
        (Story().content("a", "tc_1").digest("tc_1"), [v("told", "tc_1", "a")]),
        # Another call is another version, with equal bytes too.
        (Story().content("a", "tc_1").content("a", "tc_2"), [v("told", "tc_1", "a"), v("told", "tc_2", "a")]),
        # Calls that run side by side do not tear each other's blocks apart.
        (
            Story().digest("tc_1").digest("tc_2").content("a", "tc_1").content("b", "tc_2"),
            [v("told", "tc_1", "a"), v("told", "tc_2", "b")],
        ),
        # Without calls a second content is a second version; a digest goes before its content.
        (Story().content("a").content("b"), [v("told", None, "a"), v("told", None, "b")]),
        (
            Story().digest().content("a").digest().content("b"),
            [v("told", None, "a"), v("told", None, "b")],
        ),
        # Whichever comes first gives the number, the other adds its fields.
        (Story().see("a").content("a", "tc_1"), [v("both", "tc_1", "a")]),
        (Story().content("a", "tc_1").see("a"), [v("both", "tc_1", "a")]),
        (Story().see("a").digest("tc_1"), [v("both", "tc_1", "a")]),
        (Story().see("a", "tc_1").digest("tc_1", sha256=sha("a")), [v("both", "tc_1", "a")]),
        (Story().digest("tc_1").see("a"), [v("both", "tc_1", "a")]),
        (Story().see("a", "tc_1").digest("tc_2"), [v("seen", "tc_1", "a"), v("told", "tc_2", None)]),
        (Story().see("a").digest("tc_1", size_bytes=7), [v("seen", None, "a"), v("told", "tc_1", None)]),
        # A block told late goes to the state that its call made, not to the newest.
        (
            Story().see("a", "tc_1").see("b", "tc_2").content("a", "tc_1"),
            [v("both", "tc_1", "a"), v("seen", "tc_2", "b")],
        ),
        # Bytes that differ are versions that differ, whatever a digest was taken to mean before.
        (
            Story().see("a").digest("tc_1", mime="x/y").content("b", "tc_1"),
            [v("seen", None, "a"), v("told", "tc_1", "b")],
        ),
        (
            Story().content("a", "tc_1").see("a").content("b", "tc_1"),
            [v("both", "tc_1", "a"), v("told", "tc_1", "b")],
        ),
        # A digest that names the bytes by hash knows better than an excerpt.
        (
            Story().see("whole").digest("tc_1", sha256=sha("whole")).content("who", "tc_1"),
            [v("both", "tc_1", "whole")],
        ),
        # A file that changes without a block is a new seen version; one that changes back by itself is a stale copy.
        (Story().see("a").see("b").see("a"), [v("seen", None, "a"), v("seen", None, "b")]),
        (
            Story().see("a").see("b").see("a", "tc_1"),
            [v("seen", None, "a"), v("seen", None, "b"), v("seen", "tc_1", "a")],
        ),
        (Story().content("a", "tc_1").see("b"), [v("told", "tc_1", "a"), v("seen", None, "b")]),
        # Touched and brought back is not changed.
        (Story().see("a").see("a"), [v("seen", None, "a")]),
        (Story().see("a").lose().see("a"), [v("seen", None, "a")]),
        # A stale copy on disk is not a new version; it is that older one, seen.
        (Story().content("a", "tc_1").content("b", "tc_2").see("a"), [v("both", "tc_1", "a"), v("told", "tc_2", "b")]),
        (
            Story().content("a", "tc_1").content("b", "tc_2").see("b").see("a"),
            [v("both", "tc_1", "a"), v("both", "tc_2", "b")],
        ),
        # So no block told later takes bytes away that stand on disk.
        (
            Story().content("a", "tc_1").content("b", "tc_2").see("a").content("c", "tc_1"),
            [v("both", "tc_1", "a"), v("told", "tc_2", "b"), v("told", "tc_1", "c")],
        ),
        (
            Story().see("a").content("b", "tc_1").see("a", "tc_2"),
            [v("seen", None, "a"), v("told", "tc_1", "b"), v("seen", "tc_2", "a")],
        ),
        # The end of a call says the same state again; that is no version, and tells whose it was.
        (Story().see("a", "", "pending").see_again("tc_1"), [v("seen", "tc_1", "a")]),
        (
            Story().see("big", "tc_1", "pending", sha256=None).see_again("tc_1"),
            [v("seen", "tc_1", None)],
        ),
        (
            Story().content("a", "tc_1").content("b", "tc_2").see("a").see_again("tc_3"),
            [v("both", "tc_1", "a"), v("told", "tc_2", "b")],
        ),
        # A call may write one file twice, and what it wrote may be changed before it ends.
        (
            Story()
            .digest("tc_1", sha256=sha("a"))
            .content("a", "tc_1")
            .see("a", "tc_1")
            .digest("tc_1", sha256=sha("b"))
            .content("b", "tc_1")
            .see("b", "tc_1"),
            [v("both", "tc_1", "a"), v("both", "tc_1", "b")],
        ),
        (
            Story()
            .digest("tc_1", sha256=sha("a"))
            .content("a", "tc_1")
            .see("a", "tc_1")
            .see("b", "tc_1")
            .digest("tc_1", sha256=sha("b"))
            .content("b", "tc_1"),
            [v("both", "tc_1", "a"), v("both", "tc_1", "b")],
        ),
        (
            Story().digest("tc_1", sha256=sha("a")).content("a", "tc_1").digest("tc_1", sha256=sha("a")),
            [v("told", "tc_1", "a")],
        ),
        # What was registered while somebody still wrote to it becomes whole when it is closed.
        (Story().see("half", sha256=None, incomplete=True).see("whole"), [v("seen", None, "whole")]),
    ],
)
def test_the_versions_of_a_story(story: Story, versions: list[tuple[str, str | None, str | None]]) -> None:
    assert story.versions() == versions


@pytest.mark.rule("discovery.latest-group-wins-as-a-whole")
def test_no_field_of_an_older_group_shows_through() -> None:
    story = Story()
    story.digest("tc_1", mime="text/html", kind="display", description="old", sources_used=[1])
    story.content("v1", "tc_1", hosted_uri="s3://b/v1", rn="ef:1", key="k1")
    story.content("v2", "tc_2", mime="text/plain")
    record = story.record()
    assert not record.keys() & {"hosted_uri", "rn", "key", "description"}
    assert record["sources_used"] == []
    assert (record["mime"], record["version"], record["edited"], record["tool_id"]) == (
        "text/plain",
        2,
        True,
        "react.patch",
    )


def test_hosting_of_replaced_content_goes_with_it() -> None:
    story = Story().content("v1", "tc_1", hosted_uri="s3://b/v1").content("v2", "tc_1")
    assert "hosted_uri" not in story.record()


def test_hosting_told_later_for_the_same_content_stays() -> None:
    story = Story().content("v1", "tc_1").content("v1", "tc_1", hosted_uri="s3://b/v1").content("v1", "tc_1")
    assert story.record()["hosted_uri"] == "s3://b/v1"


@pytest.mark.rule("digest.never-holds-hosting-fields")
def test_a_digest_never_brings_hosting_fields() -> None:
    story = Story().digest("tc_1", hosted_uri="s3://b/x", rn="ef:x", key="k")
    story.content("a", "tc_1", digest='{"key":"k2","description":"d"}')
    assert not story.record().keys() & {"hosted_uri", "rn", "key"}


@pytest.mark.rule("digest.is-rebuilt-from-meta-digest")
def test_a_lost_digest_is_rebuilt_from_the_content_block() -> None:
    digest = '{"mime":"text/csv","kind":"display","description":"d","sources_used":[1]}'
    record = Story().content("a", "tc_1", mime="text/plain", digest=digest).record()
    assert (record["mime"], record["kind"], record["description"], record["sources_used"]) == (
        "text/csv",
        "display",
        "d",
        [1],
    )


@pytest.mark.rule("discovery.metadata-block-is-canonical")
def test_the_digest_wins_over_what_the_content_says_beside_it() -> None:
    for story in (
        Story().digest("tc_1", mime="text/csv", kind="file").content("a", "tc_1", kind="display"),
        Story().content("a", "tc_1", kind="display").digest("tc_1", mime="text/csv", kind="file"),
    ):
        record = story.record()
        assert (record["mime"], record["kind"], record["sha256"], record["size_bytes"]) == (
            "text/csv",
            "file",
            sha("a"),
            1,
        )


def test_fields_of_a_kind_they_cannot_have_are_left_out() -> None:
    record = Story().digest("tc_1", mime=5, kind=["x"], size_bytes="big", tool_call_id={}, description=1).record()
    assert record["mime"] == "application/octet-stream"
    assert not record.keys() & {"size_bytes", "description"}


def attachment(*blocks: dict[str, Any], name: str = "menu.pdf", digest: dict[str, Any] | None = None) -> Story:
    story = Story(f"fi:turn_1.user.attachments/{name}")
    meta = {"artifact_path": story.path.logical, "mime": "application/pdf", "kind": "file", **(digest or {})}
    story.block(
        type="user.attachment.meta",
        mime="application/json",
        path=story.path.logical,
        text=orjson.dumps(meta).decode(),
    )
    for block in blocks:
        story.block(path=story.path.logical, **block)
    return story


PDF = {"type": "user.attachment", "mime": "application/pdf", "base64": "QUJD"}
EXTRACT = {"type": "user.attachment.text", "mime": "text/plain", "text": "extracted words"}


@pytest.mark.rule("digest.of-an-attachment-is-its-meta-block")
@pytest.mark.parametrize("blocks", [[PDF], [PDF, EXTRACT], [EXTRACT, PDF]])
def test_an_attachment_is_its_own_bytes_and_never_its_metadata_or_a_text_made_from_it(
    blocks: list[dict[str, Any]],
) -> None:
    story = attachment(*blocks, digest={"size_bytes": 3})
    record = story.record()
    assert (record["mime"], record["kind"], record["sha256"], record["size_bytes"]) == (
        "application/pdf",
        "file",
        sha(b"ABC"),
        3,
    )
    assert record["version"] == 1
    assert "base64" in story.artifact.latest.blocks
    assert "text" not in story.artifact.latest.blocks


def test_a_text_attachment_is_its_text() -> None:
    text = {"type": "user.attachment.text", "mime": "text/plain", "text": "hello"}
    record = attachment(text, name="a.txt", digest={"mime": "text/plain"}).record()
    assert (record["mime"], record["sha256"]) == ("text/plain", sha("hello"))


def test_the_text_of_an_office_file_is_not_the_file() -> None:
    record = attachment(EXTRACT, name="a.docx", digest={"mime": "application/vnd.ms-word", "size_bytes": 9000}).record()
    assert "sha256" not in record
    assert record["size_bytes"] == 9000


def test_an_attachment_without_metadata_is_a_file() -> None:
    story = Story("fi:turn_1.user.attachments/a.txt")
    story.block(path=story.path.logical, type="user.attachment.text", mime="text/plain", text="x")
    assert story.record()["kind"] == "file"


@pytest.mark.parametrize(
    ("story", "kind"),
    [
        (Story().content("a"), "display"),
        (Story().see("a"), "file"),
        (Story().block(path=PATH, base64="QUJD", mime="image/png"), "file"),
        (Story().digest("tc_1", kind="display").content("a", "tc_1").see("a"), "display"),
        (Story().digest("tc_1", kind="display").content("a", "tc_1").see("b"), "display"),
        (Story().digest("tc_1", kind="display").content("a", "tc_1").see("b").digest("tc_2", kind="file"), "file"),
        (Story().content("a").see("b"), "file"),
    ],
)
def test_the_kind_is_told_or_follows_from_what_is_there(story: Story, kind: str) -> None:
    assert story.record()["kind"] == kind


@pytest.mark.rule("discovery.hidden-still-resolves")
@pytest.mark.parametrize(
    ("story", "hidden"),
    [
        (Story().content("a", "tc_1"), False),
        (Story().content("a", "tc_1", hidden=True), True),
        (Story().content("a", "tc_1", hidden=True).digest("tc_1"), True),
        (Story().content("a", "tc_1", hidden=True).content("b", "tc_2"), False),
        (Story().content("a", "tc_1", hidden=True).content("a", "tc_2", rel="read"), False),
    ],
)
def test_an_artifact_is_hidden_when_its_latest_content_is(story: Story, hidden: bool) -> None:
    assert story.record()["hidden"] is hidden


def test_a_copy_that_a_read_showed_makes_no_version() -> None:
    assert len(Story().content("a", "tc_1").content("a", "tc_2", rel="read").artifact.versions) == 1


@pytest.mark.parametrize(
    ("story", "visibility"),
    [
        (Story().digest("tc_1", visibility="internal"), "internal"),
        (Story().see("a", "tc_1", "pending").digest("tc_1", visibility="external"), "pending"),
        (Story().see("a", "tc_1", "pending").see_again("tc_1", "internal"), "internal"),
        (Story().see("a").digest("tc_1", visibility="internal"), "internal"),
        (
            Story()
            .content("a", "tc_1", visibility="external")
            .content("b", "tc_2", visibility="internal")
            .digest("tc_1", visibility="external"),
            "internal",
        ),
        (Story().digest("tc_1", visibility="nobody"), "external"),
    ],
)
def test_who_may_see_it(story: Story, visibility: str) -> None:
    assert story.record()["visibility"] == visibility


def test_the_owner_is_known_while_it_is_pending() -> None:
    story = Story().see("a", "tc_1", "pending")
    assert story.artifact.owner == "tc_1"
    assert story.see_again("tc_1").artifact.owner == ""


@pytest.mark.rule("watch.deleted-files-stay-artifacts")
def test_a_deleted_file_stays_an_artifact() -> None:
    record = Story().see("a").lose().record()
    assert (record["on_disk"], record["sha256"]) == (False, sha("a"))


def test_losing_what_was_never_known_is_nothing() -> None:
    assert Artifacts().lose(Story().path) is None


@pytest.mark.rule("discovery.a-second-block-is-an-edit")
@pytest.mark.parametrize(
    ("story", "edited"),
    [
        (Story().content("a", "tc_1"), [False]),
        (Story().digest("tc_1", edited=True), [True]),
        (Story().content("a", "tc_1").content("b", "tc_2").see("c"), [False, True, True]),
        (Story().see("a").content("a", "tc_1"), [False]),
    ],
)
def test_whatever_comes_second_is_an_edit(story: Story, edited: list[bool]) -> None:
    assert [row["edited"] for row in describe_versions(story.artifact)] == edited


EVENTS = st.tuples(
    st.sampled_from(["digest", "content", "see", "again", "lose"]),
    st.sampled_from(["", "tc_1", "tc_2"]),
    st.sampled_from(["a", "b", "c"]),
)


@pytest.mark.rule("discovery.all-versions-stay")
@given(st.lists(EVENTS, min_size=1, max_size=12))
def test_versions_are_only_ever_added_and_keep_their_bytes(events: list[tuple[str, str, str]]) -> None:
    story = Story()
    story.see("start")
    for kind, call, text in events:
        before = describe_versions(story.artifact)
        match kind:
            case "digest":
                story.digest(call)
            case "content":
                story.content(text, call)
            case "see":
                story.see(text, call)
            case "again":
                story.see_again(call)
            case _:
                story.lose()
        after = describe_versions(story.artifact)
        assert len(before) <= len(after) <= len(before) + 1
        for old, new in zip(before, after, strict=False):
            if old["origin"] != "told":
                assert new["sha256"] == old["sha256"], "what was seen was there"
        fact = story.artifact.fact
        assert fact is not None
        assert story.artifact.knows(fact.sha256), "bytes on disk are always a known version"


calls = st.sampled_from(["", "tc_1", "tc_2"])
blocks = st.one_of(
    st.builds(lambda call, mime: (call, {"artifact_path": PATH, "mime": mime}), calls, st.sampled_from(["a/b", "c/d"])),
    st.builds(lambda call, text: (call, text), calls, st.sampled_from(["one", "two"])),
)


@given(st.lists(blocks, min_size=1), st.integers(0, 20), st.booleans())
def test_what_a_start_notes_is_what_would_have_been_told(
    said: list[tuple[str, Any]], asked_after: int, is_shown: bool
) -> None:
    """Asked for in between or not: noted blocks make the same versions."""
    path = parse(PATH)
    assert isinstance(path, FilePath)
    told, noted = Artifacts(), Artifacts(lambda physical: 7 if physical == path.physical else None)
    for number, (call, what) in enumerate(said):
        meta = {"tool_call_id": call, **({"rel": "read"} if is_shown and number == 2 else {})}
        block = {"type": "react.tool.result", "ts": float(number), "meta": meta}
        if isinstance(what, str):
            block |= {"path": PATH, "text": what}
        else:
            block |= {"mime": "application/json", "text": orjson.dumps(what).decode()}
        one = tell(block, Defaults("turn_1", 0.0))
        assert one.part is not None
        told.tell(told.at(path), one.head, one.part, number)
        if not noted.note(PATH, one.head, one.part, number):
            noted.tell(noted.at(path), one.head, one.part, number)
        if number == asked_after:
            noted.get(PATH)
    (one,), (other,) = list(told), list(noted)
    assert describe_versions(one) == describe_versions(other)
    if one.versions:
        assert describe(one, {}) | {"sid": 7} == describe(other, {}) | {"sid": 7}
    assert [version.blocks for version in one.versions] == [version.blocks for version in other.versions]
    assert [version.facts for version in one.versions] == [version.facts for version in other.versions]
    assert (other.sid, [*noted.of_turn("turn_1")], [*noted.of_turn("turn_2")]) in (
        (7, [other], []),
        (None, [other], []),
    )


def test_what_cites_was_shown_again_or_has_a_long_story_is_not_put_off() -> None:
    def note(artifacts: Artifacts, **block: Any) -> bool:
        one = tell({"type": "react.tool.result", "path": PATH, "text": "x", **block}, Defaults("turn_1", 0.0))
        assert one.part is not None
        return artifacts.note(PATH, one.head, one.part, 0)

    assert not note(Artifacts(), meta={"sources_used": [1]})
    assert not note(Artifacts(), meta={"rel": "read"})
    told = Artifacts()
    assert sum(note(told) for _ in range(2000)) < 500
    assert list(Artifacts().seen()) == []
    assert list(told.seen()) == []
    assert told.get(PATH) is not None
    assert len(list(told.seen())) == 1
    assert not note(told)
