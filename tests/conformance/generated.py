"""Cases that are tables rather than stories: every refused path, and every role, against every method."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from protocol.methods import REQUESTS
from tests.conformance.case import Case, from_json, load, paths

Step = dict[str, Any]

UNSAFE = (
    "",
    "fi:",
    "/etc/passwd",
    "//x",
    "../x",
    "./../x",
    "././x",
    "..",
    ".",
    "turn_1/files/../../x",
    "turn_1/files/./x",
    "turn_1/files/x/..",
    "turn_1/files/",
    "turn_1/files//x",
    "turn_1//files/x",
    "turn_1/files/a\\b",
    "\\x",
    "turn_1/files/a\x00b",
    "turn_1/files/a\nb",
    "turn_1/files/a\x7fb",
    "C:/x",
    "c:x",
    "fi:../x",
    "fi:/etc/passwd",
    "fi:turn_1.files/",
    "fi:turn_1.files/../../x",
    "fi:turn_1.files//etc/passwd",
    "fi:turn_1.user.attachments/../x",
    "fi:turn_1.user.attachments/a\\b",
    "turn_1/files/" + "n" * 256,
    "turn_1/files/" + "é" * 128,
    "turn_1/files" + "/n23456789" * 409,
)
BAD = (
    "xx:turn_1.files/a.txt",
    "so:sources_pool[1",
    "so:sources",
    "sources_pool[1",
    "ar:",
    "ar:turn_1",
    "ar:a turn.user.prompt",
    "tc:turn_1.tc_1.reply",
    "tc:turn_1.a call.result",
    "su:turn_1.conv.range",
)
REFUSED = tuple([(text, "unsafe_path") for text in UNSAFE] + [(text, "bad_path") for text in BAD])


TAKE_LISTS = ("artifact/resolve", "artifact/read", "artifact/rehost")


def refusals() -> list[Case]:
    """The refused texts through every method that takes a path, and nothing left on disk by any of them."""
    return [_refusal(method, steps) for method, steps in _refusing_steps().items()]


def _refusal(method: str, steps: Iterable[Step]) -> Case:
    return from_json(
        f"refusals-{method.replace('/', '-')}",
        {
            "about": f"What is no legal path is refused by {method}, and nothing comes of it on disk.",
            "rules": [
                "refusals.hold-through-every-method",
                "refusals.nothing-is-left-on-disk",
                "refusals.never-an-exception",
                "errors.a-list-answers-per-path" if method in TAKE_LISTS else "errors.one-path-is-refused-as-a-whole",
            ],
            "given": {"files": {"turn_1/files/a.txt": "a"}, "outside": {"x": "not yours"}},
            "steps": [
                *steps,
                {
                    "call": "artifact/search",
                    "params": {"root": "", "name_regex": "."},
                    "result": {"hits": [{"path": "turn_1/files/a.txt", "size_bytes": 1}]},
                },
            ],
        },
    )


def _refusing_steps() -> dict[str, list[Step]]:
    asked = [text for text, _ in REFUSED]
    return {
        "artifact/resolve": [
            {
                "call": "artifact/resolve",
                "params": {"paths": asked},
                "result": {"results": [{"path": text, "found": False, "reason": kind} for text, kind in REFUSED]},
            }
        ],
        "artifact/read": [
            {
                "call": "artifact/read",
                "params": {"paths": asked},
                "result": {
                    "status": {"paths": [{"path": text, "missing": kind} for text, kind in REFUSED], "missing": asked},
                    "blocks": [],
                },
            }
        ],
        "artifact/rehost": [
            {
                "call": "artifact/rehost",
                "params": {"paths": asked},
                "result": {"rehosted": [], "missing": [{"path": text, "reason": kind} for text, kind in REFUSED]},
            }
        ],
        "artifact/fetch": [
            {
                "call": "artifact/fetch",
                "params": {"path": text},
                "result": {"ret": None, "err": {"code": kind, "message": "$any", "details": {}}},
            }
            for text, kind in REFUSED
        ],
        "artifact/versions": _errors("artifact/versions", lambda text: {"path": text}, REFUSED),
        "artifact/lineage": _errors("artifact/lineage", lambda text: {"path": text, "direction": "up"}, REFUSED),
        "assets/pull": _errors("assets/pull", lambda text: {"path": text}, REFUSED),
        "timeline/blocks": _errors("timeline/blocks", lambda text: {"path": text}, REFUSED),
        "artifact/search": _errors(
            "artifact/search",
            lambda text: {"root": text, "name_regex": "."},
            [(text, "unsafe_path") for text in UNSAFE if text and not text.startswith("fi:")],
        ),
        "sources/merge": _errors(
            "sources/merge",
            lambda text: {"rows": [{"source_type": "file", "artifact_path": text}]},
            [(text, kind) for text, kind in REFUSED if text.startswith("fi:") or kind == "bad_path"],
        ),
    }


def _errors(method: str, params: Callable[[str], Step], table: Iterable[tuple[str, str]]) -> list[Step]:
    return [{"call": method, "params": params(text), "error": kind} for text, kind in table]


# What lies in OUT_DIR and is no regular file of ours: a link to a file, a file behind a linked folder, a link to
# itself, a FIFO.
TRAPS = ("turn_1/files/link.txt", "turn_1/files/folder/x", "turn_1/files/loop", "turn_1/files/pipe")


def traps() -> Case:
    """Links and FIFOs in OUT_DIR lead nowhere, through every method that opens or looks."""
    refused = "unsafe_path"
    return from_json(
        "refusals-links-and-pipes",
        {
            "about": "Links are never followed and FIFOs never opened, whichever method names them.",
            "rules": [
                "refusals.links-are-never-followed",
                "refusals.special-files-are-never-opened",
                "refusals.nothing-is-left-on-disk",
                "refusals.hold-through-every-method",
            ],
            "given": {
                "outside": {"x": "not yours"},
                "files": {"turn_1/files/a.txt": "a"},
                "links": {
                    "turn_1/files/link.txt": "../../../outside/x",
                    "turn_1/files/folder": "../../../outside",
                    "turn_1/files/loop": "loop",
                    "turn_2": "../outside",
                },
            },
            "steps": [
                {"fifo": ["turn_1/files/pipe"]},
                {"call": "workspace/sync", "params": {"since": 0}, "result": {"artifacts": ["fi:turn_1.files/a.txt"]}},
                {
                    "call": "artifact/resolve",
                    "params": {"paths": list(TRAPS)},
                    "result": {"results": [{"path": path, "found": False, "reason": refused} for path in TRAPS]},
                },
                {
                    "call": "artifact/read",
                    "params": {"paths": list(TRAPS)},
                    "result": {"status": {"paths": [{"missing": refused} for _ in TRAPS]}, "blocks": []},
                },
                {
                    "call": "artifact/rehost",
                    "params": {"paths": list(TRAPS)},
                    "result": {"rehosted": [], "missing": [{"reason": refused} for _ in TRAPS]},
                },
                *[
                    {
                        "call": "artifact/fetch",
                        "params": {"path": path},
                        "result": {"ret": None, "err": {"code": refused}},
                    }
                    for path in TRAPS
                ],
                *_errors("artifact/versions", lambda path: {"path": path}, [(path, refused) for path in TRAPS]),
                *_errors("assets/pull", lambda path: {"path": path}, [(path, refused) for path in TRAPS]),
                {
                    "call": "assets/pull",
                    "params": {"content": "".join(f"<img src='{path}'>" for path in TRAPS)},
                    "result": {"present": [], "rehosted": [], "missing": [{"reason": refused} for _ in TRAPS]},
                },
                *_errors(
                    "artifact/search",
                    lambda path: {"root": path, "name_regex": "."},
                    [("turn_1/files/folder", refused), ("turn_2", refused)],
                ),
                {
                    "call": "artifact/search",
                    "params": {"root": "", "content_regex": "."},
                    "result": {"hits": [{"path": "turn_1/files/a.txt"}]},
                },
                {"on_disk": {"turn_1/files/link.txt": "not yours"}},
            ],
        },
    )


# Who may ask what, as the specification's table has it. Methods of later issues stand here already.
R, W, X, E = "runtime", "renderer", "exec", "editor"
ALL = (R, W, X, E)
ASKED_BY: dict[str, tuple[str, ...]] = {
    "workspace/status": ALL,
    "workspace/sync": ALL,
    "workspace/changes": ALL,
    "workspace/outline": ALL,
    "turn/begin": (R,),
    "turn/end": (R,),
    "turn/feedback": (R,),
    "call/begin": (R,),
    "call/end": (R,),
    "artifact/resolve": ALL,
    "artifact/list": ALL,
    "artifact/versions": ALL,
    "artifact/read": ALL,
    "artifact/fetch": ALL,
    "artifact/rehost": (R, W, X),
    "artifact/write": (R, W),
    "artifact/patch": (R, W),
    "artifact/hide": (R,),
    "artifact/search": ALL,
    "artifact/link": (R, E),
    "artifact/lineage": ALL,
    "sources/merge": (R, W),
    "sources/list": ALL,
    "sources/render": ALL,
    "citations/extract": ALL,
    "citations/replace": ALL,
    "citations/stream": ALL,
    "assets/pull": (R, W, X),
    "timeline/append": (R,),
    "timeline/blocks": (R, E),
    "timeline/announce": (R,),
    "timeline/render": (R, E),
    "timeline/plan_compaction": (R,),
    "timeline/compact": (R,),
    "timeline/flush": (R,),
    "conversation/save": (R,),
    "conversation/fetch": (R, E),
    "conversation/recent": (R, E),
    "conversation/search": (R, E),
    "conversation/reactions": (R, E),
    "context/fetch": (R, X),
    "context/bind": (R,),
    "context/map_slots": (R,),
    "context/show_artifacts": (R, X),
}


def examples() -> dict[str, Any]:
    """Method -> the params of its first step in the cases that is not filled in from an answer before it."""
    found: dict[str, Any] = {}
    for path in paths():
        for step in load(path).steps:
            if "call" in step and "result" in step and "$kept" not in str(step.get("params")):
                found.setdefault(step["call"], step.get("params"))
    return found


def roles() -> list[Case]:
    """One case per role: each method that is not its own is refused, and so is each that does not exist yet."""
    params = examples()
    cases = []
    for role in ALL:
        denied = [method for method, askers in ASKED_BY.items() if method in REQUESTS and role not in askers]
        absent = [method for method in ASKED_BY if method not in REQUESTS]
        asked = [
            {"call": m, "params": params[m], "error": "not_permitted"} for m in denied if params.get(m) is not None
        ]
        asked += [{"call": m, "error": "not_permitted"} for m in denied if params.get(m) is None]
        asked += [{"call": m, "params": {}, "error": -32601} for m in absent]
        cases.append(
            from_json(
                f"roles-{role}",
                {
                    "about": f"The {role} is refused every method that is not in its column of the table.",
                    "rules": ["roles.default-deny", "wire.only-working-methods-are-declared"],
                    "as": role,
                    "steps": [{"connect": role, "result": {"role": role}}, *asked],
                },
            )
        )
    return cases


def generated() -> list[Case]:
    return [*refusals(), traps(), *roles()]
