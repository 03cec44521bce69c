"""Where a store is: what people write is understood, or refused in a sentence that gives no secret away."""

from __future__ import annotations

import pytest

from sidecar.stores.location import BucketPlace, FolderPlace, check_endpoint, parse_place


@pytest.mark.parametrize(
    ("uri", "place"),
    [
        ("/var/store", FolderPlace("/var/store")),
        ("/var/store/", FolderPlace("/var/store")),
        ("/var/./a/../store", FolderPlace("/var/store")),
        ("file:///var/a%20b", FolderPlace("/var/a b")),
        ("s3://bucket", BucketPlace("bucket", "")),
        ("s3://bucket/", BucketPlace("bucket", "")),
        ("s3://bucket/pre/fix/", BucketPlace("bucket", "pre/fix")),
        ("s3://My_old.Bucket/p", BucketPlace("My_old.Bucket", "p")),
    ],
)
def test_a_place_is_a_folder_or_a_bucket(uri: str, place: object) -> None:
    assert parse_place(uri) == place


@pytest.mark.parametrize(
    ("uri", "says"),
    [
        ("", "absolute folder"),
        ("store", "absolute folder"),
        ("./store", "absolute folder"),
        ("http://example.com/bucket", "other schemes"),
        ("gs://bucket", "other schemes"),
        ("S3://bucket", "other schemes"),
        ("file://host/path", "absolute path"),
        ("file:///a?b", "absolute path"),
        ("s3://", "bucket's name"),
        ("s3:///prefix", "bucket's name"),
        ("s3://ab", "bucket's name"),
        ("s3://bucket:9000/x", "bucket's name"),
        ("s3://-bucket", "bucket's name"),
        ("s3://bucket//x", "no empty segment"),
        ("s3://bucket/../x", "no `..`"),
        ("s3://bucket/a?versionId=1", "neither"),
        ("s3://bucket/" + "p" * 121, "at most 120 bytes"),
        ("/a\0b", "NUL"),
    ],
)
def test_what_is_no_place_is_told_why(uri: str, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        parse_place(uri)


@pytest.mark.parametrize("uri", ["s3://AKIAKEY:hush@bucket/p", "s3://hush@bucket"])
def test_credentials_are_refused_and_not_repeated(uri: str) -> None:
    with pytest.raises(ValueError, match="secrets are refused") as refused:
        parse_place(uri)
    assert "hush" not in str(refused.value)


@pytest.mark.parametrize("url", ["http://127.0.0.1:9000", "https://s3.example.com", "https://example.com/storage"])
def test_an_endpoint_is_an_http_url(url: str) -> None:
    assert check_endpoint(url) == check_endpoint(url + "/") == url


@pytest.mark.parametrize(
    "url",
    [
        "",
        "127.0.0.1:9000",
        "ftp://example.com",
        "http://",
        "http://host:port",
        "http://host:99999",
        "https://host/?x=1",
        "https://host/#x",
        "https://key:hush@host",
        "https://hush@host",
        "http://[::1",
    ],
)
def test_what_is_no_endpoint_is_refused_and_not_repeated(url: str) -> None:
    with pytest.raises(ValueError, match="an endpoint") as refused:
        check_endpoint(url)
    assert "hush" not in str(refused.value)
