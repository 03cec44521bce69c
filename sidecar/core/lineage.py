"""What was made of what: the graph of uses, up to where something came from and down to what became of it.

An edge goes from what was used to what was made, and says in which call and whether that was declared or observed.
What a call used may have gone into anything that it made. Each version of an artifact was made by its call.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Literal, Protocol

from sidecar.core import limits
from sidecar.core.artifacts import Artifacts
from sidecar.core.blocks import CALL, FLAGS, SHOWN, TYPE
from sidecar.core.context_blocks import ARTIFACT, SLOT
from sidecar.core.errors import Refusal
from sidecar.core.happened import Call
from sidecar.core.layered import Layered
from sidecar.core.paths import Path, PoolPath, parse
from sidecar.core.sources import SourcesPool
from sidecar.core.timeline import Timeline
from sidecar.core.uses import How, Uses

DECLARING = frozenset({ARTIFACT, SLOT})  # blocks of these types say by themselves what they were made of

Direction = Literal["up", "down"]
Sees = Callable[[str], bool]
"""Whether what stands at a node may be known."""


@dataclass(frozen=True, slots=True)
class Edge:
    """`source` went into `target`. The call is empty where none is known."""

    source: str
    target: str
    tool_call_id: str
    how: How


class Known(Protocol):
    """The state, as far as lineage is read from it."""

    artifacts: Artifacts
    timeline: Timeline
    pool: SourcesPool
    uses: Uses
    calls: Layered[str, Call]


def nodes_of(known: Known, path: Path) -> tuple[str, ...]:
    """The nodes that a path stands for: one for each source of a pool path that there is, else one; none if unnamed."""
    if isinstance(path, PoolPath):
        return tuple(dict.fromkeys(source_node(known, sid) for sid in path.numbers.among(known.pool.sids)))
    return (path.logical,) if path.logical is not None else ()


def source_node(known: Known, sid: int) -> str:
    """The file that a source is, else the source itself."""
    logical = (known.pool.get(sid) or {}).get("artifact_path")
    return logical if isinstance(logical, str) and logical else f"so:sources_pool[{sid}]"


def named_in(known: Known, value: Any) -> tuple[str, ...]:
    """The nodes that the texts inside a JSON value name: each text as a whole, and only what is known."""
    named: dict[str, None] = {}
    for text in _texts(value):
        try:
            path = parse(text)
        except Refusal:
            continue  # most texts are no paths
        named.update(
            (node, None) for node in nodes_of(known, path) if isinstance(path, PoolPath) or is_known(known, node)
        )
    return tuple(named)


def is_known(known: Known, node: str) -> bool:
    """Whether anything was told or seen at this node."""
    artifact = known.artifacts.get(node)
    return (artifact is not None and bool(artifact.versions)) or bool(known.timeline.at(node)) or _sid(node) is not None


def is_node(text: object) -> bool:
    """Whether anything can stand there."""
    if not isinstance(text, str):
        return False
    try:
        return _sid(text) is not None or parse(text).logical == text
    except Refusal:
        return False


class Trace:
    """One question. `edges` are in order of their distance; `complete` says whether these are all that there are.

    It is not when a limit was met, or when a call on the way, or for `down` any call that made something, ran without a
    channel of its own: what it read then is only known as far as it was said. Nor when what a record was made of was
    never taken down, as in what older versions saved.
    """

    def __init__(self, known: Known, direction: Direction, sees: Sees) -> None:
        self._known = known
        self._next = self._made_of if direction == "up" else self._gone_into
        self._direction: Direction = direction
        self._sees = sees
        self._edges: dict[tuple[str, str, str], How] = {}
        self._room = limits.LINEAGE_LOOKS
        self.complete = True

    @property
    def edges(self) -> list[Edge]:
        return [Edge(*ends, how) for ends, how in self._edges.items()]

    def follow(self, starts: Iterable[str], depth: int) -> Generator[None, None, None]:
        """Walk at most `depth` edges far from where it starts; a pause is possible at every node."""
        met = set(starts)
        if self._direction == "down" and self._is_any_blind(met):
            self.complete = False
        frontier = [*met]
        for _ in range(depth):
            further: dict[str, None] = {}
            for node in frontier:
                further.update((end, None) for end in self._take(node) if end not in met)
                yield
            met |= further.keys()
            frontier = [*further]
        for node in frontier:
            # Something lies behind the last node that was reached, and it was not asked for.
            if self.complete and any(self._ends(edge) for edge in self._next(node)):
                self.complete = False
            yield

    def _take(self, node: str) -> Iterator[str]:
        """Keep the edges of one node; answers what lies at their other ends."""
        for edge in self._next(node):
            self._room -= 1
            if self._room < 0 or len(self._edges) >= limits.LINEAGE_EDGES:
                self.complete = False
                return
            if self._ends(edge):
                ends = (edge.source, edge.target, edge.tool_call_id)
                if self._edges.get(ends) != "observed":
                    self._edges[ends] = edge.how
                yield edge.source if self._direction == "up" else edge.target

    def _ends(self, edge: Edge) -> bool:
        """Whether it leads anywhere: to something else, and to what may be known."""
        return edge.source != edge.target and self._sees(edge.source) and self._sees(edge.target)

    def _made_of(self, node: str) -> Iterator[Edge]:
        uses = self._known.uses
        artifact = self._known.artifacts.get(node)
        calls: dict[str, None] = {}
        for version in artifact.versions if artifact is not None else ():
            calls[version.call] = None
            for sid in version.facts.get("sources_used") or ():
                if isinstance(sid, int) and self._known.pool.get(sid) is not None:
                    yield Edge(source_node(self._known, sid), node, version.call, "observed")
        heads = self._known.timeline.heads
        told = [heads[number] for number in self._known.timeline.at(node)]
        calls.update((head[CALL], None) for head in told if not head[FLAGS] & SHOWN)
        own = uses.told_in.get(node)
        if own is None and any(head[TYPE] in DECLARING for head in told):
            self.complete = False
        for used, how in uses.of.get(node, {}).items():
            yield Edge(used, node, own or "", how)
        for call in filter(None, calls):
            if self._is_blind(call):
                self.complete = False
            for used, how in uses.of.get(call, {}).items():
                yield Edge(used, node, call, how)

    def _gone_into(self, node: str) -> Iterator[Edge]:
        uses = self._known.uses
        for user in uses.users.get(node, ()):
            how = uses.of[user][node]
            if user in uses.told_in:
                yield Edge(node, user, uses.told_in[user], how)
            for made in uses.made.get(user, ()):
                yield Edge(node, made, user, how)
        artifact = self._known.artifacts.get(node)
        sid = artifact.sid if artifact is not None else _sid(node)
        for citing in uses.cited.get(sid, ()) if sid is not None else ():
            by = self._known.artifacts.get(citing)
            for version in by.versions if by is not None else ():
                if sid in (version.facts.get("sources_used") or ()):
                    yield Edge(node, citing, version.call, "observed")

    def _is_blind(self, call: str) -> bool:
        """Whether it may have used what nobody knows of."""
        known = self._known.calls.durable.get(call)
        return known is None or not known.watched or self._known.uses.is_full(call)

    def _is_any_blind(self, starts: set[str]) -> bool:
        """Whether a call that made something else may have used one of these unseen."""
        made = self._known.uses.made.items()
        return any(self._is_blind(call) and not starts.issuperset(paths) for call, paths in made)


_SOURCE = re.compile(r"so:sources_pool\[(\d+)\]")


def _sid(node: str) -> int | None:
    shape = _SOURCE.fullmatch(node)
    return int(shape[1]) if shape is not None else None


def _texts(value: Any) -> Iterator[str]:
    """The texts inside a JSON value that may be paths, up to a limit."""
    open_ends = deque([value])
    most = limits.NAMED_PATHS
    while open_ends and most > 0:
        inner = open_ends.popleft()
        if isinstance(inner, str) and 3 < len(inner) <= limits.PATH_BYTES:
            most -= 1
            yield inner
        elif isinstance(inner, dict):
            open_ends.extend(inner.values())
        elif isinstance(inner, list):
            open_ends.extend(inner)
