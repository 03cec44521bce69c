"""What the daemon tells without being asked, to those who opted in."""

from __future__ import annotations

from pydantic import Field

from protocol.base import Maybe, Number, Payload, Record
from protocol.records import Artifact, Notice, SourceRow


class SourcesAdded(Payload):
    """Sources got a number."""

    rows: list[SourceRow] = Field(description="The new rows.")
    revision: Number = Field(description="The revision that holds them.")


class ArtifactsChanged(Payload):
    """Artifacts appeared, changed or vanished from the disk."""

    artifacts: list[Artifact] = Field(description="How they are now.")
    revision: Number = Field(description="The revision that holds them.")


class BlockHead(Record):
    """Which block was appended. Ask `timeline/blocks` for the rest."""

    index: Number = Field(description="Its global index.")
    type: str = Field(description="What the block is.")
    turn_id: Maybe[str] = Field(default=None, description="The turn it belongs to.")
    path: Maybe[str] = Field(default=None, description="Its logical path, if it has one.")


class TimelineAppended(Payload):
    """Blocks were appended."""

    blocks: list[BlockHead] = Field(description="The new blocks, without their contents.")
    revision: Number = Field(description="The revision that holds them.")


class NoticePosted(Payload):
    """Something is worth knowing that no answer could carry."""

    notice: Notice = Field(description="The notice.")
    revision: Number = Field(description="The latest revision.")
