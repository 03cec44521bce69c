"""Open the store that a uri names. What it stands on (boto3, a disk) is touched at its first use, not here."""

from __future__ import annotations

from sidecar.ports import Store
from sidecar.stores.folder_store import FolderStore
from sidecar.stores.location import BucketPlace, FolderPlace, StoreSettings, check_endpoint, parse_place
from sidecar.stores.s3_store import S3Store


def open_store(
    uri: str,
    *,
    endpoint_url: str | None = None,
    region: str | None = None,
    profile: str | None = None,
    ca_bundle: str | None = None,
    public_endpoint_url: str | None = None,
) -> Store:
    """The store of `s3://bucket[/prefix]`, an absolute folder or `file:///folder`; the rest is for S3 alone.

    Raises ValueError, in a sentence, for a uri or an endpoint that cannot be.
    """
    match parse_place(uri):
        case FolderPlace(path):
            return FolderStore(path)
        case BucketPlace(bucket, prefix):
            return S3Store(
                bucket,
                prefix,
                endpoint_url=check_endpoint(endpoint_url) if endpoint_url else None,
                region=region,
                profile=profile,
                ca_bundle=ca_bundle,
                public_endpoint_url=check_endpoint(public_endpoint_url) if public_endpoint_url else None,
            )


def open_configured(settings: StoreSettings) -> Store:
    """The store that the settings name. Raises ValueError as `open_store` does."""
    return open_store(
        settings.uri,
        endpoint_url=settings.endpoint_url,
        region=settings.region,
        profile=settings.profile,
        ca_bundle=settings.ca_bundle,
        public_endpoint_url=settings.public_endpoint_url,
    )
