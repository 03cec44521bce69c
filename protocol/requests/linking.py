"""Links: a URL for people to download a hosted file by."""

from __future__ import annotations

from typing import Annotated, Self

from pydantic import ConfigDict, Field, StringConstraints, model_validator

from protocol.base import Maybe, Params, PathText, Result

TTL_LEAST, TTL_MOST, TTL = 60, 3600, 300


class LinkParams(Params):
    """What to link to: exactly one of `rn` and `path`."""

    model_config = ConfigDict(json_schema_extra={"oneOf": [{"required": ["rn"]}, {"required": ["path"]}]})

    rn: Maybe[Annotated[str, StringConstraints(min_length=1, max_length=4096)]] = Field(
        default=None, description="A download handle that this conversation gave out; it names one version of a file."
    )
    path: Maybe[PathText] = Field(default=None, description="A file, logical or physical: its latest version.")
    ttl_seconds: Annotated[int, Field(ge=TTL_LEAST, le=TTL_MOST)] = Field(
        default=TTL, description="How long the link works, in seconds."
    )

    @model_validator(mode="after")
    def _one_way_to_ask(self) -> Self:
        if (self.rn is None) == (self.path is None):
            raise ValueError("give exactly one of `rn` and `path`")
        return self


class LinkResult(Result):
    """A link. It is made anew for every request, and neither stored nor logged."""

    url: str = Field(
        description="Where to download it, as an attachment of the file's name and type. "
        "Where the store is a folder: the `file:` URL of the copy in OUT_DIR."
    )
    expires_at: str = Field(description="Until when, ISO 8601 UTC.")
