"""What is known to be wrong is still found wrong: a harness that could not fail would prove nothing."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.faults.disk_shim import require_shim
from tests.faults.known_bugs import BUGS, NEED_SHIM, RIGHT, Failing


@pytest.mark.parametrize("bug", BUGS, ids=lambda bug: bug.__name__)
def test_a_known_bug_is_still_found(bug: Callable[[], Failing]) -> None:
    if bug in NEED_SHIM:
        require_shim()
    found = bug()
    print(f"{found.failed} of {found.tries}")
    assert found.failed > 0


def test_what_is_done_right_is_not_taken_for_a_bug() -> None:
    require_shim()
    assert RIGHT().failed == 0
