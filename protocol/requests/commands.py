"""What editors ask by `workspace/executeCommand`: open an artifact, bring files back, cite sources.

A command takes one object, the only one of its `arguments`.
"""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from protocol.base import ROWS, ArtifactKind, Maybe, Params, PathList, PathText, Result, Sid
from protocol.requests.contents import NotRehosted, Rehosted


class OpenParams(Params):
    """Which artifact to open."""

    path: PathText = Field(description="The path of a file, logical or physical.")
    version: Maybe[Annotated[int, Field(ge=1)]] = Field(
        default=None, description="A version, as `artifact/versions` numbers them; the latest by default."
    )


class OpenResult(Result):
    """Where an editor finds the bytes. An absent file was brought into OUT_DIR first."""

    uri: str = Field(
        description="A `file:` URI, or one of the scheme `artifact-sidecar`, whose text "
        "`workspace/textDocumentContent` answers."
    )
    artifact_path: Maybe[str] = Field(default=None, description="The canonical logical path.")
    physical_path: str = Field(description="The path relative to OUT_DIR.")
    name: str = Field(description="A label for people: the last part of its path.")
    mime: str = Field(description="The media type.")
    kind: Maybe[ArtifactKind] = Field(default=None, description="Absent for a file that is no artifact.")
    text: bool = Field(description="Whether it is text, which an editor can show as it is.")
    read_only: bool = Field(description="True for what only the daemon holds: an older version, or a display.")
    version: Maybe[int] = Field(default=None, description="The version that is opened; absent for what is no artifact.")


class RehostFilesParams(Params):
    """Which files to bring back."""

    paths: PathList = Field(description="Paths of files, logical or physical.")


class RehostedFile(Rehosted):
    """A file that is in OUT_DIR now."""

    uri: str = Field(description="Its `file:` URI.")


class RehostFilesResult(Result):
    """What became of each file. When it was cancelled, files that nobody came to are in neither list."""

    rehosted: list[RehostedFile] = Field(description="Files that stand in OUT_DIR, in the order of the request.")
    missing: list[NotRehosted] = Field(description="Files that do not, and why.")
    cancelled: Maybe[bool] = Field(default=None, description="True when it was given up before the end.")


class CiteParams(Params):
    """Which sources to cite."""

    sids: Annotated[list[Sid], Field(min_length=1, max_length=ROWS)] = Field(description="Numbers of sources.")


class CiteResult(Result):
    """The citation as it stands in a text."""

    text: str = Field(description="One token, `[[S:1,3-5]]`.")
    missing: list[Sid] = Field(description="Numbers that no source has; they are not in the token.")
