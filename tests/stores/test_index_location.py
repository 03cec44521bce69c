"""Where an index is, as people write it."""

from __future__ import annotations

import pytest

from sidecar.stores.index_location import IndexFile, IndexServer, holds_secret, parse_index, shown

SECRET = "Sesam-5"


@pytest.mark.parametrize(
    ("location", "path"),
    [("/a/index.db", "/a/index.db"), ("/a//b/../index.db", "/a/index.db"), ("/with blank:@?#", "/with blank:@?#")],
)
def test_an_absolute_path_is_a_file(location: str, path: str) -> None:
    assert parse_index(location) == IndexFile(path)
    assert (shown(location), holds_secret(location)) == (path, False)


@pytest.mark.parametrize(
    ("location", "told"),
    [
        ("postgresql://", "postgresql://"),
        ("postgres://host/db", "postgresql://host/db"),
        ("postgresql://user@host:5432/db", "postgresql://user@host:5432/db"),
        (
            "postgresql://a:1,b:2/db?target_session_attrs=primary",
            "postgresql://a:1,b:2/db?target_session_attrs=primary",
        ),
        ("postgresql:///db?host=/run/pg&port=5433", "postgresql:///db?host=/run/pg&port=5433"),
        ("postgresql://[::1]:5432/db", "postgresql://[::1]:5432/db"),
        ("postgresql:///?service=index", "postgresql:///?service=index"),
        ("postgresql://host/db?options=-c%20x=y&sslmode=require", "postgresql://host/db?sslmode=require"),
    ],
)
def test_a_url_is_a_server(location: str, told: str) -> None:
    assert parse_index(location) == IndexServer(location)
    assert (shown(location), holds_secret(location)) == (told, False)


@pytest.mark.parametrize(
    ("location", "told"),
    [
        (f"postgresql://user:{SECRET}@host/db", "postgresql://user@host/db"),
        (f"postgres://:{SECRET}@host", "postgresql://host"),
        (f"postgresql://host/db?password={SECRET}", "postgresql://host/db"),
        (f"postgresql://host/db?sslpassword={SECRET}&port=1", "postgresql://host/db?port=1"),
    ],
)
def test_a_password_is_known_and_never_shown(location: str, told: str) -> None:
    assert (shown(location), holds_secret(location)) == (told, True)
    assert SECRET not in repr(parse_index(location))


@pytest.mark.parametrize(
    "location",
    [
        "", "index.db", "./index.db", "~/index.db", "sqlite:///a", "file:///a", "s3://bucket", "mysql://a", "/a/", "/",
        "/a\0b", f"postgresql:{SECRET}", f"postgresql://user:{SECRET}@host@other/db", f"postgresql://u:{SECRET}/x@host",
        f"postgresql://host/db {SECRET}", f"postgresql://u:{SECRET}#@host/db",
    ],
)  # fmt: skip
def test_anything_else_is_refused_in_a_sentence_that_does_not_repeat_it(location: str) -> None:
    with pytest.raises(ValueError, match=r"an? .*index .*is") as refusal:
        parse_index(location)
    assert SECRET not in str(refusal.value)
    assert shown(location) == "(no index)"
