"""What a page needs: bring it all into OUT_DIR before the page is rendered."""

from __future__ import annotations

from typing import Annotated, Self

from pydantic import ConfigDict, Field, StringConstraints, model_validator

from protocol.base import (
    CallId,
    ChangingParams,
    Maybe,
    Mime,
    MissingReason,
    PathText,
    Record,
    Result,
    Sid,
    StoreFault,
)
from protocol.records import Notice

LOCKED = 100_000

Sha256 = Annotated[str, StringConstraints(pattern=r"^([0-9a-f]{64})?$")]


class Locked(Record):
    """One file that a page used."""

    path: PathText = Field(description="Its path relative to OUT_DIR.")
    sha256: Sha256 = Field(description="The hash of its bytes; empty while somebody writes to it.")


class PullParams(ChangingParams):
    """A page: exactly one of `content` and `path`."""

    model_config = ConfigDict(json_schema_extra={"oneOf": [{"required": ["content"]}, {"required": ["path"]}]})

    content: Maybe[str] = Field(default=None, description="The page itself. Large ones are better named by `path`.")
    path: Maybe[PathText] = Field(
        default=None, description="The file that holds the page; it is brought back first where it is absent."
    )
    mime: Maybe[Mime] = Field(
        default=None,
        description="How to read it: HTML, CSS or Markdown; any other text is looked through for paths. "
        "By default the file's own type, and for `content` HTML or Markdown, as it looks.",
    )
    tool_call_id: Maybe[CallId] = Field(
        default=None,
        description="Tell the notices to the timeline too, once per call and code. Roles: taken from the runtime only.",
    )
    tool_id: Maybe[Annotated[str, StringConstraints(max_length=256)]] = Field(
        default=None, description="The tool that renders, for the notices; by default that of the call."
    )
    lock: Maybe[Annotated[list[Locked], Field(max_length=LOCKED)]] = Field(
        default=None, description="The `lock` of an earlier pull, to be told in `drift` what is different now."
    )

    @model_validator(mode="after")
    def _one_page(self) -> Self:
        if (self.content is None) == (self.path is None):
            raise ValueError("give exactly one of `content` and `path`")
        return self


class Asset(Record):
    """A file that is in OUT_DIR now."""

    path: str = Field(description="As the page asks for it: percent codes decoded, without fragment and query.")
    physical_path: str = Field(description="Where it is, relative to OUT_DIR.")
    sha256: Sha256 = Field(description="The hash of its bytes, in lower-case hex; empty while somebody writes to it.")
    sid: Maybe[Sid] = Field(default=None, description="Its number in the sources pool.")
    spellings: Maybe[list[str]] = Field(
        default=None,
        description="How the page writes it, where that is not its `physical_path`.",
    )


class MissingAsset(Record):
    """A file that is not there."""

    path: str = Field(description="As the page asks for it.")
    physical_path: Maybe[str] = Field(default=None, description="Where it would be; absent where that is no path.")
    reason: MissingReason = Field(description="Why not.")
    fault: Maybe[StoreFault] = Field(default=None, description="With `store_unavailable`: what was wrong with it.")
    sid: Maybe[Sid] = Field(default=None, description="The cited source whose file it is.")


class Drifted(Record):
    """A file that is not what the lock says."""

    path: str = Field(description="Its path relative to OUT_DIR.")
    expected: Maybe[Sha256] = Field(default=None, description="The hash in the lock; absent where it is not in it.")
    actual: Maybe[Sha256] = Field(default=None, description="The hash now; absent where it is not used any more.")


class PullResult(Result):
    """What is there and what is not. A page with holes is a success: whoever renders it decides."""

    present: list[Asset] = Field(description="Files that were there already, in the order in which they were found.")
    rehosted: list[Asset] = Field(description="Files that were brought back, in the order in which they were found.")
    missing: list[MissingAsset] = Field(description="Files that are not there.")
    files_of_sources: dict[str, str] = Field(
        description="The cited sources that are files: number -> path relative to OUT_DIR."
    )
    sources_used: list[Sid] = Field(description="The sources that are cited and known, ascending.")
    notices: list[Notice] = Field(description="What is worth knowing about it.")
    lock: list[Locked] = Field(
        description="Everything that was used, the page's own file included, in order of path. The same lock means "
        "that the page can be rendered again from the same bytes."
    )
    drift: Maybe[list[Drifted]] = Field(
        default=None, description="With a `lock`: every file that is different, new or no longer used."
    )
