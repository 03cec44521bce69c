"""Find artifacts: by path, by property, by what stands in them."""

from __future__ import annotations

from typing import Annotated

from pydantic import AfterValidator, Field, StringConstraints

from protocol.base import (
    PAGE,
    PATH_CHARS,
    ArtifactKind,
    Cursor,
    Maybe,
    Mime,
    MissingReason,
    Number,
    PageSize,
    Params,
    PathList,
    PathText,
    Record,
    Result,
    Visibility,
)
from protocol.records import Artifact, Notice, Version

PATTERN_BYTES = 1000
HITS = 200


TurnName = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_-]{0,128}$")]
# A timeline of another runtime may call its calls as it likes.
CallName = Annotated[str, StringConstraints(max_length=PATH_CHARS)]


class ResolveParams(Params):
    """Paths to find."""

    paths: PathList = Field(description="Paths of any family, logical or physical.")


class Resolved(Record):
    """What one path led to."""

    path: str = Field(description="The path as it was asked for.")
    found: bool = Field(description="Whether something is there.")
    artifact: Maybe[Artifact] = Field(default=None, description="What is there.")
    reason: Maybe[MissingReason] = Field(default=None, description="Why nothing was found.")
    notices: list[Notice] = Field(description="What is worth knowing about it.")


class ResolveResult(Result):
    """One entry per path."""

    results: list[Resolved] = Field(description="In the order of the request.")


class ListParams(Params):
    """Which artifacts to list."""

    turn_id: Maybe[TurnName] = Field(
        default=None, description="Only those of this turn; `` (empty) takes those of no turn."
    )
    tool_call_id: Maybe[CallName] = Field(
        default=None,
        description="Only those whose latest version this call made; `` (empty) takes those of which no call is known.",
    )
    kind: Maybe[ArtifactKind] = Field(default=None, description="Only those of this kind.")
    mime: Maybe[Mime] = Field(default=None, description="Only this media type; `image/*` takes a whole family.")
    visibility: Maybe[Visibility] = Field(default=None, description="Only those with this visibility.")
    prefix: Maybe[PathText] = Field(default=None, description="Only logical paths that begin so.")
    limit: PageSize = Field(default=PAGE, description="How many at most.")
    cursor: Maybe[Cursor] = Field(default=None, description="The `next_cursor` of the answer before.")


class ListResult(Result):
    """A page of artifacts."""

    artifacts: list[Artifact] = Field(description="The latest version of each, in order of path.")
    next_cursor: str | None = Field(description="Where the next page begins; null after the last one.")


class VersionsParams(Params):
    """Whose versions to list."""

    path: PathText = Field(description="The artifact's path, logical or physical.")


class VersionsResult(Result):
    """Every state the artifact was in."""

    versions: list[Version] = Field(description="Oldest first.")


def _short(pattern: str) -> str:
    if len(pattern.encode("utf-8", "surrogatepass")) > PATTERN_BYTES:
        raise ValueError(f"a pattern is at most {PATTERN_BYTES} bytes")
    return pattern


Pattern = Annotated[str, StringConstraints(min_length=1, max_length=PATTERN_BYTES), AfterValidator(_short)]


class SearchParams(Params):
    """What to look for, and where. Patterns are RE2, at most 1,000 bytes."""

    root: PathText = Field(description="A folder below OUT_DIR; `` (empty) is all of it.")
    name_regex: Maybe[Pattern] = Field(default=None, description="Only files whose path matches somewhere.")
    content_regex: Maybe[Pattern] = Field(default=None, description="Only text files with a line that matches.")
    context_lines: Annotated[int, Field(ge=0, le=20)] = Field(
        default=0, description="How many lines to show before and after each match."
    )
    max_hits: PageSize = Field(default=HITS, description="How many files at most.")


class SearchMatch(Record):
    """A line that matches."""

    line: int = Field(ge=1, description="Its number, from 1.")
    text: str = Field(description="The line.")
    before: Maybe[list[str]] = Field(default=None, description="The lines before it.")
    after: Maybe[list[str]] = Field(default=None, description="The lines after it.")


class SearchHit(Record):
    """A file that matches."""

    path: str = Field(description="Its physical path.")
    size_bytes: Number = Field(description="Its size.")
    logical_path: Maybe[str] = Field(default=None, description="Its logical path; absent when it has none.")
    matches: Maybe[list[SearchMatch]] = Field(default=None, description="The lines that match `content_regex`.")


class SearchResult(Result):
    """What was found."""

    root: str = Field(description="The folder as it was asked for.")
    hits: list[SearchHit] = Field(description="In order of path.")
    truncated: Maybe[bool] = Field(default=None, description="True when a limit ended the search early.")
    notices: Maybe[list[Notice]] = Field(default=None, description="Which limit that was.")
