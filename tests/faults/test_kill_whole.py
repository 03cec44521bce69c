"""kill -9 of a whole daemon under clients of several roles: what they were answered is there after a restart."""

from __future__ import annotations

import pytest

from tests.daemon_process import Workspace
from tests.faults.chance import a_seed
from tests.faults.whole_deaths import die_under_clients

DEATHS = 12


@pytest.mark.timeout(240)
def test_whatever_clients_were_answered_survives_a_dozen_kills(workspace: Workspace) -> None:
    ledger = die_under_clients(workspace, deaths=DEATHS, seed=a_seed())
    print(f"{DEATHS} deaths, {ledger.acknowledged} acknowledgements")
    assert ledger.acknowledged > 10 * DEATHS
