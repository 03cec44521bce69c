"""A uri opens the store it names, and opening touches nothing."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from sidecar.stores.folder_store import FolderStore
from sidecar.stores.location import StoreSettings
from sidecar.stores.objects import open_configured, open_store
from sidecar.stores.s3_store import S3Store
from tests.daemon_process import PROJECT


def test_a_folder_is_opened_by_its_path_or_its_uri(tmp_path: Path) -> None:
    for uri in (str(tmp_path / "a b"), (tmp_path / "a b").as_uri()):
        store = open_store(uri)
        assert isinstance(store, FolderStore)
        assert (store.kind, store.root) == ("folder", str(tmp_path / "a b"))
    assert list(tmp_path.iterdir()) == []


def test_a_bucket_is_opened_with_its_prefix() -> None:
    store = open_store("s3://bucket/pre/fix", endpoint_url="http://127.0.0.1:1/", region="eu-central-1")
    assert isinstance(store, S3Store)
    assert (store.kind, store.uri("k")) == ("s3", "s3://bucket/pre/fix/k")


@pytest.mark.parametrize(
    ("uri", "options"),
    [
        ("store", {}),
        ("ftp://host/x", {}),
        ("s3://k:s@bucket", {}),
        ("s3://bucket", {"endpoint_url": "http://k:s@host"}),
        ("s3://bucket", {"public_endpoint_url": "host"}),
    ],
)
def test_what_cannot_be_is_refused(uri: str, options: dict[str, str]) -> None:
    with pytest.raises(ValueError):
        open_store(uri, **options)


def test_the_settings_open_what_they_say(tmp_path: Path) -> None:
    assert isinstance(open_configured(StoreSettings(uri=str(tmp_path))), FolderStore)
    settings = StoreSettings(uri="s3://bucket", endpoint_url="http://127.0.0.1:1", public_endpoint_url="https://cdn")
    store = open_configured(settings)
    assert isinstance(store, S3Store)
    assert store.key_of("s3://bucket/a") == "a"


def test_neither_importing_nor_opening_loads_boto3() -> None:
    program = (
        "import sys\n"
        "from sidecar.stores.objects import open_store\n"
        "store = open_store('s3://bucket/prefix')\n"
        "store.uri('a'), store.key_of('s3://bucket/prefix/a'), store.close()\n"
        "print({name.partition('.')[0] for name in sys.modules} & {'boto3', 'botocore', 's3transfer', 'urllib3'})\n"
    )
    done = subprocess.run([sys.executable, "-c", program], cwd=PROJECT, capture_output=True, text=True, check=True)
    assert done.stdout == "set()\n"
