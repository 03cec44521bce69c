"""The timeline as the agent sees it: what one block becomes, as text, image and document messages (spec section 12).

No hosting field stands in any rendered text: `meta` is never printed, and JSON that describes an artifact or a source
is printed without them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

import orjson

from sidecar.core.blocks import PATH, SUMMARY, TURN, TYPE, Head
from sidecar.core.counting import binary_tokens, count_tokens, packed_size
from sidecar.core.hosting import ALL, without
from sidecar.core.labels import Block, one_line, opening, turn_label
from sidecar.core.paths import FilePath, parse_logical

Message = dict[str, str]
"""`{type: text|image|document, text?|base64?, mime?, path?}`"""

NEVER_SHOWN = "react.thinking"


def render_block(head: Head, block: Block, *, tool: str = "") -> list[Message]:
    """The messages of a block as it stands; none for what the agent is not to see.

    A hidden block is its replacement text. Which one of several hidden at a path speaks for all is not decided here.
    """
    meta: dict[str, Any] = block.get("meta") or {}
    if head[TYPE] == NEVER_SHOWN:
        return []
    if meta.get("hidden"):
        words = replacement_of(block)
        return [_text(head, opening(head, block, tool), words)] if words else []
    return _shown(head, block, opening(head, block, tool))


def replacement_of(block: Block) -> str:
    """What stands in place of a hidden block; empty for one that simply is not there."""
    words = (block.get("meta") or {}).get("replacement_text")
    return without(words, ALL) if isinstance(words, str) else ""


def restored_header(turn_id: str) -> list[Message]:
    """The header of a turn whose own one was never told, for a slice that begins within it."""
    return [{"type": "text", "text": turn_label(turn_id)}]


def tokens_of(message: Message) -> int:
    """What a message counts as."""
    packed = message.get("base64")
    return count_tokens(message["text"]) if packed is None else binary_tokens(packed_size(packed))


def as_text(message: Message) -> str:
    """A message for people and for models that read nothing but text."""
    packed = message.get("base64")
    return message["text"] if packed is None else f"({message['mime']}, {packed_size(packed)} bytes, is not shown here)"


def encode(messages: Iterable[Message]) -> bytes:
    """The messages as JSON, a comma between two, without the brackets around them."""
    return b",".join(map(orjson.dumps, messages))


def decode(body: bytes) -> list[Message]:
    """The messages of what `encode` gave."""
    return orjson.loads(b"[%b]" % body)


def _shown(head: Head, block: Block, begin: str) -> list[Message]:
    text, packed = block.get("text"), block.get("base64")
    if head[TYPE] == "turn.header":
        return [_text(head, begin, _beyond_label(head, text))]
    if head[TYPE] == SUMMARY:
        return [_text(head, begin, summary_text(block))]
    if isinstance(text, str):
        said = without({"type": head[TYPE], "path": head[PATH], "text": text}, ALL)
        return [_text(head, begin, said["text"])]
    if isinstance(packed, str):
        return _binary(head, str(block.get("mime")), packed, begin)
    if head[PATH].startswith("fi:"):
        return [_text(head, begin, f"(its content is not in the timeline{_where(head)})")]
    return [_text(head, begin)]


def summary_text(block: Block) -> str:
    """A summary with the paths that it forgot to name, so that no artifact is lost from sight (spec section 12)."""
    text, paths = block.get("text"), forgotten_by(block)
    told = without(text, ALL) if isinstance(text, str) else ""
    return "\n".join([f"{told}\n\n[ARTIFACTS NOT NAMED ABOVE]", *paths]) if paths else told


def forgotten_by(block: Block) -> list[str]:
    """The artifacts that a summary should have named and did not."""
    digest = (block.get("meta") or {}).get("compaction_digest")
    forgotten = digest.get("forgotten") if isinstance(digest, dict) else None
    return [path for path in forgotten if isinstance(path, str)] if isinstance(forgotten, list) else []


def _binary(head: Head, mime: str, packed: str, begin: str) -> list[Message]:
    kind = mime.partition(";")[0].strip().lower()
    form = "image" if kind.startswith("image/") else "document" if kind == "application/pdf" else None
    if form is None:
        words = f"(binary content, {one_line(kind)}, {packed_size(packed)} bytes, is not shown{_where(head)})"
        return [_text(head, begin, words)]
    held: Message = {"type": form, "base64": packed, "mime": kind}
    return [_text(head, begin), held | ({"path": head[PATH]} if head[PATH] else {})]


def _where(head: Head) -> str:
    """Where a program can open the file of a block."""
    path = parse_logical(head[PATH]) if head[PATH].startswith("fi:") else None
    return f"; open {path.physical}" if isinstance(path, FilePath) else ""


def _text(head: Head, begin: str, body: str = "") -> Message:
    message: Message = {"type": "text", "text": f"{begin}{body}" if body else begin.removesuffix("\n")}
    return message | ({"path": head[PATH]} if head[PATH] else {})


def _beyond_label(head: Head, text: Any) -> str:
    """What a header says beyond the label that it is shown under."""
    if not isinstance(text, str):
        return ""
    said = without(text, ALL).removeprefix(turn_label(head[TURN])).strip()
    return "" if _TIME_ALONE.fullmatch(said) else said


_TIME_ALONE = re.compile(r"(?:ts=\S*)?")
