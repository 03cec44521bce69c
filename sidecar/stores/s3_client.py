"""boto3 clients for one store: made at the first use, one Session, one client for all threads.

Importing boto3 and making the first client costs a third of a second and 40 MB, which no daemon without an `s3://`
store pays. A client is safe to share between threads; a Session is not, so clients are made under a lock.
"""

from __future__ import annotations

import logging
import threading
from dataclasses import dataclass
from datetime import datetime
from email.utils import parsedate_to_datetime
from io import BytesIO
from typing import Any
from urllib.parse import urlsplit

from sidecar import __version__

Client = Any
"""A boto3 client for S3. boto3 makes its classes when it runs and ships no types."""

POOL = 32
# A body of so many bytes is sent without asking first whether it is welcome: the question costs more than the bytes.
UNASKED_BYTES = 1024 * 1024

# At debug level they write signatures, session tokens and presigned URLs.
_TALKATIVE = ("boto3", "botocore", "s3transfer", "urllib3")


@dataclass(frozen=True, slots=True, kw_only=True)
class Timing:
    """Seconds, and how often a call is tried. A peer that hangs costs `attempts * (connect + read)` and some rest."""

    connect: float = 3.0
    read: float = 20.0
    attempts: int = 3


PROBE_READ = 5.0


class Clients:
    """The clients of one store: `main` for the work, `links` to sign URLs that others reach, `probing` in a hurry.

    The endpoint is `endpoint_url`, else what boto3 finds in the environment and the profile, else AWS. Credentials come
    from boto3's own chain alone.
    """

    def __init__(
        self,
        *,
        endpoint_url: str | None,
        region: str | None,
        profile: str | None,
        ca_bundle: str | None,
        public_endpoint_url: str | None,
        timing: Timing,
    ) -> None:
        self.ca_bundle = ca_bundle
        self.timing = timing
        self._endpoint_url = endpoint_url
        self._public_endpoint_url = public_endpoint_url
        self._region = region
        self._profile = profile
        self._lock = threading.RLock()
        self._session: Any = None
        self._made: dict[str, Client] = {}

    def main(self) -> Client:
        """The client that does the work. Raises what boto3 raises when it cannot be made."""
        return self._made.get("main") or self._make("main", self._endpoint_url, self.timing)

    def links(self) -> Client:
        """A client that only signs: it never connects, and its URLs hold the endpoint that people reach."""
        if self._public_endpoint_url is None:
            return self.main()
        return self._made.get("links") or self._make("links", self._public_endpoint_url, self.timing)

    @property
    def hurried(self) -> Timing:
        """One try, and no long wait."""
        return Timing(connect=self.timing.connect, read=min(self.timing.read, PROBE_READ), attempts=1)

    def probing(self) -> Client:
        """A client that tries once and does not wait for long."""
        return self._made.get("probing") or self._make("probing", self._endpoint_url, self.hurried)

    def close(self) -> None:
        """Let go of every connection."""
        with self._lock:
            for client in self._made.values():
                client.close()
            self._made.clear()

    def _make(self, name: str, endpoint_url: str | None, timing: Timing) -> Client:
        with self._lock:
            if name not in self._made:
                if self._session is None:
                    self._session = self._begin()
                endpoint_url = endpoint_url or self._configured_endpoint()
                self._made[name] = self._client(endpoint_url, timing)
            return self._made[name]

    def _begin(self) -> Any:
        import boto3
        from botocore.session import get_session

        for talker in _TALKATIVE:
            logging.getLogger(talker).setLevel(logging.WARNING)
        session = get_session()
        session.get_component("response_parser_factory").set_parser_defaults(timestamp_parser=_moment)
        return boto3.Session(botocore_session=session, profile_name=self._profile, region_name=self._region)

    def _configured_endpoint(self) -> str | None:
        """What the environment or the profile names; None for AWS. The chain is boto3's, so boto3 is asked."""
        with_defaults = self._session.client("s3")
        found = str(with_defaults.meta.endpoint_url)
        with_defaults.close()
        host = urlsplit(found).hostname or ""
        return None if host.endswith((".amazonaws.com", ".amazonaws.com.cn")) else found

    def _client(self, endpoint_url: str | None, timing: Timing) -> Client:
        from botocore.config import Config

        config = Config(
            signature_version="s3v4",
            # Over https the default checksums come as a trailer, which services like Ceph 16 refuse or store.
            request_checksum_calculation="when_required" if endpoint_url else "when_supported",
            response_checksum_validation="when_required",
            s3={"addressing_style": "path" if endpoint_url else "auto"},
            max_pool_connections=POOL,
            connect_timeout=timing.connect,
            read_timeout=timing.read,
            tcp_keepalive=True,
            user_agent=f"artifact-sidecar/{__version__}",  # boto3 makes its own anew for each call, for 0.3 ms
            retries={"mode": "standard", "total_max_attempts": timing.attempts},
        )
        client = self._session.client("s3", endpoint_url=endpoint_url, verify=self.ca_bundle, config=config)
        client.meta.events.register_last("before-call.s3", _send_unasked)
        return client


def _send_unasked(params: dict[str, Any], **_: Any) -> None:
    """Drop the question whether a small body is welcome."""
    body = params.get("body")
    if isinstance(body, BytesIO) and body.getbuffer().nbytes <= UNASKED_BYTES:
        params["headers"].pop("Expect", None)


def _moment(text: Any) -> datetime:
    """The moment in an answer. boto3's own reading takes every spelling apart; most have the one of HTTP."""
    try:
        return parsedate_to_datetime(text)
    except (TypeError, ValueError):
        from botocore.utils import parse_timestamp

        return parse_timestamp(text)
