"""Shows one document in a browser as its reader would see it, and prints or pictures it."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterable
from time import monotonic
from typing import Any

from artifact_render.browser import stream
from artifact_render.devtools import DevTools
from artifact_render.failures import RenderError
from artifact_render.limits import PNG_HEIGHT, WRITTEN_BYTES
from artifact_render.serving import Serving
from artifact_render.shelf import Shelf


class Showing:
    """One page in one browser; `listed` are the numbers in its list of sources.

    `show` first. What it raises is RenderError, or the browser's hanging up.
    """

    def __init__(self, tools: DevTools, shelf: Shelf, listed: Iterable[int] = ()) -> None:
        self._tools, self._shelf, self._listed = tools, shelf, frozenset(listed)
        self._session = ""
        self._world = 0
        self._serving: Serving | None = None
        self._loaded = False
        self._cut: list[str] = []

    def show(self, document: str, section: str, *, width: int, scale: float) -> None:
        """Load the document, put the list of sources at its end, and settle its links."""
        target = self._tools.call("Target.createTarget", {"url": "about:blank"})["targetId"]
        attached = self._tools.call("Target.attachToTarget", {"targetId": target, "flatten": True})
        self._session = attached["sessionId"]
        self._tools.on_event = self._happened
        self._serving = Serving(document, self._shelf)
        self._ask("Emulation.setScriptExecutionDisabled", {"value": True})
        self._ask("Page.enable")
        self._ask("Fetch.enable", {"patterns": [{"urlPattern": "*"}]})
        self._resize(width, 900, scale)
        self._ask("Page.navigate", {"url": self._shelf.address})
        self._tools.until(lambda: self._loaded)
        frame = self._ask("Page.getFrameTree")["frameTree"]["frame"]["id"]
        # A world of our own: its scripts run, those of the page do not.
        self._world = self._ask("Page.createIsolatedWorld", {"frameId": frame})["executionContextId"]
        self._run(_APPEND, section)
        self._settle_links()
        # As tall as the page, so that what is loaded only when it comes into view is in view.
        self._resize(width, self._height(scale), scale)
        self._run(_EAGER)
        self._wait_for_pictures()

    def _wait_for_pictures(self) -> None:
        """Nothing asynchronous of ours runs where scripts do not, so the page is asked again and again."""
        until = monotonic() + _SETTLING_SECONDS
        while self._run(_PENDING) and monotonic() < until:
            self._tools.idle(_LOOK_SECONDS)

    @property
    def remarks(self) -> list[str]:
        """What could not be shown, in sentences."""
        return [*(self._serving.remarks if self._serving else ()), *self._cut]

    def pdf(self) -> bytes:
        """The page on paper, A4 unless its own style says otherwise."""
        # Tags tell readers of screens what is what; on a page of very many elements they cost minutes.
        tagged = self._run(_ELEMENTS) <= _TAGGED_ELEMENTS
        tags = {"generateTaggedPDF": tagged, "generateDocumentOutline": tagged}
        made = self._ask("Page.printToPDF", {**_PAPER, **tags, "transferMode": "ReturnAsStream"})
        return stream(self._tools, made["stream"], session=self._session)

    def png(self, *, width: int, scale: float) -> bytes:
        """The whole page as one picture, as far down as a picture can go."""
        height = self._height(scale)
        clip = {"x": 0, "y": 0, "width": width, "height": height, "scale": 1}
        shot = self._ask("Page.captureScreenshot", {"format": "png", "clip": clip, "captureBeyondViewport": True})
        picture = base64.b64decode(shot["data"])
        if len(picture) > WRITTEN_BYTES:
            raise RenderError("too_large", f"the picture has more than {WRITTEN_BYTES} bytes")
        if self._run(_HEIGHT) > height:
            self._cut.append(f"the picture ends after {height} of {self._run(_HEIGHT)} pixels")
        return picture

    def _ask(self, method: str, params: dict[str, Any] | None = None) -> dict[str, Any]:
        return self._tools.call(method, params, session=self._session)

    def _run(self, function: str, *arguments: Any) -> Any:
        """Call a function of ours in the page's document; what it answers as JSON."""
        given = [{"value": argument} for argument in arguments]
        asked = {"functionDeclaration": function, "executionContextId": self._world, "arguments": given}
        done = self._ask("Runtime.callFunctionOn", {**asked, "returnByValue": True})
        if "exceptionDetails" in done:
            raise RenderError("failed", f"the page could not be settled: {done['exceptionDetails'].get('text')}")
        return done["result"].get("value")

    def _resize(self, width: int, height: int, scale: float) -> None:
        metrics = {"width": width, "height": height, "deviceScaleFactor": scale, "mobile": False}
        self._ask("Emulation.setDeviceMetricsOverride", metrics)

    def _height(self, scale: float) -> int:
        return max(1, min(int(self._run(_HEIGHT)), int(PNG_HEIGHT / scale)))

    def _settle_links(self) -> None:
        """A link to a file leads to its line in the list of sources, or nowhere: the reader has no OUT_DIR."""
        found = ((href, self._shelf.find(href)) for href in json.loads(self._run(_LINKS)))
        settled = {href: f"#source-{file.sid}" for href, file in found if file and file.sid in self._listed}
        self._run(_SETTLE, json.dumps(settled))

    def _happened(self, method: str, params: dict[str, Any], session: str) -> None:
        if method == "Fetch.requestPaused" and self._serving is not None:
            command, told = self._serving.answer(params)
            self._tools.tell(command, told, session=session)
        elif method == "Page.loadEventFired":
            # An empty page stands there first, and its end may be told late.
            self._loaded = self._serving is not None and self._serving.begun
        elif method == "Page.javascriptDialogOpening":
            self._tools.tell("Page.handleJavaScriptDialog", {"accept": False}, session=session)


