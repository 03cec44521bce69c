"""The table of everything that may be asked and told: who may ask, with what, and what can go wrong.

`sidecar/server/methods/` maps these names to handlers; a test holds both tables together.
"""

from __future__ import annotations

from dataclasses import dataclass

from protocol import notifications
from protocol.base import NoParams, Params, Payload, Result
from protocol.requests import (
    artifact,
    assets,
    call,
    citations,
    commands,
    contents,
    context,
    conversation,
    lineage,
    linking,
    rendering,
    sources,
    timeline,
    turn,
    workspace,
    writing,
)

RUNTIME = frozenset({"runtime"})
RUNTIME_EXEC = frozenset({"runtime", "exec"})
RUNTIME_EDITOR = frozenset({"runtime", "editor"})
RUNTIME_RENDERER = frozenset({"runtime", "renderer"})
NOT_EDITOR = frozenset({"runtime", "renderer", "exec"})
ANYONE = frozenset({"runtime", "renderer", "exec", "editor"})

# What every method may answer: another role asked, the daemon is about to end, or the answer is over the message limit.
ALWAYS = ("not_permitted", "shutting_down", "too_large")
PATH = ("bad_path", "unsafe_path")
# `stale` here is a request_id used again with other params; `store_unavailable`, that nobody can say whether the
# conversation goes on elsewhere.
CHANGE = ("journal_unavailable", "stale", "store_unavailable")


@dataclass(frozen=True, slots=True)
class Request:
    """One method. `progress` says whether it reports `$/progress` to a `workDoneToken`."""

    method: str
    params: type[Params]
    result: type[Result]
    summary: str
    asked_by: frozenset[str]
    fails_with: tuple[str, ...] = ()
    progress: bool = False


@dataclass(frozen=True, slots=True)
class Event:
    """One notification. It goes to those who named its `topic` in `initializationOptions.events`."""

    method: str
    payload: type[Payload]
    topic: str
    summary: str


@dataclass(frozen=True, slots=True)
class Command:
    """One command of `workspace/executeCommand`. Every role may ask; it gets what it may see."""

    command: str
    params: type[Params]
    result: type[Result]
    summary: str
    fails_with: tuple[str, ...] = ()
    progress: bool = False


