"""Many slots, one after the other or some at once: each target in turn, so that stopping at any time is fair to all."""

from __future__ import annotations

import signal
import sys
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from types import FrameType

from tests.fuzzing import ledger
from tests.fuzzing.slot import Done, Slot
from tests.fuzzing.target import Target

SLOT_SECONDS = 120


class Rotation:
    """So many seconds for each target. `stop` ends it with what is known by then, all of it in the ledger."""

    def __init__(self, targets: Sequence[Target], *, seconds: int, seed: int, jobs: int = 1) -> None:
        rounds = [min(SLOT_SECONDS, seconds - at) for at in range(0, seconds, SLOT_SECONDS)]
        self._plan = [
            (target, length, seed + number) for number, length in enumerate(rounds) for target in targets
        ]  # fmt: skip
        self._jobs = jobs
        self._stopped = False
        self._running: list[Slot] = []

    def stop(self) -> None:
        self._stopped = True
        for slot in self._running:
            slot.stop()

    def run(self, tell: Callable[[Target, int, Done], None]) -> None:
        """Run it, and tell of each slot what came of it."""
        with ThreadPoolExecutor(self._jobs) as pool:
            for target, seed, done in pool.map(lambda one: self._one(*one), self._plan):
                if done is not None:
                    ledger.add(target, done, seed=seed)
                    tell(target, seed, done)

    def _one(self, target: Target, seconds: int, seed: int) -> tuple[Target, int, Done | None]:
        if self._stopped:
            return target, seed, None
        slot = Slot(target, seconds=seconds, seed=seed)
        self._running.append(slot)
        if self._stopped:
            slot.stop()
        done = slot.wait()
        self._running.remove(slot)
        return target, seed, done


def until_told(rotation: Rotation) -> None:
    """Let SIGTERM and SIGINT end it in order."""

    def end(_: int, __: FrameType | None) -> None:
        print("ending", file=sys.stderr, flush=True)
        rotation.stop()

    signal.signal(signal.SIGTERM, end)
    signal.signal(signal.SIGINT, end)
