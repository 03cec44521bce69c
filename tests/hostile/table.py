"""What is attacked, how often, and what must hold."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from random import Random

from tests.hostile import by_name, contents, floods, frames, links
from tests.hostile.arena import Arena


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind of attack: how many of it the long run and the quick one make, and the sentence that must stay true."""

    name: str
    holds: str
    deed: Callable[[Arena, Random], None]
    long: int
    quick: int
    door: bool = False


KINDS = (
    Kind("texts", "a text at any place of any method leads nowhere", by_name.texts, 700, 20),
    Kind("editors", "nor does it in anything that an editor asks", by_name.in_editors, 400, 12),
    Kind("selectors", "numbers, ranges, patterns and diffs are bounded", by_name.selectors, 120, 2),
    Kind("links", "a link is neither read nor written through", links.standing, 300, 6),
    Kind("hard links", "one more name of a file outside is not written through", links.hard, 60, 2),
    Kind("specials", "what is no file is not opened", links.special, 150, 5),
    Kind("races", "what changes places meanwhile lets nothing through", links.races, 30, 1),
    Kind("huge files", "a file of any size is registered or told of, in bounded memory", contents.huge, 20, 1),
    Kind("growing", "a file whose size changes is never half registered", contents.growing, 10, 1),
    Kind("crowds", "any number of names, of any depth and spelling", contents.crowds, contents.MILLION + 1, 1),
    Kind("bombs", "nothing is unpacked", contents.bombs, 100, 4),
    Kind("pages", "pages made to blow a scanner end within its limits", contents.pages, 40, 1),
    Kind("deep", "JSON of any depth is refused or taken", contents.deep_json, 80, 4),
    Kind("frames", "a stream out of step ends with its reason", frames.broken, 400, 80),
    Kind("hanging", "half frames and slow headers are waited for so long and no longer", frames.hanging, 2, 0),
    Kind("doors", "the same through the door of a program", frames.broken, 40, 1, door=True),
    Kind("talk", "ids, types, batches and answers that nobody asked for", frames.odd_talk, 200, 20),
    Kind("floods", "who asks for too much, or reads nothing, waits alone", floods.flood, 39, 1),
    Kind("crowds of clients", "at the limit others are turned away, and there is room again", floods.crowd, 6, 1),
)
