"""What can go wrong while answering a request, and the status that says so.

ApiError
├── RequestInvalid           a parameter cannot be converted, or a rule between parameters is broken
│   └── AddressInvalid       text that is no address
├── CredentialMissing        a required parameter is absent on a legacy operation (401, as the peer)
├── ParameterMissing         the one operation that answers 400 where nothing was asked for
├── AnswerNotFound           what was asked for is not there
│   └── NotCovered           it lies outside what the lake covers; names the covered ranges
├── AnswerConflict           the thing is there, but is not what the operation is about
├── StackTypeUnknown         an argument of a get-method has a type that does not exist
├── ResultDeep               the stack that a get-method left is nested too deep to be shown
├── GetMethodFailed          version 3: what version 2 refuses with a status of its own
├── LiteServerError          version 2: what a lite server refuses, in the words clients match on
├── SendingUnavailable       no upstream is set that could hand a message to the network
├── UpstreamRefusal          the upstream refuses; has a status of its own
├── KeyMissing               the service asks for an API key
├── KeyUnknown               the API key is not one of this service
├── RateExceeded             more requests a second than the key or the address may make
├── KeyFileInvalid           the file of keys cannot be read or written
├── ServiceBusy              too many requests are on their way: ask again later
├── BodyLate                 the body of the request did not come in time
├── ShareExceeded            one address has as many streams open as it may
├── OriginForbidden          a page of another web origin, or under a foreign name, asks for SQL
├── SqlOff                   SQL over HTTP is not enabled
├── SqlBusy                  too many statements run and wait: ask again later
├── SqlUnavailable           this machine cannot run statements safely
└── LakeUnavailable          no commit yet, or a snapshot that is gone: ask again later
    └── NotDerived           the lake has the blocks, but this was not derived from them yet

STATUS is the one table from classes, of this tree and of the packages below, to HTTP status codes.
"""

from __future__ import annotations

from tonlake.ingest.errors import TvmBusy, TvmError, TvmMissing
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
    """Root of every error of this package; its text is safe to show."""


class RequestInvalid(ApiError):
    """A parameter cannot be converted, or a rule between parameters is broken."""


class AddressInvalid(RequestInvalid):
    """Text that is no address."""

    def __init__(self, text: str, reason: str) -> None:
        """Name the text, shortened, and what is wrong with it."""
        super().__init__(f"{text[:80]!r} is no address: {reason}")


class CredentialMissing(ApiError):
    """A required parameter is absent on a legacy operation, which answers 401 to that."""


class ParameterMissing(ApiError):
    """A required parameter is absent on an operation that answers 400 to that."""


class AnswerNotFound(ApiError):
    """What was asked for is not there."""


class NotCovered(AnswerNotFound):
    """What was asked for lies outside what the lake covers; names the covered ranges."""


class AnswerConflict(ApiError):
    """The thing is there, but is not what the operation is about."""


class LiteServerError(ApiError):
    """What a lite server refuses, in its words, which clients of version 2 match on (500)."""


class StackTypeUnknown(ApiError):
    """An argument of a get-method has a type that does not exist; ``kind`` names it."""

    def __init__(self, kind: str) -> None:
        """Name the type, shortened, in the words of version 2."""
        self.kind = kind[:80]
        super().__init__(f"Unsupported stack entry type: {self.kind}")


class ResultDeep(ApiError):
    """The stack that a get-method left is nested too deep to be shown."""


class GetMethodFailed(ApiError):
    """A get-method of version 3 failed in a way for which version 2 has a status of its own."""


class SendingUnavailable(ApiError):
    """Nothing is set that could hand a message to the network, or it cannot be reached."""


class UpstreamRefusal(ApiError):
    """The upstream refuses; ``status`` and the text are its own."""

    def __init__(self, status: int, text: str) -> None:
        """Take over what it said."""
        self.status = status
        super().__init__(text)


class KeyMissing(ApiError):
    """The service answers those alone who have an API key."""


class KeyUnknown(ApiError):
    """The API key is not one of this service; the key itself is never named."""


class RateExceeded(ApiError):
    """More requests a second than the key or the address may make; says when to come again."""

    def __init__(self, rps: int, retry_after_s: int) -> None:
        """Take the limit, and the whole seconds until a request is admitted."""
        self.retry_after_s = retry_after_s
        super().__init__(f"Ratelimit exceeded: {rps} requests a second are allowed")


class KeyFileInvalid(ApiError):
    """The file of keys cannot be read or written; for those who run the service."""


class ServiceBusy(ApiError):
    """Too many requests are on their way: ask again later."""


class BodyLate(ApiError):
    """The body of the request did not come in time."""


class ShareExceeded(ApiError):
    """One address has as many streams open as it may."""


class OriginForbidden(ApiError):
    """A page of another web origin asks, or one that was loaded under a foreign host name."""


class SqlOff(ApiError):
    """SQL over HTTP is not enabled; says how it is."""


class SqlBusy(ApiError):
    """Too many statements run and wait: ask again later."""


class SqlUnavailable(ApiError):
    """Statements cannot be run safely on this machine, or not at all; says why."""


class LakeUnavailable(ApiError):
    """No commit yet, or not readable now: ask again later."""


class NotDerived(LakeUnavailable):
    """The lake has the blocks, but this was not derived from them yet; says how."""


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
    KeyMissing: 401,
    KeyUnknown: 401,
    RateExceeded: 429,
    KeyFileInvalid: 500,
    ServiceBusy: 503,
    BodyLate: 408,
    ShareExceeded: 429,
    OriginForbidden: 403,
    SqlOff: 403,
    SqlBusy: 503,
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
    TvmBusy: 503,
}


def status_of(error: Exception) -> int:
    """Return the HTTP status for an error, by its nearest class in `STATUS`; 500 for others.

    The refusal of an upstream keeps the status that it came with.
    """
    if isinstance(error, UpstreamRefusal):
        return error.status
    for kind in type(error).__mro__:
        if kind in STATUS:
            return STATUS[kind]
    return 500
