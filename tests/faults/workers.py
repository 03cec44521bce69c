"""Trials that need nothing of each other, in several processes at once: killing and waking leaves a core idle."""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from typing import TypeVar

T = TypeVar("T")
R = TypeVar("R")


def spread(work: Callable[[T], R], tasks: Sequence[T], *, jobs: int) -> Iterator[R]:
    """What `work` answers to each task, in their order. Each process is born anew, for a trial leaves a lot behind."""
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(jobs, mp_context=context) as pool:
        yield from pool.map(work, tasks)
