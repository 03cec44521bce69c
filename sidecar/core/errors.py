"""Every way a request can fail on purpose.

Refusal
├── BadPath             unknown family, malformed selector or id
├── UnsafePath          would leave OUT_DIR, follow a link, or open what is no regular file
├── NotFound            nothing answers to that name
├── NotPermitted        this role, or this state of the conversation, does not allow it
├── TooLarge            over a stated limit
├── BadSelector         a number selector that cannot be read
├── UnknownTurn         a turn that the timeline does not know
├── Stale               `expected_sha256` does not match; carries both hashes
├── StoreUnavailable    the object store did not answer; worth asking again
├── JournalUnavailable  the change was not made durable and did not happen
└── ShuttingDown        the daemon takes no new work

A failure knows what it is *about* and how to mend it; the wire gets kind, about and hint, never a traceback.
"""

from __future__ import annotations

from typing import ClassVar, Literal


class Refusal(Exception):  # noqa: N818 - a refusal is an answer, not a malfunction
    """A request that cannot be answered. `about` names the thing, `hint` says what would work."""

    kind: ClassVar[str]

    def __init__(self, about: str, hint: str = "") -> None:
        super().__init__(f"{self.kind}: {about}" + (f" ({hint})" if hint else ""))
        self.about = about
        self.hint = hint


class BadPath(Refusal):
    kind = "bad_path"


class UnsafePath(Refusal):
    kind = "unsafe_path"


class NotFound(Refusal):
    kind = "not_found"


class NotPermitted(Refusal):
    kind = "not_permitted"


class TooLarge(Refusal):
    kind = "too_large"


class BadSelector(Refusal):
    kind = "bad_selector"


class UnknownTurn(Refusal):
    kind = "unknown_turn"


class Stale(Refusal):
    kind = "stale"

    def __init__(self, about: str, *, expected: str, actual: str) -> None:
        super().__init__(about, "read the artifact again and base the change on what it says now")
        self.expected = expected
        self.actual = actual


Fault = Literal[
    "unreachable", "timed_out", "server_error", "denied", "cut_off", "wrong_bytes", "no_bucket", "disk_full",
    "no_store", "key_too_long", "no_out_dir", "untrusted",
]  # fmt: skip
"""What was wrong with the store: nobody answered, or not in time, or with an error of its own; we may not; the bytes
ended early, or were others; there is no such bucket; there is no room; no store is configured; the key cannot be;
OUT_DIR itself is away; we do not trust the certificate."""


class StoreUnavailable(Refusal):
    """`fault` says which of the ways to fail it was, so that people mend the right thing."""

    kind = "store_unavailable"

    def __init__(self, about: str, hint: str = "", *, fault: Fault = "server_error") -> None:
        super().__init__(about, hint)
        self.fault: Fault = fault


class JournalUnavailable(Refusal):
    kind = "journal_unavailable"


class ShuttingDown(Refusal):
    kind = "shutting_down"


KINDS: tuple[str, ...] = tuple(cls.kind for cls in Refusal.__subclasses__())
