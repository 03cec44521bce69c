"""What stands on the outside of a message: where it ends, what it asks for, and by which number. No I/O.

The door reads this of every message that passes and has nothing to do with the rest. It must be right whatever stands
inside, and it must be quick, so the interpreter's own scanner does the work; `json` itself would bring `re` with it.
"""

from __future__ import annotations

from _json import encode_basestring_ascii as quoted
from _json import make_scanner

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

# As in `framing`, `parsing` and `core/limits`, which cost too much to import here. A stream that breaks them is for the
# daemon to refuse; the door only stops taking it for messages.
HEADER_BYTES = 4 * 1024
BODY_BYTES = 64 * 1024 * 1024
LENGTH_DIGITS = 12
LARGE_BYTES = 16 * 1024
HUGE_BYTES = 1024 * 1024
MOST_VALUES = 1_000_000

RESULT, REFUSAL, QUESTION, NOTE = "result", "refusal", "question", "note"
ANSWERS = (RESULT, REFUSAL)


class Frames:
    """Cuts the bytes of a stream, which come in any pieces, into whole frames.

    `fault` is set once the stream is none of frames; `take_rest` has what was not cut, and nothing more is cut.
    """

    def __init__(self) -> None:
        self.fault = False
        self._held = bytearray()
        self._needed = 0  # bytes of the unfinished frame, once its header was read

    def feed(self, chunk: bytes) -> tuple[bytes, list[tuple[int, int]]]:
        """The frames that are whole now, one behind the other, and where in them each body begins and ends."""
        spans: list[tuple[int, int]] = []
        if self._held:
            self._held += chunk
            if len(self._held) < self._needed:
                return b"", spans
            chunk, self._held = bytes(self._held), bytearray()
        at, size = 0, len(chunk)
        find = chunk.find
        self._needed = 0
        while at < size:
            # The header that nearly everybody sends is read at one go. Everything else takes the patient way.
            start = find(b"\r\n\r\n", at + 16, at + 32) + 4
            digits = chunk[at + 16 : start - 4]
            if start > 4 and digits.isdigit() and chunk[at : at + 16] == b"Content-Length: ":
                stop = start + int(digits)
                if stop <= size:
                    spans.append((start, stop))
                    at = stop
                    continue
            try:
                start, length = _header(chunk, at)
            except ValueError:
                self.fault = True
                break
            if not start:
                break
            if start + length > size:
                self._needed = start + length - at
                break
            at = start + length
            spans.append((start, at))
        if at < size:
            self._held += chunk[at:] if at else chunk
        return chunk, spans

    def take_rest(self) -> bytes:
        """The bytes that belong to no whole frame. They are forgotten here."""
        rest, self._held = bytes(self._held), bytearray()
        return rest


def _header(data: bytes, at: int) -> tuple[int, int]:
    """Where the body begins and how long it is: zeros while the header is unfinished, ValueError when it is none."""
    limit, length = at + HEADER_BYTES, -1
    while True:
        end = data.find(b"\n", at, limit)
        if end < 0:
            if len(data) >= limit:
                raise ValueError("the header is too long")
            return 0, 0
        line = data[at:end].removesuffix(b"\r")
        at = end + 1
        if not line:
            break
        name, colon, value = line.partition(b":")
        if not colon:
            raise ValueError("no header line")
        if name.lower() == b"content-length":
            if length >= 0:
                raise ValueError("two lengths")
            length = _length(value.strip(b" \t"))
    if length < 0:
        raise ValueError("no length")
    return at, length


def _length(digits: bytes) -> int:
    if not digits.isdigit() or len(digits) > LENGTH_DIGITS or int(digits) > BODY_BYTES:
        raise ValueError("no length that the daemon takes")
    return int(digits)


def frame(body: bytes) -> bytes:
    """The body with its header."""
    return b"Content-Length: %d\r\n\r\n%b" % (len(body), body)


# What the client says, which may be anything.


def members(body: bytes) -> dict[str, Any]:
    """The members of a message; those of a large one perhaps without its params. Empty for what is no JSON object.

    As everywhere in JSON the last of several members of one name counts.
    """
    if len(body) > LARGE_BYTES:
        head = body.find(b'"params"')
        found = _before(body, head) if head > 0 else {}
        # Whoever writes the name of a member in another way than this has to escape an ASCII letter.
        if found and not any(body.find(text, head) >= 0 for text in (b'"id"', b'"method"', b"\\u00")):
            return found
        if len(body) > HUGE_BYTES and _has_too_many_values(body):
            return {}  # as objects they would take gigabytes, and the daemon refuses them
    return whole(body)


