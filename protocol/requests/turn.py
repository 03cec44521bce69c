"""A turn of the agent."""

from __future__ import annotations

from pydantic import Field

from protocol.base import ChangingParams, Maybe, Moment, Result, TurnId
from protocol.records import Conversation, Notice


class TurnBeginParams(ChangingParams):
    """A turn begins."""

    turn_id: TurnId = Field(description="The turn's id. An ended one is refused.")
    conversation: Maybe[Conversation] = Field(default=None, description="Whose conversation it is.")
    prompt: Maybe[str] = Field(default=None, description="What the user asks, kept as `<turn>.user.prompt`.")
    ts: Maybe[Moment] = Field(default=None, description="When it began: ISO 8601 text or seconds since the epoch.")


class TurnBeginResult(Result):
    """The turn is open."""

    turn_id: TurnId = Field(description="The turn's id.")
    notices: list[Notice] = Field(description="What is worth knowing about it.")
