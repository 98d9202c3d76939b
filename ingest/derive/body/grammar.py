"""Parses layouts written in TL-B into a tree of types.

A statement is ``name#hex field:type ... = Type;``. The tag may be ``$bits``, or ``#_`` or ``$_``
for none; ``#hex_`` ends before its last bit that is one. A constructor without a tag has the CRC-32
of its text, as the compiler ``tlbc`` gives it. A constructor named ``_`` has no tag and is not
shown in decoded objects; a field named ``_`` has no name, and a type without a name is ``field_``
and its place. Types: a name, ``^T``, ``[ fields ]``, ``(Name argument ...)``, ``(count * T)``,
``#``, ``(## bits)``, ``(#< n)``, ``(#<= n)``, ``field?T`` (present if that field is not zero) and
``field.n?T`` (if its bit n is set). Braces hold parameters, ``{X:Type}`` and ``{n:#}``, and
conditions such as ``{ mode <= 3 }``. Numbers may be sums and products, ``(n + 1)``. ``~`` before a
number is ignored: one that is unknown before a value is read is known after it. Comments are
``//``, ``/* */`` and lines that begin with ``# ``.

Source: https://docs.ton.org (TL-B language), block.tlb.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterator
from typing import NamedTuple, TypeAlias

from tonlake.ingest.errors import BodyError


class Named(NamedTuple):
    """A named type with its arguments; numbers are text, ``+``, ``*`` and ``#<=`` names."""

    name: str
    arguments: tuple[Type, ...] = ()


def apply(name: str, number: int | str) -> Named:
    """Return a type of a number, such as ``uint8`` and ``(VarUInteger 16)``."""
    return Named(name, (Named(str(number)),))


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


class Constraint(NamedTuple):
    """``{ left op right }``: a condition on earlier fields; the sides are numbers.

    With ``=``, it may also give an unknown number its value.
    """

    left: Type
    op: str
    right: Type


Type: TypeAlias = "Named | Linked | Group | Conditional | Constraint"


class Field(NamedTuple):
    """A field; ``name`` is empty for ``_``."""

    name: str
    type: Type


class Constructor(NamedTuple):
    """A statement; ``tag`` has ``tag_bits`` bits, ``name`` is empty for ``_``.

    ``parameters`` are the arguments of its result type; ``declared`` has the names that are
    declared in braces, and what each is: ``Type`` or ``#``.
    """

    name: str
    tag: int
    tag_bits: int
    fields: tuple[Field, ...]
    result: str
    parameters: tuple[Type, ...] = ()
    declared: tuple[tuple[str, str], ...] = ()


REPEATED, BELOW, AT_MOST = "*", "#<", "#<="
"""Names of ``(count * T)``, ``(#< n)`` and ``(#<= n)``."""
OPERATORS = ("<=", ">=", "!=", "<", ">", "=")
ADD, MULTIPLY = "+", "*"
SIZED = ("uint", "int", "bits")
"""Types with a width, which follows the name or is an argument."""
_CRC_BITS, _MAX_DIGITS, _MAX_OPERATIONS = 32, 20, 64
_STATEMENT = re.compile(
    r"([A-Za-z_][\w,]*)(?:#([0-9a-fA-F]+_?|_)|\$([01]+|_))?\s(.*)=\s*(\w+)\b([^=]*)", re.DOTALL
)
_COMMENT = re.compile(r"//[^\n]*|/\*.*?(?:\*/|\Z)|^[^\S\n]*# [^\n]*", re.DOTALL | re.MULTILINE)
_TOKEN = re.compile(r"\s+|~|([A-Za-z_]\w*|\d+|##|#<=|#<|#|<=|>=|!=|[\^\[\]():?.*{}<>=+])")
_PARAMETER = re.compile(r"\{\s*(\w+)\s*:\s*(Type|#)\s*\}")
_WIDTH = re.compile(r"(uint|int|bits)(\d{1,4})")
_BIT = re.compile(r"\(\s*(\w+\s*\.\s*\d+)\s*\)\s*\?")


def parse_scheme(text: str) -> list[Constructor]:
    """Parse all statements in order; BodyError quotes one that does not follow the grammar."""
    bare = _COMMENT.sub(" ", text)
    return [_parse_statement(part.strip()) for part in bare.split(";") if part.strip()]


def _parse_statement(text: str) -> Constructor:
    """Parse one statement without its semicolon."""
    match = _STATEMENT.fullmatch(text)
    if match is None:
        raise BodyError(f"invalid TL-B statement: {text!r}")
    name, digits, bits, fields, result, arguments = match.groups()
    tag, tag_bits = 0, 0
    if digits is None and bits is None and name != "_":
        tag, tag_bits = compute_tag(text), _CRC_BITS
    elif digits not in {None, "_"}:
        tag, tag_bits = int(digits.rstrip("_"), 16), len(digits.rstrip("_")) * 4
        if digits.endswith("_") and tag:
            cut = (tag & -tag).bit_length()
            tag, tag_bits = tag >> cut, tag_bits - cut
    elif bits not in {None, "_"}:
        tag, tag_bits = int(bits, 2), len(bits)
    tokens = _Tokens(text, _BIT.sub(r"\1?", _PARAMETER.sub(" ", fields)))
    parsed = tuple(_parse_fields(tokens))
    tokens.take("")
    tokens = _Tokens(text, arguments)
    parameters = _parse_arguments(tokens)
    tokens.take("")
    declared = tuple(_PARAMETER.findall(fields))
    shown = name.strip("_") and name
    return Constructor(shown, tag, tag_bits, parsed, result, parameters, declared)


