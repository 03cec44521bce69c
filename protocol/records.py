"""The things that messages speak of: artifacts, versions, source rows, blocks, notices, changes."""

from __future__ import annotations

from typing import Annotated, Literal, Required

from pydantic import AfterValidator, ConfigDict, Field, StringConstraints
from typing_extensions import TypedDict

from protocol.base import (
    PATH_CHARS,
    ArtifactKind,
    Channel,
    Maybe,
    Moment,
    Number,
    Origin,
    Record,
    Sid,
    SourceType,
    TurnId,
    Visibility,
)
from protocol.notices import NoticeCode

HOSTING = "Roles: only the runtime sees it."


class Artifact(Record):
    """What is known of the artifact at one path: the join of what was told and what was seen."""

    artifact_path: str = Field(description="The canonical logical path.")
    physical_path: Maybe[str] = Field(
        default=None, description="The path relative to OUT_DIR; absent for what never was a file."
    )
    name: Maybe[str] = Field(
        default=None, description="A label for people: the last part of its path; absent for what never was a file."
    )
    turn_id: Maybe[TurnId] = Field(
        default=None, description="The turn it belongs to; absent for files outside every turn."
    )
    kind: ArtifactKind = Field(description="`file` has bytes in OUT_DIR; `display` keeps its text in the timeline.")
    mime: str = Field(description="The media type: as told, else by the daemon's own table.")
    visibility: Visibility = Field(description="`pending` while the call that makes it is still open.")
    channel: Maybe[Channel] = Field(default=None, description="Where it is shown.")
    description: Maybe[str] = Field(default=None, description="What its maker says it is.")
    tool_call_id: Maybe[str] = Field(default=None, description="The call that made this version.")
    tool_id: Maybe[str] = Field(default=None, description="The tool of that call.")
    edited: bool = Field(description="Whether this version replaced an earlier one.")
    version: int = Field(ge=1, description="Counts the versions of this path from 1.")
    origin: Origin = Field(description="Whether the runtime told of it, the disk showed it, or both.")
    on_disk: bool = Field(description="Whether the file is in OUT_DIR now.")
    hidden: bool = Field(description="Whether its blocks are hidden from the agent. Hidden ones still resolve.")
    size_bytes: Maybe[Number] = Field(default=None, description="The size of this version.")
    sha256: Maybe[str] = Field(default=None, description="The hash of this version's bytes, in lower-case hex.")
    ts: str = Field(description="When this version appeared, ISO 8601 UTC.")
    sid: Maybe[Sid] = Field(default=None, description="Its number in the sources pool, if it is citable.")
    sources_used: list[Sid] = Field(description="The sources cited in it, ascending.")
    kept: Maybe[bool] = Field(
        default=None, description="False when its bytes are nowhere but on the disk: once deleted, they are gone."
    )
    incomplete: Maybe[bool] = Field(
        default=None, description="True when its turn ended while somebody still wrote to it."
    )
    error: Maybe[str | dict[str, object]] = Field(default=None, description="What went wrong when it was made.")
    rn: Maybe[str] = Field(default=None, description="The download handle. Roles: never sent to exec.")
    hosted_uri: Maybe[str] = Field(default=None, description=f"Where it is stored. {HOSTING}")
    key: Maybe[str] = Field(default=None, description=f"Its key in the store. {HOSTING}")


class Version(Record):
    """One state that an artifact was in."""

    version: int = Field(ge=1, description="Counts the versions of this path from 1.")
    tool_call_id: Maybe[str] = Field(default=None, description="The call that made it; absent when none is known.")
    origin: Origin = Field(description="Whether the runtime told of it, the disk showed it, or both.")
    edited: bool = Field(description="Whether it replaced an earlier one.")
    ts: str = Field(description="When it appeared, ISO 8601 UTC.")
    sha256: Maybe[str] = Field(default=None, description="The hash of its bytes, in lower-case hex.")
    size_bytes: Maybe[Number] = Field(default=None, description="Its size.")
    kept: Maybe[bool] = Field(default=None, description="False when its bytes were not put aside.")


class Notice(Record):
    """Advice that comes with an answer. Which further fields it has, its code says (see the table of notices)."""

    code: NoticeCode = Field(description="What it is about, from a closed table.")
    message: str = Field(description="The same in words.")
    path: Maybe[str] = Field(default=None, description="The file it is about.")
    paths: Maybe[list[str]] = Field(default=None, description="The files it is about.")
    name: Maybe[str] = Field(
        default=None, description="The entry of a folder it is about; bytes that are no UTF-8 stand as `%XX`."
    )
    missing: Maybe[list[str]] = Field(default=None, description="The paths that are not there.")
    missing_sids: Maybe[list[Sid]] = Field(default=None, description="The numbers that no source has.")
    pieces: Maybe[list[str]] = Field(default=None, description="The pieces that were not understood.")
    fields: Maybe[list[str]] = Field(default=None, description="The fields that were left out.")
    original: Maybe[str] = Field(default=None, description="The path as it was asked for.")
    normalized: Maybe[str] = Field(default=None, description="The path that was used.")
    tool_id: Maybe[str] = Field(default=None, description="The tool it concerns.")
    tool_call_id: Maybe[str] = Field(default=None, description="The call it concerns.")
    tool_call_ids: Maybe[list[str]] = Field(default=None, description="The calls it may concern.")
    sha256: Maybe[str] = Field(default=None, description="The hash of the bytes it is about.")
    size_bytes: Maybe[Number] = Field(default=None, description="The size of what it is about.")
    count: Maybe[Number] = Field(default=None, description="How many there are.")
    limit: Maybe[str] = Field(default=None, description="The limit that was met.")
    reason: Maybe[str] = Field(default=None, description="Why it is so.")
    turn_id: Maybe[TurnId] = Field(default=None, description="The turn it is about.")
    reaction: Maybe[str] = Field(default=None, description="`ok`, `not_ok` or `neutral`.")


