"""Everything that is fuzzed, by name: each is a module here that is called so."""

from __future__ import annotations

from importlib import import_module

from tests.fuzzing.target import Target

NAMES = (
    "framing", "paths", "citations", "assets", "patches", "journal", "envelopes", "mentions", "sessions",
)  # fmt: skip


def target_of(name: str) -> Target:
    """Brings its module in, and what that fuzzes, and nothing else."""
    return import_module(f"tests.fuzzing.{name}").TARGET


def all_targets() -> dict[str, Target]:
    return {name: target_of(name) for name in NAMES}
