"""The commands that ask the daemon one thing and print the answer."""

from __future__ import annotations

import argparse
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from typing import Any

from artifact_client import Client

from sidecar.console.output import complain, details, printable, progress, say, say_json, size, table
from sidecar.console.place import Place

OK, NO_INPUT = 0, 66
LONG = 600.0  # seconds that a look at a large disk may take


def status(place: Place, asked: argparse.Namespace) -> int:
    """How the workspace and its daemon are. Starts none."""
    with place.client_of_running() as client:
        answer = client.call("workspace/status")
    if asked.json:
        say_json(answer)
        return OK
    watcher, store, conversation = answer["watcher"], answer["store"], answer["conversation"]
    details(
        [
            ("workspace", answer["out_dir"]),
            ("conversation", "/".join(str(conversation.get(part, "-")) for part in _IDENTITY)),
            ("turn", answer.get("turn_id")),
            ("revision", answer["revision"]),
            *answer["counts"].items(),
            ("watcher", _with_reason(watcher["state"], watcher.get("reason"))),
            ("last look", watcher.get("last_look")),
            ("missed", watcher["missed"] or None),
            ("over limit", watcher["over_limit"] or None),
            ("store", ", ".join(filter(None, (store["kind"], store["state"], store.get("reason"), _waiting(store))))),
            *_conversation_store(answer.get("conversation_store", {})),
            ("daemon", f"process {place.daemon()}, up {answer['uptime_seconds']:.0f} s"),
        ]
    )
    say()
    table(("role", "queued"), [(client["role"], client["queued"]) for client in answer["clients"]])
    return OK


def _waiting(store: dict[str, Any]) -> str:
    return f"{store['waiting']} to be hosted" if store.get("waiting") else ""


def _conversation_store(said: dict[str, Any]) -> Iterator[tuple[str, object]]:
    """How the index is, and whether this daemon is the conversation's writer."""
    if not said:
        return
    yield "index", ", ".join(filter(None, (said["kind"], said["state"], said.get("reason"))))
    holder = said.get("held_by")
    yield "lease", f"{said['lease']}, {holder} writes" if holder else said.get("lease")


def ls(place: Place, asked: argparse.Namespace) -> int:
    """The artifacts."""
    chosen = {name: value for name in _FILTERS if (value := getattr(asked, name)) is not None}
    with _looked(place) as client:
        artifacts = list(all_artifacts(client, chosen))
    if asked.json:
        say_json(artifacts)
        return OK
    table(
        ("path", "size", "type", "source", "version", "visibility", "on disk"),
        [
            (
                a["artifact_path"], size(a.get("size_bytes")), a["mime"], a.get("sid"), a["version"], a["visibility"],
                a["on_disk"],
            )
            for a in artifacts
        ],
    )  # fmt: skip
    return OK


def show(place: Place, asked: argparse.Namespace) -> int:
    """One artifact and its content; for a `so:` path, its rows."""
    with place.client() as client:
        (found,) = client.call("artifact/resolve", {"paths": [asked.path]})["results"]
        fetched = client.call("artifact/fetch", {"path": asked.path})
    if asked.json:
        say_json({**found, "ret": fetched.get("ret"), "err": fetched.get("err")})
        return OK if fetched.get("err") is None else NO_INPUT
    match fetched.get("ret"):
        case list() as rows:
            _print_rows(rows)
            _complain_of_missing(fetched)
        case dict() as content:
            details(
                [
                    (name.removesuffix("_bytes").replace("_", " "), found.get("artifact", {}).get(name))
                    for name in _SHOWN
                ]
            )
            _print_content(content)
        case _:
            err = fetched.get("err") or {}
            complain(f"{asked.path}: {err.get('message') or err.get('code') or 'nothing is there'}")
            return NO_INPUT
    return OK


