"""The timeline: append blocks, read them, write the view."""

from __future__ import annotations

from pydantic import Field

from protocol.base import (
    BLOCKS,
    PAGE,
    ChangingParams,
    Maybe,
    Number,
    PageSize,
    Params,
    PathText,
    Record,
    Result,
    TurnId,
)
from protocol.context_blocks import AppendedBlock
from protocol.records import Block


class AppendParams(ChangingParams):
    """Blocks to append, all or none."""

    blocks: list[AppendedBlock] = Field(description="The blocks, in order.", min_length=1, max_length=BLOCKS)


class Appended(Record):
    """Where a block went."""

    index: Number = Field(description="Its global index.")
    path: Maybe[str] = Field(default=None, description="Its canonical path, if it has one.")


class AppendResult(Result):
    """The blocks are durable."""

    revision: Number = Field(description="The revision after the append.")
    blocks: list[Appended] = Field(description="One per block, in order.")


class BlocksParams(Params):
    """Which blocks to answer."""

    path: Maybe[PathText] = Field(default=None, description="Only blocks at this path.")
    turn_id: Maybe[TurnId] = Field(default=None, description="Only blocks of this turn.")
    since: Number = Field(default=0, description="The global index to begin at.")
    limit: PageSize = Field(default=PAGE, description="How many blocks at most.")


class BlocksResult(Result):
    """Blocks as they were told, every key kept."""

    blocks: list[Block] = Field(description="The blocks, oldest first.")
    next_since: Number = Field(description="The index to ask from next. It stops growing when there is no more.")
    revision: Number = Field(description="The latest revision.")


class FlushResult(Result):
    """The views are written."""

    files: list[str] = Field(description="The files that were written, relative to OUT_DIR.")
