"""Who sees which visibility."""

from __future__ import annotations

import pytest

from sidecar.core.artifacts import Artifact
from sidecar.core.paths import FilePath
from sidecar.server.methods.seeing import may_see

EVERYBODY = {"runtime", "renderer", "exec", "editor"}


@pytest.mark.parametrize(
    ("visibility", "roles"),
    [("external", EVERYBODY), ("internal", EVERYBODY - {"editor"}), ("pending", {"runtime", "exec"})],
)
def test_a_visibility_is_for_these_roles(visibility: str, roles: set[str]) -> None:
    artifact = Artifact(FilePath("turn_1", "files", "a"))
    artifact.visibility = visibility
    assert {role for role in EVERYBODY if may_see(role, artifact)} == roles
