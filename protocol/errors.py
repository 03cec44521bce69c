"""Every way a request can fail: number, kind, sentence, and the shape of the error's data.

The numbers are JSON-RPC's and LSP's own. Everything the daemon refuses on purpose has -32803 and a kind from a closed
list, except a stale change, which has a number of its own (spec section 7).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from pydantic import Field
from typing_extensions import TypeAliasType

from protocol.base import Record

PARSE_ERROR = -32700
INVALID_REQUEST = -32600
METHOD_NOT_FOUND = -32601
INVALID_PARAMS = -32602
INTERNAL_ERROR = -32603
NOT_INITIALIZED = -32002
CANCELLED = -32800
CONTENT_MODIFIED = -32801
REQUEST_FAILED = -32803

RefusalKind = TypeAliasType(
    "RefusalKind",
    Literal[
        "bad_path",
        "unsafe_path",
        "not_found",
        "not_permitted",
        "too_large",
        "bad_selector",
        "unknown_turn",
        "stale",
        "store_unavailable",
        "journal_unavailable",
        "shutting_down",
    ],
)


class Refused(Record):
    """Why a well-formed request was refused."""

    kind: RefusalKind = Field(description="What is wrong, from a closed list.")
    about: str = Field(description="The thing it is about, a path for example.")
    hint: str = Field(description="What would work. It may be empty.")


class RefusedAsStale(Refused):
    """Why a change was refused: it was based on another state than the present one."""

    expected: str = Field(description="What the client took for the present state.")
    actual: str = Field(description="What the present state is.")


class ParamsFault(Record):
    """One thing that is wrong with the params."""

    where: str = Field(description="The place, `blocks.3.type` for example.")
    problem: str = Field(description="What is wrong there. It never repeats what was sent.")


class InvalidParams(Record):
    """What is wrong with the params."""

    faults: list[ParamsFault] = Field(description="The first ten faults.")


class Incident(Record):
    """Something unexpected happened; the daemon's log has the rest under this id."""

    incident: str = Field(description="The id to look for in the log.")


@dataclass(frozen=True, slots=True)
class Failure:
    """One row of the table. `kind` stands in `data.kind` only for refusals; `data` is None when no data is sent."""

    number: int
    kind: str
    sentence: str
    data: type[Record] | None = None


FAILURES = (
    Failure(PARSE_ERROR, "parse_error", "The body is no JSON."),
    Failure(INVALID_REQUEST, "invalid_request", "The message is no JSON-RPC 2.0 request, or comes at the wrong time."),
    Failure(METHOD_NOT_FOUND, "method_not_found", "There is no such method."),
    Failure(INVALID_PARAMS, "invalid_params", "The params are not what the method takes.", InvalidParams),
    Failure(INTERNAL_ERROR, "internal_error", "Something unexpected happened; it was logged.", Incident),
    Failure(NOT_INITIALIZED, "not_initialized", "`initialize` comes first."),
    Failure(CANCELLED, "cancelled", "The request was cancelled by its client."),
    Failure(
        REQUEST_FAILED, "bad_path", "It cannot be read: an unknown family, a malformed id, selector or time.", Refused,
    ),
    Failure(
        REQUEST_FAILED, "unsafe_path",
        "The path would leave OUT_DIR, follow a link, or open what is no regular file.", Refused,
    ),
    Failure(REQUEST_FAILED, "not_found", "Nothing answers to that name.", Refused),
    Failure(REQUEST_FAILED, "not_permitted", "This role, or the state of things, does not allow it.", Refused),
    Failure(REQUEST_FAILED, "too_large", "It is over a stated limit.", Refused),
    Failure(REQUEST_FAILED, "bad_selector", "The selector, pattern or cursor cannot be read.", Refused),
    Failure(REQUEST_FAILED, "unknown_turn", "The timeline knows no such turn.", Refused),
    Failure(
        CONTENT_MODIFIED, "stale", "It was based on another state than the present one.", RefusedAsStale
    ),
    Failure(
        REQUEST_FAILED, "store_unavailable", "What holds the bytes, a store or a disk, does not give or take them now.",
        Refused,
    ),
    Failure(
        REQUEST_FAILED, "journal_unavailable", "The change could not be made durable and did not happen.", Refused
    ),
    Failure(REQUEST_FAILED, "shutting_down", "The daemon takes no new work; connect again.", Refused),
)  # fmt: skip

REFUSALS: dict[str, Failure] = {row.kind: row for row in FAILURES if row.data in (Refused, RefusedAsStale)}
BY_KIND: dict[str, Failure] = {row.kind: row for row in FAILURES}
