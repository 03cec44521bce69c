"""A real S3 server for tests: Ceph's radosgw with a monitor and a store in memory, over http and https.

It is ready in one to three seconds and ends with us: its processes are killed by their ids, also when we die ourselves.
`python -m tests.radosgw` runs one until interrupted, for trying things by hand.
"""

from __future__ import annotations

import atexit
import ctypes
import shutil
import signal
import socket
import subprocess
import tempfile
import uuid
from collections.abc import Sequence
from pathlib import Path
from time import monotonic, sleep
from typing import Any

PROGRAMS = ("ceph-mon", "ceph-osd", "radosgw", "radosgw-admin", "monmaptool", "ceph", "openssl")
PACKAGES = "apt-get update && apt-get install -y --no-install-recommends ceph-mon ceph-osd radosgw openssl"
START_CEILING = 60.0
ACCESS_KEY, SECRET_KEY = "testkey", "testsecret"


class NotInstalled(Exception):  # noqa: N818 - tests are skipped with it
    """Some of Ceph's programs are not on this machine. The message says how to get them."""


def require_programs() -> None:
    """Raises NotInstalled."""
    missing = [name for name in PROGRAMS if shutil.which(name) is None]
    if missing:
        raise NotInstalled(f"{', '.join(missing)} not found; to run the S3 tests: {PACKAGES}")


class Radosgw:
    """One running server. `http` and `https` are its endpoints, `ca_bundle` the certificate of the latter."""

    def __init__(self) -> None:
        require_programs()
        self.folder = Path(tempfile.mkdtemp(prefix="rgw-"))
        self._children: list[subprocess.Popen[bytes]] = []
        atexit.register(self.stop)
        try:
            self._ports = _free_ports(3)
            self.http = f"http://127.0.0.1:{self._ports[0]}"
            self.https = f"https://127.0.0.1:{self._ports[2]}"
            self.ca_bundle = str(self.folder / "tls.crt")
            self._start()
        except BaseException:
            self.stop()
            raise

    def environment(self) -> dict[str, str]:
        """The variables by which boto3 finds the credentials, and nothing else of ours."""
        nowhere = str(self.folder / "nothing")
        return {
            "AWS_ACCESS_KEY_ID": ACCESS_KEY,
            "AWS_SECRET_ACCESS_KEY": SECRET_KEY,
            "AWS_CONFIG_FILE": nowhere,
            "AWS_SHARED_CREDENTIALS_FILE": nowhere,
            "AWS_EC2_METADATA_DISABLED": "true",
        }

    def client(self, **options: Any) -> Any:
        """A plain boto3 client, to see with other eyes what a store did."""
        import boto3
        from botocore.config import Config

        config = Config(signature_version="s3v4", s3={"addressing_style": "path"}, max_pool_connections=32)
        return boto3.client(
            "s3",
            endpoint_url=self.http,
            region_name="us-east-1",
            aws_access_key_id=ACCESS_KEY,
            aws_secret_access_key=SECRET_KEY,
            **{"config": config, **options},
        )

    def make_bucket(self) -> str:
        """A new empty bucket with a random name."""
        name = f"bucket-{uuid.uuid4().hex[:16]}"
        self.client().create_bucket(Bucket=name)
        return name

    def stop(self) -> None:
        """Kill what we started, by its ids, and remove its folder."""
        for child in self._children:
            child.kill()
        for child in self._children:
            child.wait()
        self._children.clear()
        shutil.rmtree(self.folder, ignore_errors=True)
        atexit.unregister(self.stop)

    def _start(self) -> None:
        fsid, osd_uuid = str(uuid.uuid4()), str(uuid.uuid4())
        for name in ("mon", "osd", "run", "rgw"):
            (self.folder / name).mkdir()
        self._run(*_CERTIFICATE, "-keyout", self._in("tls.key"), "-out", self._in("tls.crt"))
        (self.folder / "ceph.conf").write_text(_CONF.format(fsid=fsid, d=self.folder, p=self._ports), "utf-8")
        conf = ("-c", self._in("ceph.conf"))
        address = f"[v2:127.0.0.1:{self._ports[1]}]"
        monmap = self._in("monmap")
        self._run("monmaptool", *conf, "--create", "--clobber", "--fsid", fsid, "--addv", "a", address, monmap)
        self._run("ceph-mon", *conf, "-i", "a", "--mkfs", "--monmap", monmap)
        self._spawn("mon", "ceph-mon", *conf, "-i", "a", "-f")
        self._await_port(self._ports[1])
        number = self._run("ceph", *conf, "osd", "new", osd_uuid).strip()
        self._run("ceph-osd", *conf, "-i", number, "--mkfs", "--osd-uuid", osd_uuid)
        self._spawn("osd", "ceph-osd", *conf, "-i", number, "-f")
        self._spawn("rgw", "radosgw", *conf, "-n", "client.rgw", "-f")
        keys = ("--access-key", ACCESS_KEY, "--secret-key", SECRET_KEY)
        self._run("radosgw-admin", *conf, "user", "create", "--uid=t", "--display-name=t", *keys)
        self._await_port(self._ports[0])
        self._await_port(self._ports[2])

    def _in(self, name: str) -> str:
        return str(self.folder / name)

    def _run(self, *command: str) -> str:
        with open(self.folder / "set-up.log", "ab") as log:
            done = subprocess.run(command, stdout=subprocess.PIPE, stderr=log, check=False, timeout=START_CEILING)
        assert done.returncode == 0, f"{command[0]} ended with {done.returncode}: {self._said()}"
        return done.stdout.decode()

    def _spawn(self, name: str, *command: str) -> None:
        with open(self.folder / f"{name}.out", "wb") as out:
            # They must not outlive us, whatever ends us: the kernel tells them.
            child = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=out, stderr=out, preexec_fn=_die_with_us)
        self._children.append(child)

    def _await_port(self, port: int) -> None:
        until = monotonic() + START_CEILING
        while True:
            try:
                socket.create_connection(("127.0.0.1", port), 1).close()
                return
            except OSError:
                ended = [child.args for child in self._children if child.poll() is not None]
                assert not ended, f"ended at once: {ended}: {self._said()}"
                assert monotonic() < until, f"nobody listens on port {port}: {self._said()}"
                sleep(0.02)

    def _said(self) -> str:
        logs = sorted([*self.folder.glob("*.out"), *self.folder.glob("*.log")])
        return "".join(f"\n{log.name}: {log.read_text('utf-8', 'replace')[-1500:]}" for log in logs)


