"""Every limit of the tool, named once. Sizes are bytes, times are seconds."""

from __future__ import annotations

KIB = 1024
MIB = 1024 * KIB

PAGE_BYTES = 10 * MIB  # of Markdown or HTML
STAGED_BYTES = 512 * MIB  # of all files of a page together
SERVED_BYTES = 64 * MIB  # of one file that the browser is given
# What one message to the daemon carries as base64, which grows by a third, with room for the rest of the request.
WRITTEN_BYTES = 47 * MIB
SPELLINGS = 1000  # ways to write a citation that the daemon is asked about

RENDER_SECONDS = 60.0
ASK_SECONDS = 150.0  # a pull waits for downloads, each of which may take two minutes
BROWSER_BYTES = 3 * 1024 * MIB  # of memory, all its processes together
WORKER_BYTES = 2 * 1024 * MIB
MESSAGE_BYTES = 256 * MIB  # of what the browser says at once

PNG_WIDTH = 1200
PNG_HEIGHT = 16_000  # pixels; browsers paint no taller surface
PICTURE_PIXELS = 64_000_000
SLIDES = 300
