"""What a turn showed to people, taken from its blocks: thinking, text beside the answer, and what was made.

Blocks come as they stand now, oldest first, as dicts; nothing here looks at the conversation beyond them. Times are
milliseconds since the epoch. A copy that a read showed again was shown once already, and counts for nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import orjson

from sidecar.core.blocks import digest_in, moment_of
from sidecar.core.errors import Refusal
from sidecar.core.paths import CodePath, FilePath, MessagePath, parse

Block = Mapping[str, Any]
Item = dict[str, Any]

THINKING = "react.thinking"
NOTES = "react.notes"
_NEVER_TEXT = frozenset({THINKING, "react.tool.call", "react.notice", "user.prompt", "assistant.completion"})


def thinking_items(blocks: Iterable[Block]) -> list[Item]:
    """`{title, text, ts_first, ts_last, iteration?}` of what the agent thought, hidden or not, in order.

    Blocks at one path are one item: a thought may be told in pieces.
    """
    items: dict[str, Item] = {}
    for at, block in enumerate(blocks):
        if block.get("type") != THINKING or _is_copy(block):
            continue
        meta, path = _meta(block), str(block.get("path") or "")
        item = items.setdefault(path or str(at), {"title": "", "text": ""})
        item["title"] = item["title"] or _text(meta.get("title"))
        _add_text(item, block)
        _stamp(item, block)
        iteration = meta.get("iteration", _last_number(path))
        if isinstance(iteration, int) and not isinstance(iteration, bool):
            item["iteration"] = iteration
    return list(items.values())


def timeline_text_items(blocks: Iterable[Block]) -> list[Item]:
    """`{artifact_name, text, ts_first, ts_last}` of what the agent said beside its answer, in order.

    That is its notes, and what it wrote to the channel `timeline_text`; of a document its latest text.
    """
    items: dict[str, Item] = {}
    for at, block in enumerate(blocks):
        if block.get("type") in _NEVER_TEXT or _is_copy(block) or not isinstance(block.get("text"), str):
            continue
        about = _described(block)
        is_notes = block.get("type") == NOTES
        channel = about.get("channel") or ("timeline_text" if is_notes else None)
        if channel != "timeline_text" or about.get("visibility") == "internal" or digest_in(block) is not None:
            continue
        path = str(block.get("path") or "")
        item = items.setdefault(path or str(at), {"artifact_name": name_of(path) or str(block["type"]), "text": ""})
        if path.startswith("fi:"):
            item["text"] = block["text"]
        else:
            _add_text(item, block)
        _stamp(item, block)
    return list(items.values())


def artifact_items(blocks: Iterable[Block]) -> list[Item]:
    """`{artifact_name, artifact_path, mime, kind, channel, text?, ts_first, ts_last}` of what was made, in order.

    One item per artifact, displays included, as its latest version says; what that calls internal is left out, and
    so is what was written beside the answer. `channel` is `canvas`, or None where nobody said. What the user attached
    was not made.
    """
    made: dict[str, _Made] = {}
    for block in blocks:
        path = block.get("path")
        if _is_copy(block):
            continue
        digest = digest_in(block)
        if digest is not None and block.get("type") != "user.attachment.meta":
            made.setdefault(_canonical(digest["artifact_path"]), _Made()).describe(block, digest)
        elif digest is None and isinstance(path, str) and _is_artifact(path) and _may_be_content(block):
            made.setdefault(path, _Made()).fill(block)
    items = (one.item(path) for path, one in made.items() if _is_artifact(path))
    return [item for item in items if item is not None]


class _Made:
    """One artifact while its blocks are looked through. Blocks of one call are one version, and the last one counts."""

    __slots__ = ("_call", "_content", "_said", "_times")

    def __init__(self) -> None:
        self._call: str | None = None
        self._said: dict[str, Any] = {}
        self._content: Block | None = None
        self._times: Item = {}

    def describe(self, block: Block, digest: Mapping[str, Any]) -> None:
        self._begin(digest.get("tool_call_id") or _meta(block).get("tool_call_id"))
        self._said |= {key: value for key, value in digest.items() if value is not None}
        _stamp(self._times, block)

    def fill(self, block: Block) -> None:
        self._begin(_meta(block).get("tool_call_id"))
        # A digest block describes; what the content says of itself fills in.
        self._said = {"mime": block.get("mime"), **_described(block), **self._said}
        self._content = block
        _stamp(self._times, block)

    def item(self, path: str) -> Item | None:
        """None for what is internal, was written beside the answer, or holds no content to show."""
        said, content = self._said, self._content
        if content is None or said.get("visibility") == "internal" or said.get("error"):
            return None
        if content.get("type") == "react.note" or said.get("channel") in ("internal", "timeline_text"):
            return None
        text = content.get("text")
        return {
            "artifact_name": name_of(path),
            "artifact_path": path,
            "mime": said.get("mime") or "application/octet-stream",
            "kind": said.get("kind") or ("display" if isinstance(text, str) else "file"),
            "channel": said.get("channel"),
            **({"text": text} if isinstance(text, str) else {}),
            **self._times,
        }

    def _begin(self, call: Any) -> None:
        """Another call's blocks are another version, of which the former says nothing."""
        call = call if isinstance(call, str) else ""
        if self._call is not None and call != self._call:
            self._said, self._content = {}, None
        self._call = call


