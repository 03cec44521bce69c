"""Where hosted files are to be, as people write it: a folder, or `s3://bucket/prefix`; parsed, and nothing opened."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from urllib.parse import unquote, urlsplit

from sidecar.stores.keys import check_prefix


@dataclass(frozen=True, slots=True)
class FolderPlace:
    """A folder by its absolute path."""

    path: str


@dataclass(frozen=True, slots=True)
class BucketPlace:
    """A bucket, and the prefix of every key in it, `""` for none."""

    bucket: str
    prefix: str


Place = FolderPlace | BucketPlace


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreSettings:
    """All that is set about a store. The credentials are not: boto3 finds them by its own chain (spec section 13)."""

    uri: str
    endpoint_url: str | None = None
    region: str | None = None
    profile: str | None = None
    ca_bundle: str | None = None
    public_endpoint_url: str | None = None


def parse_place(uri: str) -> Place:
    """`s3://bucket[/prefix]`, an absolute path, or `file:///path`.

    Raises ValueError with a sentence that says what is wrong and never repeats the uri: it may hold a secret.
    """
    match uri.partition("://"):
        case [path, "", ""] if os.path.isabs(path):
            return FolderPlace(_plain(path))
        case ["s3", "://", rest]:
            return _bucket(rest)
        case ["file", "://", rest] if rest.startswith("/") and not set("?#") & set(rest):
            return FolderPlace(_plain(unquote(rest, errors="surrogateescape")))
        case ["file", *_]:
            raise ValueError("a file uri is file:/// and an absolute path")
        case [_, "://", _]:
            raise ValueError("a store is a folder or s3://bucket/prefix; other schemes are not known")
        case _:
            raise ValueError("a store is an absolute folder or s3://bucket/prefix")


def check_endpoint(url: str) -> str:
    """The URL of an S3 service, without a trailing slash. Raises ValueError; the sentence never repeats the URL."""
    try:
        parts = urlsplit(url)
        port_is_fine = parts.port is None or parts.port > 0
    except ValueError:
        raise ValueError("an endpoint is http://host[:port] or https://host[:port]") from None
    if parts.username is not None or parts.password is not None:
        raise ValueError("an endpoint holds no credentials: secrets are refused here, and boto3 finds them itself")
    if parts.scheme not in ("http", "https") or not parts.hostname or not port_is_fine or parts.query or parts.fragment:
        raise ValueError("an endpoint is http://host[:port] or https://host[:port]")
    return url.rstrip("/")


def _bucket(rest: str) -> BucketPlace:
    bucket, _, prefix = rest.partition("/")
    if "@" in bucket:
        raise ValueError(
            "s3://bucket/prefix holds no credentials: secrets are refused here, and boto3 finds them itself"
        )
    if _BUCKET.fullmatch(bucket) is None:
        raise ValueError("s3:// is followed by the bucket's name: 3 to 63 letters, digits, dots, dashes")
    if set("?#") & set(prefix):
        raise ValueError("s3://bucket/prefix has neither `?` nor `#`")
    return BucketPlace(bucket, check_prefix(prefix.rstrip("/")))


def _plain(path: str) -> str:
    if "\0" in path:
        raise ValueError("the path of a folder holds no NUL")
    return os.path.normpath(path)


# Wider than AWS' own rule: older services took capitals and underscores.
_BUCKET = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{1,61}[A-Za-z0-9]")