_SETTLING_SECONDS, _LOOK_SECONDS = 10.0, 0.01
_LINKS_AT_MOST = 20_000  # of those that may lead to a source; the rest leads nowhere
_TAGGED_ELEMENTS = 20_000
_PAPER = {
    "printBackground": True,
    "preferCSSPageSize": True,
    "paperWidth": 8.27,
    "paperHeight": 11.69,
    "marginTop": 0.6,
    "marginBottom": 0.6,
    "marginLeft": 0.6,
    "marginRight": 0.6,
}
# A page may name an element `images` or `body`, which then stands in the way of `document.images`: so by the prototype.
_FIND = "const find = what => [...Document.prototype.querySelectorAll.call(document, what)];"
_HREF = "const hrefOf = link => typeof link.href === 'string' ? link.href : link.href.baseVal;"
# A page that fits the window is as tall as what is on it, not as the window.
_HEIGHT = f"""function () {{
  {_FIND}
  const whole = Math.max(0, ...find('html, body').map(element => element.scrollHeight))
  if (whole > innerHeight) return whole
  const bottoms = find('*').slice(0, 20000).map(element => element.getBoundingClientRect().bottom)
  const edge = find('body').map(element => parseFloat(getComputedStyle(element).marginBottom) || 0).pop() || 0
  return Math.min(whole, Math.ceil(Math.max(1, ...bottoms) + edge))
}}"""
_APPEND = f"""function (section) {{
  {_FIND}
  find('html, body').pop().insertAdjacentHTML('beforeend', section)
}}"""
_LINKS = f"""function () {{
  {_FIND} {_HREF}
  const own = find('a[href], area[href]').map(hrefOf).filter(href => href.startsWith(location.origin + '/'))
  return JSON.stringify([...new Set(own)].slice(0, {_LINKS_AT_MOST}))
}}"""
_SETTLE = f"""function (text) {{
  {_FIND} {_HREF}
  const settled = new Map(Object.entries(JSON.parse(text)))
  const here = location.href.split('#')[0] + '#'
  for (const link of find('a[href], area[href]')) {{
    const href = hrefOf(link), known = settled.get(href)
    if (known) link.setAttribute('href', known)
    else if (href.startsWith(location.origin + '/') ? !href.startsWith(here) : !/^(https?|mailto):/i.test(href))
      link.removeAttribute('href')
  }}
}}"""
_ELEMENTS = f"function () {{ {_FIND} return find('*').length }}"
_EAGER = f"""function () {{
  {_FIND}
  for (const picture of find('img[loading]')) picture.removeAttribute('loading')
}}"""
_PENDING = f"""function () {{
  {_FIND}
  return find('img').filter(picture => !picture.complete).length + (document.fonts?.status === 'loading' ? 1 : 0)
}}"""
