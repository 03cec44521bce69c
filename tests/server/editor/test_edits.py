"""Edits go out in the form that the client understands."""

from __future__ import annotations

from typing import Any

import pytest
from lsprotocol import types

from sidecar.core.positions import Lines
from sidecar.server.editor.documents import Opened
from sidecar.server.editor.edits import workspace_edit

PAGE = Opened("file:///a.md", 3, "é😀x", "text/markdown", None, [], Lines("é😀x", "utf-16"))


def editor(*, document_changes: bool | None) -> Any:
    kinds = types.WorkspaceEditClientCapabilities(document_changes=document_changes)
    workspace = types.WorkspaceClientCapabilities(workspace_edit=kinds)
    return type("Editor", (), {"client_capabilities": types.ClientCapabilities(workspace=workspace)})()


@pytest.mark.rule("editor.positions-in-the-agreed-encoding")
@pytest.mark.parametrize("document_changes", [True, None])
def test_places_are_ranges_and_versions_are_told_where_they_are_looked_at(document_changes: bool | None) -> None:
    edit = workspace_edit(editor(document_changes=document_changes), [(PAGE, [(2, 3, "y")])])
    expected = types.TextEdit(types.Range(types.Position(0, 3), types.Position(0, 4)), "y")
    if document_changes:
        assert edit.document_changes is not None
        [change] = edit.document_changes
        assert isinstance(change, types.TextDocumentEdit)
        assert (change.text_document.version, change.edits) == (3, [expected])
    else:
        assert edit.changes == {"file:///a.md": [expected]}
