"""Texts that try to name what is not theirs: made by chance of the ways in which others were fooled before."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random
from urllib.parse import quote

FAMILIES = (
    "", "", "fi:", "fi:turn_0.files/", "fi:turn_0.user.attachments/", "turn_0/files/", "turn_0/attachments/", "ar:",
    "su:",
    "tc:", "so:", "so:sources_pool[", "sources_pool[", "current_turn/files/", "fi:current_turn.files/", "files/",
    "./", "././",
    "current_turn.artifacts.", "turn_0.artifacts.x.value.", "turn_0.user.prompt.", "fi:logs/", "work/", "xx:", "FI:",
    "file://", "file:///", "artifact-sidecar:/", "artifact-sidecar://turn_0/files/", "data:text/plain,", "https://",
    "vscode-remote://x/", "~/", "~root/", "C:\\", "c:/", "\\\\host\\share\\", "//", "/", "\\\\?\\", "$OUT_DIR/",
    "%OUT_DIR%/",
    "${HOME}/", "`cat ", "$(cat ", "|cat ", "-", "--out-dir=", "fi:turn_0.code.", "fi:../",
)  # fmt: skip
ENDINGS = (
    "", "", "", "", "\0", "\0.png", "\n", "\r\n\r\n", "/", "/.", "/..", "?x=1", "#L1", "%00", "%00.png", " ", ".",
    "::$DATA",
    "]", ".value.text", ".result", "\x1b[2J", "\u202e", "\ud800", "\udfff", "\ufeff", "\u2028", "?version=1", "@1", ";",
)  # fmt: skip
DOTS = (
    "..", "..", "%2e%2e", "%252e%252e", ".%2e", "\u2025", "\uff0e\uff0e", "\u00c0\u00ae\u00c0\u00ae", "%c0%ae%c0%ae",
    "%e0%80%ae%e0%80%ae", "..\u200b", ". .", "...", "..;", "..\0", "..\\", ".\u0323.", "\u2024\u2024",
    "%u002e%u002e", "..%00",
    "..\x7f", "..\ud800",
)  # fmt: skip
SLASHES = (
    "/",
    "/",
    "/",
    "\\",
    "%2f",
    "%252f",
    "%5c",
    "\u2215",
    "\u2044",
    "\uff0f",
    "%c0%af",
    "//",
    "/./",
    "/x/../",
    "\\/",
)
Change = Callable[[str, Random], str]


def hostile_text(chance: Random, aims: Sequence[str], out_dir: str) -> str:
    """One text that means one of `aims`, absolute paths, or nearly."""
    aim = chance.choice(aims)
    ups = chance.choice((0, 1, 2, 3, 4, 8, out_dir.count("/") + 1, out_dir.count("/") + 4))
    target = aim if ups > 4 else aim.rpartition(f"{out_dir.rpartition('/')[0]}/")[2]
    slash, dots = chance.choice(SLASHES), chance.choice(DOTS)
    climbed = slash.join([dots] * ups + [target.lstrip("/").replace("/", slash)]) if ups else aim
    text = chance.choice(FAMILIES) + climbed + chance.choice(ENDINGS)
    for change in chance.choices(CHANGES, k=chance.choice((0, 0, 0, 1, 1, 2))):
        text = change(text, chance)
    return text


def _at_some_place(piece: str) -> Change:
    def change(text: str, chance: Random) -> str:
        at = chance.randrange(len(text) + 1)
        return text[:at] + piece + text[at:]

    return change


CHANGES: tuple[Change, ...] = (
    *(
        _at_some_place(piece)
        for piece in ("\0", "\n", "\x1b]0;x\x07", "\ud83d", "\u202e", "/../", "\\..\\", "e\u0301", "//")
    ),
    lambda text, chance: quote(text, safe="", errors="replace"),
    lambda text, chance: quote(quote(text, errors="replace")),
    lambda text, chance: text.upper() if chance.random() < 0.5 else text.swapcase(),
    lambda text, chance: "a/../" * chance.choice((3, 50, 800)) + text,
    lambda text, chance: "./" * chance.choice((2, 2000)) + text,
    lambda text, chance: text + "/" + "a" * chance.choice((255, 256, 4096, 15_000)),
    lambda text, chance: text * chance.choice((2, 40)),
    lambda text, chance: f"[[S:1]]({text})",
    lambda text, chance: f"<img src='{text}'>",
    lambda text, chance: f"@import url({text});",
    lambda text, chance: f"![x]({text})",
    lambda text, chance: f"--- a/{text}\n+++ b/{text}\n@@ -1 +1 @@\n-x\n+y\n",
    lambda text, chance: f"turn_0/files/{text}",
    lambda text, chance: "".join(chance.sample(text, len(text))),
    lambda text, chance: text.encode("utf-8", "surrogatepass").decode("latin-1"),
    lambda text, chance: text.encode("utf-16-le", "surrogatepass").decode("latin-1"),
)
