"""Why nothing was rendered, as one exception with a kind that a program can switch on."""

from __future__ import annotations

from typing import Literal

Kind = Literal["bad_page", "not_found", "too_large", "changed", "stale", "no_browser", "timed_out", "failed"]


class RenderError(Exception):
    """Nothing was rendered and nothing was written. Refusals of the daemon are `artifact_client.RpcError` instead.

    `bad_page` is no Markdown or HTML, `not_found` no page, `too_large` a page or a result beyond the limits, `changed`
    a workspace that changes faster than it is read, `stale` inputs other than expected, `no_browser` a browser that is
    not installed or does not start, `timed_out` the deadline, `failed` anything else.
    """

    def __init__(self, kind: Kind, sentence: str) -> None:
        super().__init__(sentence)
        self.kind: Kind = kind
