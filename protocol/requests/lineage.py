"""What was made of what."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from protocol.base import CallId, Maybe, Params, PathText, Record, Result

DEPTH = 10

Depth = Annotated[int, Field(ge=1, le=DEPTH)]


class LineageParams(Params):
    """Where to begin, and which way to go."""

    path: PathText = Field(description="A path of any family, logical or physical; `so:` stands for all its sources.")
    direction: Literal["up", "down"] = Field(description="`up` to what it was made of, `down` to what was made of it.")
    depth: Depth = Field(default=3, description="How many edges away an answer goes at most.")


class LineageEdge(Record):
    """One thing went into another."""

    source: str = Field(
        alias="from",
        description="What was used, by its canonical path; `so:sources_pool[n]` for a source that is no file.",
    )
    target: str = Field(alias="to", description="What was made, by its canonical path.")
    tool_call_id: Maybe[CallId] = Field(default=None, description="The call in which it was made, where one is known.")
    how: Literal["declared", "observed"] = Field(
        description="`declared` was said by the runtime: the params of a call, or what a record was bound to. "
        "`observed` came by the daemon: read, fetched, pulled or brought back within the call, or cited in what it "
        "made."
    )


class LineageResult(Result):
    """The edges around a path, nearest first."""

    edges: list[LineageEdge] = Field(description="Each pair of ends once for every call.", max_length=10_000)
    complete: bool = Field(
        description="Whether these are all that the daemon could know of. False when depth or a limit cut them, and "
        "when a call ran without a channel of its own, so that what it read may be unknown. What a program opens on "
        "the disk by itself never comes by the daemon."
    )
