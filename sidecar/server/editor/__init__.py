"""What an editor shows of the workspace, by LSP: each module here is one thing that an editor can do."""

from __future__ import annotations

from sidecar.server.editor import (
    actions,
    commands,
    completion,
    contents,
    diagnostics,
    hints,
    hover,
    links,
    renaming,
    symbols,
)
from sidecar.server.editor.documents import Documents
from sidecar.server.lsp import Feature
from sidecar.services import Services

_PARTS = (links, hover, diagnostics, actions, renaming, commands, contents, completion, symbols, hints)


def features(services: Services) -> list[Feature]:
    """The features of all modules, over one set of open documents."""
    documents = Documents(services)
    parts = [feature for part in _PARTS for feature in part.features(services, documents)]
    return [*documents.features(), *parts]
