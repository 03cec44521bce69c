"""The current turn's attachments once more below `current_turn/attachments/`, where older programs look for them.

That folder is no turn's: it is never watched, and nothing in it is an artifact or a source.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable

from sidecar.core.errors import Refusal
from sidecar.looking import Looker
from sidecar.ports import OutDir

log = logging.getLogger(__name__)

FOLDER = "current_turn/attachments"


class Mirror:
    """Copies, when the settings want it. A copy that cannot be made is logged: the attachment itself is there."""

    def __init__(self, looker: Looker, outdir: OutDir, *, wanted: bool) -> None:
        self._looker = looker
        self._outdir = outdir
        self._wanted = wanted

    async def renew(self, attachments: Iterable[str]) -> None:
        """Have there what these files hold, by physical path, and nothing of an earlier turn."""
        if not self._wanted:
            return
        try:
            await self._looker.off_loop(self._renew, tuple(attachments))
        except (OSError, Refusal) as fault:
            log.warning("attachments were not mirrored: %s", fault)

    def _renew(self, attachments: Iterable[str]) -> None:
        for old, key in self._outdir.survey(FOLDER).files.items():
            self._outdir.take_away(old, key)
        for physical in attachments:
            with self._outdir.open(physical) as stream:
                self._outdir.write_whole(f"{FOLDER}/{physical.partition('/attachments/')[2]}", stream)
