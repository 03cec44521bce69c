"""A turn begins and ends."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Sequence
from contextlib import AsyncExitStack
from typing import Any

from protocol.requests.turn import AttachmentGiven, TurnBeginParams, TurnEndParams
from sidecar.attaching import Attachment
from sidecar.core import limits
from sidecar.core.blocks import moment_of
from sidecar.core.errors import Refusal, StoreUnavailable
from sidecar.core.index_rows import WrongDimension
from sidecar.core.notices import notice, pending
from sidecar.pacing import to_its_end
from sidecar.server.caller import Caller
from sidecar.server.failures import Failed, wrong_params
from sidecar.server.methods.changing import answered_before, fingerprint, stage_answer
from sidecar.server.methods.contents import bring_back
from sidecar.services import Services
from sidecar.turns import Beginning, Ending

log = logging.getLogger(__name__)


async def begin(services: Services, caller: Caller, params: TurnBeginParams) -> dict[str, Any]:
    """Files are laid down and brought back first, so that the turn is there with all of them or not at all."""
    workspace, turns = services.workspace, services.turns
    before = await answered_before(workspace, caller, params)
    if before is not None:
        return before
    beginning = Beginning(
        turn_id=params.turn_id,
        prompt=params.prompt,
        conversation=params.conversation.model_dump(exclude_none=True) if params.conversation is not None else {},
        ts=time.time() if params.ts is None else moment_of(params.ts),
        params=fingerprint(caller.method, params, caller.role),
    )
    given = [] if turns.is_open(beginning) else [_given(one) for one in params.attachments]
    await services.attaching.check(params.turn_id, given)
    wished = await _wished(services, params)
    brought = await bring_back(services, caller, wished) if wished else _NOTHING
    return await to_its_end(_begun(services, caller, params, (beginning, given, brought)))


async def _begun(
    services: Services,
    caller: Caller,
    params: TurnBeginParams,
    prepared: tuple[Beginning, Sequence[Attachment], dict[str, Any]],
) -> dict[str, Any]:
    """Lay down what was attached and begin the turn with it; when that is refused, or another was faster, it goes."""
    workspace, turns = services.workspace, services.turns
    beginning, given, brought = prepared
    async with services.attaching.lay(params.turn_id, given, beginning.ts) as laid:
        await services.calls.files_have_arrived()
        async with AsyncExitStack() as ending:
            if workspace.turn_id not in ("", beginning.turn_id):  # that turn ends by this
                await ending.enter_async_context(services.calls.abandoning())
                await services.hosting.want_left_over()
            before = await answered_before(workspace, caller, params)
            if before is not None:
                return before  # the same request came twice, and the other one was faster
            entries, result = turns.begin(beginning, laid.attached)
            result |= brought
            await stage_answer(workspace, caller, params, entries, result)
        if entries:
            laid.keep()
    if entries:
        await services.mirror.renew(one["physical_path"] for one in result["attachments"])
    return result


async def end(services: Services, caller: Caller, params: TurnEndParams) -> dict[str, Any]:
    """What is still to be hosted and saved is waited for a little, both together; the turn has ended in any case.

    What that came to is told in notices, and is no part of the answer that a repeated request gets; what is saved by
    then is.
    """
    workspace, turns = services.workspace, services.turns
    before = await _ended_before(services, caller, params)
    if before is not None:
        return before
    said = params.completion
    ending = Ending(
        turn_id=params.turn_id,
        completion=said.text if said is not None else None,
        sources_used=said.sources_used if said is not None else None,
        status=params.status or "completed",
        embeddings=params.embeddings or {},
    )
    await _check_vectors(services, ending)
    progress = caller.progress("Ending the turn")
    unfinished = await turns.look(ending.turn_id)
    ending = await turns.read(ending)
    used = await turns.sources_used(ending)
    await services.calls.files_have_arrived()
    async with services.calls.abandoning() as was_long:
        was_long |= await services.hosting.want_left_over()
        before = await _ended_before(services, caller, params)
        if before is not None:
            return before
        if was_long:  # what was being written may be complete by now
            unfinished = await turns.look(ending.turn_id)
        before = await _ended_before(services, caller, params)
        if before is not None:
            return before
        entries, result = turns.end(ending, unfinished, used)
        await stage_answer(workspace, caller, params, entries, {**result})
    result["notices"] = [*result["notices"]]
    progress.report("hosting what it made", 50)
    until = time.monotonic() + limits.HOSTING_WAIT
    if not await services.hosting.settle(limits.HOSTING_WAIT):
        paths = sorted({path for path, _ in workspace.hosting})[:PATHS_TOLD]
        why = {"reason": services.hosting.fault} if services.hosting.fault else {}
        result["notices"].append(notice("hosting_pending", paths=paths, **why))
        if why:
            until = 0.0  # the store has failed and was asked again already; saving needs the same one
    progress.report("saving it", 75)
    result["saved"], is_pending = await services.saver.end(
        ending.turn_id, seconds=max(SAVING_LEAST, until - time.monotonic())
    )
    if is_pending:
        result["notices"].append(pending(services.saver.reason))
    try:
        await services.views.flush()
    except (OSError, Refusal) as fault:
        log.warning("timeline.json was not written at the end of the turn: %s", fault)
        result["notices"].append(notice("view_not_written", reason=str(fault)))
    progress.end()
    return result


async def _check_vectors(services: Services, ending: Ending) -> None:
    """Vectors that fit into no row are refused before anything ends. Raises Failed (-32602).

    An index that does not answer decides later; what it does not take then is answered as `needs_embedding`.
    """
    first = next(iter(ending.embeddings.values()), ())
    for kind, vector in ending.embeddings.items():
        if len(vector) != len(first):
            raise Failed(wrong_params([(f"embeddings.{kind}", "the vectors of one index have one length")]))
        try:
            async with asyncio.timeout(limits.CONFIRM_SECONDS):
                await services.archive.fits(vector)
        except WrongDimension as fault:
            raise Failed(wrong_params([(f"embeddings.{kind}", str(fault))])) from None
        except (StoreUnavailable, TimeoutError):
            return


async def _ended_before(services: Services, caller: Caller, params: TurnEndParams) -> dict[str, Any] | None:
    """What the same request was answered with, and what is saved by now."""
    before = await answered_before(services.workspace, caller, params)
    if before is None:
        return None
    saved, is_pending = await services.saver.end(params.turn_id, seconds=limits.SAVING_WAIT)
    notices = [pending(services.saver.reason)] if is_pending else []
    return {**before, "saved": saved, "notices": [*before["notices"], *notices]}


PATHS_TOLD = 1000
SAVING_LEAST = 0.5  # seconds; a store that hangs left nothing of the time for both
_NOTHING: dict[str, Any] = {"rehosted": [], "missing": []}


def _given(one: AttachmentGiven) -> Attachment:
    return Attachment(one.name, one.mime, one.summary, one.path, one.base64, one.text)


async def _wished(services: Services, params: TurnBeginParams) -> Sequence[str]:
    """The paths to bring back; `all` are the files of every turn that are not on disk, which is looked at first."""
    if params.rehost != "all":
        return params.rehost or ()
    await services.looker.look("")
    return [
        artifact.path.physical
        for artifact in services.workspace.artifacts.seen()
        if artifact.versions and not artifact.on_disk and artifact.latest.seen
    ]
