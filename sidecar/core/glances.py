"""What the bytes of some JSON show at a glance, so that nearly all of it need not be walked through.

Both answers may be yes where a walk would find nothing. A no is certain.
"""

from __future__ import annotations

import re


def may_hold_hosting(body: bytes) -> bool:
    """Whether one of the hosting fields may stand in this JSON, as orjson writes it, or in JSON that its texts hold.

    Every answer and every block passes here. Behind a backslash are the spellings of a quote or a letter in JSON that
    is itself held in a JSON text.
    """
    if _FIELD.search(body) is not None:
        return True
    return _BACKSLASH in body and (b"rn\\" in body or b"key\\" in body or b"uri\\" in body or b"\\u00" in body)


def may_nest(body: bytes, levels: int) -> bool:
    """Whether this JSON may nest as deep as that: it opens so many lists and objects, in its texts perhaps."""
    return body.count(b"{") + body.count(b"[") >= levels


_FIELD = re.compile(rb'"(?:hosted_uri|key|rn)":')
_BACKSLASH = ord("\\")  # one byte as a number is looked for at the speed of memory
