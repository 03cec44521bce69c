"""Lets a daemon of a soak say what it holds: on SIGUSR2 it counts its objects by type. Only with `--inside`."""

from __future__ import annotations

import os

if wanted := os.environ.get("SOAK_INSIDE"):
    import ctypes
    import gc
    import json
    import signal
    import sys
    from collections import Counter

    def resident() -> int:
        with open("/proc/self/statm", encoding="ascii") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")

    def heap() -> dict[str, int]:
        """What the C library has: from the system, mapped, in use and free, over all its arenas."""
        names = [
            "arena",
            "ordblks",
            "smblks",
            "hblks",
            "hblkhd",
            "usmblks",
            "fsmblks",
            "uordblks",
            "fordblks",
            "keepcost",
        ]
        shape = type("Shape", (ctypes.Structure,), {"_fields_": [(name, ctypes.c_size_t) for name in names]})
        asked = ctypes.CDLL(None).mallinfo2
        asked.restype = shape
        said = asked()
        return {name: getattr(said, name) for name in names}

    def say(*_: object) -> None:
        memory = {"before": resident(), "heap": heap()}
        gc.collect()
        memory["collected"] = resident()
        ctypes.CDLL(None).malloc_trim(0)
        memory |= {"trimmed": resident(), "heap after": heap()}
        objects = gc.get_objects()
        counts = Counter(f"{type(one).__module__}.{type(one).__qualname__}" for one in objects)
        largest = sorted(
            (
                (len(one), sys.getsizeof(one), type(one).__name__)
                for one in objects
                if isinstance(one, dict | list | set)
            ),
            reverse=True,
        )[:40]
        said = {
            "memory": memory,
            "gc": gc.get_stats(),
            "blocks": sys.getallocatedblocks(),
            "types": counts.most_common(60),
            "largest": largest,
        }
        if tracing := sys.modules.get("tracemalloc"):
            lines = tracing.take_snapshot().statistics("lineno")[:60] if tracing.is_tracing() else []
            said["lines"] = [[str(line.traceback), line.size, line.count] for line in lines]
        with open(f"{wanted}.tmp", "w", encoding="utf-8") as file:
            json.dump(said, file)
        os.rename(f"{wanted}.tmp", wanted)

    if sys.argv[0] in ("-m", "-c"):  # it is what runs, and not one of its own programs, once argv is known
        signal.signal(signal.SIGUSR2, say)
