"""What an editor shows under the mouse: the card of an artifact, the cards of the sources that a citation names.

Titles, descriptions and addresses come from agents and from the web. In a card they are words and never markup: no
link but to the web, no picture but the file itself.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Iterable
from functools import partial

from lsprotocol import types

from sidecar.core.blocks import iso
from sidecar.core.errors import Refusal
from sidecar.core.limits import EDITOR_PICTURE_BYTES
from sidecar.core.numbers import NumberSet
from sidecar.core.paths import FilePath, Path, PoolPath
from sidecar.server.editor.documents import Documents
from sidecar.server.editor.seen import Met, Row, Seen, file_of, one_line, title, web_address
from sidecar.server.lsp import Editor, Feature
from sidecar.server.methods.seeing import sees_block, sees_fresh
from sidecar.services import Services

CARDS = 5  # of one citation
SNIPPET_CHARS = 400
PICTURES = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp"})
_STATES = {
    "here": "on disk",
    "absent": "not on disk; it can be brought back",
    "gone": "not on disk, and its bytes are kept nowhere",
}


def features(services: Services, documents: Documents) -> list[Feature]:
    return [Feature(types.TEXT_DOCUMENT_HOVER, _Cards(services, documents).hover)]


class _Words:
    """How a card is written: in Markdown, or plainly for a client that shows no other text."""

    def __init__(self, editor: Editor) -> None:
        text_document = editor.client_capabilities.text_document
        hover = text_document.hover if text_document is not None else None
        formats = hover.content_format if hover is not None else None
        self.kind = types.MarkupKind.Markdown
        if formats is not None and types.MarkupKind.Markdown not in formats:
            self.kind = types.MarkupKind.PlainText
        general = editor.client_capabilities.general
        markdown = general.markdown if general is not None else None
        # Nobody says so in as many words; but who names this parser shows the page that it makes, pictures and all.
        self.pictures = self.is_markdown and markdown is not None and markdown.parser == "marked"

    @property
    def is_markdown(self) -> bool:
        return self.kind is types.MarkupKind.Markdown

    def text(self, said: str, most: int = SNIPPET_CHARS) -> str:
        """Somebody else's words."""
        said = one_line(said, most)
        return _LEADING.sub(r"\1\\\2", _SPECIAL.sub(r"\\\g<0>", said)) if self.is_markdown else said

    def strong(self, said: str) -> str:
        return f"**{self.text(said)}**" if self.is_markdown else one_line(said, SNIPPET_CHARS)

    def code(self, said: str) -> str:
        """A name as it is to be copied."""
        said = one_line(said, 1000)
        if not self.is_markdown:
            return said
        marks = "`" * (1 + max((len(run) for run in re.findall(r"`+", said)), default=0))
        pad = " " if said.startswith("`") or said.endswith("`") else ""
        return f"{marks}{pad}{said}{pad}{marks}"

    def link(self, url: str) -> str:
        if not self.is_markdown:
            return url
        return f"<{_NOT_IN_LINKS.sub(lambda found: f'%{ord(found[0]):02X}', url)}>"

    def listed(self, lines: Iterable[str]) -> str:
        return "\n".join(f"- {line}" if self.is_markdown else line for line in lines)

    def joined(self, parts: Iterable[str], rule: str = "") -> str:
        between = f"\n\n{rule}\n\n" if rule and self.is_markdown else "\n\n"
        return between.join(part for part in parts if part)


