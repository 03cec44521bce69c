"""Who is at the other end, as the kernel says."""

from __future__ import annotations

import os
import socket

from sidecar.server.peer import parent, peer_of


def test_the_kernel_names_the_process_that_connected() -> None:
    here, there = socket.socketpair()
    with here, there:
        assert peer_of(here) == (os.getpid(), os.geteuid())


def test_over_stdio_it_is_the_process_that_started_us() -> None:
    assert parent() == (os.getppid(), os.geteuid())
