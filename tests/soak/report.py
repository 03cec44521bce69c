"""What a soak came to, for people: lines, quarters, a small series over time, and everything that was wrong."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from tests.soak.accounts import Accounts
from tests.soak.holding import Holding, table
from tests.soak.sampling import MIB, Sample, quarters
from tests.soak.slope import Slope, slope

WARMING = 0.1  # of the samples: caches fill first
SERIES = 12
BARS = "▁▂▃▄▅▆▇█"
PROBED = ("resolve", "read", "sync", "append")


@dataclass(slots=True)
class Outcome:
    """All that was found. `empty` is a daemon without this conversation, `soaked` and `anew` are daemons with it.

    `asked` is the one that started anew, when all of it was asked for.
    """

    what: str
    seed: int
    accounts: Accounts
    minutes: float = 0.0
    samples: list[Sample] = field(default_factory=list[Sample])
    promises: int = 0
    empty: Holding | None = None
    soaked: Holding | None = None
    anew: Holding | None = None
    asked: Holding | None = None
    lost: list[str] = field(default_factory=list[str])
    log: list[str] = field(default_factory=list[str])

    @property
    def wrong(self) -> int:
        return len(self.lost) + len(self.log) + sum(self.accounts.unexpected.values())

    @property
    def steady(self) -> list[Sample]:
        return self.samples[int(len(self.samples) * WARMING) :]


def report(outcome: Outcome) -> str:
    """All of it, as Markdown."""
    parts = [_head(outcome), _memory(outcome), _table(outcome), _latencies(outcome), _counts(outcome), _wrong(outcome)]
    return "\n".join(parts) + "\n"


def _head(outcome: Outcome) -> str:
    last = outcome.samples[-1]
    return (
        f"{outcome.minutes:.1f} minutes, seed {outcome.seed}; {outcome.what}. The daemon used "
        f"{100 * last.cpu / max(1.0, last.at):.1f}% of a core. Wrong: {outcome.wrong}.\n"
    )


def per_hour(samples: Sequence[Sample], name: str) -> Slope:
    return slope([(one.at / 3600, getattr(one, name)) for one in samples])


def per_block(samples: Sequence[Sample], name: str) -> Slope:
    return slope([(one.blocks, getattr(one, name)) for one in samples])


def _memory(outcome: Outcome) -> str:
    lines = [
        "| memory | per hour | per block told | first quarter | last quarter |",
        "| --- | ---: | ---: | ---: | ---: |",
    ]
    for name in ("rss", "pss", "uss"):
        hourly, each = per_hour(outcome.steady, name), per_block(outcome.steady, name)
        first, *_, last = quarters([getattr(one, name) for one in outcome.steady])
        lines.append(
            f"| {name.upper()} | {hourly.steep / MIB:+.2f} ± {hourly.sure / MIB:.2f} MiB "
            f"| {each.steep:+,.0f} ± {each.sure:,.0f} B "
            f"| {_mean(first) / MIB:.1f} MiB | {_mean(last) / MIB:.1f} MiB |"
        )
    if outcome.empty and outcome.soaked and outcome.anew and outcome.asked:
        held = {
            "empty": outcome.empty,
            "soaked": outcome.soaked,
            "started anew": outcome.anew,
            "and asked for all": outcome.asked,
        }
        lines += ["", _difference(outcome.empty, outcome.soaked, outcome.asked, outcome.samples[-1])]
        lines += [table(held).rstrip()]
    return "\n".join(lines) + "\n"


def _difference(empty: Holding, soaked: Holding, asked: Holding, last: Sample) -> str:
    left = soaked.resident - asked.resident
    cached, used = soaked.cached - asked.cached, soaked.used - soaked.cached - (asked.used - asked.cached)
    return (
        f"A daemon started anew on the same state after a kill -9, and asked for all of it, knows the conversation at "
        f"{(asked.resident - empty.resident) / max(1, last.blocks):,.0f} B for each of its {last.blocks:,} blocks "
        f"(with {last.counts['artifacts']:,} artifacts, {last.counts['versions']:,} versions, "
        f"{last.counts['sources']:,} sources). Work that is done has left {left / MIB:+.1f} MiB: caches "
        f"{cached / MIB:+.1f}, else in use {used / MIB:+.1f} (of it {soaked.modules - asked.modules:,} modules "
        f"imported when first needed), free, code and stacks {(left - cached - used) / MIB:+.1f}.\n"
    )


def _table(outcome: Outcome) -> str:
    samples = outcome.samples
    lines = ["| | first | last | least | most | over time |", "| --- | ---: | ---: | ---: | ---: | --- |"]
    for name in (
        "rss",
        "fds",
        "threads",
        "clients",
        "queued",
        "files",
        "blocks",
        "journal",
        "wal",
        "index",
        "kept",
        "store",
        "state",
    ):
        values: list[float] = [getattr(one, name) for one in samples]
        large = name in ("rss", "journal", "wal", "index", "kept", "store", "state", "queued")
        shown = [
            f"{value / MIB:.2f} MiB" if large else f"{value:,.0f}"
            for value in (values[0], values[-1], min(values), max(values))
        ]
        lines.append(f"| {name} | {' | '.join(shown)} | {line(values)} |")
    return "\n".join(lines) + "\n"


def line(values: Sequence[float]) -> str:
    """A row of small bars from the least to the most."""
    length = max(1, len(values) // (SERIES * 3))
    means = [_mean(values[at : at + length]) for at in range(0, len(values), length)]
    least, most = min(means), max(means)
    return "".join(BARS[round((mean - least) / ((most - least) or 1) * (len(BARS) - 1))] for mean in means)


def _latencies(outcome: Outcome) -> str:
    lines = [
        "| probe | asked | first quarter p50 / p99 | second | third | last | most |",
        "| --- | ---: | ---: | ---: | ---: | ---: | ---: |",
    ]
    for name in PROBED:
        spent = [seconds for _, seconds in outcome.accounts.latencies[name]]
        if spent:
            cells = [f"{at(part, 50):.2f} / {at(part, 99):.1f} ms" for part in quarters(spent) if part]
            lines.append(f"| {name} | {len(spent):,} | {' | '.join(cells)} | {at(spent, 100):.0f} ms |")
    return "\n".join(lines) + "\n"


def at(seconds: Sequence[float], percent: int) -> float:
    """That percentile, in milliseconds."""
    ordered = sorted(seconds)
    return 1000 * ordered[min(len(ordered) - 1, len(ordered) * percent // 100)]


def _counts(outcome: Outcome) -> str:
    accounts = outcome.accounts
    done = ", ".join(f"{name} {number:,}" for name, number in sorted(accounts.counts.items()))
    events = ", ".join(f"{name} {number:,}" for name, number in sorted(accounts.events.items()))
    refused = ", ".join(f"{name} {number:,}" for name, number in sorted(accounts.refusals.items())) or "none"
    total = sum(accounts.counts.values())
    return f"Operations: {total:,}: {done}.\n\nEvents heard: {events}.\n\nRefused, as it may be: {refused}.\n"


def _wrong(outcome: Outcome) -> str:
    return "\n".join(_faults(outcome))


def _faults(outcome: Outcome) -> Iterator[str]:
    yield f"- Acknowledged {outcome.promises:,} things, lost {len(outcome.lost)}."
    yield from (f"  - {one[:400]}" for one in outcome.lost[:20])
    unexpected = outcome.accounts.unexpected
    yield f"- Unexpected errors: {sum(unexpected.values())}."
    yield from (f"  - {name}: {number}" for name, number in unexpected.most_common())
    yield from (f"    - {one[:400]}" for one in outcome.accounts.examples)
    yield f"- Incidents, tracebacks and warnings of asyncio in the log: {len(outcome.log)}."
    yield from (f"  - {one[:400]}" for one in outcome.log[:20])


def _mean(values: Sequence[float]) -> float:
    return sum(values) / max(1, len(values))
