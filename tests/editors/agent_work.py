"""What an agent made in two turns and makes in a third: a report in two versions, a chart, a table, a PDF, sources.

It is what the real editors look at, so it is made to be looked at: their screenshots are judged by people.
"""

from __future__ import annotations

import io
from collections.abc import Sequence
from typing import Any

from PIL import Image, ImageDraw, ImageFont

from tests.daemon_process import Workspace
from tests.rpc_client import Client

QUARTERS = {"Q1": 182, "Q2": 241, "Q3": 318, "Q4": 402}
BLUE, ORANGE, INK, PAPER = (38, 98, 196), (230, 120, 40), (40, 44, 52), (255, 255, 255)
REPORT, SUMMARY = "turn_1/files/report.md", "turn_2/files/summary.pdf"
CHART, TABLE, NAMED = "turn_1/files/charts/sales.png", "turn_1/files/sales.csv", "turn_2/files/größe 🍰.md"
UNSEEN = "turn_1/files/drafts/for-me-alone.txt"
SOURCES = (
    ("https://example.org/coffee/prices", "Coffee prices reach a ten-year high", "Arabica rose by a third in a year."),
    ("https://example.com/harvest", "Harvest report: a dry spring in the south", "Yields fell in two of five regions."),
    ("https://example.net/retail", "How people buy coffee now", "Beans by post have doubled since the spring."),
    ("https://example.org/rates", "Exchange rates, monthly means", ""),
    ("https://example.com/shipping", "Freight between the continents", "Rates are back where they were."),
)

FIRST = """\
# Coffee sales

Sales rose in every quarter [[S:1]].

| Quarter | Units |
| --- | ---: |
| Q1 | 182 |
| Q2 | 241 |

Prices are *expected* to fall.
"""

SECOND = """\
# Coffee sales ☕

Sales rose in every quarter, by **a third** in the last one [[S:1]].
A dry spring made beans dearer [[S:2]], and yet more people buy them by post [[S:3]].

| Quarter | Units |
| --- | ---: |
| Q1 | 182 |
| Q2 | 241 |
| Q3 | 318 |
| Q4 | 402 |

😀 The rates are those of [[S:4]]; nobody knows what [[S:99]] says.

![Sales by quarter](charts/sales.png)
"""


class AgentWork:
    """The agent loop of one workspace."""

    def __init__(self, workspace: Workspace) -> None:
        self.workspace = workspace
        self.runtime: Client = workspace.connect("runtime", ceiling=60.0)

    def two_turns(self) -> AgentWork:
        """Two turns that ended, and a third that is open. The sources of the web are 1 to 5."""
        ask = self.runtime.call
        rows = [{"url": url, "title": title, "text": text, "source_type": "web"} for url, title, text in SOURCES]
        targets = {"name": "targets.txt", "text": "400 units in the last quarter\n"}
        ask("sources/merge", {"rows": rows})
        ask("turn/begin", {"turn_id": "turn_1", "prompt": "How did our sales go?", "attachments": [targets]})
        unseen: list[Any] = [{"path": UNSEEN, "visibility": "internal"}]
        self.call("tc_figures", "exec_tools.run", {TABLE: table(), CHART: chart(), UNSEEN: "hm\n"}, expect=unseen)
        self.call("tc_report", "write_tools.write_file", {REPORT: FIRST})
        self.call("tc_mended", "write_tools.patch", {REPORT: SECOND})
        ask("turn/end", {"turn_id": "turn_1", "completion": {"text": "They rose, as [[S:1]] says."}})
        ask("turn/begin", {"turn_id": "turn_2", "prompt": "Give me a page that I can print, and a note on sizes"})
        self.call("tc_print", "write_tools.write_pdf", {SUMMARY: pdf("Coffee sales", "Up by a third.")})
        self.call("tc_note", "write_tools.write_file", {NAMED: "# Größe 🍰\n\n🍰🍰 Sizes are in [[S:2]].\n"})
        ask("turn/end", {"turn_id": "turn_2", "completion": {"text": "There it is."}})
        ask("turn/begin", {"turn_id": "turn_3", "prompt": "Now the outlook for next year"})
        return self

    def call(
        self, tool_call_id: str, tool_id: str, files: dict[str, str | bytes], *, expect: Sequence[Any] = ()
    ) -> dict[str, Any]:
        """One tool call that writes these files, by physical path; the answer of `call/end`."""
        self.runtime.call("call/begin", {"tool_call_id": tool_call_id, "tool_id": tool_id, "params": {}})
        for path, content in files.items():
            self.workspace.write(path, content)
        return self.runtime.call("call/end", {"tool_call_id": tool_call_id, "result": "done", "expect": [*expect]})


def table() -> str:
    """A CSV that a naive reader of commas and lines gets wrong."""
    rows = [f"{name},{units},{units * 12.5:.2f}," for name, units in QUARTERS.items()]
    return "\n".join(
        ["quarter,units,revenue,remark", *rows, 'total,1143,14287.50,"beans, ground\nand ""by post"""', ""]
    )


def chart() -> bytes:
    """Bars of the four quarters, as a PNG of 720 by 420 pixels."""
    image = Image.new("RGB", (720, 420), PAPER)
    draw, font = ImageDraw.Draw(image), ImageFont.load_default(20)
    draw.text((40, 24), "Units by quarter", INK, ImageFont.load_default(26))
    for number, (name, units) in enumerate(QUARTERS.items()):
        left, top = 70 + number * 160, 350 - int(units * 0.62)
        draw.rectangle((left, top, left + 100, 350), ORANGE if name == "Q4" else BLUE)
        draw.text((left + 50, top - 16), str(units), INK, font, anchor="mm")
        draw.text((left + 50, 374), name, INK, font, anchor="mm")
    draw.line((40, 350, 690, 350), INK, 2)
    drawn = io.BytesIO()
    image.save(drawn, "PNG")
    return drawn.getvalue()


def pdf(*pages: str) -> bytes:
    """A PDF whose pages say one line each, in a font that no PDF carries with it."""
    streams = [f"BT /F1 32 Tf 72 700 Td ({text}) Tj ET".encode("latin-1") for text in pages]
    kids = " ".join(f"{4 + 2 * n} 0 R" for n in range(len(pages)))
    parts = [
        b"<< /Type /Catalog /Pages 2 0 R >>",
        f"<< /Type /Pages /Kids [{kids}] /Count {len(pages)} >>".encode(),
        b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica-Bold >>",
    ]
    for number, stream in enumerate(streams):
        page = "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 595 842] /Resources << /Font << /F1 3 0 R >> >>"
        parts.append(f"{page} /Contents {5 + 2 * number} 0 R >>".encode())
        parts.append(b"<< /Length %d >>\nstream\n%b\nendstream" % (len(stream), stream))
    out, places = bytearray(b"%PDF-1.4\n"), []
    for number, part in enumerate(parts, start=1):
        places.append(len(out))
        out += b"%d 0 obj\n%b\nendobj\n" % (number, part)
    start = len(out)
    out += b"xref\n0 %d\n0000000000 65535 f \n" % (len(parts) + 1)
    out += b"".join(b"%010d 00000 n \n" % place for place in places)
    out += b"trailer\n<< /Size %d /Root 1 0 R >>\nstartxref\n%d\n%%%%EOF\n" % (len(parts) + 1, start)
    return bytes(out)