def whole(body: bytes) -> dict[str, Any]:
    """All members of a message. Empty for what is no JSON object."""
    try:
        text = body.decode()
        if not text.startswith("{") or not text.endswith("}"):
            text = text.strip(" \t\r\n")
        message, end = _scan(text, 0)
    except (ValueError, StopIteration, RecursionError, SystemError):
        return {}  # SystemError: the scanner looks for its exception in `json`, which nobody has imported
    return message if end == len(text) and type(message) is dict else {}


def number_of(message: dict[str, Any]) -> int | str | None:
    """The id of a message, or None when it has none that the daemon would answer to."""
    return checked(message.get("id"))


def checked(number: object) -> int | str | None:
    """An id, if it is one: an integer of at most 64 bits, or a text that is not empty."""
    if type(number) is int:
        return number if -(2**63) <= number < 2**64 else None
    if type(number) is not str or number == "":
        return None
    try:
        number.encode()
    except UnicodeEncodeError:
        return None  # half a surrogate pair
    return number


def _has_too_many_values(body: bytes) -> bool:
    """What `parsing` asks: each value follows a comma or an opening bracket outside of the texts."""
    if _separators(body) <= MOST_VALUES:
        return False
    plain = body.replace(b"\\\\", b"").replace(b'\\"', b"")
    return plain.count(b'"') > 4 * MOST_VALUES or sum(map(_separators, plain.split(b'"')[::2])) > MOST_VALUES


def _separators(text: bytes) -> int:
    return text.count(b",") + text.count(b"[") + text.count(b"{")


def _before(body: bytes, at: int) -> dict[str, Any]:
    """The members before this place. Empty when it is within a text or within another value.

    Closed with a brace, what stands before it is an object only if nothing but the outermost brace was open.
    """
    text = body[:at].rstrip(b" \t\r\n")
    return whole(text[:-1] + b"}") if text.endswith(b",") else {}


# What the daemon says, which has one form.


def told(data: bytes, start: int, end: int) -> tuple[str, int | str | None]:
    """What this body is, and its id. An answer without an id is one to something that could not be read."""
    if data.startswith(_NUMBERED, start):
        at = start + len(_NUMBERED)
        if data[at] == _QUOTE:
            stop = data.find(b'"', at + 1, end) + 1
            raw = data[at:stop]
            number = None if b"\\" in raw else raw[1:-1].decode("utf-8", "replace")
        else:
            stop = data.find(b",", at, end)
            raw = data[at:stop]
            number = int(raw) if raw.isdigit() and len(raw) <= 20 else None
        if number is not None and data.startswith(b',"result":', stop):
            return RESULT, number
        if number is not None and data.startswith(b',"error":', stop):
            return REFUSAL, number
    elif data.startswith(_TELLING, start):
        return NOTE, None
    message = whole(data[start:end])
    number = number_of(message)
    if isinstance(message.get("method"), str):
        return (QUESTION, number) if "id" in message else (NOTE, None)
    return (RESULT if "result" in message else REFUSAL, number) if message else (NOTE, None)


def sentence_of(message: dict[str, Any]) -> str:
    """What an error answer says."""
    error = message.get("error")
    return str(error.get("message", "")) if isinstance(error, dict) else ""


def revision_of(message: dict[str, Any]) -> int:
    """The revision in a result, 0 when there is none."""
    result = message.get("result")
    revision = result.get("revision") if isinstance(result, dict) else None
    return revision if type(revision) is int else 0


_NUMBERED = b'{"jsonrpc":"2.0","id":'
_QUOTE = ord('"')
_TELLING = b'{"jsonrpc":"2.0","method":'


# What the door says by itself.


def refusal(number: int | str, kind: str, message: str, *, about: str, hint: str) -> bytes:
    """A whole frame that refuses a request as the daemon would (spec section 7, Errors)."""
    words = tuple(quoted(word).encode() for word in (message, kind, about, hint))
    told = b'{"code":-32803,"message":%b,"data":{"kind":%b,"about":%b,"hint":%b}}' % words
    return frame(b'{"jsonrpc":"2.0","id":%b,"error":%b}' % (written(number), told))


def question(number: int | str, method: str) -> bytes:
    """A whole frame that asks for something without params."""
    return frame(b'{"jsonrpc":"2.0","id":%b,"method":%b}' % (written(number), quoted(method).encode()))


def written(number: int | str) -> bytes:
    """An id as JSON."""
    return b"%d" % number if type(number) is int else quoted(str(number)).encode()


def _no_number(text: str) -> float:
    raise ValueError(f"{text} is no JSON")


class _Strict:
    """What the scanner asks of a decoder."""

    strict = True
    object_hook = object_pairs_hook = array_hook = None
    parse_float, parse_int, parse_constant = float, int, _no_number


_scan = make_scanner(_Strict)