def compute_tag(text: str) -> int:
    """Return the tag of a constructor without one: the CRC-32 of its text, with single spaces."""
    plain = re.sub(r" ?: ?", ":", " ".join(text.split()))
    return zlib.crc32(plain.replace("( ", "(").replace(" )", ")").encode())


class _Tokens:
    """The tokens of the fields of one statement; an empty token marks the end."""

    def __init__(self, statement: str, text: str) -> None:
        """Split ``text`` into tokens; raise BodyError for other characters."""
        self.statement = statement
        self._tokens: list[str] = []
        at = 0
        while at < len(text):
            match = _TOKEN.match(text, at)
            if match is None:
                raise BodyError(f"unexpected character {text[at]!r} in {statement!r}")
            self._tokens += filter(None, match.groups())
            at = match.end()
        if sum(each in {ADD, MULTIPLY} for each in self._tokens) > _MAX_OPERATIONS:
            raise BodyError(f"more than {_MAX_OPERATIONS} operations in {statement!r}")
        self._tokens.append("")
        self._at = 0

    def peek(self, ahead: int = 0) -> str:
        """Return a following token without consuming it."""
        return self._tokens[min(self._at + ahead, len(self._tokens) - 1)]

    def take(self, expected: str | None = None) -> str:
        """Consume the next token; raise BodyError if it is not ``expected``."""
        token = self.peek()
        if expected is not None and token != expected:
            raise BodyError(
                f"expected {expected or 'end'}, found {token or 'end'}: {self.statement}"
            )
        self._at += 1
        return token


def _parse_fields(tokens: _Tokens) -> Iterator[Field]:
    """Parse fields and conditions up to a bracket or the end."""
    place = 0
    while tokens.peek() not in {"", "]"}:
        place += 1
        if tokens.peek() == "{":
            yield Field("", _parse_constraint(tokens))
        elif tokens.peek(1) == ":":
            name = tokens.take()
            tokens.take(":")
            yield Field("" if name == "_" else name, _parse_type(tokens))
        else:
            yield Field(f"field_{place}", _parse_type(tokens))


def _parse_constraint(tokens: _Tokens) -> Constraint:
    """Parse a condition in braces."""
    tokens.take("{")
    left, op = _parse_number(tokens), tokens.take()
    if op not in OPERATORS:
        raise BodyError(f"conditions compare two fields or numbers: {tokens.statement}")
    right = _parse_number(tokens)
    tokens.take("}")
    return Constraint(left, op, right)


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
        return _parse_parentheses(tokens)
    if head == "#":
        return apply("uint", 32)
    bit = None
    if tokens.peek() == ".":
        tokens.take()
        bit = _read_bit(tokens)
    if tokens.peek() == "?":
        tokens.take()
        return Conditional(head, bit, _parse_type(tokens))
    if not head.isidentifier() and not (head.isdecimal() and len(head) <= _MAX_DIGITS):
        raise BodyError(f"expected a type, found {head or 'end'}: {tokens.statement}")
    match = _WIDTH.fullmatch(head)
    return apply(match[1], match[2]) if match else Named(head)


def _read_bit(tokens: _Tokens) -> int:
    digits = tokens.take()
    if not digits.isdecimal():
        raise BodyError(f"{digits} is not the number of a bit: {tokens.statement}")
    return int(digits)


def _parse_number(tokens: _Tokens, operators: tuple[str, ...] = (ADD, MULTIPLY)) -> Type:
    """Parse a type, or a number: a sum of products."""
    if not operators:
        return _parse_type(tokens)
    found = _parse_number(tokens, operators[1:])
    while tokens.peek() == operators[0]:
        found = Named(tokens.take(), (found, _parse_number(tokens, operators[1:])))
    return found


def _parse_arguments(tokens: _Tokens) -> tuple[Type, ...]:
    """Parse types and numbers up to a closing parenthesis or the end."""
    found = []
    while tokens.peek() not in {")", ""}:
        found.append(_parse_type(tokens))
    return tuple(found)


def _parse_parentheses(tokens: _Tokens) -> Type:
    """Parse what follows an opening parenthesis, up to the closing one."""
    found: Type
    if tokens.peek() in {"##", BELOW, AT_MOST}:
        head = tokens.take()
        found = Named("uint" if head == "##" else head, (_parse_number(tokens),))
    else:
        found = _parse_number(tokens)
        arguments = _parse_arguments(tokens)
        if arguments:
            if not isinstance(found, Named) or found.arguments:
                raise BodyError(f"expected ), found another type: {tokens.statement}")
            found = Named(found.name, arguments)
    tokens.take(")")
    return found
