"""Changes that an editor is asked to make, in the form that it understands."""

from __future__ import annotations

from collections.abc import Sequence

from lsprotocol import types

from sidecar.server.editor.documents import Opened
from sidecar.server.lsp import Editor

Place = tuple[int, int, str]  # from, to, and what shall stand there


def workspace_edit(editor: Editor, changes: Sequence[tuple[Opened, Sequence[Place]]]) -> types.WorkspaceEdit:
    """Edits of open documents; with their versions where the client looks at them."""
    workspace = editor.client_capabilities.workspace
    kinds = workspace.workspace_edit if workspace is not None else None
    edits = [
        (opened, [types.TextEdit(opened.range(start, end), text) for start, end, text in places])
        for opened, places in changes
    ]
    if kinds is None or not kinds.document_changes:
        return types.WorkspaceEdit(changes={opened.uri: made for opened, made in edits})
    return types.WorkspaceEdit(
        document_changes=[
            types.TextDocumentEdit(types.OptionalVersionedTextDocumentIdentifier(opened.uri, opened.version), made)
            for opened, made in edits
        ]
    )
