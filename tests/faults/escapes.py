"""Paths that try to get out of OUT_DIR by both openers: while folders are swapped for links, and made up by chance."""

from __future__ import annotations

import os
import random
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from sidecar.core.errors import NotFound, Refusal
from sidecar.stores import scan
from sidecar.stores.opens import Beneath, Opener, best_opener, by_kernel, by_walking, held, make_folders
from tests.faults.test_paths import swapping

SECRET = "outside"


@dataclass(slots=True)
class Tried:
    """`inside` of `tried` came to something inside, the rest was refused; `escaped` must be 0."""

    tried: int = 0
    inside: int = 0
    escaped: int = 0


def openers(root: Path) -> list[Opener]:
    return [by_kernel, by_walking] if best_opener(str(root)) is by_kernel else [by_walking]


def _tree(top: Path) -> Path:
    root, outside = top / "out", top / "outside"
    (root / "a" / "b").mkdir(parents=True)
    (outside / "b").mkdir(parents=True)
    (root / "a" / "b" / "file").write_text("inside")
    (outside / "b" / "file").write_text(SECRET)
    (root / "link").symlink_to(outside)
    return root


def reads(top: Path, *, count: int) -> Tried:
    """Read a file while its folder and a link to the outside change places."""
    root, found = _tree(top), Tried()
    with swapping(root / "a", root / "link"):
        for opener in openers(root):
            beneath = Beneath(str(root), opener)
            for _ in range(count):
                found.tried += 1
                with suppress(Refusal, OSError), os.fdopen(beneath.file("a/b/file")) as file:
                    text = file.read()
                    found.inside += text == "inside"
                    found.escaped += text == SECRET
    return found


def writes(top: Path, *, count: int) -> Tried:
    """Make folders and files in a folder that changes places with a link to the outside."""
    root, found = _tree(top), Tried()
    with swapping(root / "a", root / "link"):
        for number in range(count):
            found.tried += 1
            with suppress(Refusal, OSError):
                beneath = Beneath(str(root))
                at, missing, name = beneath.nearest(f"a/{number % 50}/x{number}")
                with held(make_folders(at, missing, "a")) as folder:
                    os.close(os.open(name, os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW, dir_fd=folder))
                    found.inside += 1
    real = next(
        one for one in (top / "outside", root / "a", root / "link") if (one / "b" / "file").read_text() == SECRET
    )
    found.escaped = sum(len(files) for _, _, files in os.walk(real)) - 1
    return found


def scans(top: Path, *, count: int) -> Tried:
    """List everything while a folder and a link to the outside change places."""
    root, found = _tree(top), Tried()
    (top / "outside" / "only_there").write_text(SECRET)
    with swapping(root / "a", root / "link"):
        for _ in range(count):
            found.tried += 1
            with held(os.open(root, os.O_RDONLY | os.O_DIRECTORY)) as fd:
                seen = scan.look(fd, "", scan.Bounds()).files
            found.inside += any(path.endswith("b/file") for path in seen)
            found.escaped += any("only_there" in path for path in seen)
    return found


_HONEST = ("a", "b", "file", "deep", "é", "name with blanks", "x" * 40)
_CROOKED = (
    "..", ".", "", "~", "link", "to_root", "proc", "\0", "a\nb", "..\\..", "%2e%2e", "‥", "．．", "con", "x" * 300,
    "\u202e", "file://", "a:b", "-rf", "../..", "/etc/passwd", "\ud800",
)  # fmt: skip


def made_up(top: Path, *, count: int, seed: int) -> Tried:
    """Paths put together by chance, half of them honest: what opens is inside, and the honest ones open."""
    root, found, chance = _tree(top), Tried(), random.Random(seed)
    (root / "to_root").symlink_to("/")
    (root / "a" / "proc").symlink_to("/proc/self/root")
    for folder in ("a/b", "a/b/deep", "é/name with blanks", f"b/{'x' * 40}"):
        (root / folder).mkdir(parents=True, exist_ok=True)
        for name in ("file", "é", "x" * 40):
            (root / folder / name).exists() or (root / folder / name).write_text("inside")
    real, ways = os.path.realpath(root), [Beneath(str(root), opener) for opener in openers(root)]
    files = [str(path.relative_to(root)) for path in root.rglob("*") if path.is_file() and not path.is_symlink()]
    for _ in range(count):
        parts = chance.choice(files).split("/")
        if chance.random() < 0.7:
            parts.insert(
                chance.randrange(len(parts) + 1), chance.choice(_CROOKED if chance.random() < 0.8 else _HONEST)
            )
        text = "/".join(parts)
        for beneath in ways:
            found.tried += 1
            try:
                fd = beneath.file(text)
            except (Refusal, NotFound):
                continue
            with held(fd):
                place = os.readlink(f"/proc/self/fd/{fd}")
                found.inside += place.startswith(f"{real}/")
                found.escaped += not place.startswith(f"{real}/")
    return found
