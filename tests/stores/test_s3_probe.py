"""A probe finds out what a real service does, also when it does less, and clears up behind itself."""

from __future__ import annotations

import uuid
from pathlib import Path
from time import monotonic

import pytest

from sidecar.core.errors import StoreUnavailable
from sidecar.ports import Abilities
from sidecar.stores import s3_probe as module
from sidecar.stores.s3_client import Timing
from sidecar.stores.s3_store import S3Store
from tests.faulty_front import Answer, Drip, FaultyFront, Hang, WrongBytes
from tests.radosgw import Radosgw

HASTY = Timing(connect=1.0, read=0.5, attempts=3)
CEPH = Abilities(
    reads_back=True, ranges=True, atomic_create=True, verifies_sha256=False, presigns=True, cas="unquoted"
)  # fmt: skip


@pytest.fixture
def store(bucket: str, front: FaultyFront) -> S3Store:
    return S3Store(bucket, f"p-{uuid.uuid4().hex[:12]}", endpoint_url=front.url, timing=HASTY)


def test_what_ceph_does_is_found_over_http_and_https(s3: Radosgw, bucket: str) -> None:
    for endpoint in (s3.http, s3.https):
        store = S3Store(bucket, "probed", endpoint_url=endpoint, ca_bundle=s3.ca_bundle)
        assert store.probe() == CEPH
        assert store.list("") == []


def _bundle(tmp_path: Path, case: str) -> str | None:
    empty = tmp_path / "empty.crt"
    empty.touch()
    return {"none": None, "missing": str(tmp_path / "none.crt"), "empty": str(empty)}[case]


@pytest.mark.parametrize("bundle", ["none", "missing", "empty"])
def test_a_certificate_that_is_not_trusted_is_told_with_the_setting_that_helps(
    s3: Radosgw, bucket: str, tmp_path: Path, bundle: str
) -> None:
    store = S3Store(bucket, "p", endpoint_url=s3.https, ca_bundle=_bundle(tmp_path, bundle), timing=HASTY)
    for ask in (store.probe, lambda: store.list("")):
        with pytest.raises(StoreUnavailable, match="--store-ca-bundle") as refused:
            ask()
        assert refused.value.fault == "untrusted"


def test_http_where_https_is_asked_for_is_no_matter_of_trust(s3: Radosgw, bucket: str) -> None:
    store = S3Store(bucket, "p", endpoint_url=s3.http.replace("http:", "https:"), timing=HASTY)
    with pytest.raises(StoreUnavailable, match="with its scheme") as refused:
        store.probe()
    assert refused.value.fault == "unreachable"


def test_it_costs_two_dozen_calls_at_most(store: S3Store, front: FaultyFront) -> None:
    store.probe()
    assert len(front.seen) <= 24
    assert {seen.path.split("?")[0].split("/")[2:4][0] for seen in front.seen if seen.method == "PUT"} == {
        store._prefix.rstrip("/")
    }


def test_a_service_without_conditional_writes_is_used_without(store: S3Store, front: FaultyFront) -> None:
    front.behave(Answer(501, "NotImplemented"), header="If-None-Match")
    front.behave(Answer(501, "NotImplemented"), header="If-Match")
    assert store.probe() == CEPH._replace(atomic_create=False, cas="none")
    front.heal()
    front.seen.clear()
    store.copy("a", "b", size=0, sha256="", mime="")
    assert [seen for seen in front.seen if "if-none-match" in seen.headers] == []


def test_a_service_without_ranges_and_links_is_told_so(store: S3Store, front: FaultyFront) -> None:
    front.behave(Answer(501, "NotImplemented"), header="Range")
    front.behave(Answer(403, "AccessDenied"), path="X-Amz-Signature")
    assert store.probe() == CEPH._replace(ranges=False, presigns=False)


def test_a_service_that_gives_other_bytes_does_not_read_back(store: S3Store, front: FaultyFront) -> None:
    front.behave(WrongBytes(), method="GET")
    found = store.probe()
    assert (found.reads_back, found.ranges, found.presigns) == (False, False, False)


@pytest.mark.parametrize("behaviour", [Hang(), Drip(0.2)])
def test_a_service_that_hangs_costs_one_try(store: S3Store, front: FaultyFront, behaviour: Hang | Drip) -> None:
    front.behave(behaviour)
    began = monotonic()
    with pytest.raises(StoreUnavailable) as refused:
        store.probe()
    assert (refused.value.fault, monotonic() - began < 5.0) == ("timed_out", True)


def test_a_service_that_is_slow_at_everything_is_given_up(
    store: S3Store, monkeypatch: pytest.MonkeyPatch, front: FaultyFront
) -> None:
    monkeypatch.setattr(module, "DEADLINE", -1.0)
    with pytest.raises(StoreUnavailable) as refused:
        store.probe()
    assert refused.value.fault == "timed_out"
    assert store.list("") == []
