"""Parses layouts written in a subset of TL-B into a tree of types.

A statement is ``name#hex field:type ... = Type;``, with ``$bits`` or ``#_`` / ``$_`` (no tag)
instead of ``#hex``; a constructor named ``_`` is not shown in decoded objects, and a field named
``_`` has no name. Types: a name, ``^T``, ``[ fields ]``, ``(Name argument ...)`` and ``field?T``
(present if that field is not zero) or ``field.n?T`` (if its bit n is set).
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from tonlake.ingest.errors import BodyError

if TYPE_CHECKING:
    from collections.abc import Iterator


class Named(NamedTuple):
    """A named type with its arguments; numbers are text."""

    name: str
    arguments: tuple[Type, ...] = ()


class Linked(NamedTuple):
    """``^T``: a type in a separate cell."""

    of: Type


class Group(NamedTuple):
    """``[ fields ]``: a group of fields without a constructor."""

    fields: tuple[Field, ...]


class Conditional(NamedTuple):
    """``field?T`` and ``field.bit?T``: a type whose presence depends on an earlier field."""

    field: str
    bit: int | None
    of: Type


Type: TypeAlias = "Named | Linked | Group | Conditional"


class Field(NamedTuple):
    """A field; ``name`` is empty for ``_``."""

    name: str
    type: Type


class Constructor(NamedTuple):
    """A statement; ``tag`` has ``tag_bits`` bits, ``name`` is empty for ``_``."""

    name: str
    tag: int
    tag_bits: int
    fields: tuple[Field, ...]
    result: str


_STATEMENT = re.compile(
    r"([A-Za-z_][\w,]*)(?:#([0-9a-f]+|_)|\$([01]+|_))?\s(.*)=\s*(\w+)", re.DOTALL
)
_TOKEN = re.compile(r"\s+|([A-Za-z_]\w*|\d+|[\^\[\]():?.])")


def parse_scheme(text: str) -> list[Constructor]:
    """Parse all statements in order; ``//`` begins a comment.

    Raises:
        BodyError: a statement does not follow the grammar; the message quotes it.
    """
    bare = re.sub(r"//.*", "", text)
    return [_parse_statement(part.strip()) for part in bare.split(";") if part.strip()]


def _parse_statement(text: str) -> Constructor:
    """Parse one statement without its semicolon."""
    match = _STATEMENT.fullmatch(text)
    if match is None:
        raise BodyError(f"invalid TL-B statement: {text!r}")
    name, digits, bits, fields, result = match.groups()
    tag, tag_bits = 0, 0
    if digits not in {None, "_"}:
        tag, tag_bits = int(digits, 16), len(digits) * 4
    elif bits not in {None, "_"}:
        tag, tag_bits = int(bits, 2), len(bits)
    tokens = _Tokens(text, fields)
    parsed = tuple(_parse_fields(tokens))
    tokens.take("")
    return Constructor(name.strip("_") and name, tag, tag_bits, parsed, result)


class _Tokens:
    """The tokens of the fields of one statement; an empty token marks the end."""

    def __init__(self, statement: str, text: str) -> None:
        """Split ``text`` into tokens; raise BodyError for other characters."""
        self._statement = statement
        self._tokens: list[str] = []
        at = 0
        while at < len(text):
            match = _TOKEN.match(text, at)
            if match is None:
                raise BodyError(f"unexpected character {text[at]!r} in {statement!r}")
            self._tokens += filter(None, match.groups())
            at = match.end()
        self._tokens.append("")
        self._at = 0

    def peek(self) -> str:
        """Return the next token without consuming it."""
        return self._tokens[self._at]

    def take(self, expected: str | None = None) -> str:
        """Consume the next token; raise BodyError if it is not ``expected``."""
        token = self.peek()
        if expected is not None and token != expected:
            raise BodyError(
                f"expected {expected or 'end'}, found {token or 'end'}: {self._statement}"
            )
        self._at += 1
        return token


def _parse_fields(tokens: _Tokens) -> Iterator[Field]:
    """Parse ``name:type`` up to a bracket or the end."""
    while tokens.peek() not in {"", "]"}:
        name = tokens.take()
        tokens.take(":")
        yield Field("" if name == "_" else name, _parse_type(tokens))


def _parse_type(tokens: _Tokens) -> Type:
    """Parse one type."""
    head = tokens.take()
    if head == "^":
        return Linked(_parse_type(tokens))
    if head == "[":
        fields = tuple(_parse_fields(tokens))
        tokens.take("]")
        return Group(fields)
    if head == "(":
        name = tokens.take()
        arguments = []
        while tokens.peek() not in {")", ""}:
            arguments.append(_parse_type(tokens))
        tokens.take(")")
        return Named(name, tuple(arguments))
    bit = None
    if tokens.peek() == ".":
        tokens.take()
        bit = int(tokens.take())
    if tokens.peek() == "?":
        tokens.take()
        return Conditional(head, bit, _parse_type(tokens))
    return Named(head)
