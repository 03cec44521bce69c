"""What every message is made of: the strict bases, the bounded texts and numbers, and the words with few values.

Parameters are refused when anything is unknown, of another type or out of bounds, because a typo in generated code must
fail loudly. A field that may be missing is `Maybe[...]`: absent means its default, and null is neither sent nor taken.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field, GetCoreSchemaHandler, StringConstraints
from pydantic_core import CoreSchema
from typing_extensions import TypeAliasType

T = TypeVar("T")


class _NeverNull:
    """Takes null out of what is accepted, and out of the schema, while Python keeps None for an absent field."""

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        schema = handler(source)
        return schema["schema"] if schema["type"] == "nullable" else schema


Maybe = Annotated[T | None, _NeverNull()]


class Params(BaseModel):
    """What a request asks with."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class Result(BaseModel):
    """What a request is answered with. Later versions may add fields; clients ignore those they do not know."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class Record(BaseModel):
    """A thing that stands in several messages."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class Payload(BaseModel):
    """What an event tells."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


Role = TypeAliasType("Role", Literal["runtime", "renderer", "exec", "editor"])
Topic = TypeAliasType("Topic", Literal["sources", "artifacts", "timeline", "notices"])
ArtifactKind = TypeAliasType("ArtifactKind", Literal["file", "display"])
Visibility = TypeAliasType("Visibility", Literal["external", "internal", "pending"])
SettledVisibility = TypeAliasType("SettledVisibility", Literal["external", "internal"])
Channel = TypeAliasType("Channel", Literal["canvas", "timeline_text", "internal"])
Origin = TypeAliasType("Origin", Literal["told", "seen", "both"])
BytesOrigin = TypeAliasType("BytesOrigin", Literal["on_disk", "kept", "store", "inline"])
Reaction = TypeAliasType("Reaction", Literal["ok", "not_ok", "neutral"])
ReactionOrigin = TypeAliasType("ReactionOrigin", Literal["user", "machine"])
SourceType = TypeAliasType("SourceType", Literal["web", "file", "attachment", "manual", "search"])
MissingReason = TypeAliasType(
    "MissingReason",
    Literal["bad_path", "unsafe_path", "not_found", "unknown", "not_hosted", "gone", "store_unavailable"],
)
StoreFault = TypeAliasType(
    "StoreFault",
    Literal[
        "unreachable", "timed_out", "server_error", "denied", "cut_off", "wrong_bytes", "no_bucket", "disk_full",
        "no_store", "key_too_long", "no_out_dir", "untrusted",
    ],
)  # fmt: skip

# Bounds of the wire. A path that is too long must be answered as `unsafe_path` by the grammar, so the wire lets it by.
PATH_CHARS = 16_384
SELECTOR_CHARS = 65_536
PATHS = 10_000
ROWS = 1000
BLOCKS = 10_000
PAGE = 1000
LARGEST = 2**53

TurnId = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_-]{1,128}$")]
CallId = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_-]{1,128}$")]
RequestId = Annotated[str, StringConstraints(min_length=1, max_length=128)]
PathText = Annotated[str, StringConstraints(max_length=PATH_CHARS)]
PathList = Annotated[list[PathText], Field(min_length=1, max_length=PATHS)]
Selector = Annotated[str, StringConstraints(max_length=SELECTOR_CHARS)]
Mime = Annotated[str, StringConstraints(min_length=1, max_length=255)]
Cursor = Annotated[str, StringConstraints(min_length=1, max_length=PATH_CHARS)]
Number = Annotated[int, Field(ge=0, le=LARGEST)]
Sid = Annotated[int, Field(ge=1, le=LARGEST)]
PageSize = Annotated[int, Field(ge=1, le=PAGE)]
Moment = Annotated[str, StringConstraints(max_length=64)] | Annotated[int, Field(ge=0, le=LARGEST)] | float


class ChangingParams(Params):
    """What a request that changes something asks with."""

    request_id: Maybe[RequestId] = Field(
        default=None,
        description="Makes the request safe to repeat: the same id with equal params answers the first result again, "
        "with other params it is refused as `stale`.",
    )


class NoParams(Params):
    """Nothing is asked beyond the method itself."""
