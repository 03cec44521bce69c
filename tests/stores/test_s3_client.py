"""The clients are made late, once, and with the settings that were measured to work everywhere."""

from __future__ import annotations

import logging
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from sidecar.stores.s3_client import PROBE_READ, UNASKED_BYTES, Clients, Timing, _moment
from tests.daemon_process import PROJECT

ENDPOINT = "http://127.0.0.1:9"


@pytest.fixture(autouse=True)
def _no_configuration(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "config"))
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "credentials"))
    for name in ("AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_S3", "AWS_PROFILE", "AWS_REGION", "AWS_DEFAULT_REGION"):
        monkeypatch.delenv(name, raising=False)


def clients(**options: Any) -> Clients:
    empty = dict.fromkeys(("endpoint_url", "region", "profile", "ca_bundle", "public_endpoint_url"))
    return Clients(**{**empty, "timing": Timing(), **options})


def told(client: Any) -> dict[str, object]:
    config = client.meta.config
    return {
        "endpoint": client.meta.endpoint_url,
        "signature": config.signature_version,
        "addressing": config.s3["addressing_style"],
        "sums": (config.request_checksum_calculation, config.response_checksum_validation),
        "pool": config.max_pool_connections,
        "times": (config.connect_timeout, config.read_timeout),
        "keepalive": config.tcp_keepalive,
        "retries": (config.retries["mode"], config.retries["total_max_attempts"]),
    }


COMMON = {"signature": "s3v4", "pool": 32, "times": (3.0, 20.0), "keepalive": True, "retries": ("standard", 3)}
OTHERS = {**COMMON, "addressing": "path", "sums": ("when_required", "when_required")}
AWS = {**COMMON, "addressing": "auto", "sums": ("when_supported", "when_required")}


def test_another_service_gets_the_settings_that_all_services_take() -> None:
    assert told(clients(endpoint_url=ENDPOINT).main()) == {**OTHERS, "endpoint": ENDPOINT}


@pytest.mark.parametrize("name", ["AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL"])
def test_an_endpoint_of_the_environment_is_another_service_too(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setenv(name, ENDPOINT)
    assert told(clients().main()) == {**OTHERS, "endpoint": ENDPOINT}


def test_an_endpoint_of_the_profile_is_another_service_too(tmp_path: Path) -> None:
    (tmp_path / "config").write_text(f"[profile ours]\nregion = eu-central-1\nendpoint_url = {ENDPOINT}\n")
    client = clients(profile="ours").main()
    assert told(client) == {**OTHERS, "endpoint": ENDPOINT}
    assert client.meta.region_name == "eu-central-1"


def test_aws_keeps_its_own_ways() -> None:
    found = told(clients(region="eu-central-1").main())
    assert found == {**AWS, "endpoint": "https://s3.eu-central-1.amazonaws.com"}


def test_the_setting_is_stronger_than_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL_S3", "http://127.0.0.1:10")
    assert clients(endpoint_url=ENDPOINT).main().meta.endpoint_url == ENDPOINT


def test_all_threads_share_one_client() -> None:
    made = clients(endpoint_url=ENDPOINT)
    with ThreadPoolExecutor(16) as threads:
        assert len({id(client) for client in threads.map(lambda _: made.main(), range(64))}) == 1


def test_links_are_signed_for_the_endpoint_that_people_reach() -> None:
    made = clients(endpoint_url=ENDPOINT, public_endpoint_url="https://files.example.com")
    assert made.links().meta.endpoint_url == "https://files.example.com"
    assert made.links() is not made.main()
    alone = clients(endpoint_url=ENDPOINT)
    assert alone.links() is alone.main()


@pytest.mark.parametrize("read", [0.5, 20.0])
def test_a_probe_tries_once_and_does_not_wait_for_long(read: float) -> None:
    found = told(clients(endpoint_url=ENDPOINT, timing=Timing(connect=1.0, read=read)).probing())
    assert (found["times"], found["retries"]) == ((1.0, min(read, PROBE_READ)), ("standard", 1))


def test_what_was_closed_is_made_anew() -> None:
    made = clients(endpoint_url=ENDPOINT)
    before = made.main()
    made.close()
    assert made.main() is not before


def test_those_who_log_signatures_are_kept_quiet(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("boto3", "botocore", "s3transfer", "urllib3"):
        monkeypatch.setattr(logging.getLogger(name), "level", logging.DEBUG)
    clients(endpoint_url=ENDPOINT).main()
    assert logging.getLogger("botocore.auth").getEffectiveLevel() == logging.WARNING


def test_boto3_is_loaded_by_the_first_client() -> None:
    program = (
        "import sys\n"
        "from sidecar.stores.s3_client import Clients, Timing\n"
        "empty = dict.fromkeys(('region', 'profile', 'ca_bundle', 'public_endpoint_url'))\n"
        f"made = Clients(endpoint_url={ENDPOINT!r}, timing=Timing(), **empty)\n"
        "before = 'boto3' in sys.modules\n"
        "made.main()\n"
        "print(before, 'boto3' in sys.modules, 'awscrt' in sys.modules)\n"
    )
    done = subprocess.run([sys.executable, "-c", program], cwd=PROJECT, capture_output=True, text=True, check=True)
    assert done.stdout == "False True False\n"


@pytest.mark.parametrize(("size", "asks"), [(0, False), (UNASKED_BYTES, False), (UNASKED_BYTES + 1, True)])
def test_only_for_a_large_body_is_asked_first_whether_it_is_welcome(
    monkeypatch: pytest.MonkeyPatch, size: int, asks: bool
) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "key")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
    client = clients(endpoint_url=ENDPOINT).main()
    asked: list[set[str]] = []

    class Sent(Exception):  # noqa: N818
        """Far enough."""

    def sent(request: Any, **_: Any) -> Any:
        asked.append({name.lower() for name in request.headers})
        raise Sent

    client.meta.events.register("before-send.s3", sent)
    with pytest.raises(Sent):
        client.put_object(Bucket="b", Key="k", Body=bytes(size))
    assert [("expect" in headers) for headers in asked] == [asks]


def test_moments_are_read_as_boto3_reads_them() -> None:
    for text in ("Sun, 22 Nov 2026 07:30:01 GMT", "2026-11-22T07:30:01.000Z", "2026-11-22T07:30:01+00:00"):
        assert _moment(text).timestamp() == 1795332601.0
