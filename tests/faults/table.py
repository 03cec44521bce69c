"""The figures of reliability: what each is to be, how the long run finds it, and the tests that find it every day."""

from __future__ import annotations

from tests.faults.figures import Row, found_by
from tests.faults.measures import crashes, guards, watching

_FAULTS, _WATCHING, _STORES = "tests/faults/", "tests/watching/", "tests/stores/"
_FOLDERS = (f"{_WATCHING}test_odd_folders.py", f"{_WATCHING}test_watch_limit.py", f"{_STORES}test_bell.py")
_OVERFLOW = f"{_WATCHING}test_workloads.py::test_twenty_thousand_files_overflow_the_kernels_queue_and_none_is_missed"
_PATHS = (f"{_STORES}test_opens.py", f"{_STORES}test_placing.py", f"{_FAULTS}test_paths.py")
_FULL = (f"{_FAULTS}test_disk.py", f"{_FAULTS}test_writing.py", f"{_FAULTS}test_world.py")
_S3 = (f"{_FAULTS}test_store.py", f"{_STORES}test_s3_sending.py", f"{_STORES}test_s3_reading.py")
_ROLES = ("tests/protocol/test_methods.py", "tests/server/test_routes.py", "tests/server/test_dispatch.py")
_SECRETS = (
    f"{_FAULTS}test_disk.py",
    "tests/server/test_wire.py",
    "tests/server/test_failures.py",
    "tests/server/test_requestlog.py",
)
_SIDS = ("tests/core/test_sources.py", f"{_WATCHING}test_odd_folders.py")

ROWS: tuple[Row, ...] = (
    Row(
        1,
        "files lost by the watch path, five scenarios, events alone",
        "0",
        watching.files_lost,
        (f"{_WATCHING}test_workloads.py",),
    ),
    Row(
        2,
        "files missing after a sync",
        "0",
        watching.read_your_writes,
        (f"{_WATCHING}test_barrier.py",),
    ),
    Row(
        3,
        "half-written files registered, by writers of every rhythm",
        "0",
        watching.half_written,
        (f"{_WATCHING}test_writers.py",),
    ),
    Row(
        4,
        "close to durable at 10 files a second",
        "p50 <= 25 ms, p99 <= 150 ms",
        watching.close_to_durable,
        (f"{_WATCHING}test_promptness.py",),
    ),
    Row(5, "a burst of 10,000 files", "0 lost, <= 3 s", watching.burst, (f"{_WATCHING}test_workloads.py",)),
    Row(6, "idle CPU", "<= 0.5 %, <= 3 %", watching.idle, ()),
    Row(7, "faults of watching that are survived", "all", found_by(*_FOLDERS, _OVERFLOW), (*_FOLDERS, _OVERFLOW)),
    Row(
        8,
        "kill -9, over all that is written",
        "0 lost, 0 unreadable",
        crashes.kills,
        (f"{_FAULTS}test_kill.py", f"{_FAULTS}test_kill_whole.py"),
    ),
    Row(
        9,
        "the n-th change of the disk fails, six ways",
        "0 lost, the waiter is told",
        crashes.failing_calls,
        (f"{_FAULTS}test_failing_disk.py",),
    ),
    Row(
        10,
        "disks after a power cut",
        "0 lost, 0 unreadable",
        crashes.power_cuts,
        (f"{_FAULTS}test_power.py",),
    ),
    Row(
        11,
        "journal logs torn or flipped",
        "clean prefix",
        crashes.torn_logs,
        (f"{_FAULTS}test_damage.py",),
    ),
    Row(12, "rows that changed silently", "all noticed", crashes.changed_rows, (f"{_FAULTS}test_damage.py",)),
    Row(13, "disks that are full, fail, and have room again", "all", found_by(*_FULL), _FULL),
    Row(14, "recovery of 10,000 and 100,000 blocks", "<= 0.2, <= 1 s", crashes.recovery, (f"{_FAULTS}test_damage.py",)),
    Row(
        15,
        "escapes while folders and links change places",
        "0",
        guards.swapped,
        (f"{_FAULTS}test_escapes.py", f"{_STORES}test_opens.py"),
    ),
    Row(16, "table of paths by operations by openers", "all", found_by(*_PATHS), _PATHS),
    Row(17, "paths made up by chance", "0 outside, >= 20 % accepted", guards.made_up, (f"{_FAULTS}test_escapes.py",)),
    Row(
        18,
        "hostile clients",
        "it lives, others' p99 <= 20 ms or 5 times calm, <= 150 MiB",
        guards.frames,
        (f"{_FAULTS}test_clients.py",),
    ),
    Row(19, "fuzzing with coverage", "0 crashes, coverage told", guards.fuzzed, ("tests/fuzzing/test_fuzzing.py",)),
    Row(20, "faults of an S3 store: right file or clear error", "all", found_by(*_S3), _S3),
    Row(21, "roles by methods", "all", found_by(*_ROLES), _ROLES),
    Row(22, "secrets that others of the same uid see, in memory, answers and logs", "0", found_by(*_SECRETS), _SECRETS),
    Row(23, "source numbers: stable, never given twice", "0", found_by(*_SIDS, times=5), _SIDS),
    Row(24, "known bugs that must still fail", "all fail", crashes.bugs, (f"{_FAULTS}test_known_bugs.py",)),
)
