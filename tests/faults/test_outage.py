"""A store and an index that are away, frozen, flapping, slow or lying: work goes on, and is worked off afterwards.

`FAULTS_SIZE=long` has them away for ten minutes.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from time import monotonic

import pytest

from tests.daemon_process import Workspace
from tests.faults.chance import a_seed, tries
from tests.faults.outage import AT_MOST, Work, all_is_there
from tests.faults.tcp_front import TcpFront
from tests.faulty_front import Answer, FaultyFront, Garbage, Hang, HangUp, Slow, WrongBytes
from tests.postgres import Postgres
from tests.radosgw import Radosgw

AWAY = tries(6, long=600)
FLAPPING = tries(6, long=120)
pytestmark = [pytest.mark.timeout(2 * AWAY + 400), pytest.mark.rule("store.outages-cost-nothing-acknowledged")]


@dataclass(frozen=True, slots=True)
class World:
    """A daemon with its store behind `front` and its index behind `door`."""

    workspace: Workspace
    front: FaultyFront
    door: TcpFront
    body: Callable[[str], bytes]

    def goes(self) -> None:
        self.front.refuse()
        self.door.refuse()

    def comes_back(self) -> None:
        self.front.heal()
        self.front.accept()
        self.door.accept()


@pytest.fixture
def world(
    make_workspace: Callable[..., Workspace],
    front: FaultyFront,
    s3: Radosgw,
    bucket: str,
    postgres: Postgres,
    request: pytest.FixtureRequest,
) -> Iterator[World]:
    prefix, name = request.node.name.rpartition("[")[2].strip("]").replace(" ", "-"), postgres.database()
    door = TcpFront(postgres.port)
    settings = {
        "store": f"s3://{bucket}/{prefix}",
        "store_endpoint_url": front.url,
        "index": f"postgresql://postgres@127.0.0.1:{door.port}/{name}",
        "lease_seconds": "9",
    }
    plain = s3.client()
    workspace = make_workspace(settings=settings).start()
    yield World(
        workspace, front, door, lambda key: plain.get_object(Bucket=bucket, Key=f"{prefix}/{key}")["Body"].read()
    )
    door.stop()
    postgres.drop(name)


def gone(world: World, work: Work, _: random.Random) -> None:
    """Nobody listens where they were."""
    world.goes()
    work.turns(seconds=AWAY)
    world.comes_back()


def frozen(world: World, work: Work, _: random.Random) -> None:
    """They take what is sent and say nothing."""
    world.front.behave(Hang())
    world.door.be("frozen")
    work.turns(seconds=AWAY)
    world.front.heal()
    world.door.be("through")


def flapping(world: World, work: Work, chance: random.Random) -> None:
    """They come and go, each in moods of its own."""
    until = monotonic() + FLAPPING
    while monotonic() < until:
        world.front.heal()
        world.front.behave(chance.choice((Answer(500), Answer(503, "SlowDown"), HangUp(), Garbage(), Slow(0.3))))
        world.door.be(chance.choice(("through", "slow", "frozen")))
        if chance.random() < 0.5:
            world.door.cut()
        work.turns(seconds=chance.uniform(0.2, 1.5))
        if chance.random() < 0.5:
            world.front.heal()
            world.door.be("through")
            work.turns(seconds=chance.uniform(0.2, 1.0))
    world.front.heal()
    world.door.be("through")


def lying(world: World, work: Work, _: random.Random) -> None:
    """What they say is not what they have."""
    world.front.behave(WrongBytes())
    world.door.be("lying")
    work.turns(seconds=FLAPPING / 2)
    world.front.heal()
    world.door.be("through")
    world.door.cut()


HAPPENS = (gone, flapping, frozen, lying)[: tries(2, long=4)]  # what says nothing is waited for, twenty seconds a turn


@pytest.mark.parametrize("happens", HAPPENS, ids=lambda one: one.__name__)
def test_what_was_acknowledged_meanwhile_is_there_afterwards_and_nobody_waited(
    world: World, happens: Callable[[World, Work, random.Random], None]
) -> None:
    seed = a_seed()
    with Work(world.workspace, seed) as work:
        work.turn()
        work.settles()
        happens(world, work, random.Random(seed))
        seconds = work.settles()
    owed = work.owed
    print(
        f"{len(owed.turns)} turns, {len(owed.files)} files, {owed.answers} answers, the slowest {owed.slowest[0]:.2f} s"
        f" to {owed.slowest[1]}, {len(owed.refused)} reactions refused; worked off in {seconds:.1f} s"
    )
    all_is_there(work, world.body)
    assert owed.slowest[0] < AT_MOST
