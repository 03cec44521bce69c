"""Citations in a text: `[[S:1,3-5]]` and their kin."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, StringConstraints

from protocol.base import Mime, Number, Params, Result, Sid

StreamId = Annotated[str, StringConstraints(min_length=1, max_length=128)]

MARKDOWN = "text/markdown"
_MIME = "How to read the text: Markdown, HTML or JSON."


class ExtractParams(Params):
    """A text to look through."""

    text: str = Field(description="The text.")
    mime: Mime = Field(default=MARKDOWN, description=_MIME)


class ExtractResult(Result):
    """What the text cites."""

    sids: list[Number] = Field(description="The numbers cited, ascending. Single numbers count even when unknown.")


class ReplaceParams(Params):
    """A text whose citations become links."""

    text: str = Field(description="The text.")
    mime: Mime = Field(default=MARKDOWN, description=_MIME)


class ReplaceResult(Result):
    """The text with links."""

    text: str = Field(description="The text; outside the citations nothing is altered.")
    sources_used: list[Sid] = Field(description="The sources that were linked, ascending.")
    unresolved: list[Number] = Field(description="Numbers that no source has, ascending.")


class StreamParams(Params):
    """The next piece of a text that comes in pieces."""

    stream_id: StreamId = Field(description="Names the stream on this connection; the first piece opens it.")
    chunk: str = Field(default="", description="The piece.")
    flush: bool = Field(default=False, description="Whether this was the last piece.")
    mime: Mime = Field(default=MARKDOWN, description=f"{_MIME} The first piece decides.")


class StreamResult(Result):
    """What can be shown already."""

    text: str = Field(description="The text that can no longer change. Joined, the answers are the replaced whole.")
    sources_used: list[Sid] = Field(description="The sources linked since the stream began, ascending.")
