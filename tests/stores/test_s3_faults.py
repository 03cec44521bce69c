"""Every failure has one of our names and a hint, and says nothing that boto3 knows."""

from __future__ import annotations

import ssl
from typing import get_args

import pytest
from botocore import exceptions as boto
from botocore.parsers import ResponseParserError
from urllib3 import exceptions as urllib

from sidecar.core.errors import Fault, NotFound, StoreUnavailable
from sidecar.stores.s3_faults import (
    _BY_CLASS,
    _BY_CODE,
    _BY_STATUS,
    _HINTS,
    ABSENT,
    ABSENT_TO_HEAD,
    answer_of,
    faults,
)

SECRET = "AKIASECRETSECRET"


def answered(code: str, status: int) -> boto.ClientError:
    response = {"Error": {"Code": code, "Message": SECRET}, "ResponseMetadata": {"HTTPStatusCode": status}}
    return boto.ClientError(response, "GetObject")  # type: ignore[arg-type]


def fault_of(error: Exception) -> str:
    with pytest.raises(StoreUnavailable) as refused, faults("the/key"):
        raise error
    assert refused.value.about == "the/key"
    assert refused.value.hint
    assert SECRET not in str(refused.value)
    assert refused.value.__suppress_context__
    return refused.value.fault


@pytest.mark.parametrize(
    ("code", "status", "fault"),
    [
        ("NoSuchBucket", 404, "no_bucket"),
        ("404", 404, "no_bucket"),
        ("AccessDenied", 403, "denied"),
        ("403", 403, "denied"),
        ("InvalidAccessKeyId", 403, "denied"),
        ("SignatureDoesNotMatch", 403, "denied"),
        ("RequestTimeTooSkewed", 403, "denied"),
        ("ExpiredToken", 400, "denied"),
        ("InternalError", 500, "server_error"),
        ("SlowDown", 503, "server_error"),
        ("ServiceUnavailable", 503, "server_error"),
        ("502", 502, "server_error"),
        ("504", 504, "timed_out"),
        ("RequestTimeout", 400, "timed_out"),
        ("QuotaExceeded", 403, "disk_full"),
        ("InsufficientStorage", 507, "disk_full"),
        ("KeyTooLongError", 400, "key_too_long"),
        ("BadDigest", 400, "wrong_bytes"),
        ("PermanentRedirect", 301, "server_error"),
        ("NoSuchUpload", 404, "server_error"),
        ("SomethingNew", 400, "server_error"),
    ],
)
def test_answers_of_the_service(code: str, status: int, fault: str) -> None:
    assert fault_of(answered(code, status)) == fault


@pytest.mark.parametrize(
    ("error", "fault"),
    [
        (boto.EndpointConnectionError(endpoint_url=SECRET), "unreachable"),
        (boto.SSLError(endpoint_url=SECRET, error=""), "unreachable"),
        (boto.SSLError(endpoint_url=SECRET, error=ssl.SSLCertVerificationError(SECRET)), "untrusted"),
        (boto.SSLError(endpoint_url=SECRET, error=urllib.SSLError(ssl.CertificateError(SECRET))), "untrusted"),
        (boto.SSLError(endpoint_url=SECRET, error=ssl.SSLError(SECRET)), "unreachable"),
        (boto.ProxyConnectionError(proxy_url=SECRET, error=""), "unreachable"),
        (boto.HTTPClientError(error=SECRET), "unreachable"),
        (boto.ConnectTimeoutError(endpoint_url=SECRET, error=""), "timed_out"),
        (boto.ReadTimeoutError(endpoint_url=SECRET, error=""), "timed_out"),
        (urllib.ReadTimeoutError(None, SECRET, ""), "timed_out"),  # type: ignore[arg-type]
        (boto.ConnectionClosedError(endpoint_url=SECRET, error=""), "cut_off"),
        (boto.IncompleteReadError(actual_bytes=1, expected_bytes=2), "cut_off"),
        (boto.ResponseStreamingError(error=SECRET), "cut_off"),
        (urllib.ProtocolError(SECRET), "cut_off"),
        (urllib.SSLError(SECRET), "cut_off"),
        (boto.NoCredentialsError(), "denied"),
        (boto.PartialCredentialsError(provider=SECRET, cred_var="x"), "denied"),
        (boto.ProfileNotFound(profile=SECRET), "denied"),
        (boto.UnauthorizedSSOTokenError(), "denied"),
        (ResponseParserError(SECRET), "server_error"),
        (boto.ParamValidationError(report=SECRET), "server_error"),
    ],
)
def test_failures_on_the_way(error: Exception, fault: str) -> None:
    assert fault_of(error) == fault


@pytest.mark.parametrize(("codes", "code"), [(ABSENT, "NoSuchKey"), (ABSENT_TO_HEAD, "404")])
def test_a_missing_key_is_not_found_where_one_was_asked_for(codes: tuple[str, ...], code: str) -> None:
    with pytest.raises(NotFound), faults("k", missing=codes):
        raise answered(code, 404)
    assert fault_of(answered(code, 404)) == "no_bucket"


def test_an_answer_that_lacks_what_it_should_hold_is_an_error_of_the_service() -> None:
    with pytest.raises(StoreUnavailable) as refused, faults("k"):
        dict[str, str]()["ETag"]
    assert refused.value.fault == "server_error"


def test_what_is_none_of_ours_passes() -> None:
    for error in (ValueError("x"), NotFound("x"), StoreUnavailable("x", fault="timed_out")):
        with pytest.raises(type(error)) as same, faults("k"):
            raise error
        assert same.value is error


def test_a_code_that_is_none_is_not_repeated() -> None:
    assert answer_of(answered("<script> " + SECRET, 500)) == ("no code", 500)
    assert answer_of(ValueError()) == ("no code", 0)


def test_every_fault_that_is_told_has_its_hint() -> None:
    told = {*_BY_CODE.values(), *_BY_STATUS.values(), *_BY_CLASS.values(), "server_error", "untrusted"}
    assert told == _HINTS.keys()
    assert told <= set(get_args(Fault))
