"""Every way an S3 service and the way to it can fail, put into our words once.

What boto3 says may name access keys and signed URLs, so none of it is passed on but the service's error code.
"""

from __future__ import annotations

import re
from collections.abc import Generator
from contextlib import contextmanager

from sidecar.core.errors import Fault, NotFound, Refusal, StoreUnavailable

ABSENT = ("NoSuchKey",)
ABSENT_TO_HEAD = ("404", "NotFound", "NoSuchKey")


@contextmanager
def faults(about: str, *, missing: tuple[str, ...] = ()) -> Generator[None, None, None]:
    """Raise StoreUnavailable for what boto3 and urllib3 raise, and NotFound for the error codes that mean it here.

    `about` is a key, or the bucket. A 404 in answer to anything but a question about a key is no missing key. Answers
    are looked into in here as well: one that lacks what it should hold raises KeyError, an error of the service.
    """
    from botocore.exceptions import BotoCoreError, ClientError
    from botocore.parsers import ResponseParserError
    from urllib3.exceptions import HTTPError

    try:
        yield
    except ClientError as error:
        code, status = answer_of(error)
        raise (NotFound(about) if code in missing else refusal_of(about, code, status)) from None
    except (BotoCoreError, ResponseParserError, HTTPError, KeyError) as error:
        fault = _fault_of(error)
        raise StoreUnavailable(about, _HINTS[fault], fault=fault) from None


def answer_of(error: Exception) -> tuple[str, int]:
    """The service's error code and HTTP status. HEAD has no body, so its codes are bare numbers."""
    response = getattr(error, "response", {})
    code = str(response.get("Error", {}).get("Code", ""))
    status = int(response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0) or 0)
    return (code if _CODE.fullmatch(code) else "no code"), status


def refusal_of(about: str, code: str, status: int) -> Refusal:
    """What an error answer of the service means to us."""
    fault = _BY_CODE.get(code) or _BY_STATUS.get(status, "server_error")
    hint = _BY_CODE_SAY.get(code, _HINTS[fault])
    return StoreUnavailable(about, f"{hint} ({code})", fault=fault)


def _fault_of(error: Exception) -> Fault:
    """By the names of the classes, from the most particular up: most of them live in two libraries at once."""
    if type(error).__name__ == "SSLError" and any(map(_is_distrust, _causes(error))):
        return "untrusted"
    for known in type(error).__mro__:
        if (fault := _BY_CLASS.get(known.__name__)) is not None:
            return fault
    return "server_error"


def _causes(error: BaseException | None) -> Generator[BaseException, None, None]:
    """An error and what led to it. boto3 keeps the error of urllib3 beside the chain, which keeps that of `ssl`."""
    for _ in range(_LONGEST):
        if error is None:
            return
        yield error
        inner = getattr(error, "kwargs", {}).get("error")
        if not isinstance(inner, BaseException):
            inner = next((one for one in error.args if isinstance(one, BaseException)), None)
        error = inner or error.__cause__ or error.__context__


def _is_distrust(cause: BaseException) -> bool:
    """Whether a certificate did not convince us, or those that would have convinced us cannot be read."""
    reason = str(getattr(cause, "reason", ""))
    return type(cause).__name__ in _DISTRUST or reason.startswith("NO_CERTIFICATE")


_LONGEST = 8
_DISTRUST = (
    "SSLCertVerificationError",
    "CertificateError",
    "FileNotFoundError",
    "PermissionError",
    "IsADirectoryError",
)

_CODE = re.compile(r"[A-Za-z0-9.]{1,64}")

_BY_CODE: dict[str, Fault] = {
    "NoSuchBucket": "no_bucket",
    "NoSuchUpload": "server_error",
    "ExpiredToken": "denied",
    "InvalidToken": "denied",
    "TokenRefreshRequired": "denied",
    "RequestTimeTooSkewed": "denied",
    "QuotaExceeded": "disk_full",
    "XMinioStorageFull": "disk_full",
    "EntityTooLarge": "disk_full",
    "RequestTimeout": "timed_out",
    "KeyTooLongError": "key_too_long",
    "KeyTooLong": "key_too_long",
    "InvalidObjectName": "key_too_long",
    "BadDigest": "wrong_bytes",
    "InvalidDigest": "wrong_bytes",
    "XAmzContentSHA256Mismatch": "wrong_bytes",
    "XAmzContentChecksumMismatch": "wrong_bytes",
    "IncompleteBody": "cut_off",
}

_BY_STATUS: dict[int, Fault] = {
    401: "denied",
    403: "denied",
    404: "no_bucket",
    408: "timed_out",
    504: "timed_out",
    507: "disk_full",
}

_BY_CLASS: dict[str, Fault] = {
    "ConnectTimeoutError": "timed_out",
    "ReadTimeoutError": "timed_out",
    "ConnectionClosedError": "cut_off",
    "ResponseStreamingError": "cut_off",
    "IncompleteReadError": "cut_off",
    "ProtocolError": "cut_off",
    "EndpointConnectionError": "unreachable",
    "ConnectionError": "unreachable",
    "HTTPClientError": "unreachable",
    "InvalidConfigError": "unreachable",
    "HTTPError": "cut_off",
    "NoCredentialsError": "denied",
    "PartialCredentialsError": "denied",
    "CredentialRetrievalError": "denied",
    "MetadataRetrievalError": "denied",
    "TokenRetrievalError": "denied",
    "NoAuthTokenError": "denied",
    "ProfileNotFound": "denied",
    "SSOError": "denied",
    "LoginError": "denied",
}

_HINTS: dict[Fault, str] = {
    "unreachable": "nobody answers as a store does: check --store-endpoint-url, with its scheme, and the network",
    "untrusted": "the certificate of the store's endpoint is not trusted here: --store-ca-bundle names a file with "
    "those that are, and --store-endpoint-url the host that it is made out to",
    "timed_out": "the store did not answer in time; ask again",
    "server_error": "the store answers with an error of its own; ask again",
    "denied": "the store refuses our credentials: boto3 looks in AWS_* variables, --store-profile and ~/.aws",
    "cut_off": "the connection to the store ended early; ask again",
    "wrong_bytes": "the bytes changed on their way to the store; ask again",
    "no_bucket": "there is no such bucket: make it, or change --store",
    "disk_full": "the store has no room, or our quota there is used up",
    "key_too_long": "the store takes no key of this length",
}

_BY_CODE_SAY = {
    "RequestTimeTooSkewed": "the clock of this machine differs from the store's",
    "AuthorizationHeaderMalformed": "the bucket is in another region: set --store-region",
    "PermanentRedirect": "the bucket is in another region: set --store-region",
    "ExpiredToken": "the credentials have expired: renew them where boto3 finds them",
    "SlowDown": "the store asks us to slow down; ask again later",
}
