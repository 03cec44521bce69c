"""What a reference means, and that it can mean nothing else than a file of the lock list."""

from __future__ import annotations

from pathlib import Path

import pytest
from artifact_render.shelf import Shelf, Shelved

TURN = "turn_2/files"
NAMES = ("turn_1/files/a b.png", "turn_1/files/ü%20.png", f"{TURN}/css/s.css", f"{TURN}/img/c(1).png", "top.png")
FILES = {
    name: Shelved(str(sid), "text/css" if name.endswith(".css") else "image/png", 1, sid)
    for sid, name in enumerate(
        [
            "turn_1/files/a b.png",
            "turn_1/files/ü%20.png",
            "turn_2/files/css/s.css",
            "turn_2/files/img/c(1).png",
            "top.png",
        ],
        start=1,
    )
}
SPELLED = {"chart.png?x=1": "top.png", "odd%2520name.png": "turn_1/files/a b.png"}
SHELF = Shelf(Path("/nowhere"), FILES, {"[[S:4]]": "turn_2/files/img/c(1).png"}, "turn_3/files/p.html", SPELLED)
HERE = "https://page.invalid/"


@pytest.mark.parametrize(
    ("reference", "sid"),
    [
        ("turn_1/files/a%20b.png", 1),
        (" turn_1/files/a b.png ", 1),
        ("./turn_1/files/a%20b.png#f", 1),
        ("turn_1/files/a%20b.png?v=1", 1),
        ("/turn_1/files/a%20b.png", 1),
        ("../../turn_1/files/a%20b.png", 1),
        ("turn_1/files/%C3%BC%2520.png", 2),
        ("turn_2/files/img/c(1).png", 4),
        ("top.png", 5),
        ("[[S:4]]", 4),
        ("%5B%5BS:4%5D%5D", 4),
        ("chart.png?x=1", 5),
        ("odd%2520name.png", 1),
        (f"{HERE}turn_3/files/turn_2/files/css/turn_2/files/img/c(1).png", 4),  # named from OUT_DIR by the style sheet
        (f"{HERE}turn_3/files/turn_2/files/img/c(1).png", 4),
        ("chart.png", None),
        ("turn_1/files/none.png", None),
        ("turn_1/files/", None),
        ("[[S:5]]", None),
        ("https://example.org/turn_1/files/a%20b.png", None),
        ("//example.org/top.png", None),
        ("https://page.invalid.example.org/top.png", None),
        ("https://page.invalid@example.org/top.png", None),
        ("http://page.invalid/top.png", None),
        ("file:///turn_1/files/a%20b.png", None),
        ("data:image/png;base64,xx", None),
        ("javascript:top.png", None),
        ("http://[", None),
        ("", None),
        ("\0", None),
    ],
)
def test_a_reference_means_a_file_of_the_lock_list_or_nothing(reference: str, sid: int | None) -> None:
    found = SHELF.find(reference)
    assert (found and found.sid) == sid


def test_a_reference_of_many_repeated_folders_ends_soon() -> None:
    assert SHELF.find("turn_3/files/turn_2/files/css/" * 200 + "none.png") is None
