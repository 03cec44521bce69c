"""A tool call: between its begin and its end, the files that appear are its own."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, StringConstraints

from protocol.base import (
    PATHS,
    CallId,
    ChangingParams,
    Maybe,
    Number,
    Params,
    PathText,
    Result,
    SettledVisibility,
    TurnId,
)
from protocol.records import Artifact, Notice

ToolId = Annotated[str, StringConstraints(min_length=1, max_length=256)]

ChannelName = Annotated[str, StringConstraints(pattern=r"^[!-~]{1,107}$")]


class CallBeginParams(ChangingParams):
    """A tool call begins."""

    tool_call_id: CallId = Field(description="The call's id. One that was used before is refused.")
    tool_id: ToolId = Field(description="The tool, `write_tools.write_file` for example.")
    params: dict[str, object] = Field(description="What the tool was called with.")
    turn_id: Maybe[TurnId] = Field(default=None, description="Its turn; the open one by default.")
    channel: Maybe[ChannelName] = Field(
        default=None,
        description="The abstract name, without its leading NUL, that the socket of an exec or renderer connection is "
        "bound to. That connection is this call's from now on: it may name the call, and what it asks for counts as "
        "used by it.",
    )


class CallBeginResult(Result):
    """The call is open, and files that appear from now on are attributed to it."""

    tool_call_id: CallId = Field(description="The call's id.")
    turn_id: TurnId = Field(description="The turn it belongs to.")
    revision: Number = Field(description="The revision after its begin.")


class Expected(Params):
    """A file that the call was meant to make."""

    path: PathText = Field(description="Its path, logical or physical.")
    visibility: Maybe[SettledVisibility] = Field(
        default=None, description="Who may see it; `external` by default. `internal` files get no source number."
    )
    description: Maybe[str] = Field(default=None, description="What it is.", max_length=4096)


class CallEndParams(ChangingParams):
    """A tool call ends."""

    tool_call_id: CallId = Field(description="The open call.")
    result: object = Field(default=None, description="What the tool answered, any JSON. A null is an answer too.")
    error: Maybe[str | dict[str, object]] = Field(
        default=None, description="Why it failed, if it did: a sentence, or an object with `code` and `message`."
    )
    expect: list[PathText | Expected] = Field(
        default=[], description="The files it was meant to make.", max_length=PATHS
    )


class CallEndResult(Result):
    """What the call left behind. The disk was looked at first."""

    artifacts: list[Artifact] = Field(description="What it made, in order of path.")
    missing: list[str] = Field(description="Expected paths at which nothing is.")
    unsettled: list[str] = Field(description="Physical paths of files that somebody still writes to.")
    notices: list[Notice] = Field(description="What is worth knowing about it.")
