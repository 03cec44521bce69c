"""What others saved: blocks, turn logs, and sessions of the older generation, as any JSON whatsoever."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import orjson

from sidecar.core import blocks
from sidecar.core.blocks import HOSTING, LEVELS, Defaults, encode_head, holds_hosting, is_shallow, tell
from sidecar.core.context_blocks import TYPES, completed
from sidecar.core.context_file import as_timeline
from sidecar.core.errors import BadPath, Refusal, TooLarge, UnsafePath
from sidecar.core.glances import may_hold_hosting, may_nest
from sidecar.core.paths import is_turn_id
from sidecar.core.resumed import Resuming
from sidecar.core.state import State
from tests.core.saved_story import IDENTITY, Story
from tests.fuzzing.draw import Draw
from tests.fuzzing.target import Target, worded

# What the one who takes a block of a foreign file in counts as left out; a block that a client tells is checked before.
LEFT_OUT = (Refusal, TypeError, ValueError, KeyError, AttributeError)


def check(data: bytes) -> None:
    draw = Draw(data)
    deed = draw.pick((block, log, context))
    values = []
    for text in draw.texts(3):
        try:
            values.append(orjson.loads(text.encode("utf-8", "surrogateescape")))
        except orjson.JSONDecodeError:
            values.append(None)
    deed(*values)


def block(value: Any, *_: Any) -> None:
    if not isinstance(value, dict) or not isinstance(value.get("type"), str):
        return
    if not isinstance(value.get("meta") or {}, Mapping):
        return  # such a request is refused by its model
    try:
        told = tell(value, Defaults("turn_0", 1.0))
    except (BadPath, UnsafePath, TooLarge) as refused:
        refused.about.encode()
        return
    is_told(told, value)


def is_told(told: blocks.Told, value: Mapping[str, Any]) -> None:
    whole = orjson.loads(told.body)
    assert is_turn_id(told.head[1])
    assert all(whole[key] == item for key, item in value.items() if key not in _COMPLETED)
    encode_head(told)
    assert bool(told.head[6] & HOSTING) == holds_hosting(whole)
    assert may_hold_hosting(told.body) or not holds_hosting(whole)
    assert is_shallow(whole)
    for text in (told.body, orjson.dumps(value)):
        assert may_nest(text, LEVELS) or is_shallow(orjson.loads(text))
    again = tell(whole, Defaults("turn_9", 2.0))
    assert (again.head, again.part, again.body) == (told.head, told.part, told.body)


# What a block is given where it lacks it, or what is said in one way for good.
_COMPLETED = frozenset({"author", "turn_id", "ts", "mime", "path", "meta", "hidden", "replacement_text"})


def log(first: Any, second: Any, third: Any) -> None:
    """Logs of turns, then the pool and the timeline of a conversation: taken in, or left out and told."""
    resuming = Resuming(State(), IDENTITY, 3)
    other = Story()
    for one in (first, second):
        other.apply(*resuming.take({**one, "turn_id": "turn_1"} if isinstance(one, dict) else one))
    other.apply(*resuming.finish(third, second))
    assert len(other.bodies) == 3
    for told in other.bodies:
        assert isinstance(orjson.loads(told), dict)
    other.known()


def context(told: Any, pool: Any, _: Any) -> None:
    timeline = as_timeline(told if isinstance(told, dict) else {}, pool if isinstance(pool, dict) else {})
    turn = "turn_0"
    for one in timeline["blocks"]:
        if one is None:
            continue
        assert isinstance(one["type"], str)
        try:
            whole = completed(one, turn) if one["type"] in TYPES else one
            read = tell(whole, Defaults(turn, 0.0))
        except LEFT_OUT:
            continue
        turn = read.head[1]
        is_told(read, whole)
    assert all(is_turn_id(name) for name in timeline["turn_ids"])


def seeds() -> Iterator[bytes]:
    texts: dict[int, tuple[str, ...]] = {
        0: (
            '{"type":"react.tool.call","path":"tc:turn_1.c1.call","mime":"application/json",'
            '"text":"{\\"tool_id\\":\\"a.b\\",\\"tool_call_id\\":\\"c1\\",\\"rn\\":\\"ef:x\\"}"}',
            '{"type":"react.tool.result","turn_id":"t","path":"fi:turn_1.files/a.md","mime":"text/markdown","ts":7,'
            '"text":"x","meta":{"digest":{"artifact_path":"fi:turn_1.files/a.md","sid":3},"visibility":"internal"}}',
            '{"type":"user.attachment.meta","path":"fi:turn_1.user.attachments/a.pdf","text":"{\\"hosted_uri\\":\\"u\\"}"}',
            '{"type":"x","base64":"aGk=","hidden":true,"replacement_text":"r","ts":"2026-02-02T00:00:00Z","meta":{"rel":"read"}}',
            '{"type":"conv.range.summary","meta":{"cut":3,"about":["fi:turn_1.files/a"]},"key":"cb/x"}',
        ),
        1: (
            '{"blocks":[{"type":"a","text":"b"},{"type":"user.prompt","path":"ar:turn_1.user.prompt","text":"c"}],'
            '"indexes":[0,1],"calls":[{"tool_call_id":"c1","tool_id":"x","uses":[{"how":"declared","nodes":["fi:a"]}]}],'
            '"files":[{"physical_path":"turn_1/files/a","visibility":"external","versions":[{"before":1,"ts":2.0,'
            '"sha256":"%s","size_bytes":3,"mime":"text/plain","told":false}]}]}\xff{"next_block":3}\xff'
            '{"sources_pool":[{"sid":1,"url":"https://a"}],"max_sid":4}' % ("0" * 64),
        ),
        2: (
            '{"prior_turns":{"turn_1":{"ts":"2026-02-02T00:00:00Z","user":{"prompt":{"text":"a"},"attachments":[{"path":'
            '"turn_1/attachments/a"}]},"assistant":{"completion":"b","files":[{"path":"turn_1/files/c","mime":"x"}]},'
            '"artifacts":{"g":{"value":[{"url":"u","sid":1}],"timestamp":"2026-02-02T00:00:00Z"}},"events":[{"kind":"k"}],'
            '"slots":{"s":{"value":{"text":"t"}}},"budget_state":{"caps":{}}}},"current_turn":{"turn_id":"turn_2"},'
            '"sources_pool":[{"sid":1}],"max_sid":1}',
        ),
    }
    for deed, bodies in texts.items():
        for body in bodies:
            yield body.encode("latin-1") + bytes([deed])


TARGET = Target(
    "sessions",
    "a block is told or refused, keeps what it said, and told again is the same; what its bytes show at a glance a"
    " walk confirms; saved turns and older sessions are taken in or left out, and never raise",
    check,
    (*worded(
        '{ } [ ] , : " {"type": "type":"react.tool.call" "react.tool.result" "user.prompt" "user.attachment.meta"'
        ' "user.attachment.text" "conv.range.summary" "context.artifact" "context.slot" "context.event" "text":'
        ' "base64": "meta": "path": "turn_id": "turn_1" "ts": "mime": "application/json" "hidden":true "digest":'
        ' "replacement_text": "artifact_path": "physical_path": "hosted_uri": "rn": "key": "ef:" "cb/" "sid": "about":'
        ' "cut": "visibility": "internal" "fi:turn_1.files/a" "turn_1/files/a" "tc:turn_1.c1.result" "blocks":'
        ' "indexes": "files": "versions": "calls": "tool_call_id": "tool_id": "uses": "how": "nodes": "made_of":'
        ' "before": "sha256": "prior_turns": "current_turn": "user": "assistant": "prompt": "completion": "slots":'
        ' "attachments": "artifacts": "events": "budget_state": "sources_pool": "max_sid": "value": null true 1 1e9'
        ' "2026-02-02T00:00:00Z" \\" \\u0072n',
    ), b"\xff"),
    seeds,
    longest=1200,
)  # fmt: skip
