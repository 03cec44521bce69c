"""The workspace as a whole: how it is, what is new in it, what changed since."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from protocol.base import PAGE, Maybe, Number, PageSize, Params, Record, Result, Role, Sid, StoreFault, TurnId
from protocol.records import Change, Conversation

TITLE_CHARS = 120


class Counts(Record):
    """How much there is of everything."""

    turns: Number = Field(
        description="Turns the timeline knows; the same for every role, as their ids are in all paths."
    )
    blocks: Number = Field(
        description="Blocks told so far; the same for every role, as it is the number that the next block gets."
    )
    artifacts: Number = Field(description="Artifacts that the role may see, deleted ones included.")
    sources: Number = Field(description="Rows of the sources pool that the role may see.")
    versions: Number = Field(description="Versions of those artifacts together.")


class WatcherStatus(Record):
    """The state of the watch."""

    state: Literal["ok", "degraded", "polling", "lost"] = Field(
        description="`degraded` and `polling` find changes later, `lost` finds none: OUT_DIR is not where it was."
    )
    reason: Maybe[str] = Field(default=None, description="Why it is not `ok`.")
    missed: Number = Field(description="Changes that a slow look found and the watch had not told of.")
    over_limit: Number = Field(description="Entries that are not registered because a limit was reached.")
    last_look: Maybe[str] = Field(default=None, description="When the disk was last looked at, ISO 8601 UTC.")


class StoreStatus(Record):
    """The state of the object store."""

    state: Literal["ok", "unavailable", "unset"] = Field(description="Whether the store answers, or none is set.")
    kind: Literal["folder", "s3", "none"] = Field(description="What kind of store it is; `none` when none is set.")
    reason: Maybe[StoreFault] = Field(default=None, description="With `unavailable`: what is wrong.")
    abilities: Maybe[dict[str, bool | str]] = Field(
        default=None, description="What it was found to do when it was probed; nothing depends on the answers."
    )
    waiting: Maybe[Number] = Field(default=None, description="How many files are still to be hosted.")


class ConversationStoreStatus(Record):
    """The state of the index of conversations, and who writes this one."""

    state: Literal["ok", "unavailable"] = Field(description="Whether the index answers.")
    kind: Literal["sqlite", "postgresql"] = Field(description="What kind of index it is.")
    reason: Maybe[StoreFault] = Field(default=None, description="With `unavailable`: what is wrong.")
    lease: Literal["writer", "reader", "diverged", "unknown"] = Field(
        description="`writer`: this daemon writes the conversation. `reader`: another one does, and this one follows "
        "it. `diverged`: another one went on while work here was never saved; what is here can be read. `unknown`: the "
        "index does not answer; changes are taken and saved later, unless the conversation may exist elsewhere."
    )
    held_by: Maybe[str] = Field(default=None, description="Who writes it, when it is not this daemon.")
    change: Number = Field(description="The number of the latest change of the conversation that is known here.")
    next_block: Number = Field(description="How many blocks of the timeline are saved.")
    unsaved: Maybe[Number] = Field(
        default=None, description="How many ended turns, with the conversation as a whole, have something unsaved."
    )


class ConnectedClient(Record):
    """One connection."""

    role: Role = Field(description="Its role, which is the socket it came by.")
    queued: Number = Field(description="Bytes it has not read yet.")


class StatusResult(Result):
    """How the workspace stands."""

    revision: Number = Field(description="The number of the latest durable change.")
    out_dir: str = Field(description="The absolute path of OUT_DIR.")
    conversation: Conversation = Field(description="Whose conversation is open.")
    turn_id: Maybe[TurnId] = Field(default=None, description="The open turn, if there is one.")
    counts: Counts = Field(description="How much there is.")
    watcher: WatcherStatus = Field(description="How OUT_DIR is watched.")
    store: StoreStatus = Field(description="How the object store is.")
    conversation_store: ConversationStoreStatus = Field(
        description="How the index is, and who writes the conversation."
    )
    clients: list[ConnectedClient] = Field(description="Who is connected.")
    uptime_seconds: float = Field(ge=0, description="How long the daemon has been running.")


class SyncParams(Params):
    """Look at the disk now."""

    since: Maybe[Number] = Field(
        default=None,
        description="A revision. By default, that of this connection's previous sync, or of its connecting.",
    )


class SyncResult(Result):
    """What was registered since. Every file complete before the request was sent resolves from now on."""

    revision: Number = Field(description="The revision after the look.")
    artifacts: list[str] = Field(description="Logical paths of what was registered.")
    sources: list[Sid] = Field(description="Numbers of the sources that were added.")
    unsettled: list[str] = Field(description="Physical paths of files that somebody still writes to.")
    truncated: Maybe[bool] = Field(default=None, description="True when a limit kept files out of the answer.")


class OutlineCall(Record):
    """A tool call that made something."""

    tool_call_id: str = Field(description="Its id.")
    tool_id: Maybe[str] = Field(default=None, description="Its tool, when it is known.")
    artifacts: Number = Field(description="Artifacts of the turn whose latest version it made.")


class OutlineTurn(Record):
    """One turn."""

    turn_id: TurnId = Field(description="Its id.")
    ts: Maybe[str] = Field(default=None, description="When it began, or its first file appeared, ISO 8601 UTC.")
    title: Maybe[str] = Field(
        default=None, description=f"The beginning of what the user asked for, at most {TITLE_CHARS} characters."
    )
    status: Maybe[str] = Field(
        default=None,
        description="`open`, or how it ended: `completed`, `abandoned`, or what the runtime said. Absent for a turn "
        "that was never begun here.",
    )
    artifacts: Number = Field(description="Artifacts of the turn, those of no call included.")
    calls: list[OutlineCall] = Field(description="The calls that made them, in order of their first ones.")


class OutlineResult(Result):
    """What there is, by turn and call; `artifact/list` gives the artifacts themselves."""

    revision: Number = Field(description="The revision that is counted; events of later ones may be in it already.")
    turns: list[OutlineTurn] = Field(description="In the order of the timeline, newest last.")
    other: Number = Field(description="Artifacts of no turn.")


class ChangesParams(Params):
    """Replay what changed."""

    since: Number = Field(description="The last revision the client knows; 0 for everything.")
    limit: PageSize = Field(default=PAGE, description="How many changes at most.")


class ChangesResult(Result):
    """What changed after `since`, in order."""

    revision: Number = Field(description="The latest revision.")
    fresh: bool = Field(description="True when the client must start over: `since` lies in the future or too far back.")
    changes: list[Change] = Field(
        description="The changes, oldest first. Those of one revision are never parted, "
        "so the next page begins after the last one's revision."
    )