class Change(Record):
    """One durable change. One of `path`, `sid` and `index` says what it was about; a notice has none of them."""

    revision: Number = Field(description="The revision that this change made.")
    kind: Literal["artifact", "source", "block", "notice"] = Field(description="What changed.")
    path: Maybe[str] = Field(default=None, description="The artifact's logical path.")
    sid: Maybe[Sid] = Field(default=None, description="The source's number.")
    index: Maybe[Number] = Field(default=None, description="The block's global index.")


def _no_dots(text: str) -> str:
    if text in {".", ".."}:
        raise ValueError("a part of an identity is neither '.' nor '..'")
    return text


Part = Annotated[
    str, StringConstraints(pattern=r"^[^\x00-\x1f\x7f-\x9f]{1,128}$"), AfterValidator(_no_dots)
]  # spec section 10


class Conversation(Record):
    """Whose conversation it is. What is absent comes from the settings. No part is `.` or `..`."""

    tenant: Maybe[Part] = Field(default=None, description="The tenant.")
    project: Maybe[Part] = Field(default=None, description="The project of the tenant.")
    user_id: Maybe[Part] = Field(default=None, description="The user.")
    user_type: Maybe[Part] = Field(default=None, description="The user's type, which names the role in storage keys.")
    conversation_id: Maybe[Part] = Field(
        default=None, description="The conversation. Another one than the open one is refused."
    )
    bundle_id: Maybe[Part] = Field(default=None, description="The bundle that runs the agent.")
    title: Maybe[Part] = Field(default=None, description="The conversation's title.")


class SourceRow(TypedDict, total=False):
    """A row of the sources pool. Fields not named here are kept as they were given; null means blank."""

    __pydantic_config__ = ConfigDict(extra="allow", strict=True)  # pyright: ignore[reportGeneralTypeIssues]

    sid: Annotated[
        int | None, Field(description="Its number, given once and never reused. A proposed one may be refused.")
    ]
    source_type: Annotated[SourceType | None, Field(description="What kind of source it is.")]
    title: Annotated[str | None, Field(description="A label for people.")]
    text: Annotated[str | None, Field(description="An extract or a snippet.")]
    content: Annotated[str | None, Field(description="The full text, where a tool gave one.")]
    url: Annotated[str | None, Field(description="The address of a web source, as it was given.")]
    domain: Annotated[str | None, Field(description="The host of a web source.")]
    mime: Annotated[str | None, Field(description="The media type of a file.")]
    size_bytes: Annotated[Number | None, Field(description="The size of a file.")]
    artifact_path: Annotated[str | None, Field(description="The logical path of a file.", max_length=PATH_CHARS)]
    physical_path: Annotated[
        str | None, Field(description="The path of a file relative to OUT_DIR.", max_length=PATH_CHARS)
    ]
    local_path: Annotated[str | None, Field(description="The older name of `physical_path`.", max_length=PATH_CHARS)]
    base64: Annotated[str | None, Field(description="Bytes held inline, at most 4,000 characters.")]
    rn: Annotated[str | None, Field(description="The download handle. Roles: never sent to exec.")]
    hosted_uri: Annotated[str | None, Field(description=f"Where a file is stored. {HOSTING}")]
    key: Annotated[str | None, Field(description=f"The key of a file in the store. {HOSTING}")]


class Block(TypedDict, total=False):
    """One entry of the timeline. Fields not named here are kept as they were told; null means absent."""

    __pydantic_config__ = ConfigDict(extra="allow", strict=True)  # pyright: ignore[reportGeneralTypeIssues]

    type: Required[
        Annotated[str, Field(description="What the block is, `user.prompt` for example.", min_length=1, max_length=256)]
    ]
    author: Annotated[str | None, Field(description="Who wrote it.")]
    turn_id: Annotated[str | None, Field(description="The turn it belongs to; the open turn by default.")]
    ts: Annotated[
        Moment | None,
        Field(description="When it was written: ISO 8601 text or seconds since the epoch. Answered as text."),
    ]
    mime: Annotated[str | None, Field(description="The media type of its content.")]
    path: Annotated[str | None, Field(description="Its logical path.", max_length=PATH_CHARS)]
    text: Annotated[str | None, Field(description="Its content as text.")]
    base64: Annotated[str | None, Field(description="Its content as base64.")]
    meta: Annotated[dict[str, object] | None, Field(description="What else is known of it.")]