def versions(place: Place, asked: argparse.Namespace) -> int:
    """Every state an artifact was in, oldest first."""
    with _looked(place) as client:
        answer = client.call("artifact/versions", {"path": asked.path})["versions"]
    if asked.json:
        say_json(answer)
        return OK
    table(
        ("version", "when", "size", "origin", "edited", "call", "sha256"),
        [
            (
                v["version"], v["ts"], size(v.get("size_bytes")), v["origin"], v["edited"], v.get("tool_call_id"),
                (v.get("sha256") or "-")[:16],
            )
            for v in answer
        ],
    )  # fmt: skip
    return OK


def sources(place: Place, asked: argparse.Namespace) -> int:
    """The sources pool, or the rows of a selector."""
    with _looked(place) as client:
        answer = client.call("sources/list", {} if asked.selector is None else {"selector": asked.selector})
    if asked.json:
        say_json(answer)
        return OK
    _print_rows(answer["rows"])
    _complain_of_missing(answer)
    return OK


def render(place: Place, asked: argparse.Namespace) -> int:
    """The timeline as the agent sees it; with `--json` the messages that a model gets."""
    with _looked(place) as client:
        answer = client.call("timeline/render", {"as": "messages" if asked.json else "text"}, timeout=LONG)
    if asked.json:
        say_json(answer)
    else:
        say(printable(answer["text"], keep="\n\t"))
    return OK


def sync(place: Place, asked: argparse.Namespace) -> int:
    """Look at the disk now, and say what is new since the daemon started or since a revision."""
    with place.client() as client, progress() as heard:
        params = {"since": 0 if asked.since is None else asked.since}
        answer = client.call("workspace/sync", params, timeout=LONG, progress=heard)
    if asked.json:
        say_json(answer)
        return OK
    for path in answer["artifacts"]:
        say(printable(path))
    for path in answer["unsettled"]:
        say(f"{printable(path)}  (somebody still writes to it)")
    say(
        f"revision {answer['revision']}: {len(answer['artifacts'])} artifacts, {len(answer['sources'])} sources, "
        f"{len(answer['unsettled'])} still open" + (", and more than a limit allows" if answer.get("truncated") else "")
    )
    return OK


_IDENTITY = ("tenant", "project", "user_id", "conversation_id")
_FILTERS = ("turn_id", "kind", "mime", "visibility", "prefix")
_SHOWN = (
    "artifact_path", "physical_path", "turn_id", "kind", "mime", "visibility", "description", "tool_call_id", "tool_id",
    "version", "origin", "on_disk", "hidden", "size_bytes", "sha256", "ts", "sid", "sources_used",
)  # fmt: skip


@contextmanager
def _looked(place: Place) -> Generator[Client]:
    """A client of a daemon that knows every file that is complete by now."""
    with place.client() as client:
        with progress() as heard:
            client.call("workspace/sync", timeout=LONG, progress=heard)
        yield client


def _with_reason(state: str, reason: str | None) -> str:
    return f"{state} ({reason})" if reason else state


def all_artifacts(client: Client, chosen: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Every artifact that passes the filters of `artifact/list`, page by page."""
    cursor: str | None = None
    while True:
        page = client.call("artifact/list", chosen if cursor is None else {**chosen, "cursor": cursor})
        yield from page["artifacts"]
        cursor = page["next_cursor"]
        if cursor is None:
            return


def _print_rows(rows: list[dict[str, Any]]) -> None:
    table(
        ("source", "kind", "what", "type", "title"),
        [
            (
                row["sid"], row.get("source_type"), row.get("artifact_path") or row.get("url"), row.get("mime"),
                row.get("title"),
            )
            for row in rows
        ],
    )  # fmt: skip


def _print_content(content: dict[str, Any]) -> None:
    if content.get("text") is not None:
        say()
        say(printable(content["text"], keep="\n\t").removesuffix("\n"))
    if content.get("truncated"):
        complain(f"the rest is in {content.get('physical_path')}")


def _complain_of_missing(answer: dict[str, Any]) -> None:
    if answer.get("missing"):
        complain(f"no source has the number {', '.join(map(str, answer['missing']))}")
