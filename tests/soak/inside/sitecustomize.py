"""Lets a daemon of a soak say what its memory is made of, and count its objects by type, when it is sent SIGUSR2."""

from __future__ import annotations

import os

if wanted := os.environ.get("SOAK_INSIDE"):
    import ctypes
    import gc
    import json
    import re
    import signal
    import sys
    import tempfile
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

    def small_objects() -> dict[str, int]:
        """What Python's own allocator has: in use and free. It tells that to standard error only."""
        kept = os.dup(2)
        with tempfile.TemporaryFile() as file:
            os.dup2(file.fileno(), 2)
            try:
                sys._debugmallocstats()
            finally:
                os.dup2(kept, 2)
                os.close(kept)
            file.seek(0)
            told = file.read().decode()
        number = {
            name: int(n.replace(",", "")) for name, n in re.findall(r"^# ?(bytes in [\w ]+?) += +([\d,]+)", told, re.M)
        }
        whole = re.search(r"arenas \* \d+ bytes/arena += +([\d,]+)", told)
        used = number.get("bytes in allocated blocks", 0)
        return {"used": used, "free": int(whole[1].replace(",", "")) - used if whole else 0}

    def caches(objects: list[object]) -> dict[str, int]:
        """Bytes of what is kept to be fast, each of which has a limit."""
        found = {"rendered pages": 0, "changes": 0, "SQLite": 0}
        for one in objects:
            match type(one).__name__:
                case "Pages":
                    found["rendered pages"] += one.size
                case "Change":
                    found["changes"] += sys.getsizeof(one) + 8 + sys.getsizeof(one[0])
        with open("/proc/self/maps", encoding="utf-8") as mapped:
            libraries = {line.split()[-1] for line in mapped if "libsqlite3" in line}
        for library in libraries:
            used = ctypes.CDLL(library).sqlite3_memory_used
            used.restype = ctypes.c_int64
            found["SQLite"] += used()
        if apsw := sys.modules.get("apsw"):
            found["SQLite"] += apsw.memory_used()
        return found

    def say(*_: object) -> None:
        memory = {"before": resident(), "heap": heap(), "small": small_objects()}
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
            "caches": caches(objects),
            "modules": len(sys.modules),
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
