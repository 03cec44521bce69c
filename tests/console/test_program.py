"""What is told to a program while it runs; `test_exec.py` runs whole commands."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from pathlib import Path

from sidecar.console.program import Ended, Order, run

SCRIPT = """
import signal, sys, time
signal.signal(signal.SIGINT, lambda *_: sys.exit(5))
open("ready", "w").close()
for _ in range(100):
    time.sleep(0.05)
"""


def test_a_signal_is_passed_on_that_interrupts_no_waiting(tmp_path: Path) -> None:
    """It is given to another thread, so nothing that this one sleeps in returns: as when it comes just before that."""

    def interrupt() -> None:
        while not (tmp_path / "ready").exists():
            time.sleep(0.01)
        time.sleep(0.2)
        signal.pthread_kill(threading.get_ident(), signal.SIGINT)

    interrupter = threading.Thread(target=interrupt)
    interrupter.start()
    channel, other = os.pipe()
    try:
        order = Order([sys.executable, "-c", SCRIPT], dict(os.environ), str(tmp_path), channel)
        assert run(order, lambda: None) == Ended(5)
    finally:
        interrupter.join()
        os.close(channel)
        os.close(other)
