"""Advice that comes with an answer: every code, and one way to write each.

A notice never stops anything. Its code is of the closed table in `protocol/notices.py`; a test holds the two together.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

Notice = dict[str, Any]

_WORDS = {
    "path_ambiguous": "this file has no logical path, because its name would read as another one",
    "name_not_utf8": "a name that is not UTF-8 can be no artifact",
    "link_skipped": "links are not followed",
    "special_skipped": "only regular files are artifacts",
    "name_unsafe": "a name with control characters or a backslash can be no artifact",
    "attribution_ambiguous": "several calls were open and none of them named this file",
    "still_open": "somebody still writes to these files; they are registered when they are closed",
    "missing_artifact": "these files were expected and are not there",
    "hosting_ignored": "hosting fields are taken from the runtime or our own store only, and were left out",
    "selector_malformed": "these pieces of the selector were not understood",
    "source_unknown": "no source has these numbers",
    "read_paths_missing": "nothing could be read at these paths",
    "protocol_violation.path_rewritten": "the path was moved into the current turn",
    "oversize": "this file is over the hashing limit and was registered without a hash",
    "over_limit": "there are more files than the limit; the rest is not registered",
    "kept_evicted": "the last kept copy of this file was given up to stay within keep_bytes",
    "watch_degraded": "changes are found by slower looks at the disk",
    "watch_lost": "OUT_DIR is not where it was",
    "search_truncated": "the search stopped at a limit",
    "events_dropped": "events were dropped because this client did not read them; ask workspace/changes",
    "store_unavailable": "the store does not answer; what is to be hosted waits for it",
    "hosting_failed": "these bytes can never be hosted",
    "hosting_pending": "these files are not hosted yet; it goes on in the background",
    "saving_pending": "the turn is not saved to the conversation store yet; it goes on in the background",
    "refs_forgotten": "the summary does not name these artifacts; they are listed behind it",
    "refs_unresolved": "the summary names these, and nothing answers to them",
    "conversation_incomplete": "parts of the saved conversation could not be taken in",
    "conversation_diverged": "somebody else went on with this conversation, and work of this workspace was never saved",
    "feedback_received": "somebody said what they think of a turn",
    "view_not_written": "timeline.json could not be written; nothing else is lost",
    "timeline_malformed": "parts of timeline.json could not be taken in",
    "tool_call_error.missing_assets": "these files are in the page and cannot be brought",
    "tool_call_warning.missing_sources": "no source has these numbers, which the page cites",
    "tool_call_warning.missing_sid_assets": "the files of these cited sources cannot be brought",
    "assets_truncated": "the page was not followed to its end, because of this limit",
    "context_path_missing": "this path leads nowhere, and nothing was bound from it",
    "unsliced_search_skipped": "a search is bound by its sids, as in [1,3]; the whole of it was left out",
    "binding_skipped": "this cannot go into that param, and was left out",
    "binding_truncated": "this is longer than an answer carries, and only its beginning was bound",
    "llm_envelope_content_leaf_required": "a write tool gets the content of what a model answered, not its envelope",
    "sources_capped": "the words of these sources were cut so that all of them fit",
    "slot_not_mapped": "nothing was mapped into this slot",
    "slot_drafted": "the file of this slot is missing, so its text became a draft",
    "slots_missing": "the contract asks for these slots, and nothing was mapped into them",
}

CODES: frozenset[str] = frozenset(_WORDS)


def notice(code: str, **extra: Any) -> Notice:
    """A notice with the words of its code and the fields that the code names."""
    return {"code": code, "message": _WORDS[code], **extra}


def pending(reason: str) -> Notice:
    """What ended and is not saved yet; `reason` is empty where nobody knows one."""
    return notice("saving_pending", **({"reason": reason} if reason else {}))


def for_oddity(kind: str, name: str) -> Notice:
    """What a survey met that can be no artifact (spec section 3)."""
    codes = {
        "not_utf8": "name_not_utf8",
        "link": "link_skipped",
        "special": "special_skipped",
        "unsafe_name": "name_unsafe",
    }
    return notice(codes[kind], name=name)


def for_selector(malformed: Iterable[str], missing: Iterable[int]) -> tuple[Notice, ...]:
    """What a `so:` selector asked for in vain."""
    pieces, numbers = list(malformed), list(missing)
    told: list[Notice] = []
    if pieces:
        told.append(notice("selector_malformed", pieces=pieces))
    if numbers:
        told.append(notice("source_unknown", missing_sids=numbers))
    return tuple(told)
