"""What can be spared goes in its order; the last copy of anything never does."""

from __future__ import annotations

from typing import Any

import pytest

from sidecar.core.artifacts import Artifact, Artifacts
from sidecar.core.conversation_names import blob_key, message_id
from sidecar.core.inventory import FileFact, StatKey
from sidecar.core.paths import parse_physical
from sidecar.core.spare import Spare, kind_in, spare
from sidecar.core.storage_names import Identity

pytestmark = pytest.mark.rule("cli.export-and-gc")

OLD, OLDER, NEW, LOST, SENT = ("a" * 64, "b" * 64, "c" * 64, "d" * 64, "e" * 64)
SIZES = dict.fromkeys((OLD, OLDER, NEW, LOST, SENT), 10)


def artifacts(*, hosted: str = "") -> list[Artifact]:
    known = Artifacts()
    path = parse_physical("turn_1/files/a.txt")
    for ts, sha256 in enumerate((OLDER, OLD, NEW)):
        fact = FileFact(path.physical, StatKey(1, ts, 10, ts, ts), sha256, "text/plain", True)
        known.see(path, fact, ts=float(ts), call="tc_1", visibility="external")
    if hosted:
        known.at(path).host(hosted, {"key": "k"})
    return list(known)


def sparing(keep_bytes: int, **options: Any) -> Spare:
    known = artifacts(**options)
    return spare(known, SIZES, lambda one: one.is_hosted, awaited={SENT}, keep_bytes=keep_bytes)


def test_what_nobody_knows_goes() -> None:
    assert sparing(100) == Spare((LOST,), (), ())


def test_what_is_hosted_goes_even_if_it_is_the_latest() -> None:
    assert sparing(100, hosted=NEW).hosted == (NEW,)


def test_superseded_versions_go_oldest_first_until_the_rest_fits() -> None:
    assert sparing(40).superseded == ()
    assert sparing(30).superseded == (OLDER,)
    assert sparing(0).superseded == (OLDER, OLD)


@pytest.mark.parametrize("kind", ["turn.log", "conv:sources_pool", "turn.log.reaction", "my-turn.log", "wörter/~1"])
def test_a_key_tells_the_kind_of_its_record(kind: str) -> None:
    identity = Identity("t", "p", "u", "registered", "c")
    key = blob_key(identity, "turn_1", message_id(kind, 5.0, mark="x"))
    assert kind_in(key) == ("" if "/" in kind else kind)


@pytest.mark.parametrize("key", ["", "a/turn.log.json", f"a/{'0' * 64}.json", "a/artifact-x-turn.log.json"])
def test_any_other_key_tells_no_kind(key: str) -> None:
    assert kind_in(key) == ""
