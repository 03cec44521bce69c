"""A daemon that does as it is told, for tests of the door: `fake_daemon.py FOLDER DIARY HOW`.

It honours the lock, writes a line with its process id into the diary when it has become the daemon, and answers each
request with that id and what it was asked. Some methods are orders. HOW is what goes wrong with it.
"""

from __future__ import annotations

import json
import os
import socket
import sys
import threading
from pathlib import Path
from typing import Any

from sidecar.server import bridge, listening
from sidecar.server.framing import FrameReader, FramingFault, frame

Message = dict[str, Any]


def converse(client: socket.socket, how: str) -> None:
    """Answer what is framed; send everything else back as it is."""
    frames = FrameReader()
    greeted = False
    while chunk := client.recv(1 << 16):
        try:
            bodies = frames.feed(chunk)
        except FramingFault:
            client.sendall(chunk)
            continue
        for body in bodies:
            try:
                message = json.loads(body)
            except ValueError:
                say(client, {"id": None, "error": {"code": -32700, "message": "the body is no JSON"}})
                continue
            greeted = greeted or message.get("method") == "initialize"
            obey(client, message, how, greeted=greeted)
    client.shutdown(socket.SHUT_RDWR)
    client.close()


def obey(client: socket.socket, message: Message, how: str, *, greeted: bool) -> None:
    me: Message = {"daemon": os.getpid(), "method": message.get("method"), "params": message.get("params")}
    match message:
        case {"method": "initialize"} if how == "dies-when-greeted":
            os._exit(70)
        case {"method": "initialize"} if how == "takes-no-second-greeting" and greetings() > 1:
            say(client, {"id": message["id"], "error": {"code": -32602, "message": "I speak 2.0 only"}})
        case {"method": "die"}:
            os._exit(message["params"]["code"])
        case {"method": "half an answer"}:
            client.sendall(frame(encoded({"id": message["id"], "result": "x" * 1000}))[:500])
            os._exit(70)
        case {"method": "hang up"}:
            say(client, {"id": None, "error": {"code": -32600, "message": "I had enough"}})
            client.shutdown(socket.SHUT_WR)
        case {"method": "exit"}:
            client.shutdown(socket.SHUT_RDWR)
        case {"method": "ask me", "id": number}:
            say(client, {"id": "s:1", "method": "question"})
            say(client, {"id": number, "result": me})
        case {"method": "silence"}:
            pass
        case {"method": "workspace/status", "id": number}:
            say(client, {"id": number, "result": {"revision": 7}})
        case {"method": _, "id": number}:
            say(client, {"id": number, "result": {**me, "greeted": greeted}})
        case {"method": _}:
            say(client, {"method": "heard", "params": me})
        case _:
            say(client, {"method": "heard", "params": {**me, "answer": message}})


def say(client: socket.socket, message: Message) -> None:
    client.sendall(frame(encoded(message)))


def encoded(message: Message) -> bytes:
    return json.dumps({"jsonrpc": "2.0", **message}, separators=(",", ":")).encode()


def greetings() -> int:
    """How many daemons there have been, this one included."""
    return Path(sys.argv[2]).read_text("utf-8").count("\n")


def main(folder: str, diary: str, how: str) -> int:
    if how == "fails":
        sys.stderr.write("getting up\nthe journal is of a newer version\n\n")
        return 65
    try:
        listening.take_lock(folder)
    except listening.AlreadyServed as answer:
        sys.stderr.write(f"{answer}\n")
        return bridge.ALREADY_SERVED
    with open(diary, "a", encoding="utf-8") as lines:
        lines.write(f"{os.getpid()}\n")
    sockets = listening.bind(folder, bridge.ROLES)
    listener = sockets["exec"]
    listener.setblocking(True)
    if how == "hangs-up-on-the-first" and greetings() == 1:
        listener.accept()[0].recv(100)
        listening.unbind(folder, sockets)
        return 0
    if how == "dies-while-waking" or (how == "dies-while-waking-again" and greetings() > 1):
        listener.accept()[0].recv(100)
        sys.stderr.write("out of memory\n")
        return 70
    while True:
        threading.Thread(target=converse, args=(listener.accept()[0], how), daemon=True).start()


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
