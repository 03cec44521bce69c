"""What calls used and what they made, as far as it is known: the index that lineage is read from.

A *node* is a canonical logical path; a source without a file is `so:sources_pool[n]`. A *user* is a call, or one thing
that said by itself what it was made of.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal, get_args

from sidecar.core import limits
from sidecar.core.artifacts import Artifact

How = Literal["declared", "observed"]
"""Said by the runtime, or known to the daemon because it came by."""
HOWS: frozenset[str] = frozenset(get_args(How))


class Uses:
    """Every use once. What was seen is worth more than what was said: it replaces it, and never the other way."""

    __slots__ = ("_staged", "cited", "made", "of", "told_in", "users")

    def __init__(self) -> None:
        self.of: dict[str, dict[str, How]] = {}  # user -> what it used
        self.users: dict[str, dict[str, None]] = {}  # node -> who used it
        self.made: dict[str, tuple[str] | dict[str, None]] = {}  # call -> what it made; most made one thing
        self.cited: dict[int, dict[str, None]] = {}  # source number -> the artifacts that cite it
        self.told_in: dict[str, str] = {}  # a user that is no call -> the call it was told in
        self._staged: dict[str, dict[str, How]] = {}

    def fresh(self, user: str, nodes: Iterable[str], how: How) -> tuple[str, ...]:
        """Those that the next change would add, each once and as far as there is room for uses of this user."""
        known, staged = self.of.get(user, {}), self._staged.get(user, {})
        room = limits.USES_PER_CALL - len(known) - len(staged)
        news: dict[str, None] = {}
        for node in nodes:
            before = staged.get(node) or known.get(node)
            if before is None and len(news) >= room:
                continue
            if before is None or (before, how) == ("declared", "observed"):
                news[node] = None
        return tuple(news)

    def is_full(self, user: str) -> bool:
        """Whether it may have used more than is kept."""
        return len(self.of.get(user, ())) >= limits.USES_PER_CALL

    def stage(self, user: str, nodes: Iterable[str], how: How) -> None:
        """These uses are on their way to the journal."""
        self._staged.setdefault(user, {}).update(dict.fromkeys(nodes, how))

    def drop(self) -> None:
        """The journal refused what was on its way."""
        self._staged.clear()

    def settle(self, call: str, nodes: Iterable[str], how: How, *, by: str) -> None:
        """These uses are durable: of the call, or where `by` names one, of that one thing told in it."""
        user = by or call
        known, staged = self.of.setdefault(user, {}), self._staged.get(user, {})
        for node in nodes:
            staged.pop(node, None)
            if known.get(node) != "observed":
                known[node] = how
            self.users.setdefault(node, {})[user] = None
        if user in self._staged and not staged:
            del self._staged[user]
        if by:
            self.told_in[by] = call
            self.make(call, by)

    def make(self, call: str, node: str) -> None:
        """A call made this, as far as a call is known."""
        if not call:
            return
        known = self.made.setdefault(call, (node,))
        if isinstance(known, dict):
            known[node] = None
        elif known[0] != node:
            self.made[call] = {known[0]: None, node: None}

    def look(self, node: str, artifact: Artifact) -> None:
        """Take in which call made the newest version of an artifact, and what that cites."""
        if not artifact.versions:
            return
        version = artifact.latest
        self.make(version.call, node)
        if used := version.facts.get("sources_used"):
            for sid in used:
                if isinstance(sid, int):
                    self.cited.setdefault(sid, {})[node] = None
