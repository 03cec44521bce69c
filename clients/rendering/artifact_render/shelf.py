"""Which staged file a reference in a page means. Only files of the lock list can be meant at all."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from urllib.parse import quote, unquote, urljoin, urlsplit

# `.invalid` is nobody's for ever (RFC 2606): what is not answered from the shelf cannot be asked of anybody.
SITE = "https://page.invalid/"

# What may be a citation; whether it is one, and of what, the daemon says.
CANDIDATE = re.compile(r"\[\[[^\[\]]{1,200}\]\]")


def is_ours(url: str) -> bool:
    """Whether a whole URL lies on the site that only we answer for."""
    return url.startswith(SITE)


@dataclass(frozen=True, slots=True)
class Shelved:
    """A staged file: the name of its copy, its media type, its size in bytes and its number if it has one."""

    sha256: str
    mime: str
    size: int
    sid: int | None = None


@dataclass(frozen=True)
class Shelf:
    """The staged files by physical path, in `folder`.

    `cited` is what a citation means that is used as a file name, `[[S:3]]` -> physical path, `spelled` what the daemon
    says of names that the page writes in its own way. `page` is the page's own physical path, or empty.
    """

    folder: Path
    files: Mapping[str, Shelved]
    cited: Mapping[str, str]
    page: str = ""
    spelled: Mapping[str, str] = field(default_factory=dict[str, str])

    @property
    def address(self) -> str:
        """The URL under which the page itself is shown."""
        return SITE + quote(self.page)

    def find(self, reference: str) -> Shelved | None:
        """The file that a reference in the page means, or None for one that is not there or leads elsewhere."""
        name = self._name(reference)
        return None if name is None else self._at(*name)

    def _name(self, reference: str) -> tuple[str, str] | None:
        """A reference as a browser asks for it: the path and the query, percent codes decoded."""
        try:
            whole = urljoin(self.address, reference.strip())
            url = urlsplit(whole)
        except ValueError:
            return None
        return (_decoded(url.path).lstrip("/"), _decoded(url.query)) if is_ours(whole) else None

    def content(self, file: Shelved) -> bytes:
        """Its bytes."""
        return (self.folder / file.sha256).read_bytes()

    def _at(self, path: str, query: str) -> Shelved | None:
        for token in CANDIDATE.findall(path):
            if token in self.cited:
                return self.files.get(self.cited[token])
        for spelled in self._spelled_names.get((path, query)), self._spelled_names.get((path, "")):
            if spelled:
                return self.files.get(spelled)
        return self._in_documents(path)

    def _in_documents(self, path: str) -> Shelved | None:
        """A path that was resolved against its document, and then without the folders that this added.

        Agents write paths as they are below OUT_DIR, in style sheets too, of which the daemon tells no spellings.
        """
        folders = self._folders
        waiting, seen = [path], {path}
        while waiting:
            here = waiting.pop(0)
            if here in self.files:
                return self.files[here]
            shorter = {here.removeprefix(folder) for folder in folders if here.startswith(folder)} - seen
            waiting += sorted(shorter, key=len, reverse=True)
            seen |= shorter
        return None

    @cached_property
    def _spelled_names(self) -> dict[tuple[str, str], str]:
        named = ((self._name(text), path) for text, path in self.spelled.items())
        return {name: path for name, path in named if name is not None}

    @cached_property
    def _folders(self) -> list[str]:
        """Where documents lie that may refer to files: the page, and the HTML and CSS that it uses."""
        documents = [path for path, file in self.files.items() if file.mime in ("text/css", "text/html")]
        return sorted({folder for path in (self.page, *documents) if (folder := path[: path.rfind("/") + 1])})


def _decoded(text: str) -> str:
    return unquote(text, errors="surrogateescape")
