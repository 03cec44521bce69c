"""Whether letters stand in a name in this order, as editors' quick pickers find things, and how well."""

from __future__ import annotations


def rank(query: str, name: str) -> int | None:
    """How badly a casefolded query fits a casefolded name: 0 for equal, None when its letters are not in it in order.

    A whole word of it counts more than scattered letters, its beginning more than its middle, a short name more than a
    long one.
    """
    if not query:
        return 4_000_000 + len(name)
    at = name.find(query)
    if at >= 0:
        is_start = at == 0 or not name[at - 1].isalnum()
        return 0 if query == name else (1_000_000 if is_start else 2_000_000) + len(name)
    at = -1
    first = -1
    for letter in query:
        at = name.find(letter, at + 1)
        if at < 0:
            return None
        first = at if first < 0 else first
    return 3_000_000 + 100 * (at - first + 1 - len(query)) + len(name)
