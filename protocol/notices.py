"""Every notice there is: its code, how much it matters, its sentence, and the fields it has beside code and message."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from typing_extensions import TypeAliasType

Level = Literal["info", "warning", "error"]

NoticeCode = TypeAliasType(
    "NoticeCode",
    Literal[
        "path_ambiguous",
        "name_not_utf8",
        "link_skipped",
        "special_skipped",
        "name_unsafe",
        "attribution_ambiguous",
        "still_open",
        "missing_artifact",
        "hosting_ignored",
        "selector_malformed",
        "source_unknown",
        "read_paths_missing",
        "protocol_violation.path_rewritten",
        "oversize",
        "over_limit",
        "kept_evicted",
        "watch_degraded",
        "watch_lost",
        "search_truncated",
        "events_dropped",
        "store_unavailable",
        "hosting_failed",
        "hosting_pending",
        "saving_pending",
        "conversation_incomplete",
        "conversation_diverged",
        "feedback_received",
        "view_not_written",
        "refs_forgotten",
        "refs_unresolved",
        "timeline_malformed",
        "tool_call_error.missing_assets",
        "tool_call_warning.missing_sources",
        "tool_call_warning.missing_sid_assets",
        "assets_truncated",
        "context_path_missing",
        "unsliced_search_skipped",
        "binding_skipped",
        "binding_truncated",
        "llm_envelope_content_leaf_required",
        "sources_capped",
        "slot_not_mapped",
        "slot_drafted",
        "slots_missing",
    ],
)


@dataclass(frozen=True, slots=True)
class NoticeKind:
    """One row of the table. `fields` are always there, `may_have` only where they are known."""

    code: str
    level: Level
    sentence: str
    fields: tuple[str, ...] = ()
    may_have: tuple[str, ...] = ()


_TABLE = (
    NoticeKind(
        "path_ambiguous", "warning",
        "A file has no logical path, because its name would read as the path of something else.", ("name",),
    ),
    NoticeKind("name_not_utf8", "warning", "A name that is not UTF-8 can be no artifact.", ("name",)),
    NoticeKind("link_skipped", "info", "A link was found and not followed.", ("name",)),
    NoticeKind("special_skipped", "info", "A FIFO, device or socket was found and not opened.", ("name",)),
    NoticeKind(
        "name_unsafe", "warning", "A name with control characters or a backslash can be no artifact.", ("name",)
    ),
    NoticeKind(
        "attribution_ambiguous", "warning",
        "Several calls were open and none of them named this file, so it belongs to none.",
        ("path",), ("tool_call_ids",),
    ),
    NoticeKind(
        "still_open", "warning", "Somebody still writes to these files; they are registered when they are closed.",
        ("paths",),
    ),
    NoticeKind("missing_artifact", "error", "Files that the call was expected to make are not there.", ("missing",)),
    NoticeKind(
        "hosting_ignored", "warning",
        "Hosting fields are taken from the runtime or the daemon's own store only, and were left out.",
        ("fields", "count"),
    ),
    NoticeKind("selector_malformed", "warning", "Pieces of the selector were not understood.", ("pieces",)),
    NoticeKind("source_unknown", "warning", "No source has these numbers.", ("missing_sids",)),
    NoticeKind("read_paths_missing", "warning", "Nothing could be read at these paths.", ("missing",)),
    NoticeKind(
        "protocol_violation.path_rewritten", "warning", "A path in another turn was moved into the current one.",
        ("original", "normalized"), ("tool_id", "tool_call_id"),
    ),
    NoticeKind(
        "oversize", "warning", "A file is over the hashing limit and was registered without a hash.", ("path",),
        ("size_bytes",),
    ),
    NoticeKind(
        "over_limit", "warning", "There are more entries than the limit allows; the rest is not registered.", (),
        ("limit", "count"),
    ),
    NoticeKind(
        "kept_evicted", "warning", "The last kept copy of a file was given up, to stay within `keep_bytes`.", ("path",),
        ("sha256", "size_bytes"),
    ),
    NoticeKind("watch_degraded", "warning", "Changes are found by slower looks at the disk.", (), ("reason",)),
    NoticeKind("watch_lost", "error", "OUT_DIR is not where it was.", (), ("reason",)),
    NoticeKind("search_truncated", "info", "The search stopped at a limit.", (), ("limit",)),
    NoticeKind(
        "events_dropped", "warning",
        "Events were dropped: this client did not read them, or its daemon ended and another one took over, and then "
        "`count` is 0 because nobody knows how many. Ask `workspace/changes`.",
        (), ("count",),
    ),
    NoticeKind(
        "store_unavailable", "warning", "The store does not answer; what is to be hosted waits for it.", ("reason",)
    ),
    NoticeKind("hosting_failed", "error", "Bytes can never be hosted.", ("path", "reason"), ("sha256",)),
    NoticeKind(
        "hosting_pending", "info", "Files are not hosted yet; it goes on in the background.", ("paths",), ("reason",)
    ),
    NoticeKind(
        "saving_pending", "info",
        "The turn is not saved to the conversation store yet; it goes on in the background.", (), ("reason",),
    ),
    NoticeKind(
        "conversation_incomplete", "warning",
        "Parts of a saved conversation could not be taken in: `lost` were not there, `malformed` could not be read.",
        ("count", "reason"),
    ),
    NoticeKind(
        "conversation_diverged", "error",
        "Somebody else went on with this conversation while this workspace had work that was never saved: what is here "
        "can be read, and nothing of it will be saved.",
        (), ("reason",),
    ),
    NoticeKind(
        "feedback_received", "info", "Somebody said what they think of a turn.", ("turn_id", "reaction"),
    ),
    NoticeKind("view_not_written", "warning", "timeline.json could not be written; nothing else is lost.", ("reason",)),
    NoticeKind(
        "refs_forgotten", "info", "A summary does not name these artifacts; they are listed behind it.", ("missing",),
    ),
    NoticeKind("refs_unresolved", "warning", "A summary names these, and nothing answers to them.", ("missing",)),
    NoticeKind(
        "timeline_malformed", "warning", "Parts of a foreign timeline.json could not be taken in.", (),
        ("count", "reason"),
    ),
    NoticeKind(
        "tool_call_error.missing_assets", "error",
        "Files that the page refers to are not there, and could not be brought back.", ("missing",), ("tool_id",),
    ),
    NoticeKind(
        "tool_call_warning.missing_sources", "warning", "The page cites numbers that no source has.",
        ("missing_sids",), ("tool_id",),
    ),
    NoticeKind(
        "tool_call_warning.missing_sid_assets", "warning",
        "Files of sources that the page cites could not be brought back; the numbers are in the order of the paths.",
        ("missing", "missing_sids"), ("tool_id",),
    ),
    NoticeKind(
        "assets_truncated", "warning", "The page was not followed to its end, because a limit was met.", ("limit",),
        ("tool_id",),
    ),
    NoticeKind(
        "context_path_missing", "warning", "A path leads nowhere, and nothing was bound from it.", ("path", "reason"),
    ),
    NoticeKind(
        "unsliced_search_skipped", "warning",
        "A search is bound by its sids, as in `[1,3]`; the whole of it was left out.", ("path", "name"),
    ),
    NoticeKind(
        "binding_skipped", "warning", "Something cannot go into a param, and was left out.",
        ("path", "reason", "name"),
    ),
    NoticeKind(
        "binding_truncated", "warning",
        "Something is longer than an answer carries, and only its beginning was bound.", ("path", "name"),
    ),
    NoticeKind(
        "llm_envelope_content_leaf_required", "info",
        "A write tool gets the content of what a model answered, not its envelope.", ("original", "normalized"),
    ),
    NoticeKind(
        "sources_capped", "info", "The words of sources were cut so that all of them fit.", ("count", "limit"),
    ),
    NoticeKind("slot_not_mapped", "warning", "Nothing was mapped into a slot.", ("name", "path", "reason")),
    NoticeKind(
        "slot_drafted", "warning", "The file of a slot is missing, so its text became a draft.", ("name", "path"),
    ),
    NoticeKind(
        "slots_missing", "warning", "The contract asks for slots that nothing was mapped into.", ("missing",),
    ),
)  # fmt: skip

NOTICES: dict[str, NoticeKind] = {row.code: row for row in _TABLE}
