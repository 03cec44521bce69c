"""A daemon that only echoes, for tests of the door: `fake_daemon.py FOLDER DIARY HOW`.

It honours the lock, writes a line with its process id into the diary when it has become the daemon, and ends when a
client says so. HOW is what goes wrong with it.
"""

from __future__ import annotations

import os
import socket
import sys
import threading

from sidecar.server import bridge, listening

END = b"end, please"


def echo(client: socket.socket) -> None:
    while chunk := client.recv(1 << 16):
        if chunk == END:
            os._exit(0)
        client.sendall(chunk)
    client.shutdown(socket.SHUT_RDWR)
    client.close()


def main(folder: str, diary: str, how: str) -> int:
    if how == "fails":
        sys.stderr.write("getting up\nthe journal is of a newer version\n\n")
        return 65
    try:
        listening.take_lock(folder)
    except listening.AlreadyServed as answer:
        sys.stderr.write(f"{answer}\n")
        return bridge.ALREADY_SERVED
    with open(diary, "a+", encoding="utf-8") as lines:
        lines.write(f"{os.getpid()}\n")
        lines.seek(0)
        is_first = lines.read().count("\n") == 1
    sockets = listening.bind(folder, bridge.ROLES)
    listener = sockets["exec"]
    listener.setblocking(True)
    if how == "hangs-up-on-the-first" and is_first:
        listener.accept()[0].recv(100)
        listening.unbind(folder, sockets)
        return 0
    if how == "dies-while-waking":
        listener.accept()[0].recv(100)
        sys.stderr.write("out of memory\n")
        return 70
    while True:
        threading.Thread(target=echo, args=(listener.accept()[0],), daemon=True).start()


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
