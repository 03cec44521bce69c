"""The sources pool: rows with numbers that are given once."""

from __future__ import annotations

from pydantic import Field

from protocol.base import ROWS, ChangingParams, Maybe, Number, Params, Result, Selector, Sid
from protocol.records import Notice, SourceRow


class MergeParams(ChangingParams):
    """Add rows to the pool, or say more of rows that are in it."""

    rows: list[SourceRow] = Field(
        description="The rows. Only the runtime may propose a `sid`; a row is at most 256 KiB.", max_length=ROWS
    )


class MergeResult(Result):
    """How the rows stand now."""

    rows: list[SourceRow] = Field(description="The rows in request order, as they now stand in the pool.")
    sid_map: dict[str, Sid] = Field(description="For each proposed number, the one that was given.")
    added: list[Sid] = Field(description="The numbers that are new.")
    path: str = Field(description="The `so:` path of these rows.")
    notices: Maybe[list[Notice]] = Field(default=None, description="What was left out of the rows, if anything.")


class SourcesListParams(Params):
    """Which rows to list."""

    selector: Maybe[Selector] = Field(
        default=None, description="`1,3-5`, or the whole `so:sources_pool[1,3-5]`. All rows by default."
    )


class SourcesListResult(Result):
    """Rows of the pool."""

    rows: list[SourceRow] = Field(description="The rows, in ascending order of their numbers.")
    missing: list[Number] = Field(description="Numbers asked for that no source has, at most 1,000 of them.")
    notices: Maybe[list[Notice]] = Field(
        default=None, description="Pieces of the selector that were not understood, if any."
    )


class SourcesRenderResult(Result):
    """The pool as the agent sees it."""

    text: str = Field(description="One line per source, under a line that counts them.")
    tokens: Number = Field(description="How many tokens the text is counted as.")
