"""Render Markdown or HTML of a workspace as PDF, PNG or PowerPoint, with its pictures and its sources.

    from artifact_render import write_pdf
    done = write_pdf("report.pdf", content="# Sales [[S:1]]\\n\\n![](turn_2/files/chart.png)\\n")

The daemon brings every file that the page names, the page is drawn from a private copy of exactly those, and the result
is written by the daemon: registered, hosted and citable. A page with holes is rendered with the holes, and the daemon's
notices say which.
"""

from __future__ import annotations

from artifact_render.asking import Locked, connect
from artifact_render.failures import RenderError
from artifact_render.writing import Rendered, write_pdf, write_png, write_pptx

__version__ = "0.1.0"
__all__ = ["Locked", "RenderError", "Rendered", "connect", "write_pdf", "write_png", "write_pptx"]
