"""Cut a byte stream into message bodies, and put a frame around a body. No I/O, no JSON, standard library only.

A frame is LSP's: header lines, an empty line, and as many bytes as `Content-Length` says. A stream that lies about a
length cannot be brought back into step, so the first fault ends it.
"""

from __future__ import annotations

import re

HEADER_BYTES = 4 * 1024
BODY_BYTES = 64 * 1024 * 1024
LENGTH_DIGITS = 12


class FramingFault(Exception):  # noqa: N818 - it is the stream that is at fault
    """The stream is out of step for good. `bodies` are those that were complete before the fault."""

    def __init__(self, sentence: str, *, bodies: tuple[bytes, ...] = ()) -> None:
        super().__init__(sentence)
        self.sentence = sentence
        self.bodies = bodies


def frame(body: bytes) -> bytes:
    """The body with its header."""
    return b"Content-Length: %d\r\n\r\n%b" % (len(body), body)


class FrameReader:
    """Takes the bytes of one stream, cut anywhere, and gives the bodies in them, the same ones however it was cut.

    Header names may have any case, the space after the colon may be missing, lines may end with a bare line feed, and
    other headers are skipped. It holds one unfinished frame at most: `header_bytes` plus `body_bytes`.
    """

    def __init__(
        self, *, header_bytes: int = HEADER_BYTES, body_bytes: int = BODY_BYTES, digits: int = LENGTH_DIGITS
    ) -> None:
        self._header_bytes = header_bytes
        self._body_bytes = body_bytes
        self._digits = digits
        self._held = bytearray()  # an unfinished header, or an unfinished body without its header
        self._length: int | None = None  # how long that body is, once its header was read
        self._fault: str | None = None

    @property
    def midway(self) -> bool:
        """Whether a frame has begun and not ended."""
        return bool(self._held) or self._length is not None

    @property
    def held(self) -> int:
        """Bytes of an unfinished frame."""
        return len(self._held)

    def forget(self) -> None:
        """Let go of an unfinished frame. Nothing is to be fed any more."""
        self._held = bytearray()

    def feed(self, data: bytes) -> list[bytes]:
        """The bodies that these bytes complete. Raises FramingFault, and then again at each later call."""
        if self._fault is not None:
            raise FramingFault(self._fault)
        bodies: list[bytes] = []
        if self._held:
            self._held += data
            if self._length is not None and len(self._held) < self._length:
                return []  # a body that arrives in many pieces is not looked at before it is whole
            held, self._held = memoryview(self._held), bytearray()
            if self._length is not None:  # it is copied once, since it may be large
                bodies.append(bytes(held[: self._length]))
                data, self._length = bytes(held[len(bodies[0]) :]), None
            else:
                data = bytes(held)
        try:
            rest = self._cut(data, bodies)
        except FramingFault as fault:
            self._fault = fault.sentence
            raise FramingFault(fault.sentence, bodies=tuple(bodies)) from None
        if rest < len(data):
            self._held += memoryview(data)[rest:]
        return bodies

    def _cut(self, data: bytes, bodies: list[bytes]) -> int:
        """Append every whole body to `bodies`; the answer is where the unfinished rest begins."""
        at = 0
        while True:
            if self._length is None:
                common = _COMMON_HEADER.match(data, at)
                if common is not None and common.end() - at <= self._header_bytes:
                    start, self._length = common.end(), self._checked(common[1])
                else:
                    start = self._header(data, at)
                    if start is None:
                        return at
                at = start
            end = at + (self._length or 0)
            if len(data) < end:
                return at
            bodies.append(data[at:end])
            at, self._length = end, None
            if at == len(data):
                return at

    def _header(self, data: bytes, at: int) -> int | None:
        """Read header lines until the empty one and remember the length; None when more bytes are needed."""
        limit = at + self._header_bytes
        length: int | None = None
        while True:
            end = data.find(b"\n", at, limit)
            if end < 0:
                if len(data) >= limit:
                    raise FramingFault(f"the header is longer than {self._header_bytes} bytes")
                return None
            line = data[at:end].removesuffix(b"\r")
            at = end + 1
            if not line:
                break
            name, colon, value = line.partition(b":")
            if not colon or _NAME.fullmatch(name) is None:
                raise FramingFault("a header line is not of the form `Name: value`")
            if name.lower() == b"content-length":
                if length is not None:
                    raise FramingFault("Content-Length is given twice")
                length = self._checked(value.strip(b" \t"))
        if length is None:
            raise FramingFault("the header has no Content-Length")
        self._length = length
        return at

    def _checked(self, digits: bytes) -> int:
        # The number of digits is looked at first: Python refuses to read very long numbers, and slowly.
        if not digits.isdigit() or len(digits) > self._digits:
            raise FramingFault(f"Content-Length is not a number of at most {self._digits} digits")
        length = int(digits)
        if length > self._body_bytes:
            raise FramingFault(f"the body is longer than {self._body_bytes} bytes")
        return length


# The header that nearly every client sends, read at one go. Everything else takes the patient way.
_COMMON_HEADER = re.compile(rb"content-length: ?([0-9]{1,20})\r\n\r\n", re.IGNORECASE)
_NAME = re.compile(rb"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
