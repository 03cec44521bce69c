"""The contents of artifacts: read them, fetch them in a program, bring them back."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import ConfigDict, Field, model_validator

from protocol.base import (
    PATHS,
    ArtifactKind,
    BytesOrigin,
    CallId,
    ChangingParams,
    Maybe,
    MissingReason,
    Number,
    Params,
    PathList,
    PathText,
    Record,
    Result,
    Sid,
    StoreFault,
)
from protocol.records import Block, Notice, SourceRow

INLINE_BYTES = 256 * 1024
INLINE_BYTES_MOST = 4 * 1024 * 1024

LineNumber = Annotated[int, Field(ge=1, le=2**53)]


class ReadItem(Params):
    """One path, or some of its lines."""

    path: PathText = Field(description="A path of any family, logical or physical.")
    line_start: LineNumber = Field(default=1, description="The first line, from 1.")
    line_count: Maybe[LineNumber] = Field(default=None, description="How many lines; all of them by default.")


class ReadParams(ChangingParams):
    """What to read: exactly one of `paths` and `items`."""

    model_config = ConfigDict(json_schema_extra={"oneOf": [{"required": ["paths"]}, {"required": ["items"]}]})

    paths: Maybe[PathList] = Field(default=None, description="The paths, read whole.")
    items: Maybe[Annotated[list[ReadItem], Field(min_length=1, max_length=PATHS)]] = Field(
        default=None, description="The paths, with ranges of lines."
    )
    stats_only: bool = Field(default=False, description="Answer the status alone, and bring nothing back.")
    max_bytes: Annotated[int, Field(ge=0, le=INLINE_BYTES_MOST)] = Field(
        default=INLINE_BYTES, description="How many bytes of text per path at most."
    )
    tool_call_id: Maybe[CallId] = Field(
        default=None, description="Append what is read to the timeline, as the answer of this call."
    )

    @model_validator(mode="after")
    def _one_way_to_ask(self) -> Self:
        if (self.paths is None) == (self.items is None):
            raise ValueError("give exactly one of `paths` and `items`")
        return self


class ReadPath(Record):
    """What reading one path came to."""

    path: str = Field(description="The path as it was asked for.")
    tokens: Maybe[Number] = Field(default=None, description="How many tokens its content is counted as.")
    missing: Maybe[MissingReason] = Field(default=None, description="Why there is nothing.")
    fault: Maybe[StoreFault] = Field(default=None, description="With `store_unavailable`: what was wrong with it.")
    status: Maybe[Literal["exists_in_visible_context"]] = Field(
        default=None, description="Said when the agent can see the same content already."
    )
    lines: Maybe[str] = Field(default=None, description="The range that was read, `3-4/7` for example.")


class ReadStatus(Record):
    """The status of a read."""

    paths: list[ReadPath] = Field(description="One per path, in the order of the request.")
    total_tokens: Number = Field(description="The sum over all paths.")
    missing: list[str] = Field(description="The paths at which nothing was read.")


class ReadResult(Result):
    """The status first, then what was read."""

    status: ReadStatus = Field(description="What reading came to.")
    blocks: list[Block] = Field(description="Per file its digest block, then its content; else the blocks at the path.")
    notices: list[Notice] = Field(description="What is worth knowing about it.")


class FetchParams(Params):
    """What to fetch."""

    path: str = Field(description="A path of any family, logical or physical.", max_length=65_536)


class Fetched(Record):
    """What stands at a path."""

    path: str = Field(description="The path as it was asked for.")
    kind: ArtifactKind = Field(description="`file` has bytes in OUT_DIR; `display` has its text in the timeline.")
    mime: str = Field(description="The media type.")
    text: Maybe[str] = Field(default=None, description="The content, if it is text.")
    base64: Maybe[str] = Field(default=None, description="The content of an image or a PDF.")
    physical_path: Maybe[str] = Field(default=None, description="Where to open it, relative to OUT_DIR.")
    size_bytes: Maybe[Number] = Field(default=None, description="The size of the whole.")
    truncated: Maybe[bool] = Field(
        default=None, description="True when the content was cut; open the file for the rest."
    )
    sources_used: Maybe[list[Sid]] = Field(default=None, description="The sources cited in it, ascending.")


class FetchError(Record):
    """Why nothing was fetched."""

    code: str = Field(description="A kind of the table of errors, `not_found` for example.")
    message: str = Field(description="The same in words.")
    details: dict[str, object] = Field(description="What else is known of it.")


class FetchResult(Result):
    """Exactly one of `ret` and `err` is null."""

    ret: list[SourceRow] | Fetched | None = Field(description="The rows for a `so:` path, the content for any other.")
    err: FetchError | None = Field(description="Why there is nothing.")
    missing: Maybe[list[Number]] = Field(default=None, description="Numbers of a `so:` path that no source has.")
    notices: Maybe[list[Notice]] = Field(default=None, description="What was not understood in the path, if anything.")


class RehostParams(Params):
    """Which files to bring back."""

    paths: PathList = Field(description="Paths of files, logical or physical.")


class Rehosted(Record):
    """A file that is in OUT_DIR now."""

    path: str = Field(description="The path as it was asked for.")
    physical_path: str = Field(description="Where it is, relative to OUT_DIR.")
    size_bytes: Number = Field(description="Its size.")
    sha256: str = Field(description="The hash of its bytes, in lower-case hex.")
    origin: BytesOrigin = Field(description="Where its bytes came from; `on_disk` when nothing had to be done.")


class NotRehosted(Record):
    """A file that could not be brought."""

    path: str = Field(description="The path as it was asked for.")
    reason: MissingReason = Field(description="Why not.")
    fault: Maybe[StoreFault] = Field(default=None, description="With `store_unavailable`: what was wrong with it.")


class RehostResult(Result):
    """What is there now, and what is not."""

    rehosted: list[Rehosted] = Field(description="Files that are in OUT_DIR now, in request order.")
    missing: list[NotRehosted] = Field(description="Files that are not, in request order.")
    notices: list[Notice] = Field(description="What is worth knowing about it.")