def name_of(path: str) -> str:
    """What a path is called within its turn: `out/rows.csv`, `react.notes.tc_1`; the path itself where it has none."""
    try:
        parsed = parse(path) if path else None
    except Refusal:
        return path
    match parsed:
        case FilePath(rel=rel):
            return rel
        case MessagePath(tail=tail):
            return tail
        case CodePath(call_id=call_id):
            return f"code.{call_id}"
        case _:
            return path


def _is_artifact(path: str) -> bool:
    try:
        return path.startswith("fi:") and isinstance(parse(path), FilePath)
    except Refusal:
        return False


def _canonical(path: str) -> str:
    try:
        return parse(path).logical or path
    except Refusal:
        return path


def _may_be_content(block: Block) -> bool:
    kind = str(block.get("type") or "")
    return not kind.startswith("user.") and kind not in ("react.tool.call", "react.notice")


def _described(block: Block) -> dict[str, Any]:
    """What a content block says of itself: its `meta`, over the copy of its digest that it carries."""
    meta = _meta(block)
    copied = meta.get("digest")
    if isinstance(copied, str):
        try:
            copied = orjson.loads(copied)
        except orjson.JSONDecodeError:
            copied = None
    digest: dict[str, Any] = copied if isinstance(copied, dict) else {}
    fields = ("mime", "kind", "visibility", "channel", "error")
    return {key: value for key in fields if (value := meta.get(key) or digest.get(key)) is not None}


def _meta(block: Block) -> Mapping[str, Any]:
    meta = block.get("meta")
    return meta if isinstance(meta, dict) else {}


def _is_copy(block: Block) -> bool:
    return _meta(block).get("rel") == "read"


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""


def _add_text(item: Item, block: Block) -> None:
    """Several texts at one path are joined by two newlines (spec section 7)."""
    item["text"] = "\n\n".join(filter(None, (item["text"], _text(block.get("text")))))


def _stamp(item: Item, block: Block) -> None:
    try:
        moment = round(moment_of(block.get("ts")) * 1000)
    except Refusal:
        moment = 0
    item["ts_first"] = min(item.get("ts_first", moment), moment)
    item["ts_last"] = max(item.get("ts_last", moment), moment)


def _last_number(path: str) -> int | None:
    """The iteration that a thought's path ends with."""
    tail = path.rpartition(".")[2]
    return int(tail) if tail.isdecimal() and tail.isascii() and len(tail) < 10 else None
