"""`python -m tests.patching` plays the whole corpus to us and to others, and prints one table.

A cell says how many of the patches that mean something were applied rightly, and, behind the stroke, how many were
applied wrongly: with another result than was meant, or at all where only a refusal is right.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterable, Mapping

from tests.patching.entries import Entry, by_hand
from tests.patching.mutations import by_mutation
from tests.patching.rivals import APPLIERS


def main() -> None:
    # Whole new texts are no diffs, and others would only be found not to know them.
    entries = [entry for entry in (*by_hand(), *by_mutation()) if not entry.whole]
    right: Counter[tuple[str, str]] = Counter()
    wrong: Counter[tuple[str, str]] = Counter()
    for name, applier in APPLIERS.items():
        print(f"playing {len(entries)} patches to {name}", file=sys.stderr, flush=True)
        for entry in entries:
            text = applier(entry.before, entry.patch)
            for row in (entry.family, "all"):
                right[row, name] += text is not None and text == entry.meant
                wrong[row, name] += text is not None and text != entry.meant
    print("\n".join(table(entries, right, wrong)))


def table(
    entries: Iterable[Entry], right: Mapping[tuple[str, str], int], wrong: Mapping[tuple[str, str], int]
) -> Iterable[str]:
    """Markdown: a row per family, a column per program."""
    all_of: Counter[str] = Counter()
    meaning: Counter[str] = Counter()
    for entry in entries:
        for row in (entry.family, "all"):
            all_of[row] += 1
            meaning[row] += entry.meant is not None
    yield f"| family | patches | to be applied | {' | '.join(APPLIERS)} |"
    yield f"| --- | ---: | ---: |{' ---: |' * len(APPLIERS)}"
    for row in sorted(all_of, key=lambda row: row == "all"):
        cells = " | ".join(f"{right[row, name]} / {wrong[row, name]}" for name in APPLIERS)
        yield f"| {row} | {all_of[row]} | {meaning[row]} | {cells} |"
    yield ""
    for name in APPLIERS:
        share = right["all", name] / meaning["all"]
        yield f"{name}: {share:.1%} of what means something applied rightly, {wrong['all', name]} false acceptances"


if __name__ == "__main__":
    main()
