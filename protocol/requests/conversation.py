"""The conversation as it was saved: save to it, fetch its turns, find something in it."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import ConfigDict, Field, StringConstraints, model_validator

from protocol.base import (
    PAGE,
    ChangingParams,
    Cursor,
    Maybe,
    Moment,
    Number,
    PageSize,
    Params,
    Reaction,
    ReactionOrigin,
    Record,
    Result,
    Sid,
    TurnId,
)
from protocol.records import HOSTING, Conversation
from protocol.requests.turn import Vector, Word

TAGS = 64
TEXT_CHARS = 262_144
QUERY_CHARS = 4096
DAYS = 36_500
ACCOUNTING = "accounting"  # kept at a layout of its own, without a row

Tag = Annotated[str, StringConstraints(min_length=1, max_length=256, pattern=r"^[^\x00-\x1f\x7f]+$")]
Tags = Annotated[list[Tag], Field(max_length=TAGS)]
Kinds = Annotated[list[Word], Field(max_length=TAGS)]
TurnIds = Annotated[list[TurnId], Field(max_length=PAGE)]
MessageId = Annotated[str, StringConstraints(min_length=1, max_length=512)]
Unread = Literal["no_blob", "gone", "store_unavailable", "too_much", "not_for_this_role"]


class SaveParams(ChangingParams):
    """What to save: something of a kind of your own, or with `message_id` the vector of what is saved already."""

    model_config = ConfigDict(
        json_schema_extra={
            "anyOf": [{"required": ["content"]}, {"required": ["content_str"]}, {"required": ["message_id"]}]
        }
    )

    kind: Word = Field(
        description="What it is. The kinds that the daemon writes itself are `not_permitted`; `accounting` is kept at "
        "a place of its own, and is `content` and `turn_id` alone."
    )
    content: Maybe[dict[str, object]] = Field(default=None, description="The content, stored as a blob.")
    content_str: Maybe[Annotated[str, StringConstraints(max_length=TEXT_CHARS)]] = Field(
        default=None,
        description="What the index row says, and is found by; the content as JSON by default. Alone it is the content "
        'as well, as `{"text": …}`.',
    )
    turn_id: Maybe[TurnId] = Field(default=None, description="The turn it is of; the open turn by default, else none.")
    tags: Tags = Field(default=[], description="Further tags, beside `artifact:<kind>` and `turn:<turn_id>`.")
    embedding: Maybe[Vector] = Field(
        default=None,
        description="A vector by which it is found; the daemon computes none. All vectors have one length.",
    )
    index_only: bool = Field(default=False, description="Write no blob: the row alone, which says `index_only`.")
    store_only: bool = Field(default=False, description="Write no row: the blob alone, which nothing finds again.")
    message_id: Maybe[MessageId] = Field(
        default=None, description="Give this saved row the `embedding`; nothing else but `kind` may be said with it."
    )

    @model_validator(mode="after")
    def _one_meaning(self) -> Self:
        if self.index_only and self.store_only:
            raise ValueError("`index_only` and `store_only` together would save nothing")
        said = self.model_fields_set - {"kind", "request_id"}
        if self.message_id is not None:
            if said != {"message_id", "embedding"}:
                raise ValueError("`message_id` goes with `embedding`, and with nothing else")
        elif self.content is None and self.content_str is None:
            raise ValueError("give `content`, `content_str`, or both")
        elif self.kind == ACCOUNTING and (self.content is None or said - {"content", "turn_id", "store_only"}):
            raise ValueError("`accounting` is a record at a place of its own: `content` and `turn_id` alone")
        elif self.store_only and self.embedding is not None:
            raise ValueError("a vector belongs to a row, and `store_only` writes none")
        return self


class SaveResult(Result):
    """It is saved."""

    message_id: str = Field(description="Its id in the index.")
    rn: Maybe[str] = Field(default=None, description="The handle of its blob; absent without one.")
    hosted_uri: str = Field(description="Where its blob is stored, or `index_only`.")


class FetchTurnsParams(Params):
    """Which turns to show."""

    turn_ids: Maybe[TurnIds] = Field(default=None, description="These, in this order; all of them by default.")
    kinds: Maybe[Kinds] = Field(default=None, description="Kinds of conversation artifacts to add to each turn.")
    limit: PageSize = Field(default=50, description="How many turns at most. A page of long turns ends earlier.")
    cursor: Maybe[Cursor] = Field(default=None, description="The `next_cursor` of the answer before.")


class SaidInTurn(Record):
    """What was said, and when."""

    text: str = Field(description="The words.")
    ts: Maybe[str] = Field(default=None, description="When, ISO 8601 UTC.")


class FileOfTurn(Record):
    """A file that the user attached, or that the turn made for the user."""

    filename: str = Field(description="Its name within the turn.")
    artifact_path: str = Field(description="Its logical path.")
    physical_path: Maybe[str] = Field(default=None, description="Its path relative to OUT_DIR.")
    mime: str = Field(description="Its media type.")
    size_bytes: Maybe[Number] = Field(default=None, description="Its size.")
    sha256: Maybe[str] = Field(default=None, description="The hash of its bytes.")
    sid: Maybe[Sid] = Field(default=None, description="Its number in the sources pool, if it is citable.")
    summary: Maybe[str] = Field(default=None, description="What it is, in a few words.")
    rn: Maybe[str] = Field(default=None, description="The download handle, once it is hosted.")
    hosted_uri: Maybe[str] = Field(default=None, description=f"Where it is stored. {HOSTING}")
    key: Maybe[str] = Field(default=None, description=f"Its key in the store. {HOSTING}")


class Thought(Record):
    """What the agent thought, hidden from the agent itself or not."""

    title: str = Field(description="What it calls the thought; may be empty.")
    text: str = Field(description="The thought.")
    ts_first: Number = Field(description="When it began, in milliseconds since the epoch.")
    ts_last: Number = Field(description="When it ended.")
    iteration: Maybe[Number] = Field(default=None, description="In which round of the turn.")


class TimelineText(Record):
    """What the agent said beside its answer."""

    artifact_name: str = Field(description="What it is called within the turn.")
    text: str = Field(description="The text.")
    ts_first: Number = Field(description="When it began, in milliseconds since the epoch.")
    ts_last: Number = Field(description="When it ended.")


class FeedbackGiven(Record):
    """What somebody thinks of the turn."""

    type: Literal["feedback"] = Field(description="Always `feedback`.")
    ts: str = Field(description="When, ISO 8601 UTC.")
    text: str = Field(description="Why.")
    confidence: float = Field(description="How sure that is, 0 to 1.")
    from_turn_id: str = Field(description="The turn it is about.")
    origin: Maybe[str] = Field(default=None, description="`user` or `machine`.")
    reaction: Maybe[str] = Field(default=None, description="`ok`, `not_ok` or `neutral`.")


class ConversationArtifact(Record):
    """Something saved of a turn, or made of its blocks when it is asked for."""

    kind: str = Field(description="What it is.")
    message_id: Maybe[str] = Field(default=None, description="Its id in the index; absent for what is made when asked.")
    ts: str = Field(description="When it was saved, ISO 8601 UTC.")
    payload: Maybe[dict[str, object]] = Field(
        default=None, description="Its content. The blocks of a turn's log are not listed."
    )
    text: Maybe[str] = Field(default=None, description="What its row says, for what has no blob.")
    missing: Maybe[Unread] = Field(default=None, description="Why the content is not here.")


class TurnShown(Record):
    """A turn as people are shown it. The first completion of a turn is its answer."""

    turn_id: TurnId = Field(description="The turn's id.")
    user: Maybe[SaidInTurn] = Field(default=None, description="What the user asked, if anything.")
    assistant: Maybe[SaidInTurn] = Field(default=None, description="What the agent answered, if it did.")
    attachments: list[FileOfTurn] = Field(description="What the user attached.")
    files: list[FileOfTurn] = Field(description="The files that were made for the user; a display is none.")
    thinking: list[Thought] = Field(description="What the agent thought.")
    timeline_text: list[TimelineText] = Field(description="What it said beside its answer.")
    feedbacks: Maybe[list[FeedbackGiven]] = Field(
        default=None, description="What was thought of it, oldest first; absent while the index does not answer."
    )
    sources_used: list[Sid] = Field(description="The sources used in it, ascending.")
    followups: Maybe[list[str]] = Field(default=None, description="What the agent suggested to ask next.")
    clarification_questions: Maybe[list[str]] = Field(default=None, description="What the agent asked back.")
    artifacts: Maybe[list[ConversationArtifact]] = Field(default=None, description="What `kinds` asked for.")


class FetchTurnsResult(Result):
    """A page of turns."""

    conversation: Conversation = Field(description="Whose conversation it is.")
    turns: list[TurnShown] = Field(description="Oldest first, or in the order asked for.")
    missing: Maybe[list[str]] = Field(default=None, description="Those of `turn_ids` that nobody knows.")
    next_cursor: str | None = Field(description="Where the next page begins; null after the last one.")


class RecentParams(Params):
    """Which rows of the index to list."""

    kinds: Maybe[Kinds] = Field(default=None, description="Only these kinds.")
    tags: Maybe[Tags] = Field(default=None, description="Only what has all of these tags.")
    turn_ids: Maybe[TurnIds] = Field(default=None, description="Only what is of these turns.")
    since: Maybe[Moment] = Field(default=None, description="Only from this moment on.")
    days: Maybe[Annotated[float, Field(gt=0, le=DAYS)]] = Field(
        default=None, description="Only of so many days before now; not together with `since`."
    )
    limit: PageSize = Field(default=20, description="How many at most.")
    with_payload: bool = Field(default=False, description="Whether to read the contents from the store as well.")

    @model_validator(mode="after")
    def _one_beginning(self) -> Self:
        if self.since is not None and self.days is not None:
            raise ValueError("give `since` or `days`, not both")
        return self


class IndexItem(Record):
    """A row of the index."""

    message_id: str = Field(description="Its id.")
    kind: str = Field(description="What it is.")
    turn_id: str = Field(description="The turn it is of; empty for none.")
    ts: str = Field(description="When it was saved, ISO 8601 UTC.")
    tags: list[str] = Field(description="Its tags.")
    text: str = Field(description="What it says.")
    payload: Maybe[dict[str, object]] = Field(default=None, description="Its content, if that was asked for.")
    missing: Maybe[Unread] = Field(default=None, description="Why the content that was asked for is not here.")


class RecentResult(Result):
    """The newest rows that pass."""

    items: list[IndexItem] = Field(description="Newest first.")


class SearchTurnsParams(Params):
    """What to look for: words, a vector, or both."""

    model_config = ConfigDict(json_schema_extra={"anyOf": [{"required": ["query"]}, {"required": ["embedding"]}]})

    query: Maybe[Annotated[str, StringConstraints(min_length=1, max_length=QUERY_CHARS)]] = Field(
        default=None, description="Words; case and accents make no difference. Rows with all of them, else with any."
    )
    embedding: Maybe[Vector] = Field(default=None, description="A vector, which the caller brings.")
    kinds: Maybe[Kinds] = Field(
        default=None,
        description="Only these kinds. Words are not looked for in snapshots of the whole conversation unless named.",
    )
    tags: Maybe[Tags] = Field(default=None, description="Only what has all of these tags.")
    since: Maybe[Moment] = Field(default=None, description="Only from this moment on.")
    until: Maybe[Moment] = Field(default=None, description="Only up to this moment.")
    limit: Annotated[int, Field(ge=1, le=100)] = Field(default=10, description="How many turns at most.")

    @model_validator(mode="after")
    def _something(self) -> Self:
        if self.query is None and self.embedding is None:
            raise ValueError("give `query`, `embedding`, or both")
        return self


class TurnHit(Record):
    """The best hit in one turn."""

    turn_id: str = Field(description="The turn; empty for a row of none.")
    message_id: str = Field(description="The row that was found.")
    kind: str = Field(description="What it is.")
    score: float = Field(description="How well it fits among these hits: by its rank in each search.")
    similarity: Maybe[float] = Field(default=None, description="The cosine to the vector asked with, -1 to 1.")
    snippet: str = Field(description="What it says around the words looked for.")
    ts: str = Field(description="When it was saved, ISO 8601 UTC.")


class SearchTurnsResult(Result):
    """What was found."""

    hits: list[TurnHit] = Field(description="Best first, one per turn.")


class ReactionsParams(Params):
    """Whose reactions to list."""

    turn_ids: Maybe[TurnIds] = Field(default=None, description="Only those to these turns.")
    since: Maybe[Moment] = Field(default=None, description="Only those after this moment.")


class LatestReaction(Record):
    """The latest reaction to a turn."""

    turn_id: str = Field(description="The turn.")
    message_id: str = Field(description="Its id in the index.")
    reaction: Reaction = Field(description="Whether it was good.")
    text: str = Field(description="Why.")
    confidence: float = Field(description="How sure that is, 0 to 1.")
    origin: ReactionOrigin = Field(description="Who reacted.")
    ts: str = Field(description="When, ISO 8601 UTC.")


class ReactionsResult(Result):
    """The latest reaction per turn: by its time, ties by arrival."""

    reactions: list[LatestReaction] = Field(description="Newest first.")
