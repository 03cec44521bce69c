"""The operational context of the older generation: its paths, params bound from them, slots, and what is shown."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field

from protocol.base import (
    PATHS,
    CallId,
    ChangingParams,
    Maybe,
    Number,
    Params,
    PathList,
    PathText,
    Record,
    Result,
)
from protocol.context_blocks import ContextName
from protocol.records import Notice

Code = Literal[
    "invalid_path_empty", "invalid_path_literal", "unknown_turn_id", "not_found", "invalid_slot_value_access",
    "invalid_slot_leaf", "tool_failure",
]  # fmt: skip
BINDINGS = 1000
SLOTS = 256


class ContextFetchParams(Params):
    """One path, of either generation."""

    path: PathText = Field(
        description="`current_turn.artifacts.<id>.value.<leaf>` and its kin, or one of today's logical paths."
    )


class ContextErrorDetails(Record):
    """What the failure is about."""

    path: str = Field(description="The path, with the turn's own id in it.")


class ContextError(Record):
    """Why nothing could be fetched."""

    code: Code = Field(description="For programs; the list is closed.")
    message: str = Field(description="For people.")
    details: ContextErrorDetails = Field(description="What it is about.")


class ContextFetchResult(Result):
    """What stands at the path, or why there is nothing; the other one is null."""

    ret: Any = Field(
        description="A thing as an object, a leaf as its value, rows by sid as a list. In `sources_used` stand rows."
    )
    err: ContextError | None = Field(description="What went wrong.")


class ContextBinding(Params):
    """One path and the param it goes into."""

    path: PathText = Field(description="A path of either generation.")
    param_name: Annotated[str, Field(min_length=1, max_length=256)] = Field(
        description="The param. `sources_list` takes sources, any other one text or a value."
    )


class ContextBindParams(ChangingParams):
    """What a tool is to get. Without `tool_call_id` nothing is told to the timeline."""

    tool_id: Annotated[str, Field(min_length=1, max_length=256)] = Field(description="The tool.")
    params: dict[str, object] = Field(default={}, description="The params that are there already.")
    fetch_context: list[ContextBinding] = Field(
        description="What goes into which param, in order.", max_length=BINDINGS
    )
    budget_tokens: Maybe[Number] = Field(
        default=None, description="What the words of all sources together may need; 24,000 for a generator by default."
    )
    citation_aware: bool = Field(
        default=False, description="Whether the tool also gets the sources of what is bound to it."
    )
    generator: bool = Field(default=False, description="Whether its sources are capped and balanced.")
    write_tool: Maybe[bool] = Field(
        default=None, description="Whether it writes files; by default, whether its name begins with `write_`."
    )
    tool_call_id: Maybe[CallId] = Field(
        default=None, description="Tell the timeline, as a `param_binding` event of this call, what was bound."
    )


class ContextBindResult(Result):
    """The tool's params. What could not be bound is told in notices."""

    params: dict[str, object] = Field(description="The params, bound values merged in.")
    content_lineage: list[str] = Field(description="The paths that were bound, in today's names, each once.")
    notices: list[Notice] = Field(description="What is worth knowing about it.")


class SlotAsked(Params):
    """One slot and what goes into it."""

    slot: ContextName = Field(description="The slot's name.")
    path: PathText = Field(description="A leaf, or the thing itself; the leaf is implied then.")
    draft: Maybe[bool] = Field(default=None, description="Say that it is a draft.")
    gaps: Maybe[str | list[str]] = Field(default=None, description="What it lacks.")


class SlotDue(Params):
    """What the contract says of a slot."""

    type: Maybe[Literal["inline", "file"]] = Field(default=None, description="What it has to be.")
    format: Maybe[str] = Field(default=None, description="Its format.")
    mime: Maybe[str] = Field(default=None, description="Its media type.")
    description: Maybe[str] = Field(default=None, description="What it is for.")


class ContextMapSlotsParams(ChangingParams):
    """Slots of the open turn to fill."""

    slots: list[SlotAsked] = Field(description="The slots, in order.", min_length=1, max_length=SLOTS)
    contract: Maybe[dict[str, SlotDue]] = Field(
        default=None, description="What is due, by slot. A file that is missing becomes a draft.", max_length=SLOTS
    )


class SlotFilled(Record):
    """A slot that something was mapped into."""

    slot: str = Field(description="The slot's name.")
    path: str = Field(description="Where it stands now.")
    mapped_from: str = Field(description="What was mapped, in today's names.")
    value: dict[str, object] = Field(description="What it holds: a SlotValue.")


class ContextMapSlotsResult(Result):
    """The slots that were filled. Those that were not are told in notices."""

    slots: list[SlotFilled] = Field(description="The filled ones, in order.")
    notices: list[Notice] = Field(description="What is worth knowing about it.")


class ContextShowArtifactsParams(Params):
    """What to show."""

    paths: PathList = Field(description="Paths of either generation.", max_length=PATHS)


class ShownArtifact(Record):
    """One thing in few words."""

    path: str = Field(description="Its path, in today's names.")
    text: str = Field(description="What it is and as much of it as is compact.")


class ShownAttachment(Record):
    """A picture or a document among what is shown; it lies in OUT_DIR."""

    path: str = Field(description="Its logical path.")
    mime: str = Field(description="Its media type; no other attachment has the same.")
    physical_path: str = Field(description="Where it is, relative to OUT_DIR.")


class NotShown(Record):
    """A path at which nothing is."""

    path: str = Field(description="The path, with the turn's own id in it.")
    reason: Code = Field(description="Why nothing is shown.")


class ContextShowArtifactsResult(Result):
    """What is shown, in order, and what is not."""

    items: list[ShownArtifact] = Field(description="One per path that leads somewhere.")
    attachments: list[ShownAttachment] = Field(description="At most two, one per media type.")
    missing: list[NotShown] = Field(description="The paths that lead nowhere.")
