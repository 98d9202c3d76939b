"""What can go wrong while asking a question.

QueryError
├── QueryMalformed     a .sql file does not follow the rules of this package
├── QueryUnknown       there is no query of that name
├── ParameterMismatch  a query was asked with other parameters than it declares
├── QueryNeeded        an answer takes a query, and who asks cannot wait for one
├── QueryTooLarge      a page would have to read more rows than the limit
└── QueryTimeout       the answer took longer than the limit and was interrupted
"""

from __future__ import annotations


class QueryError(Exception):
    """Root of every error of this package."""


class QueryMalformed(QueryError):
    """A ``.sql`` file does not follow the rules; names the file and the rule."""


class QueryUnknown(QueryError):
    """There is no query of that name."""


class ParameterMismatch(QueryError):
    """A query was asked with other parameters than its header declares."""


class QueryNeeded(QueryError):
    """An answer takes a query, or as long as one, and who asks cannot wait for that."""


class QueryTooLarge(QueryError):
    """A page would have to read more rows than the limit; names what narrows it."""


class QueryTimeout(QueryError):
    """The answer took longer than the limit and was interrupted."""