def _free_ports(count: int) -> Sequence[int]:
    held = [socket.socket() for _ in range(count)]
    try:
        for one in held:
            one.bind(("127.0.0.1", 0))
        return [one.getsockname()[1] for one in held]
    finally:
        for one in held:
            one.close()


def _die_with_us() -> None:
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)


_PR_SET_PDEATHSIG = 1

_CERTIFICATE = (
    "openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2",
    "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1",
)  # fmt: skip

# No cephx, one copy of everything, in memory. The short intervals make the start take one second instead of thirteen,
# tcp_nodelay a small GET eight milliseconds instead of fifty; without the gc lines deleted objects fill the memory.
_CONF = """\
[global]
fsid = {fsid}
mon host = [v2:127.0.0.1:{p[1]}/0]
public addr = 127.0.0.1
cluster addr = 127.0.0.1
ms bind ipv6 = false
auth cluster required = none
auth service required = none
auth client required = none
keyring = /dev/null
run dir = {d}/run
admin socket = {d}/run/$name.asok
pid file = {d}/run/$name.pid
log file = {d}/$name.log
osd pool default size = 1
osd pool default min size = 1
osd pool default pg num = 1
osd pool default pgp num = 1
osd pool default pg autoscale mode = off
osd crush chooseleaf type = 0
mon allow pool size one = true
mon max pg per osd = 4000
mon data avail crit = 1
paxos propose interval = 0.02
paxos min wait = 0.01
objecter tick interval = 0.2
mon client hunt interval = 0.3
[mon]
mon data = {d}/mon
[osd]
osd data = {d}/osd
osd objectstore = memstore
memstore device bytes = 4G
osd class load list = *
osd class default list = *
[client]
ms mon client mode = crc secure
rgw data = {d}/rgw
rgw dns name = localhost
rgw gc obj min wait = 1
rgw gc processor period = 2
rgw gc processor max time = 2
rgw frontends = beast endpoint=127.0.0.1:{p[0]} ssl_endpoint=127.0.0.1:{p[2]} \
ssl_certificate={d}/tls.crt ssl_private_key={d}/tls.key tcp_nodelay=1
"""


if __name__ == "__main__":
    server = Radosgw()
    print(server.http, server.https, server.ca_bundle, server.make_bucket(), sep="\n")
    print("\n".join(f"export {name}={value}" for name, value in server.environment().items()), flush=True)
    try:
        signal.pause()
    except KeyboardInterrupt:
        server.stop()
