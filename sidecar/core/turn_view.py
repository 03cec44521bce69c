"""A turn as a client shows it: what was said, attached and made, without the blocks that the agent works with.

What the log of a turn holds is the agent's own; none of it is listed here (seed 004, Notes).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from sidecar.core.paths import FilePath, parse
from sidecar.core.sources_used import sources_used_in
from sidecar.core.streams import NOTES, THINKING, name_of, thinking_items, timeline_text_items

Block = Mapping[str, Any]

PROMPT = "user.prompt"
COMPLETION = "assistant.completion"
FOLLOWUPS = "stage.suggested_followups"
CLARIFICATION = "stage.clarification"
_SHOWN = frozenset({PROMPT, COMPLETION, THINKING, NOTES, FOLLOWUPS, CLARIFICATION})


class TurnView:
    """Takes the blocks of one turn in order and keeps what is shown of them. `sids` bounds what can be cited."""

    def __init__(self, turn_id: str, sids: Sequence[int]) -> None:
        self._turn_id = turn_id
        self._sids = sids
        self._used: set[int] = set()
        self._kept: list[Block] = []

    def take(self, block: Block) -> None:
        if not str(block.get("type") or "").startswith("user."):
            self._used |= sources_used_in(block, self._sids)
        if block.get("type") in _SHOWN or (isinstance(block.get("text"), str) and timeline_text_items([block])):
            self._kept.append(block)

    def use(self, sids: Iterable[int]) -> None:
        """Sources that something used which was not taken as a block."""
        self._used.update(sids)

    def view(self, records: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
        """The turn. `records` are its artifacts as `artifacts.describe` says them, attachments and files alike.

        `{turn_id, user?, assistant?, attachments, files, thinking, timeline_text, sources_used, followups?,
        clarification_questions?}`; the first completion of a turn is its answer, whatever is told later.
        """
        listed = list(records)
        view: dict[str, Any] = {"turn_id": self._turn_id}
        for name, kind in (("user", PROMPT), ("assistant", COMPLETION)):
            said = next((block for block in self._kept if block.get("type") == kind and not _is_copy(block)), None)
            if said is not None:
                view[name] = {"text": str(said.get("text") or ""), "ts": said.get("ts")}
        return view | {
            "attachments": [_file(one) for one in listed if is_attachment(one)],
            "files": [_file(one) for one in listed if is_file(one)],
            "thinking": thinking_items(self._kept),
            "timeline_text": timeline_text_items(self._kept),
            "sources_used": sorted(self._used),
            **self._listed("followups", FOLLOWUPS, "items"),
            **self._listed("clarification_questions", CLARIFICATION, "questions"),
        }

    def _listed(self, name: str, kind: str, member: str) -> dict[str, list[str]]:
        """The texts that the latest block of this type lists in its `meta`, if it does."""
        told = next((block for block in reversed(self._kept) if block.get("type") == kind), None)
        meta = told.get("meta") if told is not None else None
        items = meta.get(member) if isinstance(meta, dict) else None
        texts = [item for item in items if isinstance(item, str)] if isinstance(items, list) else []
        return {name: texts} if texts else {}


def is_attachment(record: Mapping[str, Any]) -> bool:
    """Whether an artifact is what the user attached, and may be shown."""
    path = parse(record["artifact_path"])
    return isinstance(path, FilePath) and path.place == "attachments" and record["visibility"] == "external"


def is_file(record: Mapping[str, Any]) -> bool:
    """Whether an artifact is a file that the turn made for the user. A display is none (seed 004, Notes)."""
    is_made = record["visibility"] == "external" and record["kind"] == "file" and not record.get("error")
    return is_made and not is_attachment(record)


def _file(record: Mapping[str, Any]) -> dict[str, Any]:
    shown = {"filename": name_of(record["artifact_path"])}
    shown |= {key: record[key] for key in _FIELDS if record.get(key) is not None}
    return shown | ({"summary": record["description"]} if record.get("description") else {})


_FIELDS = ("artifact_path", "physical_path", "mime", "size_bytes", "sha256", "sid", "rn", "hosted_uri", "key")


def _is_copy(block: Block) -> bool:
    meta = block.get("meta")
    return isinstance(meta, dict) and meta.get("rel") == "read"
