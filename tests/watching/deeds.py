"""What programs do to OUT_DIR, each as a process of its own: `python -m tests.watching.deeds NAME ROOT PREFIX SIZE`.

A deed makes turns whose names begin with PREFIX. When it is over it prints the hash of every file it made, as JSON.
With most of its files comes one whose name is not UTF-8; it can be no artifact and must stop nothing.
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path

Files = dict[str, str]


class Maker:
    """Writes files below a folder and remembers their hashes by OUT_DIR-relative path."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.files: Files = {}

    def make(self, path: str) -> None:
        """One complete file in folders that may be new. Its content is its name, so that no two are equal."""
        target = self.root / path
        os.makedirs(target.parent, exist_ok=True)
        content = f"this is {path}\n".encode()
        target.write_bytes(content)
        self.files[path] = hashlib.sha256(content).hexdigest()

    def make_undecodable(self, folder: str) -> None:
        os.makedirs(self.root / folder, exist_ok=True)
        descriptor = os.open(os.fsencode(self.root / folder) + b"/caf\xe9.txt", os.O_WRONLY | os.O_CREAT)
        os.close(descriptor)


def one_file_in_each_new_folder_with_pauses(maker: Maker, prefix: str, size: int) -> None:
    """Folder after folder, 50 ms apart, as an agent's tool calls make them."""
    for at in range(size):
        maker.make(f"{prefix}_{at}/files/report.txt")
        if at == size // 2:
            maker.make_undecodable(f"{prefix}_{at}/files")
        time.sleep(0.05)


def one_file_in_each_new_folder_at_once(maker: Maker, prefix: str, size: int) -> None:
    """The same as fast as it goes, so that folders fill before anybody can have a watch on them."""
    for at in range(size):
        maker.make(f"{prefix}_{at}/files/report.txt")
        if at == size // 2:
            maker.make_undecodable(f"{prefix}_{at}/files")


def three_files_in_each_new_nested_folder(maker: Maker, prefix: str, size: int) -> None:
    """Three files in folders four levels deep, all of them new."""
    for at in range(size):
        folder = f"{prefix}_{at % 10}/files/a{at}/b/c"
        for name in ("one", "two", "three"):
            maker.make(f"{folder}/{name}.txt")
        if at == size // 2:
            maker.make_undecodable(folder)


def a_full_folder_renamed_into_place(maker: Maker, prefix: str, size: int) -> None:
    """A folder is filled beside OUT_DIR and appears in it whole; then another one inside a turn that is there."""
    aside = Maker(maker.root.parent / f"aside_{prefix}")
    for at in range(size):
        aside.make(f"{prefix}/files/part{at % 7}/deep/{at}.txt")
    aside.make_undecodable(f"{prefix}/files/part0")
    for at in range(size):
        aside.make(f"more/{at}.txt")
    os.rename(aside.root / prefix, maker.root / prefix)
    os.rename(aside.root / "more", maker.root / prefix / "files" / "more")
    moved = {path.replace("more/", f"{prefix}/files/more/", 1): hash_ for path, hash_ in aside.files.items()}
    maker.files.update(moved)


def many_files_in_a_hundred_folders(maker: Maker, prefix: str, size: int) -> None:
    """`size` files in all, folder after folder."""
    for folder in range(100):
        for at in range(size // 100):
            maker.make(f"{prefix}_{folder % 5}/files/f{folder}/{at}.txt")
        if folder == 50:
            maker.make_undecodable(f"{prefix}_{folder % 5}/files/f{folder}")


Deed = Callable[[Maker, str, int], None]
DEEDS: dict[str, Deed] = {
    deed.__name__: deed
    for deed in (
        one_file_in_each_new_folder_with_pauses,
        one_file_in_each_new_folder_at_once,
        three_files_in_each_new_nested_folder,
        a_full_folder_renamed_into_place,
        many_files_in_a_hundred_folders,
    )
}
# What section 5 of the specification names; tests of every day do less.
FULL_SIZE = dict(zip(DEEDS, (40, 40, 200, 1000, 10_000), strict=True))


if __name__ == "__main__":
    _, name, root, prefix, size = sys.argv
    maker = Maker(Path(root))
    DEEDS[name](maker, prefix, int(size))
    json.dump(maker.files, sys.stdout)
