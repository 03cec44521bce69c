"""How tests look at what was drawn: colours counted in pictures, a PDF as pictures, words and links."""

from __future__ import annotations

import io
import os
import shutil
import subprocess
from pathlib import Path

import pytest
from PIL import Image

RED, BLUE, GREEN = (201, 31, 57), (19, 89, 203), (11, 161, 67)
PACKAGES = "apt-get install -y --no-install-recommends chromium poppler-utils fonts-dejavu-core"
Colour = tuple[int, int, int]


def require(*programs: str) -> None:
    """Skip, saying how to get them, where one of the programs is not installed; never in CI."""
    missing = [name for name in programs if shutil.which(name) is None]
    if not missing:
        return
    reason = f"{', '.join(missing)} not found; to run the rendering tests: {PACKAGES}"
    if os.environ.get("CI") == "true":
        pytest.fail(reason)
    pytest.skip(reason)


def picture(colour: Colour, *, size: tuple[int, int] = (120, 80), kind: str = "PNG") -> bytes:
    """A picture of one colour."""
    drawn = io.BytesIO()
    Image.new("RGB", size, colour).save(drawn, kind)
    return drawn.getvalue()


def pixels(content: bytes, colour: Colour) -> int:
    """How many pixels of a picture have exactly this colour, give or take one in each channel."""
    with Image.open(io.BytesIO(content)) as opened:
        counted = opened.convert("RGB").getcolors(opened.width * opened.height) or []
    return sum(count for count, found in counted if all(abs(a - b) <= 1 for a, b in zip(found, colour, strict=True)))


def pages(pdf: Path) -> list[bytes]:
    """Every page of a PDF as a PNG, 96 pixels per inch, so that a CSS pixel is one of them."""
    subprocess.run(["pdftoppm", "-r", "96", "-png", str(pdf), str(pdf.with_suffix(""))], check=True)
    return [page.read_bytes() for page in sorted(pdf.parent.glob(f"{pdf.stem}-*.png"))]


def words(pdf: Path) -> str:
    """The text of a PDF."""
    return _said("pdftotext", "-layout", str(pdf), "-")


def links(pdf: Path) -> list[str]:
    """Where the links of a PDF lead that leave it."""
    lines = [line.split() for line in _said("pdfinfo", "-url", str(pdf)).splitlines()[1:]]
    return [line[-1] for line in lines]


def browsers() -> set[int]:
    """The ids of all processes that belong to a browser."""
    found: set[int] = set()
    for process in Path("/proc").iterdir():
        if process.name.isdigit():
            try:
                command = (process / "cmdline").read_bytes()
            except OSError:
                continue
            if b"chrom" in command.partition(b"\0")[0]:
                found.add(int(process.name))
    return found


def _said(*command: str) -> str:
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout
