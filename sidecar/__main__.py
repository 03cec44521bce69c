"""The command line: `artifact-sidecar`, or `python -m sidecar`.

Only what the asked command needs is imported, so that a door starts in tens of milliseconds.
"""

from __future__ import annotations

import sys

COMMANDS = {
    "connect": "join stdin and stdout to the workspace's daemon, starting one if none answers",
    "serve": "be the daemon, in the foreground; one per workspace",
    "demo": "show the main job in a small workspace of its own",
    "status": "how the workspace and its daemon are",
    "ls": "the artifacts",
    "show": "one artifact and its content",
    "versions": "every state an artifact was in",
    "sources": "the sources pool",
    "render": "the timeline as the agent sees it",
    "sync": "look at the disk now, and say what is new",
    "watch": "what lands, as it lands",
    "mcp": "an MCP server on stdin and stdout, for any MCP client",
    "exec": "run a program as a call of a turn, in a sandbox where there can be one",
    "doctor": "the settings, where they come from, and what the system offers",
    "export": "the files, the timeline and the sources as one archive",
    "gc": "free kept bytes and stored records that are needed no more",
    "erase": "forget a turn or the whole conversation for ever",
    "index": "where conversations are indexed, and how its schema stands",
    "stop": "end the workspace's daemon",
    "restart": "end it and start another",
    "logs": "what the daemon wrote into its log",
}

USAGE = 64  # sysexits.h

HELP = f"""usage: artifact-sidecar COMMAND [--out-dir DIR] [OPTION...]

The workspace is the folder that --out-dir names, else the variable OUT_DIR.

{chr(10).join(f"  {name:<10}{says}" for name, says in COMMANDS.items())}

  --help      this text; after a command, its options
  --version   the version
"""

CONNECT_HELP = """usage: artifact-sidecar connect [--out-dir DIR] [--role ROLE] [--socket-dir DIR] [OPTION...]

Join stdin and stdout to the workspace's daemon. ROLE is exec (unless named), editor, renderer or runtime. When no
daemon answers, one is started and gets all other options (see `artifact-sidecar serve --help`).
"""


def main(argv: list[str] | None = None) -> int:
    """Run one command; the answer is the exit code."""
    match sys.argv[1:] if argv is None else argv:
        case ["-h" | "--help" | "help", *_]:
            return _print(HELP)
        case ["-V" | "--version", *_]:
            from sidecar import __version__

            return _print(f"artifact-sidecar {__version__}\n")
        case ["connect", *rest] if {"-h", "--help"} & set(rest):
            return _print(CONNECT_HELP)
        case ["connect", *rest]:
            from sidecar.server import bridge

            return bridge.main(rest)
        case ["serve", *rest]:
            from sidecar import serve

            return serve.run(rest)
        case ["mcp", *rest]:
            from sidecar.mcp import program

            return program.main(rest, says=COMMANDS["mcp"])
        case [name, *rest] if name in COMMANDS:
            from sidecar.console import commands

            return commands.main(name, rest, says=COMMANDS[name])
        case [name, *_]:
            sys.stderr.write(f"artifact-sidecar: there is no command {name!r}; --help lists them\n")
        case _:
            sys.stderr.write(HELP)
    return USAGE


def _print(text: str) -> int:
    sys.stdout.write(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
