"""What is foretold is what is there once the entries are applied, and telling it changes nothing."""

from __future__ import annotations

import hashlib
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from sidecar.core.artifacts import describe, describe_versions
from sidecar.core.blocks import Defaults, tell
from sidecar.core.entries import BlockTold, Entry, FileSeen, SourceSet
from sidecar.core.foretelling import foretell
from sidecar.core.happened import Happened
from sidecar.core.inventory import FileFact, StatKey
from sidecar.core.paths import FilePath
from sidecar.core.state import State
from sidecar.core.told_blocks import content_block, digest_block, digest_of

PATH = FilePath("turn_1", "files", "a.md")


def change(text: str, call: str, kind: str, *, on_disk: bool, at: int) -> list[Entry]:
    """What a write of this text comes to."""
    sha256 = hashlib.sha256(text.encode()).hexdigest()
    record: dict[str, Any] = {
        "artifact_path": PATH.logical, "mime": "text/markdown", "kind": kind, "visibility": "external",
        "tool_call_id": call, "sha256": sha256, "size_bytes": len(text),
    }  # fmt: skip
    digest = digest_of(record)
    blocks = [
        digest_block(digest, turn_id="turn_1", tool_call_id=call, tool_id="react.write"),
        content_block(digest, content=text, packed=None),
    ]
    entries: list[Entry] = [BlockTold(tell(block, Defaults("turn_1", float(at)))) for block in blocks]
    if on_disk:
        fact = FileFact(PATH.physical, StatKey(1, at, len(text), at, at), sha256, "text/markdown", kept=True)
        entries.append(FileSeen(fact, float(at), call, "external"))
        entries.append(SourceSet({"sid": 7, "artifact_path": PATH.logical, "physical_path": PATH.physical}))
    return entries


@given(
    st.lists(
        st.tuples(
            st.sampled_from(["a", "b", ""]),
            st.sampled_from(["tc_1", "tc_2", "tc_3"]),
            st.sampled_from(["file", "display"]),
            st.booleans(),
        ),
        min_size=1,
        max_size=6,
    )
)
def test_what_is_foretold_comes_true(story: list[tuple[str, str, str, bool]]) -> None:
    state = State()
    tools = {"tc_1": "react.write", "tc_2": "react.write", "tc_3": "react.write"}
    for at, (text, call, kind, on_disk) in enumerate(story, 1):
        entries = change(text, call, kind, on_disk=on_disk, at=at)
        known = state.artifact(PATH)
        before = (describe(known, tools), describe_versions(known)) if known is not None else None
        foretold = foretell(known, PATH, entries, tools=tools)
        if known is not None:
            assert (describe(known, tools), describe_versions(known)) == before
        for entry in entries:
            state.decide(entry, state.revision + 1)
            state.apply(state.revision + 1, entry, Happened())
        artifact = state.artifact(PATH)
        assert artifact is not None
        assert foretold == describe(artifact, tools)
