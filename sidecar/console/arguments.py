"""Flags that commands share, and a parser whose exit code for a wrong one is sysexits' EX_USAGE."""

from __future__ import annotations

import argparse
import sys
from typing import NoReturn

USAGE = 64


class Parser(argparse.ArgumentParser):
    """Says what is wrong in one line."""

    def error(self, message: str) -> NoReturn:
        sys.stderr.write(f"{self.prog}: {message}; --help lists the options\n")
        raise SystemExit(USAGE)


def add_workspace(parser: argparse.ArgumentParser) -> None:
    """The flags that say which workspace is meant and where its daemon lives."""
    parser.add_argument("--out-dir", metavar="DIR", help="the workspace; OUT_DIR by default")
    parser.add_argument("--state-dir", metavar="DIR", help="journal, kept versions and log")
    parser.add_argument("--socket-dir", metavar="DIR", help="where the sockets' folder is")


STORE = (
    "store", "store_endpoint_url", "store_region", "store_profile", "store_ca_bundle", "store_public_endpoint_url",
)  # fmt: skip


def add_store(parser: argparse.ArgumentParser) -> None:
    """The flags of `serve` about store and index, so that one can be tried before a daemon relies on it."""
    for name in (*STORE, "index"):
        parser.add_argument(f"--{name.replace('_', '-')}", metavar="VALUE", help="as `serve` takes it")


def add_json(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="print JSON, for programs")
