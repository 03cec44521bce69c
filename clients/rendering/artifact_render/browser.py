"""Starts a headless browser, shows it one page, and takes a PDF or a picture of it.

The browser has nothing to reach: each of its requests comes to us and is answered from the shelf or refused, no host
name resolves, the page lies on a site that is no file, and scripts of the page do not run. It lives in a folder of its
own and dies with its keeper.
"""

from __future__ import annotations

import base64
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from time import monotonic

from artifact_render import keeper
from artifact_render.devtools import DevTools, HungUp
from artifact_render.failures import RenderError
from artifact_render.limits import BROWSER_BYTES, MIB, WRITTEN_BYTES

PROGRAMS = ("chromium", "chromium-browser", "google-chrome-stable", "google-chrome")
INSTALL = "apt-get install -y --no-install-recommends chromium fonts-dejavu-core"


def program() -> str:
    """The browser of this machine: `ARTIFACT_RENDER_BROWSER`, or the first known name. Raises RenderError."""
    named = os.environ.get("ARTIFACT_RENDER_BROWSER")
    for name in (named,) if named else PROGRAMS:
        if found := shutil.which(name):
            return found
    raise RenderError("no_browser", f"{named or 'chromium'} was not found; on Debian: {INSTALL}")


@contextmanager
def browsing(scratch: Path, *, seconds: float) -> Iterator[DevTools]:
    """A running browser, at most for so long. At the end nothing of it is left. Raises RenderError."""
    found = program()
    with ExitStack() as leaving:
        profile = _home(scratch)
        leaving.callback(shutil.rmtree, profile, ignore_errors=True)
        complaints = leaving.enter_context((scratch / "browser.log").open("w+b"))
        our_reading, their_writing = _pipe(leaving)
        their_reading, our_writing = _pipe(leaving)
        flags = [f"--user-data-dir={profile}", *(["--no-sandbox"] if os.geteuid() == 0 else []), *_FLAGS]
        given = (str(seconds), str(BROWSER_BYTES), str(profile), str(their_reading), str(their_writing))
        held = subprocess.Popen(
            [sys.executable, "-I", keeper.__file__, *given, found, *flags],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=complaints,
            pass_fds=(their_reading, their_writing),
            start_new_session=True,  # an interrupt from the keyboard is for us; the keeper sees us go
            env=_environment(profile),
        )
        leaving.callback(_dismiss, held)
        # Theirs are closed here, so that we see when nobody holds the other ends any more.
        for number in (their_reading, their_writing):
            os.dup2(complaints.fileno(), number, inheritable=False)
        try:
            yield DevTools(our_reading, our_writing, deadline=monotonic() + seconds)
        except HungUp:
            code = held.wait()
            complaints.seek(0)
            raise _why(code, complaints.read()) from None


def _home(scratch: Path) -> Path:
    profile = scratch / "browser"
    if len(str(profile)) > _LONGEST_HOME:
        return Path(tempfile.mkdtemp(prefix="artifact-render-", dir="/tmp"))
    profile.mkdir()
    return profile


def _pipe(leaving: ExitStack) -> tuple[int, int]:
    reading, writing = os.pipe()
    leaving.callback(os.close, reading)
    leaving.callback(os.close, writing)
    return reading, writing


def _dismiss(held: subprocess.Popen[bytes]) -> None:
    """Tell the keeper that we go, and see it out."""
    if held.stdin is not None:
        held.stdin.close()
    held.wait()


def _environment(home: Path) -> dict[str, str]:
    """Nothing of ours but what fonts and the language need: no credentials, no displays, no proxies."""
    kept = {name: text for name, text in os.environ.items() if name in _KEPT or name.startswith(("LC_", "FONTCONFIG_"))}
    own = dict.fromkeys(("HOME", "TMPDIR", "XDG_CONFIG_HOME", "XDG_CACHE_HOME", "XDG_RUNTIME_DIR"), str(home))
    return {**kept, **own, "DBUS_SESSION_BUS_ADDRESS": "disabled:", "DBUS_SYSTEM_BUS_ADDRESS": "disabled:"}


def _why(code: int, complaints: bytes) -> RenderError:
    match code:
        case keeper.TIMED_OUT:
            return RenderError("timed_out", "the browser took too long over the page")
        case keeper.TOO_LARGE:
            return RenderError("too_large", f"the page needs more than {BROWSER_BYTES // MIB} MiB of memory")
        case _:
            lines = complaints.decode("utf-8", "replace").strip().splitlines() or ["it said nothing"]
            said = next((line for line in lines if "FATAL" in line), lines[-1])
            hint = " (outside root it needs its sandbox: install chromium-sandbox)" if "sandbox" in said else ""
            return RenderError("no_browser", f"the browser ended by itself: {said[:300]}{hint}")


def stream(tools: DevTools, handle: str, *, session: str) -> bytes:
    """What the browser hands over in pieces. Raises RenderError when it is more than can be written."""
    content = bytearray()
    while True:
        piece = tools.call("IO.read", {"handle": handle, "size": MIB}, session=session)
        said = piece["data"]
        content += base64.b64decode(said) if piece.get("base64Encoded") else said.encode()
        if len(content) > WRITTEN_BYTES:
            raise RenderError("too_large", f"the result has more than {WRITTEN_BYTES} bytes")
        if piece["eof"]:
            return bytes(content)


_LONGEST_HOME = 55  # it makes sockets there, whose addresses end at 108 bytes
_KEPT = ("PATH", "LANG", "LANGUAGE", "LD_LIBRARY_PATH", "TZ")
_FLAGS = (
    "--headless",
    "--remote-debugging-pipe",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--no-default-browser-check",
    "--no-pings",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-domain-reliability",
    "--disable-client-side-phishing-detection",
    "--disable-default-apps",
    "--disable-extensions",
    "--disable-sync",
    "--disable-breakpad",
    "--disable-dev-shm-usage",  # a container's /dev/shm is small; its own folder is not
    "--disable-file-system",
    "--disable-plugins",
    "--hide-scrollbars",
    "--mute-audio",
    "--metrics-recording-only",
    "--password-store=basic",
    "--force-color-profile=srgb",
    "--font-render-hinting=none",
    "--disable-features=MediaRouter,OptimizationHints,Translate,DialMediaRouteProvider,AutofillServerCommunication",
    "--host-resolver-rules=MAP * ~NOTFOUND",
    "--proxy-server=http://0.0.0.0:1",  # addresses that need no name lead nowhere either, loopback included
    "--proxy-bypass-list=<-loopback>",
    "about:blank",
)
