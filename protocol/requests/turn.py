"""A turn of the agent."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import AfterValidator, ConfigDict, Field, StringConstraints, model_validator

from protocol.base import (
    PATHS,
    ChangingParams,
    Maybe,
    Mime,
    Moment,
    Number,
    Params,
    PathList,
    PathText,
    Reaction,
    ReactionOrigin,
    Record,
    Result,
    Sid,
    TurnId,
)
from protocol.records import Conversation, Notice
from protocol.requests.contents import NotRehosted, Rehosted

VECTOR = 4096
FEEDBACK_CHARS = 65_536


def _has_direction(vector: list[float]) -> list[float]:
    if not any(vector):
        raise ValueError("a vector of zeros has no direction")
    return vector


Vector = Annotated[
    list[Annotated[float, Field(allow_inf_nan=False)]],
    Field(min_length=1, max_length=VECTOR),
    AfterValidator(_has_direction),
]
Word = Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9_.:-]{0,63}$")]


class AttachmentGiven(Params):
    """What the user attached, with its content in exactly one of `path`, `base64` and `text`."""

    model_config = ConfigDict(
        json_schema_extra={"oneOf": [{"required": ["path"]}, {"required": ["base64"]}, {"required": ["text"]}]}
    )

    name: Annotated[str, StringConstraints(min_length=1, max_length=4096)] = Field(
        description="Its name below `<turn>/attachments/`. A second one of a name becomes `name-2.ext`."
    )
    mime: Maybe[Mime] = Field(default=None, description="Its media type; by the daemon's own table if not given.")
    path: Maybe[PathText] = Field(
        default=None, description="A file below OUT_DIR, or an absolute path below a folder of `--attach-root`."
    )
    base64: Maybe[str] = Field(default=None, description="Its bytes.")
    text: Maybe[str] = Field(default=None, description="Its text.")
    summary: Maybe[str] = Field(default=None, description="What it is, in a few words.", max_length=4096)

    @model_validator(mode="after")
    def _one_content(self) -> Self:
        if sum(given is not None for given in (self.path, self.base64, self.text)) != 1:
            raise ValueError("give exactly one of `path`, `base64` and `text`")
        return self


class TurnBeginParams(ChangingParams):
    """A turn begins."""

    turn_id: TurnId = Field(description="The turn's id. An ended one is refused.")
    conversation: Maybe[Conversation] = Field(default=None, description="Whose conversation it is.")
    prompt: Maybe[str] = Field(default=None, description="What the user asks, kept as `<turn>.user.prompt`.")
    attachments: list[AttachmentGiven] = Field(default=[], description="What the user attached.", max_length=PATHS)
    rehost: Maybe[PathList | Literal["all"]] = Field(
        default=None, description="Files of earlier turns to bring back into OUT_DIR, or `all` of them."
    )
    ts: Maybe[Moment] = Field(default=None, description="When it began: ISO 8601 text or seconds since the epoch.")


class AttachmentLaid(Record):
    """An attachment that lies in OUT_DIR."""

    artifact_path: str = Field(description="Its canonical logical path.")
    physical_path: str = Field(description="Where it is, relative to OUT_DIR.")
    mime: str = Field(description="Its media type.")
    size_bytes: Number = Field(description="Its size.")
    sid: Maybe[Sid] = Field(default=None, description="Its number in the sources pool, if it is citable.")


class TurnBeginResult(Result):
    """The turn is open."""

    turn_id: TurnId = Field(description="The turn's id.")
    attachments: list[AttachmentLaid] = Field(description="One per attachment, in order.")
    rehosted: list[Rehosted] = Field(description="The files asked for that are in OUT_DIR now.")
    missing: list[NotRehosted] = Field(description="The files asked for that are not.")
    notices: list[Notice] = Field(description="What is worth knowing about it.")


class Completion(Params):
    """What the agent answered."""

    text: str = Field(description="The answer, kept as `<turn>.assistant.completion`.")
    sources_used: Maybe[list[Sid]] = Field(
        default=None, description="The sources it cites; found in its text if not given.", max_length=PATHS
    )


class TurnEndParams(ChangingParams):
    """A turn ends."""

    turn_id: TurnId = Field(description="The open turn.")
    completion: Maybe[Completion] = Field(default=None, description="What the agent answered, if it did.")
    status: Maybe[Word] = Field(default=None, description="How it ended, `completed` by default.")
    embeddings: Maybe[dict[Word, Vector]] = Field(
        default=None,
        description="Vectors by the kind of what is saved (`chat:user`, `chat:assistant`, `conv.timeline.v1`, "
        f"`conv:sources_pool`), of at most {VECTOR} numbers, all of one length. The daemon computes none.",
        max_length=64,
    )


class Saved(Record):
    """Something that the end of a turn saved to the conversation store."""

    kind: str = Field(description="What it is.")
    hosted_uri: Maybe[str] = Field(default=None, description="Where it is stored.")
    message_id: str = Field(description="Its id in the index.")
    rn: Maybe[str] = Field(default=None, description="Its download handle.")
    needs_embedding: Maybe[bool] = Field(default=None, description="True when it waits for a vector.")


class TurnEndResult(Result):
    """The turn has ended. What it made is hosted, or goes on being hosted in the background."""

    saved: list[Saved] = Field(description="What was saved to the conversation store.")
    sources_used: list[Sid] = Field(description="The sources used in the turn, ascending.")
    notices: list[Notice] = Field(description="What is worth knowing about it.")


class TurnFeedbackParams(ChangingParams):
    """What somebody thinks of a turn. A user's reaction replaces the former one, a machine's stands beside it."""

    turn_id: TurnId = Field(description="The turn, open or ended.")
    reaction: Reaction = Field(description="Whether it was good.")
    text: Annotated[str, StringConstraints(max_length=FEEDBACK_CHARS)] = Field(description="Why; may be empty.")
    confidence: Annotated[float, Field(ge=0, le=1)] = Field(default=1.0, description="How sure that is, 0 to 1.")
    origin: ReactionOrigin = Field(description="Who reacts: the user, or a machine that judges.")
    ts: Maybe[Moment] = Field(
        default=None, description="When: ISO 8601 text or seconds since the epoch; now by default."
    )


class TurnFeedbackResult(Result):
    """It is kept, and will be told to the agent."""

    saved: Saved = Field(description="The reaction as it is saved.")
