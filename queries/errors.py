"""Errors of the queries package."""


class QueryError(Exception):
    """Root of every error of this package."""


class QueryMalformed(QueryError):
    """A ``.sql`` file does not follow the rules; names the file and the rule."""


class QueryUnknown(QueryError):
    """There is no query of that name."""


class ParameterMismatch(QueryError):
    """Parameters differ from those that the query's header declares."""


class QueryNeeded(QueryError):
    """The answer takes a query, or as long as one, and the caller cannot wait for that."""


class QueryTooLarge(QueryError):
    """A page would have to read more rows than the limit; the message advises how to narrow it."""


class QueryTimeout(QueryError):
    """The answer took longer than the limit and was interrupted."""
