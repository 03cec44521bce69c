"""How an artifact is named among MCP's resources. The path stands in it whole: nobody takes it apart."""

from __future__ import annotations

from urllib.parse import quote, unquote_to_bytes

BEGINNING = "artifact-sidecar://artifacts/"
TEMPLATE = f"{BEGINNING}{{+path}}"


def address(path: str) -> str:
    """The URI of what stands at a path of any family. `written` is its inverse."""
    return BEGINNING + quote(path, safe="/:")


def written(uri: str) -> str | None:
    """The path in a URI; None when it is none of ours."""
    if not uri.startswith(BEGINNING) or uri == BEGINNING:
        return None
    try:
        return unquote_to_bytes(uri.removeprefix(BEGINNING)).decode()
    except UnicodeError:
        return None
