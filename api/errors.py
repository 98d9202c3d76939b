"""Errors of the API and their HTTP status codes.

``STATUS`` maps error classes, of this module and of the packages below, to HTTP status codes.
"""

from tonlake.ingest.errors import TvmBusy, TvmError, TvmMissing, TvmOutdated
from tonlake.lake.errors import (
    BlocksLacking,
    LakeCorrupt,
    LakeError,
    LakeNotFound,
    ScanError,
    SnapshotNotFound,
)
from tonlake.queries.errors import QueryTimeout, QueryTooLarge


class ApiError(Exception):
    """Base of all errors of this package; its text is safe to show to clients."""


class RequestInvalid(ApiError):
    """A parameter cannot be converted, or a rule between parameters is broken."""


class AddressInvalid(RequestInvalid):
    """Text that is not an address."""

    def __init__(self, text: str, reason: str) -> None:
        """Take the text, which is shortened, and what is wrong with it."""
        super().__init__(f"{text[:80]!r} is not an address: {reason}")


class CredentialMissing(ApiError):
    """A required parameter is absent on a legacy operation, which responds 401."""


class ParameterMissing(ApiError):
    """A required parameter is absent on an operation that responds 400."""


class AnswerNotFound(ApiError):
    """The requested object does not exist."""


class NotCovered(AnswerNotFound):
    """The requested object may be outside of the lake's ranges, which the text lists."""


class AnswerConflict(ApiError):
    """The object exists, but is not of the kind that the operation needs."""


class LiteServerError(ApiError):
    """An error with the text of a lite server, which v2 clients match (500)."""


class StackTypeUnknown(ApiError):
    """An argument of a get-method has an unknown type ``kind``."""

    def __init__(self, kind: str) -> None:
        """Take the type, which is shortened; the text is that of v2."""
        self.kind = kind[:80]
        super().__init__(f"Unsupported stack entry type: {self.kind}")


class ResultDeep(ApiError):
    """The resulting stack of a get-method is nested too deeply."""


class GetMethodFailed(ApiError):
    """A get-method of v3 failed with an error that has its own status in v2."""


class SendingUnavailable(ApiError):
    """There is no upstream to send messages to, or it cannot be reached."""


class UpstreamRefusal(ApiError):
    """The upstream refuses, with its own ``status`` and text."""

    def __init__(self, status: int, text: str) -> None:
        self.status = status
        super().__init__(text)


class KeyRefused(ApiError):
    """The request has no valid API key; the text never includes it."""


class RateExceeded(ApiError):
    """The key or the address exceeds its rate limit."""

    def __init__(self, rps: int, retry_after_s: int) -> None:
        """Take the limit, and the seconds until a request is admitted, rounded up."""
        self.retry_after_s = retry_after_s
        super().__init__(f"Ratelimit exceeded: {rps} requests a second are allowed")


class KeyFileInvalid(ApiError):
    """The key file cannot be read or written."""


class ServiceBusy(ApiError):
    """Too many requests are in flight: retry later."""


class BodyLate(ApiError):
    """The body of the request did not arrive in time."""


class ShareExceeded(ApiError):
    """One key or address has too many streams or scans open."""


class SqlForbidden(ApiError):
    """SQL is not enabled, or asked for by another origin, or under a foreign host name."""


class SqlUnavailable(ApiError):
    """This machine cannot run statements, or not safely; the text says why."""


class LakeUnavailable(ApiError):
    """There is no commit yet, or the lake cannot be read now: retry later."""


class NotDerived(LakeUnavailable):
    """The lake has the blocks, but this is not derived from them yet; the text says how to."""


STATUS: dict[type[Exception], int] = {
    RequestInvalid: 422,
    ParameterMissing: 400,
    CredentialMissing: 401,
    AnswerNotFound: 404,
    AnswerConflict: 409,
    StackTypeUnknown: 542,
    ResultDeep: 533,
    GetMethodFailed: 500,
    LiteServerError: 500,
    SendingUnavailable: 503,
    KeyRefused: 401,
    RateExceeded: 429,
    KeyFileInvalid: 500,
    ServiceBusy: 503,
    BodyLate: 408,
    ShareExceeded: 429,
    SqlForbidden: 403,
    SqlUnavailable: 500,
    LakeUnavailable: 503,
    SnapshotNotFound: 404,
    LakeNotFound: 503,
    LakeCorrupt: 503,
    ScanError: 422,
    BlocksLacking: 404,
    LakeError: 500,
    QueryTimeout: 503,
    QueryTooLarge: 503,
    TvmError: 500,
    TvmMissing: 503,
    TvmOutdated: 503,
    TvmBusy: 503,
}


def status_of(error: Exception) -> int:
    """Return the HTTP status of an error by its nearest class, or an upstream's; else 500."""
    if isinstance(error, UpstreamRefusal):
        return error.status
    for kind in type(error).__mro__:
        if kind in STATUS:
            return STATUS[kind]
    return 500