_REQUESTS = (
    Request(
        "workspace/status", NoParams, workspace.StatusResult,
        "Say how the daemon, its watcher, its store and its clients are.", ANYONE, ALWAYS,
    ),
    Request(
        "workspace/sync", workspace.SyncParams, workspace.SyncResult,
        "Look at the disk now; afterwards every file complete before the request was sent is registered.",
        ANYONE, (*ALWAYS, "journal_unavailable"), progress=True,
    ),
    Request(
        "workspace/changes", workspace.ChangesParams, workspace.ChangesResult,
        "Replay the durable changes after a revision.", ANYONE, ALWAYS,
    ),
    Request(
        "workspace/outline", NoParams, workspace.OutlineResult,
        "Say which turns there are, which calls in them made something, and how much.", ANYONE, ALWAYS,
    ),
    Request(
        "turn/begin", turn.TurnBeginParams, turn.TurnBeginResult,
        "Begin a turn; asking again with equal params changes nothing, and another open turn is ended as abandoned.",
        RUNTIME, (*ALWAYS, *CHANGE, *PATH, "not_found"), progress=True,
    ),
    Request(
        "turn/end", turn.TurnEndParams, turn.TurnEndResult,
        "End the open turn: tell what the agent answered, settle and host what was made, write the views.",
        RUNTIME, (*ALWAYS, *CHANGE, "unknown_turn"), progress=True,
    ),
    Request(
        "turn/feedback", turn.TurnFeedbackParams, turn.TurnFeedbackResult,
        "Say what the user, or a machine, thinks of a turn.",
        RUNTIME, (*ALWAYS, *CHANGE, "bad_path", "unknown_turn"),
    ),
    Request(
        "call/begin", call.CallBeginParams, call.CallBeginResult,
        "Begin a tool call; the files that appear while it is open are its own.",
        RUNTIME, (*ALWAYS, *CHANGE, "unknown_turn", "not_found"),
    ),
    Request(
        "call/end", call.CallEndParams, call.CallEndResult,
        "End a tool call: look at the disk, settle who may see what it made, and number what is citable.",
        RUNTIME, (*ALWAYS, *CHANGE, "not_found"),
    ),
    Request(
        "artifact/resolve", artifact.ResolveParams, artifact.ResolveResult,
        "Find what stands at each path; a path that leads nowhere fails none of the others.", ANYONE, ALWAYS,
    ),
    Request(
        "artifact/list", artifact.ListParams, artifact.ListResult,
        "List artifacts by turn, kind, media type, visibility or beginning of their path.",
        ANYONE, (*ALWAYS, "bad_selector"),
    ),
    Request(
        "artifact/versions", artifact.VersionsParams, artifact.VersionsResult,
        "List every version of an artifact.", ANYONE, (*ALWAYS, *PATH, "not_found"),
    ),
    Request(
        "artifact/read", contents.ReadParams, contents.ReadResult,
        "Read contents as blocks, after a status of every path; absent files are brought back first.",
        ANYONE, (*ALWAYS, *CHANGE),
    ),
    Request(
        "artifact/fetch", contents.FetchParams, contents.FetchResult,
        "Fetch what stands at one path, for a program; a path that leads nowhere is told in `err`.", ANYONE, ALWAYS,
    ),
    Request(
        "artifact/rehost", contents.RehostParams, contents.RehostResult,
        "Bring the bytes of known files back into OUT_DIR.",
        NOT_EDITOR, (*ALWAYS, "journal_unavailable"), progress=True,
    ),
    Request(
        "artifact/write", writing.WriteParams, writing.WriteResult,
        "Write a whole content at a path of the open turn, as a file or as a display in the timeline.",
        RUNTIME_RENDERER, (*ALWAYS, *CHANGE, *PATH, "unknown_turn", "not_found"),
    ),
    Request(
        "artifact/patch", writing.PatchParams, writing.PatchResult,
        "Apply a diff, or a whole new text, to what stands at a path; all of it or nothing.",
        RUNTIME_RENDERER, (*ALWAYS, *CHANGE, *PATH, "unknown_turn", "not_found"),
    ),
    Request(
        "artifact/hide", writing.HideParams, writing.HideResult,
        "Put one replacement in the place of everything at a path, as the agent sees it.",
        RUNTIME, (*ALWAYS, *CHANGE, "unknown_turn", "not_found"),
    ),
    Request(
        "artifact/link", linking.LinkParams, linking.LinkResult,
        "Make a link by which a person can download a hosted file for a while.",
        RUNTIME_EDITOR, (*ALWAYS, *PATH, "not_found", "store_unavailable", "journal_unavailable"),
    ),
    Request(
        "artifact/lineage", lineage.LineageParams, lineage.LineageResult,
        "Say what an artifact was made of, or what was made of it, and whether that is all.",
        ANYONE, (*ALWAYS, *PATH, "not_found"),
    ),
    Request(
        "artifact/search", artifact.SearchParams, artifact.SearchResult,
        "Search names and contents of files below OUT_DIR.",
        ANYONE, (*ALWAYS, *PATH, "not_found", "bad_selector"), progress=True,
    ),
    Request(
        "sources/merge", sources.MergeParams, sources.MergeResult,
        "Merge rows into the sources pool; what is known already keeps its number.",
        RUNTIME_RENDERER, (*ALWAYS, *CHANGE, *PATH),
    ),
    Request(
        "sources/list", sources.SourcesListParams, sources.SourcesListResult,
        "List rows of the sources pool.", ANYONE, (*ALWAYS, "bad_selector"),
    ),
    Request(
        "sources/render", NoParams, sources.SourcesRenderResult,
        "Print the sources pool as the agent sees it.", ANYONE, ALWAYS,
    ),
    Request(
        "citations/extract", citations.ExtractParams, citations.ExtractResult,
        "Find the numbers that a text cites.", ANYONE, ALWAYS,
    ),
    Request(
        "citations/replace", citations.ReplaceParams, citations.ReplaceResult,
        "Turn the citations in a text into links.", ANYONE, ALWAYS,
    ),
    Request(
        "citations/stream", citations.StreamParams, citations.StreamResult,
        "Turn citations into links in a text that comes in pieces, however it is cut.", ANYONE, ALWAYS,
    ),
    Request(
        "assets/pull", assets.PullParams, assets.PullResult,
        "Bring every file that a page refers to or cites into OUT_DIR; what is missing is told, and no error.",
        NOT_EDITOR, (*ALWAYS, *CHANGE, *PATH, "not_found", "unknown_turn"), progress=True,
    ),
    Request(
        "timeline/append", timeline.AppendParams, timeline.AppendResult,
        "Append blocks to the timeline, all or none; the answer comes when they are durable.",
        RUNTIME, (*ALWAYS, *CHANGE, *PATH),
    ),
    Request(
        "timeline/blocks", timeline.BlocksParams, timeline.BlocksResult,
        "Read blocks as they were told.", RUNTIME_EDITOR, (*ALWAYS, *PATH, "not_found", "unknown_turn"),
    ),
    Request(
        "timeline/announce", rendering.AnnounceParams, rendering.AnnounceResult,
        "Say what the agent is to see behind its timeline; kept in memory only, in place of what was announced before.",
        RUNTIME, (*ALWAYS, *PATH),
    ),
    Request(
        "timeline/render", rendering.RenderParams, rendering.RenderResult,
        "Show the timeline as the agent sees it: from the latest summary on, then what is announced, then the sources.",
        RUNTIME_EDITOR, ALWAYS,
    ),
    Request(
        "timeline/plan_compaction", rendering.PlanParams, rendering.PlanResult,
        "Say where the timeline may be cut, and give the text to summarise; no model is asked here.", RUNTIME, ALWAYS,
    ),
    Request(
        "timeline/compact", rendering.CompactParams, rendering.CompactResult,
        "Put a summary in place of the blocks before a cut; they are no longer rendered, and still resolve.",
        RUNTIME, (*ALWAYS, *CHANGE, "bad_selector"),
    ),
    Request(
        "timeline/flush", NoParams, timeline.FlushResult,
        "Write the views of the timeline into OUT_DIR now.",
        RUNTIME, (*ALWAYS, "journal_unavailable", "store_unavailable", "unsafe_path"), progress=True,
    ),
    Request(
        "conversation/save", conversation.SaveParams, conversation.SaveResult,
        "Save something of a kind of your own to the conversation, or give what is saved its vector.",
        RUNTIME, (*ALWAYS, *CHANGE, "not_found", "unknown_turn"),
    ),
    Request(
        "conversation/fetch", conversation.FetchTurnsParams, conversation.FetchTurnsResult,
        "Show turns as people are shown them: what was said, attached, made, thought, and thought of it.",
        RUNTIME_EDITOR, (*ALWAYS, "bad_selector", "store_unavailable"),
    ),
    Request(
        "conversation/recent", conversation.RecentParams, conversation.RecentResult,
        "List what was saved, newest first.", RUNTIME_EDITOR, (*ALWAYS, "bad_path", "store_unavailable"),
    ),
    Request(
        "conversation/search", conversation.SearchTurnsParams, conversation.SearchTurnsResult,
        "Find turns by words, by a vector, or by both.", RUNTIME_EDITOR, (*ALWAYS, "bad_path", "store_unavailable"),
    ),
    Request(
        "conversation/reactions", conversation.ReactionsParams, conversation.ReactionsResult,
        "List the latest reaction per turn.", RUNTIME_EDITOR, (*ALWAYS, "bad_path", "store_unavailable"),
    ),
    Request(
        "context/fetch", context.ContextFetchParams, context.ContextFetchResult,
        "Fetch what stands at a path of the older generation; one that leads nowhere is told in `err`.",
        RUNTIME_EXEC, (*ALWAYS, "journal_unavailable"),
    ),
    Request(
        "context/bind", context.ContextBindParams, context.ContextBindResult,
        "Bind what older paths lead to into the params of a tool; what cannot be bound is told, and no error.",
        RUNTIME, (*ALWAYS, *CHANGE, "unknown_turn"),
    ),
    Request(
        "context/map_slots", context.ContextMapSlotsParams, context.ContextMapSlotsResult,
        "Map what was made into the deliverables of the open turn.",
        RUNTIME, (*ALWAYS, *CHANGE, "unknown_turn"),
    ),
    Request(
        "context/show_artifacts", context.ContextShowArtifactsParams, context.ContextShowArtifactsResult,
        "Show chosen things in few words, with at most two pictures or documents.",
        RUNTIME_EXEC, (*ALWAYS, "journal_unavailable"),
    ),
)  # fmt: skip

