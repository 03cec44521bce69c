"""What a request is answered with when it has no result: numbers, kinds and data, in both directions.

A refusal says what it is about and what would work. Anything unexpected says an incident number and nothing else; the
traceback goes to the log. Nothing here ever repeats a value that was sent.
"""

from __future__ import annotations

import logging
import secrets
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from pydantic import ValidationError

from protocol.errors import (
    CANCELLED,
    CONTENT_MODIFIED,
    INTERNAL_ERROR,
    INVALID_PARAMS,
    INVALID_REQUEST,
    METHOD_NOT_FOUND,
    NOT_INITIALIZED,
    PARSE_ERROR,
    REFUSALS,
)
from sidecar.core.errors import Refusal, Stale
from sidecar.wording import problems

FAULTS_TOLD = 10
NAME_TOLD = 100  # characters of a method that is not known
FAULTS_LISTED = 1000  # beyond it, making the list would take longer than the request deserves

incidents = logging.getLogger("sidecar.incident")


@dataclass(frozen=True, slots=True)
class Failure:
    """An error answer before it is JSON. `outcome` and `about` are for the log."""

    code: int
    message: str
    data: Mapping[str, object] | None = None
    outcome: str = ""
    about: str = ""

    def error(self) -> dict[str, object]:
        """The `error` member of the answer."""
        error: dict[str, object] = {"code": self.code, "message": self.message}
        if self.data is not None:
            error["data"] = self.data
        return error


@dataclass(slots=True)
class Failed(Exception):  # noqa: N818 - carries an answer to the place where answers are given
    """Raised where the failure is known already and only needs to be answered."""

    failure: Failure = field()


PARSE = Failure(PARSE_ERROR, "the body is no JSON", outcome="parse_error")
CANCELLED_BY_CLIENT = Failure(CANCELLED, "the request was cancelled", outcome="cancelled")
TOO_EARLY = Failure(NOT_INITIALIZED, "`initialize` comes first", outcome="not_initialized")


def invalid_request(sentence: str) -> Failure:
    """The message is no JSON-RPC 2.0 request, or comes at the wrong time."""
    return Failure(INVALID_REQUEST, sentence, outcome="invalid_request")


def unknown_method(method: str) -> Failure:
    """There is none of this name, of ours or of LSP. The name is all of a message that is ever repeated."""
    return Failure(METHOD_NOT_FOUND, f"there is no method `{method[:NAME_TOLD]}`", outcome="method_not_found")


def refused(refusal: Refusal) -> Failure:
    """A refusal with its kind, what it is about and what would work (spec section 7, Errors)."""
    row = REFUSALS[refusal.kind]
    about = _sendable(refusal.about)
    data: dict[str, object] = {"kind": refusal.kind, "about": about, "hint": _sendable(refusal.hint)}
    if isinstance(refusal, Stale):
        data |= {"expected": refusal.expected, "actual": refusal.actual}
    return Failure(row.number, row.sentence, data, refusal.kind, about)


def refusal_of(error: Mapping[str, object]) -> Refusal | None:
    """The way back: the refusal that an error answer tells of, or None when it tells of something else."""
    data = error.get("data")
    if not isinstance(data, Mapping):
        return None
    kind, about = data.get("kind"), str(data.get("about", ""))
    if kind == Stale.kind or error.get("code") == CONTENT_MODIFIED:
        return Stale(about, expected=str(data.get("expected", "")), actual=str(data.get("actual", "")))
    cls = _REFUSALS.get(kind) if isinstance(kind, str) else None
    return None if cls is None else cls(about, str(data.get("hint", "")))


def wrong_params(
    faults: Iterable[tuple[str, str]], *, message: str = "the params are not what the method takes"
) -> Failure:
    """Params that do not fit. Each fault is a place and what is wrong there."""
    told = [{"where": where[:200], "problem": problem} for where, problem in faults][:FAULTS_TOLD]
    return Failure(
        INVALID_PARAMS, message, {"faults": told}, "invalid_params",
        ", ".join(str(fault["where"]) for fault in told),
    )  # fmt: skip


def wrong_fields(error: ValidationError, *, below: str = "") -> Failure:
    """What pydantic found, each fault at its place under `below`, without the values that were sent."""
    if error.error_count() > FAULTS_LISTED:
        return wrong_params([(below, f"more than {FAULTS_LISTED} faults")])
    found = problems(error.errors(include_url=False, include_input=False)[:FAULTS_TOLD])
    return wrong_params((".".join(filter(None, (below, where))), problem) for where, problem in found.items())


def unexpected(error: BaseException, *, client: int, method: str) -> Failure:
    """Give the incident a number, log it with its traceback, and tell the client the number alone."""
    incident = secrets.token_hex(4)
    incidents.error("incident=%s client=%d method=%s", incident, client, method, exc_info=error)
    return Failure(
        INTERNAL_ERROR, f"something unexpected happened; the log has it as incident {incident}",
        {"incident": incident}, "internal_error", incident,
    )  # fmt: skip


def _sendable(text: str) -> str:
    # A name on disk that is not UTF-8 comes with lone surrogates, which no JSON can hold.
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


_REFUSALS: dict[str, type[Refusal]] = {cls.kind: cls for cls in Refusal.__subclasses__() if cls is not Stale}
