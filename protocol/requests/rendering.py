"""The timeline as the agent sees it, and leaving the beginning of it to a summary."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, StringConstraints

from protocol.base import LARGEST, ChangingParams, Maybe, Number, Params, Record, Result
from protocol.records import Block, Notice
from protocol.requests.turn import Vector

ANNOUNCED = 100
SUMMARY_CHARS = 1_000_000

Tokens = Annotated[int, Field(ge=0, le=LARGEST)]


class AnnounceParams(Params):
    """What the agent is to see behind its timeline until something else is announced."""

    blocks: list[Block] = Field(
        description="The blocks, in order, at most 1 MiB together; they replace the former ones. None takes all away.",
        max_length=ANNOUNCED,
    )


class AnnounceResult(Result):
    """It is announced. Nothing was written down: after a restart of the daemon nothing is announced."""


class RenderParams(Params):
    """What the render is to hold beside the timeline, and in which form."""

    include_sources: bool = Field(default=True, description="Whether the sources pool comes last.")
    include_announce: bool = Field(default=True, description="Whether what is announced comes after the timeline.")
    max_tokens: Maybe[Tokens] = Field(
        default=None, description="Say by how much the answer is over this many tokens. Nothing is ever truncated."
    )
    form: Literal["messages", "text"] = Field(
        default="messages", alias="as", description="Messages for a model, or one text for people."
    )


class Message(Record):
    """A piece of what the agent sees: a text, or a picture or document as base64."""

    type: Literal["text", "image", "document"] = Field(description="What it is.")
    text: Maybe[str] = Field(default=None, description="The text, below its label, its time and its path.")
    base64: Maybe[str] = Field(default=None, description="The bytes of an image or a document.")
    mime: Maybe[str] = Field(default=None, description="Their media type.")
    path: Maybe[str] = Field(default=None, description="The logical path of the block it comes from.")


class RenderResult(Result):
    """The timeline from the latest summary on, then what is announced, then the sources pool."""

    messages: Maybe[list[Message]] = Field(default=None, description="The messages, in order.")
    text: Maybe[str] = Field(default=None, description="The same as one text, when that was asked for.")
    tokens: Number = Field(description="How many tokens all of it is counted as.")
    cache_points: list[Number] = Field(
        description="Up to three indexes of messages after which a cache is worthwhile: the last one before the "
        "current turn, the end of the fifth round from the end, the last of the timeline. None for a text."
    )
    over_by: Maybe[Number] = Field(default=None, description="By how many tokens it is over `max_tokens`.")
    cut: Number | None = Field(
        default=None,
        description="Told with `over_by`: where `timeline/compact` could cut so that at most seven tenths of "
        "`max_tokens` stay, or null when nothing is to be cut.",
    )


class PlanParams(Params):
    """How much of the timeline is to stay as it is."""

    keep_recent_tokens: Tokens = Field(description="How many tokens of the latest blocks are kept at most.")


class ToolOutput(Record):
    """A call's result that is left to the summary."""

    path: str = Field(description="The `tc:` path at which it still resolves.")
    tool_call_id: str = Field(description="The call.")
    tool_id: Maybe[str] = Field(default=None, description="The tool of that call.")


class HiddenBlocks(Record):
    """Hidden blocks at one path."""

    path: Maybe[str] = Field(default=None, description="The path at which they still resolve.")
    index: Maybe[Number] = Field(default=None, description="The global index of a hidden block without a path.")
    blocks: Number = Field(description="How many there are.")
    replacement_text: Maybe[str] = Field(default=None, description="What the agent saw in their place.")


class CompactionDigest(Record):
    """What a summary has to keep in mind."""

    artifacts: list[dict[str, object]] = Field(
        description="The digest of every artifact that the blocks to cut tell of, without hosting fields."
    )
    tool_outputs: list[ToolOutput] = Field(description="The results of calls, in order.")
    hidden_blocks: list[HiddenBlocks] = Field(description="What was hidden from the agent.")


class PlanResult(Result):
    """Where to cut, and what to summarise."""

    cut: Number | None = Field(description="The global index of the first block that stays, or null for no cut.")
    text: str = Field(
        description="What to summarise: the summary before it, what the agent saw, the digest of every artifact."
    )
    digest: CompactionDigest = Field(description="What the summary should name.")
    covered_turn_ids: list[str] = Field(description="Every turn that the summary will stand for as a whole, in order.")
    split_turn_id: Maybe[str] = Field(
        default=None, description="The turn within which the cut lies; it is not among the covered ones."
    )


class CompactParams(ChangingParams):
    """A summary in place of the blocks before a cut. They are no longer rendered, and still resolve."""

    cut: Number = Field(
        description="The first block that stays: a prompt, a completion, a call or a header after the present cut."
    )
    summary: Annotated[str, StringConstraints(min_length=1, max_length=SUMMARY_CHARS)] = Field(
        description="The summary, which the caller brings."
    )
    embedding: Maybe[Vector] = Field(default=None, description="A vector for it, which the caller brings as well.")


class CompactResult(Result):
    """The summary is durable; rendering begins with it from now on."""

    path: str = Field(description="Its path, `su:<last covered turn>.conv.range.summary`.")
    cut: Number = Field(description="The first block that stays as it is.")
    notices: list[Notice] = Field(description="Artifacts it does not name, and paths in it that lead nowhere.")
