"""Names and types of downloads, as headers say them, so that no file name can add a header of its own."""

from __future__ import annotations

import re
from urllib.parse import quote

NAME_BYTES = 1024


def attachment(filename: str) -> str:
    """A Content-Disposition that has a browser save the answer under this name (RFC 6266, RFC 8187).

    Both spellings, for old and new clients: an ASCII one, where whatever is special is `_`, and the name itself.
    """
    name = filename.rpartition("/")[2][-NAME_BYTES:] or "file"
    plain = _SPECIAL.sub("_", name)
    exact = quote(name.encode("utf-8", "replace"), safe=_ATTR)
    return f"attachment; filename=\"{plain}\"; filename*=UTF-8''{exact}"


def media_type(mime: str) -> str:
    """The type itself when it is one, else that of plain bytes."""
    return mime if _MIME.fullmatch(mime) is not None else "application/octet-stream"


# What a quoted string may hold unescaped, without the percent sign, which some clients decode there.
_SPECIAL = re.compile(r"[^ !#$&'()*+,\-.0-9:;<=>?@A-Z\[\]^_`a-z{|}~]")
_ATTR = "!#$&+-.^_`|~"
_TOKEN = r"[A-Za-z0-9!#$&^_.+-]{1,127}"
_MIME = re.compile(rf"{_TOKEN}/{_TOKEN}(; ?{_TOKEN}=({_TOKEN}|\"[ A-Za-z0-9!#$&^_.+-]{{0,127}}\")){{0,4}}")
