"""Names of blobs, handles, executions and accounting files."""

from __future__ import annotations

from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sidecar.core.conversation_names import (
    accounting_key,
    blob_key,
    conversation_prefix,
    execution_key,
    message_handle,
    message_id,
    scope_of,
    spelled,
)
from sidecar.core.storage_names import Identity
from sidecar.stores.keys import is_key

ANN = Identity("acme", "inn", "ann", "privileged", "c-1")
MOMENT = 1_771_408_921.25  # 2026-02-18 10:02:01 UTC
PARTS = st.text(st.characters(codec="utf-8", exclude_categories=("Cc", "Cs")), min_size=1, max_size=16).filter(
    lambda part: part not in (".", "..")
)


@pytest.mark.rule("store.blobs-have-the-fixed-layout")
def test_a_blob_lies_where_the_seed_says() -> None:
    name = message_id("turn.log", MOMENT, mark="m")
    assert name.startswith("artifact-2026-02-18T10-02-01-")
    assert name.endswith("-turn.log")
    assert blob_key(ANN, "turn_1", name) == (
        f"cb/tenants/acme/projects/inn/conversation/privileged/ann/c-1/turn_1/{name}.json"
    )


@pytest.mark.rule("store.blobs-have-the-fixed-layout")
def test_what_a_url_cannot_take_is_encoded_and_read_back() -> None:
    name = message_id("conv:sources_pool", MOMENT, mark="m")
    key = blob_key(ANN, "turn_1", name)
    assert "conv%3Asources_pool.json" in key
    assert spelled(key).endswith(f"/turn_1/{name}.json")


@pytest.mark.rule("store.executions-are-zipped")
def test_archives_of_an_execution_lie_where_the_seed_says() -> None:
    assert execution_key(ANN, "turn_1", "exec_tc_1", "out.zip") == (
        "cb/tenants/acme/projects/inn/executions/privileged/ann/c-1/turn_1/exec_tc_1/out.zip"
    )


@pytest.mark.rule("store.accounting-files-have-their-place")
def test_an_accounting_file_lies_where_the_seed_says() -> None:
    key = accounting_key(
        ANN, bundle_id="react", service="sidecar", turn_id="turn_1", agent="answer.generator.regular", ts=MOMENT
    )
    assert spelled(key) == (
        "accounting/acme/project/2026.02.18/sidecar/react/"
        "cb|ann|c-1|turn_1|answer.generator.regular|2026-02-18T10-02-01.250000.json"
    )
    assert "|" not in key


def test_a_handle_is_no_key_and_holds_one_part_per_colon() -> None:
    odd = Identity("a:b", "p", "u|v", "registered", "c")
    assert message_handle(odd, "turn_1", "conv:x") == "ef:a%3Ab:p:chatbot:message:u%7Cv:c:turn_1:artifact:conv%3Ax"


def test_an_id_tells_kinds_moments_and_marks_apart() -> None:
    ids = {message_id(kind, ts, mark=mark) for kind in ("a", "b") for ts in (1.0, 1.5) for mark in ("x", "y")}
    assert len(ids) == 8
    assert message_id("a", 1.0, mark="x") in ids


def test_a_scope_is_a_conversation_of_a_user_whatever_his_role_is() -> None:
    assert scope_of(ANN) == ("acme", "inn", "ann", "c-1")


@given(PARTS, PARTS, PARTS)
def test_every_name_is_a_key_and_stays_in_its_conversation(user: str, conversation: str, kind: str) -> None:
    whose = Identity("acme", "inn", user, "registered", conversation)
    key = blob_key(whose, "turn_1", message_id(kind, MOMENT, mark="m"))
    assert key.startswith(conversation_prefix(whose))
    assert key.removeprefix(conversation_prefix(whose)).count("/") == 1
    if len(quote(kind)) < 120:
        assert is_key(key)
    assert is_key(accounting_key(whose, bundle_id="", service="sidecar", turn_id="t" * 128, agent="a" * 64, ts=MOMENT))