class _Cards:
    def __init__(self, services: Services, documents: Documents) -> None:
        self._services = services
        self._documents = documents

    async def hover(self, editor: Editor, params: types.HoverParams) -> types.Hover | None:
        opened = await self._documents.opened(editor, params.text_document.uri)
        reference = opened.at(params.position) if opened is not None else None
        if opened is None or reference is None:
            return None
        seen, words = Seen(self._services, editor.client.role), _Words(editor)
        [met] = await seen.met([reference])
        if opened.offset(params.position) > met.reference.end:
            return None
        numbers = met.path.numbers if isinstance(met.path, PoolPath) else reference.numbers
        if numbers is not None:
            card = self._sources(seen, words, numbers)
        elif isinstance(met.path, FilePath) and met.state in _STATES:
            card = words.joined(
                [self._file(words, met, met.path), await self._picture(words, met, met.path, editor.client.role)]
            )
        elif met.path is not None and met.state == "told":
            card = self._told(words, met.path, editor.client.role)
        else:
            card = ""
        if not card:
            return None
        return types.Hover(types.MarkupContent(words.kind, card), opened.range(met.reference.start, met.reference.end))

    def _sources(self, seen: Seen, words: _Words, numbers: NumberSet) -> str:
        rows = seen.rows(numbers, CARDS + 1)
        cards = [self._source(words, row) for row in rows[:CARDS]]
        if len(rows) > CARDS:
            cards.append(words.text("and further sources"))
        return words.joined(cards, "---")

    def _source(self, words: _Words, row: Row) -> str:
        url, physical = web_address(row), file_of(row)
        where = words.link(url) if url is not None else words.code(physical) if physical is not None else ""
        if not where and isinstance(row.get("url"), str):
            where = words.code(row["url"])
        said = str(row.get("text") or row.get("content") or "")
        quoted = words.text(said) if said and said != row.get("title") else ""
        quoted = f"> {quoted}" if quoted and words.is_markdown else quoted
        return words.joined([words.strong(f"S:{row['sid']} · {title(row)}"), where, quoted])

    def _file(self, words: _Words, met: Met, path: FilePath) -> str:
        head = words.strong(path.rel.rpartition("/")[2])
        if met.artifact is None:
            return words.joined([f"{head} · file", words.code(path.logical or path.physical)])
        record = self._services.reader.record(met.artifact)
        size = f" · {_size(record['size_bytes'])}" if "size_bytes" in record else ""
        head = f"{head} · {words.text(record['kind'])} · {words.text(record['mime'], 100)}{size}"
        made = [f"turn {words.code(record['turn_id'])}"] if "turn_id" in record else []
        made += [f"tool {words.code(record['tool_id'])}"] if "tool_id" in record else []
        made += [f"call {words.code(record['tool_call_id'])}"] if "tool_call_id" in record else []
        count = record["version"]
        lines = [
            " · ".join(made),
            f"{count} {'version' if count == 1 else 'versions'}, the latest of {_moment(record['ts'])}",
            f"{record['visibility']} · {_STATES[met.state]}" + (" · hidden" if record["hidden"] else ""),
            "source " + words.code(f"[[S:{record['sid']}]]") if "sid" in record else "",
        ]
        said = words.text(record["description"]) if isinstance(record.get("description"), str) else ""
        shown = words.code(path.logical or path.physical)
        return words.joined([head, shown, words.listed(line for line in lines if line), said])

    async def _picture(self, words: _Words, met: Met, path: FilePath, role: str) -> str:
        """The picture itself where the client shows pictures: a small one within the card, a larger one by its file."""
        artifact = met.artifact
        if not words.pictures or met.state != "here" or artifact is None:
            return ""
        mime, size = artifact.latest.facts.get("mime"), artifact.latest.size or 0
        if mime not in PICTURES or not 0 < size <= _PICTURE_FILE_BYTES:
            return ""
        if size > EDITOR_PICTURE_BYTES:
            return f"![]({self._documents.uri_of(path)}|height=160)"
        packed = await self._services.looker.off_loop(partial(self._packed, path, role))
        return f"![](data:{mime};base64,{packed}|height=160)" if packed else ""

    def _packed(self, path: FilePath, role: str) -> str:
        outdir, workspace = self._services.outdir, self._services.workspace
        try:
            with outdir.open(path.physical) as stream:
                raw = stream.read(EDITOR_PICTURE_BYTES + 1)
        except (Refusal, OSError):
            return ""
        # Bytes that came just now are nobody's yet, and may turn out to be internal.
        may_show = len(raw) <= EDITOR_PICTURE_BYTES and sees_fresh(role, workspace, path, outdir.key)
        return base64.b64encode(raw).decode() if may_show else ""

    def _told(self, words: _Words, path: Path, role: str) -> str:
        workspace = self._services.workspace
        told = workspace.timeline.told(path.logical or "", partial(sees_block, role, workspace))
        if told is None:
            return ""
        tool = f" · tool {words.code(told['tool_id'])}" if told.get("tool_id") else ""
        lines = [f"turn {words.code(told['turn_id'])}{tool}", f"of {_moment(iso(told['ts']))}"]
        head = f"{words.strong(path.logical or '')} · {words.text(told['mime'], 100)}"
        return words.joined([head, words.listed(lines)])


def _moment(ts: str) -> str:
    return f"{ts[:10]} {ts[11:16]} UTC"


def _size(count: int) -> str:
    """A size as people read it."""
    size = float(count)
    for unit in ("bytes", "kB", "MB"):
        if size < 1000:
            return f"{size:.0f} {unit}" if unit == "bytes" or size >= 100 else f"{size:.1f} {unit}"
        size /= 1000
    return f"{size:.1f} GB"


_PICTURE_FILE_BYTES = 16 * 1024 * 1024
_SPECIAL = re.compile(r"[\\`*_{}\[\]<>#|~&!$]")
_LEADING = re.compile(r"\A([0-9]{0,9})([-+=.)])")  # of a list, or of a line below a heading
_NOT_IN_LINKS = re.compile(r"[<>\\`]")
