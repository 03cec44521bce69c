"""The page of figures: a section for each group, with the machine it was measured on, so that one can be renewed."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

FIGURES = Path(__file__).with_name("FIGURES.md")
MARK = "<!-- Everything below is written by `python -m tests.bench --write`, each section by `... NAME --write`. -->\n"

_SECTION = re.compile(r"^## (\w+)\n(.*?)(?=^## |\Z)", re.MULTILINE | re.DOTALL)


def section(name: str, facts: str, table: str) -> str:
    """What the page says of a group, below its heading."""
    return f"\n`python -m tests.bench {name}` on {facts}\n{table}\n"


def with_sections(page: str, fresh: dict[str, str], order: Iterable[str]) -> str:
    """The page with these sections in place of what it says of their groups; the others stay as they are."""
    head, _, below = page.partition(MARK)
    known = dict(_SECTION.findall(below)) | fresh
    return f"{head}{MARK}\n" + "".join(f"## {name}\n{known[name]}" for name in order if name in known).rstrip() + "\n"
