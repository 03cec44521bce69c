"""What `initialize` takes and answers beyond LSP, and what every request may carry beside its own params."""

from __future__ import annotations

from typing import Annotated

import pydantic_core
from pydantic import AfterValidator, Field, StringConstraints

from protocol.base import CallId, Maybe, Number, Params, Record, Role, Topic, TurnId

META_BYTES = 4096

VersionText = Annotated[str, StringConstraints(pattern=r"^[0-9]{1,6}\.[0-9]{1,6}$")]


class InitializationOptions(Params):
    """What a client may ask for when it opens a session."""

    protocol_version: Maybe[VersionText] = Field(
        default=None, description="`major.minor`. Another major number than the daemon's is refused."
    )
    turn_id: Maybe[TurnId] = Field(default=None, description="A label for the log; it grants nothing.")
    tool_call_id: Maybe[CallId] = Field(default=None, description="A label for the log; it grants nothing.")
    events: list[Topic] = Field(default=[], description="Which events to be told of; none by default.", max_length=16)


class SidecarCapability(Record):
    """What the daemon says of itself in its answer."""

    protocol_version: VersionText = Field(description="The protocol that the daemon speaks.")
    revision: Number = Field(description="The latest durable change.")
    role: Role = Field(description="The role of this connection, which is the socket it came by.")
    out_dir: str = Field(description="The absolute path of OUT_DIR.")
    conversation_id: str = Field(description="The open conversation.")
    turn_id: Maybe[TurnId] = Field(default=None, description="The open turn, if there is one.")
    methods: list[str] = Field(description="What this role may ask.")
    limits: dict[str, int | float] = Field(description="The daemon's limits by name; bytes, counts and seconds.")


def _small(meta: dict[str, object]) -> dict[str, object]:
    if len(pydantic_core.to_json(meta)) > META_BYTES:
        raise ValueError(f"at most {META_BYTES} bytes")
    return meta


Token = Annotated[str, StringConstraints(max_length=128)] | int


class Envelope(Params):
    """What every request may carry beside its own params. The first two keep LSP's spelling."""

    workDoneToken: Maybe[Token] = Field(  # noqa: N815 - LSP's spelling
        default=None, description="Asks for `$/progress` under this token, where a method reports any."
    )
    partialResultToken: Maybe[Token] = Field(  # noqa: N815 - LSP's spelling
        default=None, description="Taken and ignored: answers are never partial."
    )
    meta: Maybe[Annotated[dict[str, object], AfterValidator(_small)]] = Field(
        default=None, alias="_meta", description="Free for the client's own use, at most 4 KiB; taken and ignored."
    )


ENVELOPE_KEYS = frozenset({"workDoneToken", "partialResultToken", "_meta"})


def unwrap(params: dict[str, object]) -> tuple[Envelope, dict[str, object]]:
    """Take the envelope off a request's params. Raises pydantic's ValidationError when it is malformed."""
    if ENVELOPE_KEYS.isdisjoint(params):
        return _EMPTY, params
    envelope = Envelope.model_validate({key: params[key] for key in params if key in ENVELOPE_KEYS})
    return envelope, {key: value for key, value in params.items() if key not in ENVELOPE_KEYS}


_EMPTY = Envelope()
