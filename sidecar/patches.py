"""Patch what stands at a path: a file or a display of the open turn, or a copy of one of another turn."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from sidecar.core import limits, patching
from sidecar.core.artifacts import Artifact, describe
from sidecar.core.drafts import Draft, Kind, body_of, text_of
from sidecar.core.errors import NotFound, NotPermitted, Stale, StoreUnavailable, TooLarge, UnsafePath
from sidecar.core.patching import Patched, PatchFault
from sidecar.core.paths import FilePath, Rewritten
from sidecar.core.told_blocks import shown_param
from sidecar.landing import Landing, Remember, Saying
from sidecar.looking import Looker
from sidecar.ports import OutDir
from sidecar.rehost import Missing, Rehoster
from sidecar.within import Telling
from sidecar.workspace import Workspace
from sidecar.writing import notices_of

TRIES = 5  # when others change the file while it is patched
READ_AROUND = 3  # lines before and after the place where a hunk should have fitted


@dataclass(frozen=True, slots=True)
class Wanted:
    """A patch as it was asked. `sees` says whether whoever asks may see a file."""

    patch: str
    kind: Kind | None
    channel: str | None
    tool_call_id: str | None
    expected_sha256: str | None
    sees: Callable[[FilePath], bool]


@dataclass(frozen=True, slots=True)
class _Base:
    """What is patched: the content at a path, the hash of its latest version before it was read, and its record."""

    path: FilePath
    content: bytes | None = None
    sha256: str = ""
    record: Mapping[str, Any] = field(default_factory=dict[str, Any])


class _MovedError(Exception):
    """Something else stands there than what was patched a moment ago."""


class Patches:
    """All of a patch or nothing of it: a copy is made by the same step that patches it."""

    def __init__(
        self, workspace: Workspace, looker: Looker, rehoster: Rehoster, outdir: OutDir, landing: Landing
    ) -> None:
        self._workspace = workspace
        self._looker = looker
        self._rehoster = rehoster
        self._outdir = outdir
        self._landing = landing

    async def patch(self, target: Rewritten, wanted: Wanted, remember: Remember) -> dict[str, Any]:
        """Patch it; answers `ok` with the artifact, or the error that says why the patch does not fit.

        A patch that fails is told in its call like one that does not. Raises Stale, StoreUnavailable when what is to be
        patched cannot be brought now, TooLarge, and what `Landing.land` raises.
        """
        for _ in range(TRIES):
            try:
                return await self._once(target, wanted, remember)
            except _MovedError:
                continue
        raise NotPermitted(target.path.physical, "this file keeps changing; try again when it is at rest")

    async def _once(self, target: Rewritten, wanted: Wanted, remember: Remember) -> dict[str, Any]:
        base = await self._base(target, wanted)
        _expect(base, wanted)
        text = text_of(base.content) if base.content is not None else None
        if text is None:
            why = _MISSING if base.content is None else _BINARY
            return await self._fail(target, wanted, base, {**why, "path": base.path.physical}, remember)
        outcome = await self._looker.search(lambda: patching.apply(text, wanted.patch, path=base.path.rel))
        if isinstance(outcome, PatchFault):
            return await self._fail(target, wanted, base, _error_of(outcome, base), remember)
        draft = await self._draft(target, wanted, base, outcome)
        try:
            return await self._landing.land(draft, _success(target, wanted, base, outcome), remember)
        except Stale as moved:
            raise _MovedError from moved

    async def _base(self, target: Rewritten, wanted: Wanted) -> _Base:
        """What the open turn has at this path; when it has nothing, what the text itself named."""
        await self._looker.look_at(target.path)
        path = target.path if self._known(target.path) is not None else target.source
        if not wanted.sees(path):
            return _Base(path)
        await self._looker.look_at(path)
        known = self._known(path)
        if known is None:
            return _Base(path, await self._brought(path))
        sha256, record = known.sha256() or "", describe(known, {})
        held = None if known.holds_latest() else await self._rehoster.inline(known.latest)
        if held is None or hashlib.sha256(held).hexdigest() != sha256:
            held = await self._brought(path)
        return _Base(path, held, sha256, record)

    async def _brought(self, path: FilePath) -> bytes | None:
        """The bytes of a file, brought back first where they are absent; None when nobody has them."""
        brought = await self._rehoster.rehost(path)
        if isinstance(brought, Missing):
            match brought.reason:
                case "unsafe_path":
                    raise UnsafePath(path.physical, "only regular files below OUT_DIR are patched")
                case "store_unavailable":
                    words = "what is to be patched could not be brought"
                    raise StoreUnavailable(path.physical, words, fault=brought.fault or "server_error")
                case _:
                    return None
        try:
            return await self._looker.off_loop(self._read, path.physical)
        except NotFound:
            return None

    async def _draft(self, target: Rewritten, wanted: Wanted, base: _Base, patched: Patched) -> Draft:
        """What is patched goes on as what it was, in the open turn."""
        mime = base.record.get("mime")
        sids = self._workspace.pool.sids
        body = await self._looker.search(
            lambda: body_of(patched.text.encode(), target.path, mime=mime, sources_used=None, sids=sids)
        )
        kind: Kind = wanted.kind or base.record.get("kind", "file")
        if kind == "display" and len(body.content) > limits.DISPLAY_BYTES:
            raise TooLarge(target.path.physical, f"a display has at most {limits.DISPLAY_BYTES} bytes; write a file")
        channel = wanted.channel or base.record.get("channel")
        is_internal = "internal" in (channel, base.record.get("visibility"))
        return Draft(
            path=target.path,
            turn_id=target.path.turn_id,
            body=body,
            kind=kind,
            channel=channel,
            visibility="internal" if is_internal else None,
            description=base.record.get("description"),
            expected=base.sha256 if base.path == target.path else "",
        )

    async def _fail(
        self, target: Rewritten, wanted: Wanted, base: _Base, error: dict[str, Any], remember: Remember
    ) -> dict[str, Any]:
        """Nothing is changed; the agent is told why, without lines of what is internal."""
        notices = notices_of(target)
        shown = {key: error[key] for key in ("code", "path", "hunk", "suggested_read") if key in error}
        saying = Saying(
            _telling(target, wanted, base),
            notices,
            answer=lambda _: {"ok": False, "error": error, "notices": notices},
            result={"ok": False, "error": shown},
            contents={"error": error},
        )
        return await self._landing.tell(saying, remember, visibility=base.record.get("visibility", "external"))

    def _read(self, physical: str) -> bytes:
        with self._outdir.open(physical) as stream:
            content = stream.read(limits.PATCHED_BYTES + 1)
        if len(content) > limits.PATCHED_BYTES:
            raise TooLarge(physical, f"a patched file has at most {limits.PATCHED_BYTES} bytes; write it anew")
        return content

    def _known(self, path: FilePath) -> Artifact | None:
        artifact = self._workspace.artifact(path)
        return artifact if artifact is not None and artifact.versions else None


_MISSING = {"code": "target_missing", "message": "nothing is there that could be patched; write it first"}
_BINARY = {"code": "target_binary", "message": "this is no text, and only texts can be patched"}


def _expect(base: _Base, wanted: Wanted) -> None:
    actual = base.sha256 if base.content is None else hashlib.sha256(base.content).hexdigest()
    if wanted.expected_sha256 is not None and wanted.expected_sha256 != actual:
        raise Stale(base.path.physical, expected=wanted.expected_sha256, actual=actual)


def _error_of(fault: PatchFault, base: _Base) -> dict[str, Any]:
    """The fault as the wire has it, with the place to read before trying again."""
    error: dict[str, Any] = {"code": fault.code, "message": fault.message, "path": base.path.physical}
    if fault.hunk is not None:
        error["hunk"] = fault.hunk
    if fault.expected:
        error["expected"] = list(fault.expected)
    if fault.actual:
        error["actual"] = list(fault.actual)
    if fault.line is not None:
        error["suggested_read"] = {
            "path": base.path.logical,
            "line_start": max(1, fault.line - READ_AROUND),
            "line_count": max(len(fault.actual), len(fault.expected)) + 2 * READ_AROUND,
        }
    return error


def _success(target: Rewritten, wanted: Wanted, base: _Base, patched: Patched) -> Saying:
    """The artifact keeps the patched text; a diff is what came of the call (spec section 8)."""
    notices = notices_of(target)
    result: dict[str, Any] = {"ok": True, "path": target.path.physical}
    if patched.repairs:
        result["repairs"] = list(patched.repairs)
    diff = wanted.patch[: limits.INLINE_TEXT_BYTES]
    contents: dict[str, Any] = {"patch": diff} if patched.hunks else {}
    if patched.hunks and len(diff) < len(wanted.patch):
        contents["truncated"] = True
    return Saying(
        _telling(target, wanted, base),
        notices,
        answer=lambda record: {"ok": True, "artifact": record, "notices": notices},
        result=result,
        contents=contents,
    )


def _telling(target: Rewritten, wanted: Wanted, base: _Base) -> Telling:
    asked = {"path": target.original, "kind": wanted.kind, "channel": wanted.channel}
    return Telling(
        "patch",
        wanted.tool_call_id,
        {key: value for key, value in asked.items() if value is not None},
        {"patch": shown_param(wanted.patch, target.path.logical or "")},
        tuple(sorted({path.logical or "" for path in (target.path, base.path)})),
        (base.path.logical,) if base.path != target.path and base.path.logical else (),
    )
