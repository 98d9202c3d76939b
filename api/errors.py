"""What can go wrong while answering a request, and the status that says so.

ApiError
├── RequestInvalid           a parameter cannot be converted, or a rule between parameters is broken
│   └── AddressInvalid       text that is no address
├── CredentialMissing        a required parameter is absent on a legacy operation (401, as the peer)
├── AnswerNotFound           what was asked for is not there
│   └── NotCovered           it lies outside what the lake covers; names the covered ranges
├── AnswerConflict           the thing is there, but is not what the operation is about
├── LiteServerError          version 2: what a lite server refuses, in the words clients match on
└── LakeUnavailable          no commit yet, or a snapshot that is gone: ask again later

STATUS is the one table from classes, of this tree and of the packages below, to HTTP status codes.
"""

from __future__ import annotations

from lake.errors import LakeCorrupt, LakeError, LakeNotFound, SnapshotNotFound
from queries.errors import QueryTimeout


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


class AnswerNotFound(ApiError):
    """What was asked for is not there."""


class NotCovered(AnswerNotFound):
    """What was asked for lies outside what the lake covers; names the covered ranges."""


class AnswerConflict(ApiError):
    """The thing is there, but is not what the operation is about."""


class LiteServerError(ApiError):
    """What a lite server refuses, in its words, which clients of version 2 match on (500)."""


class LakeUnavailable(ApiError):
    """No commit yet, or not readable now: ask again later."""


STATUS: dict[type[Exception], int] = {
    RequestInvalid: 422,
    CredentialMissing: 401,
    AnswerNotFound: 404,
    AnswerConflict: 409,
    LiteServerError: 500,
    LakeUnavailable: 503,
    SnapshotNotFound: 404,
    LakeNotFound: 503,
    LakeCorrupt: 500,
    LakeError: 500,
    QueryTimeout: 503,
}


def status_of(error: Exception) -> int:
    """Return the HTTP status for an error, by its nearest class in `STATUS`; 500 for others."""
    for kind in type(error).__mro__:
        if kind in STATUS:
            return STATUS[kind]
    return 500
