"""Changing what stands at a path: write it, patch it, hide it from the agent."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import ConfigDict, Field, StringConstraints, model_validator

from protocol.base import (
    ArtifactKind,
    CallId,
    ChangingParams,
    Channel,
    Maybe,
    Mime,
    MissingReason,
    Number,
    PathList,
    PathText,
    Record,
    Result,
    SettledVisibility,
    Sid,
)
from protocol.records import Artifact, Notice

SOURCES = 10_000

ExpectedHash = Annotated[str, StringConstraints(pattern=r"^([0-9a-f]{64})?$")]
_EXPECTED = "Refuse as `stale` unless the latest version has this hash; the empty text expects that nothing is there."
_CALL = (
    "The open call to tell it in; by default the one that is open, else a call of its own. "
    "Roles: taken from the runtime only."
)


class WriteParams(ChangingParams):
    """What to write: exactly one of `content` and `base64`."""

    model_config = ConfigDict(json_schema_extra={"oneOf": [{"required": ["content"]}, {"required": ["base64"]}]})

    path: PathText = Field(
        description="Where, logical or physical. A path in another turn's namespace becomes the open turn's."
    )
    content: Maybe[str] = Field(default=None, description="The whole content, as text.")
    base64: Maybe[str] = Field(default=None, description="The whole content, as base64. `file` only.")
    kind: ArtifactKind = Field(description="`file` writes the file; `display` keeps its text in the timeline.")
    channel: Maybe[Channel] = Field(
        default=None,
        description="Where it is shown. `internal` makes it a note that is internal, whatever else is said.",
    )
    visibility: Maybe[SettledVisibility] = Field(
        default=None, description="Who may see it: as what stands at the path, else `external`, by default."
    )
    mime: Maybe[Mime] = Field(default=None, description="The media type; by default the daemon's own table decides.")
    description: Maybe[str] = Field(default=None, description="What it is.", max_length=4096)
    sources_used: Maybe[Annotated[list[Sid], Field(max_length=SOURCES)]] = Field(
        default=None, description="The sources cited in it; by default those that are found in it."
    )
    tool_call_id: Maybe[CallId] = Field(default=None, description=_CALL)
    expected_sha256: Maybe[ExpectedHash] = Field(default=None, description=_EXPECTED)

    @model_validator(mode="after")
    def _one_content(self) -> Self:
        if (self.content is None) == (self.base64 is None):
            raise ValueError("give exactly one of `content` and `base64`")
        if self.kind == "display" and (self.content is None or "\0" in self.content):
            raise ValueError("a `display` is text: give `content` without NUL")
        return self


class WriteResult(Result):
    """What stands there now."""

    artifact: Artifact = Field(description="The artifact as it was written.")
    notices: list[Notice] = Field(description="What is worth knowing about it.")


class PatchParams(ChangingParams):
    """What to patch, and with what."""

    path: PathText = Field(
        description="A file or a display of the open turn. One of another turn is copied into the open turn first."
    )
    patch: Annotated[str, StringConstraints(min_length=1)] = Field(
        description="A unified diff, or the whole new text. Slips of a model are repaired where there is no doubt."
    )
    kind: Maybe[ArtifactKind] = Field(default=None, description="As what is patched, by default.")
    channel: Maybe[Channel] = Field(default=None, description="As what is patched, by default.")
    tool_call_id: Maybe[CallId] = Field(default=None, description=_CALL)
    expected_sha256: Maybe[ExpectedHash] = Field(
        default=None, description="Refuse as `stale` unless what is to be patched has this hash."
    )


class SuggestedRead(Record):
    """Where to look before trying again; good as an item of `artifact/read`."""

    path: str = Field(description="The logical path.")
    line_start: int = Field(ge=1, description="The first line.")
    line_count: int = Field(ge=1, description="How many lines.")


class PatchError(Record):
    """Why nothing was patched."""

    code: Literal[
        "hunk_mismatch", "hunk_ambiguous", "patch_malformed", "line_numbers_in_patch", "target_missing",
        "target_binary",
    ] = Field(description="Which way it failed.")  # fmt: skip
    message: str = Field(description="The same in words.")
    path: str = Field(description="The physical path of what was to be patched.")
    hunk: Maybe[int] = Field(default=None, ge=1, description="Which hunk did not fit, from 1.")
    expected: Maybe[list[str]] = Field(default=None, description="The lines that the hunk expects.")
    actual: Maybe[list[str]] = Field(default=None, description="The lines that are there instead.")
    suggested_read: Maybe[SuggestedRead] = Field(default=None, description="What to read before trying again.")


class PatchResult(Result):
    """What came of it: the artifact when `ok`, else the error. All hunks apply or none does."""

    ok: bool = Field(description="Whether it was patched.")
    artifact: Maybe[Artifact] = Field(default=None, description="The artifact as it is now.")
    error: Maybe[PatchError] = Field(default=None, description="Why nothing was changed.")
    notices: list[Notice] = Field(description="What is worth knowing about it.")


class HideParams(ChangingParams):
    """What to hide from the agent. It still resolves and can be read again."""

    paths: PathList = Field(description="Paths of any family, logical or physical.")
    replacement: Annotated[str, StringConstraints(min_length=1, max_length=4096)] = Field(
        description="What stands in the place of each path, in a few words; how to read it again is added."
    )
    tool_call_id: Maybe[CallId] = Field(default=None, description=_CALL)


class HiddenPath(Record):
    """What hiding one path came to."""

    path: str = Field(description="The path as it was asked for.")
    status: Literal["ok", "not_found", "too_old"] = Field(
        description="`too_old` when its newest block lies before the last 2,000 tokens of the timeline."
    )
    reason: Maybe[MissingReason] = Field(
        default=None, description="Why nothing was found, where the path itself is bad."
    )
    blocks_hidden: Number = Field(description="How many blocks are hidden that were not before.")
    tokens_hidden: int = Field(description="What that saves, in tokens; negative when the replacement is longer.")


class HideResult(Result):
    """One entry per path."""

    results: list[HiddenPath] = Field(description="In the order of the request.")
