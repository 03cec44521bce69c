"""The rendered timeline of one role, page by page, so that a render costs what changed since the last one.

A page holds what some blocks in a row became. It is made again when one of its blocks was hidden, shown, or became
visible to the role or invisible; blocks that are new are added to the last page; a new cut throws all pages away. What
changed is asked of the timeline and the log of changes, so nothing has to be told here.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Sequence, Set
from dataclasses import dataclass
from itertools import islice
from typing import Any

from sidecar.core import limits
from sidecar.core.blocks import CALL, FLAGS, HIDDEN, PATH, SHOWN, SUMMARY, TURN, TYPE, Head
from sidecar.core.compaction import CALL_BLOCK, HEADER, cut_summary
from sidecar.core.errors import TooLarge
from sidecar.core.labels import call_of
from sidecar.core.page import NOTHING, Page, Rendered, put_down
from sidecar.core.render import NEVER_SHOWN, Message, render_block, replacement_of, restored_header
from sidecar.core.standing import changes_since, with_changes
from sidecar.looking import Looker
from sidecar.pacing import Pace
from sidecar.recall import recall
from sidecar.workspace import Workspace

LONG_CHARS = 2**16  # what is longer takes a hand more time than asking one does
ROUNDS = 16  # how often what changed meanwhile is made good before the answer is given as it is

_FINAL = frozenset({"assistant.completion", "stage.suggested_followups", "react.exit", "react.state"})


@dataclass(frozen=True, slots=True)
class Sight:
    """Who looks, and what that role sees: blocks by their heads, artifacts by logical path."""

    role: str
    head: Callable[[Head], bool]
    logical: Callable[[str], bool]


@dataclass(frozen=True, slots=True)
class Room:
    """How many blocks make a page, and how many bytes of what was rendered are held."""

    blocks: int = 64
    held_bytes: int = limits.RENDERED_HELD_BYTES


class Pages:
    """The pages from the present cut on, and what stands before them. One user at a time."""

    def __init__(self, workspace: Workspace, looker: Looker, sight: Sight, room: Room) -> None:
        self._workspace = workspace
        self._timeline = workspace.timeline
        self._looker = looker
        self._sight = sight
        self._blocks, self._held_bytes = room.blocks, room.held_bytes
        self._pace = Pace()
        self._begin_anew()

    def _begin_anew(self) -> None:
        timeline, workspace = self._timeline, self._workspace
        self.start, self._summary = timeline.kept_from, timeline.summary
        self.end = len(timeline)
        self.lead: list[Message] | None = None  # the summary, and the header of a turn that the slice begins in
        self.restored = 0  # how many of these are the header's
        self.opening_turn = ""  # the turn that the kept part begins in
        self._opened: int | None = None  # the first block that was there when they were made
        self._pages: list[Page] = []
        self._stale: set[int] = set()
        self._held = 0
        self._veilings = len(timeline.veilings)
        self._revision = workspace.revision
        self._known = len(timeline)  # blocks whose call is known to be named right
        self._tools: dict[str, str] = {}  # the tool that a call was labelled with
        self._seen: dict[str, bool] = {}  # artifacts that blocks hold or tell of, and whether they were visible
        self._tellers: dict[str, set[int]] = {}  # artifacts that metadata blocks tell of, and the pages of these
        self._speakers: dict[str, int] = {}  # the hidden block that speaks for all hidden ones at its path
        self._named: dict[str, bool] = {}  # artifacts that the summary's digest names, and whether they were visible
        self._words: dict[int, bool] = {}  # blocks told as hidden: whether something stands in their place

    @property
    def messages(self) -> int:
        return sum(page.messages for page in self._pages)

    @property
    def total_tokens(self) -> int:
        return sum(page.total_tokens for page in self._pages)

    @property
    def size(self) -> int:
        """Bytes of all pages as JSON."""
        return sum(page.size for page in self._pages)

    def tokens(self) -> array[int]:
        """Tokens of each block from `start` on."""
        counted = array("q")
        for page in self._pages:
            counted.extend(page.tokens)
        return counted

    def before(self, number: int) -> int:
        """How many messages the blocks before this one became."""
        index, offset = divmod(number - self.start, self._blocks)
        whole = sum(page.messages for page in islice(self._pages, index))
        return whole + (sum(self._pages[index].counts[:offset]) if index < len(self._pages) else 0)

    def round_ends(self) -> Iterator[int]:
        """The last block of every round that shows anything, the latest round first."""
        met: set[str] = set()
        for index in range(len(self._pages) - 1, -1, -1):
            ends = self._pages[index].ends
            for name in reversed(ends):
                if name not in met:
                    met.add(name)
                    yield self.start + index * self._blocks + ends[name]

    async def settle(self) -> None:
        """Have every block that is there by now rendered as it stands; those before `end` are."""
        self.end = len(self._timeline)
        for _ in range(ROUNDS):
            self._catch_up()
            if self.lead is None:
                await self._make_lead()
            missing = self._missing()
            if not missing:
                return
            for index in missing:
                await self._make(index)

    async def bodies(self) -> list[bytes]:
        """Settle, and answer the JSON of all pages, of one moment.

        Raises TooLarge when no message could carry it.
        """
        await self.settle()
        if self.size > limits.MESSAGE_BYTES:
            raise TooLarge("timeline", "compact it first: timeline/plan_compaction says where")
        held: list[bytes] = []
        for _ in range(ROUNDS):
            held = [await self.body(index) for index in range(len(self._pages))]
            self._catch_up()
            if self.lead is not None and not self._missing():
                break
            await self.settle()
        return held

    async def body(self, index: int) -> bytes:
        """The JSON of one page, made again when there was no room to hold it."""
        held = self._pages[index].body
        return (await self._make(index)) if held is None else held

    def page_of(self, number: int) -> int:
        return (number - self.start) // self._blocks

    def messages_before(self, number: int, index: int) -> int:
        """How many messages of a page come of blocks before this one."""
        return sum(self._pages[index].counts[: max(number - self.start - index * self._blocks, 0)])

    def _missing(self) -> list[int]:
        """The pages to make, in order: those that changed, the last one when it grew, and new ones."""
        wanted = -(-max(self.end - self.start, 0) // self._blocks)
        missing = set(self._stale)
        if self._pages and len(self._pages[-1]) < min(
            self._blocks, self.end - self.start - self._blocks * (len(self._pages) - 1)
        ):
            missing.add(len(self._pages) - 1)
        return sorted(missing) + list(range(len(self._pages), wanted))

    # What changed

    def _catch_up(self) -> None:
        timeline, workspace = self._timeline, self._workspace
        log, revision = workspace.log, workspace.revision
        cut = (timeline.kept_from, timeline.summary)
        if cut != (self.start, self._summary) or not log.reaches(self._revision, revision):
            self._begin_anew()
            return
        self._see_anew(str(change.about) for change in log.listed(self._revision) if change.kind == "artifact")
        self._revision = revision
        veiled = {*timeline.veilings[self._veilings :]}
        self._veilings = len(timeline.veilings)
        self._veil_anew(veiled)
        self._name_anew()
        if self._opened is None and self._first() is not None:
            self.lead = None

    def _see_anew(self, paths: Iterable[str]) -> None:
        for path in dict.fromkeys(paths):
            sees = self._sight.logical(path)
            if self._named.get(path, sees) != sees:
                self.lead = None
            if self._seen.get(path, sees) != sees:
                self._seen[path] = sees
                self._spoil(self._timeline.at(path))
                self._stale |= self._tellers.get(path, set())
                self._speakers.pop(path, None)

    def _veil_anew(self, veiled: set[int]) -> None:
        heads = self._timeline.heads
        self._spoil(veiled)
        for path in {heads[number][PATH] for number in veiled}:
            self._speakers.pop(path, None)
            self._spoil(number for number in self._timeline.at(path) if heads[number][FLAGS] & HIDDEN)
        if any(number < self.start or number == self._summary for number in veiled):
            self.lead = None

    def _name_anew(self) -> None:
        """A call that was told after blocks of it, or told again, may have got another name."""
        timeline = self._timeline
        told = range(self._known, len(timeline))
        self._known = len(timeline)
        calls = {head[CALL] for head in timeline.heads[told.start :] if head[TYPE] == CALL_BLOCK}
        named = self._tools.keys() & calls
        renamed = {call for call in named if self._tools[call] != timeline.tools.get(call, "")}
        if renamed:
            numbers = range(self.start, told.start)
            self._spoil(number for number in numbers if _is_named(timeline.heads[number], renamed))

    def _spoil(self, numbers: Iterable[int]) -> None:
        made = len(self._pages)
        self._stale.update(
            index for number in numbers if number >= self.start and (index := self.page_of(number)) < made
        )

    # Making pages

    async def _make_lead(self) -> None:
        """The summary first, then the header of the turn within which the kept part begins (case 110)."""
        summary, first = self._summary, self._first()
        turn = None if first is None else self._timeline.heads[first][TURN]
        begun = turn is not None and first is not None and self._is_begun(turn, before=first)
        own = self._own_header(turn) if turn is not None and begun else None
        chosen = [
            number for number in (summary, own) if number is not None and self._sight.head(self._timeline.heads[number])
        ]
        rendered = {
            number: self._render(number, self._as_it_stands(number, block))
            for number, block in zip(chosen, await self._fetch(chosen), strict=True)
        }
        lead = rendered.get(summary, []) if summary is not None else []
        header: list[Message] = []
        if turn is not None and begun:
            header = (rendered.get(own) if own is not None else None) or restored_header(turn)
        self.lead, self.restored, self._opened = [*lead, *header], len(header), first
        self.opening_turn = turn or ""

    def _first(self) -> int | None:
        """The first block of the kept part."""
        heads = self._timeline.heads
        return next((number for number in range(self.start, len(heads)) if heads[number][TYPE] != SUMMARY), None)

    def _is_begun(self, turn_id: str, *, before: int) -> bool:
        """Whether the kept part begins within this turn."""
        return self._timeline.heads[before][TYPE] != HEADER and self._timeline.of_turn(turn_id)[0] < self.start

    def _own_header(self, turn_id: str) -> int | None:
        numbers, heads = self._timeline.of_turn(turn_id), self._timeline.heads
        earlier = numbers[: bisect_left(numbers, self.start)]
        return next((number for number in reversed(earlier) if heads[number][TYPE] == HEADER), None)

    async def _make(self, index: int) -> bytes:
        """Render a page, or only what is new in it. Answers its JSON, whether there is room to hold it or not."""
        first = self.start + index * self._blocks
        old = self._pages[index] if index < len(self._pages) else None
        page = Page() if old is None or index in self._stale or old.body is None else old.copy()
        numbers = range(first + len(page), min(first + self._blocks, self.end))
        chosen = [number for number in numbers if self._shows(number)]
        blocks = dict(zip(chosen, await self._fetch(chosen), strict=True))
        for number in numbers:
            await self._pace.rest()
            await self._add(page, number, blocks.get(number))
        body = page.close()
        # All at once and last, so that a cancelled request leaves nothing half done.
        self._pages[index : index + 1] = [page]
        self._stale.discard(index)
        self._held += page.size - (old.size if old is not None and old.body is not None else 0)
        self._make_room()
        return body

    def _shows(self, number: int) -> bool:
        """Whether a block may become anything for this role, as far as its head can say."""
        head = self._timeline.heads[number]
        if head[PATH].startswith("fi:"):
            self._seen[head[PATH]] = self._sight.logical(head[PATH])
        if head[TYPE] == NEVER_SHOWN or (head[TYPE] == SUMMARY and not head[FLAGS] & SHOWN):
            return False  # the latest summary stands before all pages, and the others nowhere
        return self._tells_of_seen(number) and self._sight.head(head)

    async def _add(self, page: Page, number: int, block: dict[str, Any] | None) -> None:
        if block is None:
            page.add(NOTHING, within="")
            return
        block = self._as_it_stands(number, block)
        head = self._timeline.heads[number]
        call = call_of(head, block)
        shown = await self._speaks(number, block)
        rendered = await self._put_down(number, block) if shown else NOTHING
        page.add(rendered, within=f"final {head[TURN]}" if head[TYPE] in _FINAL and not call else call)

    async def _put_down(self, number: int, block: dict[str, Any]) -> Rendered:
        head, tool = self._timeline.heads[number], self._tool(number, block)
        said = block.get("text") or block.get("base64")
        if isinstance(said, str) and len(said) > LONG_CHARS:
            return await self._looker.off_loop(lambda: put_down(render_block(head, block, tool=tool)))
        return put_down(render_block(head, block, tool=tool))

    def _render(self, number: int, block: dict[str, Any]) -> list[Message]:
        return render_block(self._timeline.heads[number], block, tool=self._tool(number, block))

    def _tool(self, number: int, block: dict[str, Any]) -> str:
        """The tool that a block is labelled with."""
        head = self._timeline.heads[number]
        call = call_of(head, block)
        tool = self._timeline.tools.get(call, "") if call else ""
        if call:
            self._tools[call] = tool
        if not tool:
            own = (block.get("meta") or {}).get("tool_id")
            tool = own if isinstance(own, str) else ""
        return tool

    def _tells_of_seen(self, number: int) -> bool:
        """Whether the role sees every artifact that a block at another path tells of."""
        about = self._timeline.abouts.get(number, ())
        for path in about:
            self._tellers.setdefault(path, set()).add(self.page_of(number))
            self._seen[path] = self._sight.logical(path)
        return all(self._seen[path] for path in about)

    async def _speaks(self, number: int, block: dict[str, Any]) -> bool:
        """Whether a block stands for itself, or for all that is hidden at its path (spec section 12)."""
        head = self._timeline.heads[number]
        if not head[FLAGS] & HIDDEN:
            return True
        if not replacement_of(block):
            return False
        return not head[PATH] or await self._speaker(head[PATH], before=number) == number

    async def _speaker(self, path: str, *, before: int) -> int:
        """The first hidden block at a path with something to say; `before` has, so it is that one at the latest."""
        known = self._speakers.get(path)
        if known is None:
            numbers = self._timeline.at(path)
            for number in numbers[bisect_left(numbers, self.start) :]:
                if number >= before or (await self._is_worded(number)):
                    known = self._speakers[path] = min(number, before)
                    break
        return before if known is None else known

    async def _is_worded(self, number: int) -> bool:
        if not self._timeline.heads[number][FLAGS] & HIDDEN or not self._shows(number):
            return False
        if number in self._timeline.veils:
            return bool(self._timeline.veils[number])
        if number not in self._words:
            (block,) = await self._fetch([number])
            self._words[number] = bool(replacement_of(block))
        return self._words[number]

    def _as_it_stands(self, number: int, block: dict[str, Any]) -> dict[str, Any]:
        """A block now. Where it was hosted meanwhile does not matter, as nothing of that is rendered."""
        if self._timeline.heads[number][TYPE] == SUMMARY:
            block = cut_summary(block, self._may_name)
        if number not in self._timeline.veils:
            return block
        return with_changes(block, changes_since(self._timeline, self._workspace.artifacts, number))

    def _may_name(self, name: str | int) -> bool:
        """Whether what a summary's digest names may be named to the role."""
        if isinstance(name, int) or not name.startswith("fi:"):
            return True  # nothing but artifacts is rendered of it
        self._named[name] = self._sight.logical(name)
        return self._named[name]

    async def _fetch(self, numbers: Sequence[int]) -> list[dict[str, Any]]:
        return await recall(self._workspace, self._looker, numbers)

    def _make_room(self) -> None:
        """Let go of the largest pages, which are those with pictures, until what is held has room."""
        while self._held > self._held_bytes:
            largest = max((page for page in self._pages if page.body is not None), key=lambda page: page.size)
            self._held -= largest.size
            largest.body = None


def _is_named(head: Head, calls: Set[str]) -> bool:
    """Whether a block may be labelled with one of these calls. A copy of a call has the call that read it."""
    return head[CALL] in calls or (head[TYPE] == CALL_BLOCK and bool(head[FLAGS] & SHOWN))
