"""Write what the agent made: a file, or a display that lives in the timeline."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sidecar.core import limits
from sidecar.core.artifacts import Visibility
from sidecar.core.drafts import Body, Draft, Kind, body_of
from sidecar.core.errors import BadPath, TooLarge
from sidecar.core.notices import Notice, notice
from sidecar.core.paths import FilePath, Rewritten, rewrite
from sidecar.core.told_blocks import shown_param
from sidecar.landing import Landing, Remember, Saying
from sidecar.looking import Looker
from sidecar.within import Telling, require_turn
from sidecar.workspace import Workspace


@dataclass(frozen=True, slots=True)
class Writ:
    """What is to be written, as it was asked: `content` as text or `packed` as base64."""

    content: str | None
    packed: str | None
    kind: Kind
    channel: str | None = None
    visibility: Visibility | None = None
    mime: str | None = None
    description: str | None = None
    sources_used: Sequence[int] | None = None
    tool_call_id: str | None = None
    expected_sha256: str | None = None


class Writing:
    """Makes drafts of what is asked to be written, and lets them land."""

    def __init__(self, workspace: Workspace, looker: Looker, landing: Landing) -> None:
        self._workspace = workspace
        self._looker = looker
        self._landing = landing

    async def write(self, target: Rewritten, writ: Writ, remember: Remember) -> dict[str, Any]:
        """Write it whole or not at all; answers the artifact and the notices.

        Raises BadPath for base64 that does not decode, TooLarge for a display over its limit, and what `Landing.land`
        raises.
        """
        turn_id = target.path.turn_id
        body = await self._looker.search(lambda: self._body(target.path, writ))
        if writ.kind == "display" and len(body.content) > limits.DISPLAY_BYTES:
            raise TooLarge(target.path.physical, f"a display has at most {limits.DISPLAY_BYTES} bytes; write a file")
        draft = Draft(
            path=target.path,
            turn_id=turn_id,
            body=body,
            kind=writ.kind,
            channel=writ.channel,
            visibility="internal" if writ.channel == "internal" else writ.visibility,
            description=writ.description,
            expected=writ.expected_sha256,
            makes_file=writ.kind == "file",
        )
        notices = notices_of(target)
        saying = Saying(_telling(target, writ), notices, answer=lambda record: {"artifact": record, "notices": notices})
        return await self._landing.land(draft, saying, remember)

    def _body(self, path: FilePath, writ: Writ) -> Body:
        """Blocking, for as long as the content is."""
        if writ.packed is None:
            content = (writ.content or "").encode()
        else:
            try:
                content = base64.b64decode(writ.packed, validate=True)
            except ValueError as fault:  # binascii.Error is one, and so is what it says of letters beyond ASCII
                raise BadPath("base64", "the content's base64 does not decode") from fault
        sids = self._workspace.pool.sids
        return body_of(content, path, mime=writ.mime, sources_used=writ.sources_used, sids=sids)


def target_of(workspace: Workspace, text: str) -> Rewritten:
    """Where a write or a patch goes in the open turn. Raises UnknownTurn, BadPath and UnsafePath."""
    return rewrite(text, current_turn=require_turn(workspace))


def notices_of(target: Rewritten) -> list[Notice]:
    """That the target was moved into the open turn, if it was (spec section 3)."""
    if not target.rewritten:
        return []
    return [notice("protocol_violation.path_rewritten", original=target.original, normalized=target.path.physical)]


def _telling(target: Rewritten, writ: Writ) -> Telling:
    asked = {
        "path": target.original,
        "kind": writ.kind,
        "channel": writ.channel,
        "visibility": writ.visibility,
        "mime": writ.mime,
        "description": writ.description,
    }
    where = target.path.logical or ""
    shown = {"base64": f"[see {where}]"} if writ.content is None else {"content": shown_param(writ.content, where)}
    params = {key: value for key, value in asked.items() if value is not None}
    return Telling("write", writ.tool_call_id, params, shown, (where,))
