"""Five turns on real daemons: with a folder as store, and with a real S3 server over http and https."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.conversation.script import EXPECTED, INTERNAL, Conversation, told_to
from tests.daemon_process import Workspace
from tests.radosgw import Radosgw

HOSTING_FIELD = re.compile(r'\\*"(hosted_uri|rn|key)\\*"\s*:')


@pytest.fixture(params=["folder", "s3 over http", "s3 over https"])
def workspace(request: pytest.FixtureRequest, tmp_path: Path, make_workspace: Callable[..., Workspace]) -> Workspace:
    """A workspace that records every message, its daemon running."""
    settings = {"record": str(tmp_path / "record.jsonl"), "store": str(tmp_path / "hosted")}
    if request.param != "folder":
        s3: Radosgw = request.getfixturevalue("s3")
        settings["store"] = f"s3://{s3.make_bucket()}/some/prefix"
        settings["store_endpoint_url"] = s3.http if request.param.endswith("http") else s3.https
        settings["store_ca_bundle"] = s3.ca_bundle
    return make_workspace(settings=settings).start()


@pytest.mark.rule("compaction.never-loses-a-path")
@pytest.mark.rule("rehost.from-the-store")
@pytest.mark.rule("write.file-external-is-hosted")
@pytest.mark.rule("write.internal-is-never-hosted")
def test_a_conversation_of_five_turns_ends_byte_exact(workspace: Workspace, tmp_path: Path) -> None:
    conversation = Conversation(workspace)
    conversation.first_turn()
    conversation.second_turn()
    conversation.third_turn()
    conversation.fourth_turn()
    conversation.forget_everything_here()
    conversation.fifth_turn()
    assert conversation.finish() == EXPECTED
    assert (workspace.out_dir / INTERNAL).read_text() == "for nobody"
    workspace.stop()
    no_hosting_field_went_astray(conversation, (tmp_path / "record.jsonl").read_bytes())


def no_hosting_field_went_astray(conversation: Conversation, record: bytes) -> None:
    """Neither the fields nor what the runtime saw in them: in programs' traffic, digests, renderings and the view."""
    secrets = conversation.secrets
    assert len(secrets) >= 3 * len(EXPECTED)
    assert any(secret in body for body in told_to(record, "runtime") for secret in secrets), "the record has contents"
    program = told_to(record, "exec")
    assert len(program) > len(EXPECTED)
    view = (conversation.workspace.out_dir / "timeline.json").read_text("utf-8")
    for text in [*program, *conversation.digests, *conversation.rendered, view]:
        assert HOSTING_FIELD.search(text) is None, text[:2000]
        assert not [secret for secret in secrets if secret in text], text[:2000]
    handles = {secret for secret in secrets if secret.startswith("ef:")}
    for role in ("editor", "renderer"):
        for text in told_to(record, role):
            assert not [secret for secret in secrets - handles if secret in text], text[:2000]