_EVENTS = (
    Event("sources/added", notifications.SourcesAdded, "sources", "Sources got a number."),
    Event(
        "artifacts/changed", notifications.ArtifactsChanged, "artifacts",
        "Artifacts appeared, changed, or vanished from the disk.",
    ),
    Event("timeline/appended", notifications.TimelineAppended, "timeline", "Blocks were appended."),
    Event(
        "notice/posted", notifications.NoticePosted, "notices",
        "Something is worth knowing that no answer could carry.",
    ),
)  # fmt: skip

_COMMANDS = (
    Command(
        "artifact-sidecar.open", commands.OpenParams, commands.OpenResult,
        "Say where an editor finds an artifact, or an older version of it; an absent file is brought back first.",
        ("shutting_down", "journal_unavailable", *PATH, "not_found", "not_permitted", "too_large", "store_unavailable"),
        progress=True,
    ),
    Command(
        "artifact-sidecar.rehost", commands.RehostFilesParams, commands.RehostFilesResult,
        "Bring the bytes of known files back into OUT_DIR.", ("shutting_down", "journal_unavailable"), progress=True,
    ),
    Command(
        "artifact-sidecar.cite", commands.CiteParams, commands.CiteResult,
        "Say how sources are cited in a text.", ("shutting_down", "not_found"),
    ),
)  # fmt: skip

REQUESTS: dict[str, Request] = {row.method: row for row in _REQUESTS}
COMMANDS: dict[str, Command] = {row.command: row for row in _COMMANDS}
EVENTS: dict[str, Event] = {row.method: row for row in _EVENTS}
