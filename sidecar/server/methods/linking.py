"""A link to download a hosted file by."""

from __future__ import annotations

import time
from typing import Any

from protocol.requests.linking import LinkParams
from sidecar.core.blocks import iso
from sidecar.core.errors import BadPath
from sidecar.core.paths import FilePath, parse
from sidecar.server.caller import Caller
from sidecar.services import Services


async def link(services: Services, _: Caller, params: LinkParams) -> dict[str, Any]:
    expires_at = iso(time.time() + params.ttl_seconds)
    if params.rn is not None:
        url = await services.links.by_handle(params.rn, seconds=params.ttl_seconds)
        return {"url": url, "expires_at": expires_at}
    path = parse(params.path or "")
    if not isinstance(path, FilePath):
        raise BadPath(params.path or "", "a link leads to a file")
    return {"url": await services.links.by_path(path, seconds=params.ttl_seconds), "expires_at": expires_at}
