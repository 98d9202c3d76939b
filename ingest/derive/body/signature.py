"""Parses user-defined layouts: TL-B, an ABI of Tact or Tolk, or the name of a shipped layout.

Untrusted input is checked before it is compiled, so that decoding a body takes bounded work.
"""

import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from tonlake.ingest.derive.body.abi import read_abi
from tonlake.ingest.derive.body.generic import instantiate
from tonlake.ingest.derive.body.grammar import (
    AT_MOST,
    BELOW,
    REPEATED,
    Conditional,
    Constraint,
    Constructor,
    Field,
    Group,
    Linked,
    Named,
    Type,
    parse_scheme,
)
from tonlake.ingest.derive.body.record import OPCODE_BITS, Record
from tonlake.ingest.derive.body.scheme import BODY_TYPES, OWN_BODY, Scheme, load_scheme
from tonlake.ingest.derive.body.tolk import is_tolk, read_tolk_abi
from tonlake.ingest.errors import BodyError, SignatureInvalid

MAX_CHARACTERS = 65_536
"""Maximum length of a signature."""

MAX_CONSTRUCTORS, MAX_INLINE, MAX_NESTED, MAX_LINKED = 500, 1000, 12, 50
"""Maximum constructors, types in one cell when fully expanded, and levels of nested types."""

MAX_SHOWN, MAX_ERROR = 60, 300
"""Maximum characters of a name in an error, and of an error of the grammar."""

MAX_PARTS, MAX_NUMBER_BITS = 64, 64
"""Maximum fields of a constructor, and bits of a number that fields depend on."""

_NAME = re.compile(r"[A-Za-z_]\w{0,62}", re.ASCII)
_WIDTH = re.compile(r"(uint|int|bits)(\d+)")
_MAX_BITS = {"uint": 256, "int": 257, "bits": 1023}
_MAX_KEY_BITS = 1023
_VAR_LIMITS = range(2, 33)
_ARGUMENTS = {
    "Maybe": 1,
    "Either": 2,
    "Hashmap": 2,
    "HashmapE": 2,
    "VarUInteger": 1,
    "VarInteger": 1,
    REPEATED: 2,
    BELOW: 1,
    AT_MOST: 1,
}


class Layout(NamedTuple):
    """The layout of bodies that begin with ``opcode``, an unsigned 32-bit number."""

    name: str
    opcode: int
    record: Record


def parse_signature(text: str) -> list[Layout]:
    """Return the layouts in a signature; those with equal name and opcode in the order tried.

    A signature is TL-B (constructors with 32-bit tags are layouts, others types that they use;
    shipped types are available), the JSON of a Tact or Tolk ABI, or the name of a shipped layout.

    Raises:
        SignatureInvalid: it is none of these, or has an error; the message describes it.
    """
    if len(text) > MAX_CHARACTERS:
        raise SignatureInvalid(f"a signature has at most {MAX_CHARACTERS:,} characters")
    bare = text.removeprefix("\ufeff").strip()  # as some editors begin a file
    if _NAME.fullmatch(bare):
        return _find_shipped(bare)
    try:
        parsed = read_json(bare) if bare.startswith("{") else parse_scheme(bare)
        return _compile(instantiate(parsed))
    except RecursionError as error:
        raise SignatureInvalid("the types of the signature are nested too deeply") from error
    except (BodyError, ValueError) as error:
        raise SignatureInvalid(_show(str(error), MAX_ERROR)) from error


def _find_shipped(name: str) -> list[Layout]:
    shipped = load_scheme().layouts.items()
    found = [
        Layout(name, opcode, record)
        for opcode, records in shipped
        for record in records
        if name in record.name.split(",")
    ]
    if not found:
        raise SignatureInvalid(
            f"no layout is called {name[:MAX_SHOWN]}: write TL-B such as "
            "'transfer#0f8a7ea5 query_id:uint64 amount:Coins = Body'"
        )
    return found


def read_json(text: str) -> list[Constructor]:
    """Return the messages and structures of an ABI of either compiler."""
    return read_tolk_abi(text) if is_tolk(text) else read_abi(text)


def _compile(constructors: Sequence[Constructor]) -> list[Layout]:
    """Check constructors and compile those with an opcode."""
    bodies = [each for each in constructors if each.tag_bits == OPCODE_BITS]
    if not bodies:
        raise SignatureInvalid(
            "no constructor of the signature has a 32-bit opcode: write it after the name, "
            "as in 'transfer#0f8a7ea5 query_id:uint64 = Body'"
        )
    if len(constructors) > MAX_CONSTRUCTORS:
        raise SignatureInvalid(f"a signature has at most {MAX_CONSTRUCTORS} constructors")
    own = {each.result for each in constructors}
    shared = [each for each in load_scheme().constructors if each.result not in own]
    known = [each for each in shared if each.result not in BODY_TYPES]
    known += [each for each in constructors if each.result not in BODY_TYPES]
    _check(constructors, known)
    scheme = Scheme([*known, *(each._replace(result=OWN_BODY) for each in bodies)])
    return [
        Layout(record.name, opcode, record)
        for opcode, records in scheme.layouts.items()
        for record in records
    ]


def _check(constructors: Iterable[Constructor], known: Iterable[Constructor]) -> None:
    """Raise SignatureInvalid for invalid types and for unbounded work."""
    checker = _Checker(known)
    for each in constructors:
        if each.tag_bits > OPCODE_BITS:
            raise SignatureInvalid(f"the tag of {_show(each.name)} has more than 32 bits")
        if each.tag_bits == OPCODE_BITS and not _NAME.fullmatch(each.name):
            raise SignatureInvalid(
                f"{_show(each.name)} is not a valid table name: letters, digits and _, at most 63"
            )
        checker.measure(each.name, each.fields)
        checker.check_links()


def _check_depth(of: Type) -> None:
    """Raise SignatureInvalid for a reference to a reference to a reference, and so on."""
    depth = 0
    while isinstance(of, Linked):
        of, depth = of.of, depth + 1
        if depth > MAX_LINKED:
            raise SignatureInvalid(f"references are nested too deeply: more than {MAX_LINKED}")


class _Checker:
    """Counts the types in a cell, with every type expanded where it is used."""

    def __init__(self, known: Iterable[Constructor]) -> None:
        self._types: dict[str, list[Constructor]] = {}
        for each in known:
            self._types.setdefault(each.result, []).append(each)
        self._sizes: dict[str, int] = {}
        self._path: list[str] = []
        self._linked: list[tuple[str, Type]] = []
        self._seen: set[Type] = set()

    def measure(self, name: str, fields: Sequence[Field]) -> int:
        """Return the count of a record; referenced types are queued for ``check_links``."""
        self._check_fields(name, fields)
        total = 1 + sum(self._count(name, each.type) for each in fields)
        if total > MAX_INLINE:
            raise SignatureInvalid(
                f"{_show(name)} has more than {MAX_INLINE} fields in one cell with its types"
            )
        return total

    def check_links(self) -> None:
        """Check all referenced types, which may contain themselves."""
        while self._linked:
            name, of = self._linked.pop()
            if of not in self._seen:
                self._seen.add(of)
                self._count(name, of)

    def _count(self, name: str, of: Type) -> int:
        if isinstance(of, Linked):
            _check_depth(of)
            self._linked.append((name, of.of))
            return 1
        if isinstance(of, Group):
            return self.measure(name, of.fields)
        if isinstance(of, Conditional):
            return self._count(name, of.of)
        if isinstance(of, Constraint):
            return 0
        return self._count_applied(name, of) if of.arguments else self._count_named(name, of)

    def _count_named(self, name: str, of: Named) -> int:
        if of.name in _ARGUMENTS:
            raise SignatureInvalid(f"{of.name} takes {_ARGUMENTS[of.name]} arguments: {name}")
        match = _WIDTH.fullmatch(of.name)
        if match and not 1 <= _read_number(match[2]) <= _MAX_BITS[match[1]]:
            raise SignatureInvalid(
                f"{_show(of.name)} in {name}: {match[1]} has 1 to {_MAX_BITS[match[1]]} bits"
            )
        if of.name not in self._types:
            return 1  # a simple type, or an unknown one, which fails to compile
        if of.name not in self._sizes:
            self._sizes[of.name] = self._count_type(of.name)
        return self._sizes[of.name]

    def _count_type(self, name: str) -> int:
        if name in self._path or len(self._path) == MAX_NESTED:
            raise SignatureInvalid(
                f"type {_show(name)} contains itself without a reference (^) in between"
                if name in self._path
                else f"more than {MAX_NESTED} types are nested in each other: {_show(name)}"
            )
        self._path.append(name)
        choices = self._types[name]
        total = sum(self.measure(each.name or name, each.fields) for each in choices)
        self._path.pop()
        # If several tags fit, the chosen constructor is read twice.
        return total * min(len(choices), 2)

    def _count_applied(self, name: str, of: Named) -> int:
        if len(of.arguments) != _ARGUMENTS.get(of.name, -1):
            raise SignatureInvalid(f"{_show(of.name)} in {name} does not take these arguments")
        first, last = of.arguments[0], of.arguments[-1]
        if of.name in {BELOW, AT_MOST}:
            digits = first.name if isinstance(first, Named) and first.name.isdecimal() else ""
            if not 0 < int(digits[:20] or 0) < 1 << MAX_NUMBER_BITS:
                raise SignatureInvalid(f"{of.name} in {name} takes a number below 2^64")
            return 1
        if of.name == REPEATED:
            return 1 + self._count(name, last) * (_read_size(first) or 1)
        if of.name in {"VarUInteger", "VarInteger"}:
            if _read_size(first) not in _VAR_LIMITS:
                raise SignatureInvalid(f"{of.name} in {name} takes a number from 2 to 32")
            return 1
        if of.name.startswith("Hashmap"):
            if not 1 <= _read_size(first) <= _MAX_KEY_BITS:
                raise SignatureInvalid(f"{of.name} in {name}: keys have 1 to 1023 bits")
            self._linked.append((name, last))
            return 1 + self._count(name, last)
        return 1 + sum(self._count(name, each) for each in of.arguments)

    def _check_fields(self, name: str, fields: Sequence[Field]) -> None:
        """Check the names of fields, and the fields that conditions depend on."""
        if len(fields) > MAX_PARTS:
            raise SignatureInvalid(f"{_show(name)} has more than {MAX_PARTS} fields")
        numbers: dict[str, int] = {}
        seen: set[str] = set()
        for field in fields:
            folded = field.name.lower()
            if folded and folded in seen and not isinstance(field.type, Constraint):
                raise SignatureInvalid(f"{_show(name)} has two fields {_show(field.name)!r}")
            seen.add(folded)
            if isinstance(field.type, Constraint):
                _check_constraint(name, field.type, numbers)
            elif isinstance(field.type, Conditional):
                _check_condition(name, field, field.type, numbers)
            else:
                _check_count(name, field, numbers)
                numbers |= _list_number(field)


def _check_condition(name: str, field: Field, of: Conditional, numbers: dict[str, int]) -> None:
    if of.field not in numbers:
        raise SignatureInvalid(
            f"{_show(field.name)} in {_show(name)} depends on {_show(of.field)}, which is not "
            f"an earlier number of at most {MAX_NUMBER_BITS} bits"
        )
    if of.bit is not None and of.bit >= numbers[of.field]:
        raise SignatureInvalid(f"{_show(of.field)} in {_show(name)} has no bit {of.bit}")


def _check_constraint(name: str, of: Constraint, numbers: dict[str, int]) -> None:
    for side in (of.left, of.right):
        if side not in numbers and not side.isdecimal():
            raise SignatureInvalid(
                f"the condition on {_show(side)} in {_show(name)} is not on an earlier number"
            )


def _check_count(name: str, field: Field, numbers: dict[str, int]) -> None:
    """Check the count of ``(count * T)``: a number, or an earlier field."""
    of = field.type
    if isinstance(of, Named) and of.name == REPEATED:
        count = of.arguments[0]
        of_field = isinstance(count, Named) and count.name in numbers
        if not of_field and not 0 < _read_size(count) <= _MAX_KEY_BITS:
            raise SignatureInvalid(
                f"the count of {_show(field.name)} in {_show(name)} is neither a number from 1 to "
                f"{_MAX_KEY_BITS} nor an earlier field"
            )


def _list_number(field: Field) -> dict[str, int]:
    """Return the name and bits of a field that conditions can depend on; empty for others."""
    if not field.name or not isinstance(field.type, Named):
        return {}
    if field.type.name in {BELOW, AT_MOST}:
        return {field.name: MAX_NUMBER_BITS}
    if field.type.arguments:
        return {}
    if field.type.name in {"Bool", "Bit"}:
        return {field.name: 1}
    match = _WIDTH.fullmatch(field.type.name)
    bits = _read_number(match[2]) if match and match[1] == "uint" else 0
    return {field.name: bits} if 1 <= bits <= MAX_NUMBER_BITS else {}


def _read_size(of: Type) -> int:
    return _read_number(of.name) if isinstance(of, Named) else 0


def _read_number(digits: str) -> int:
    """Return a number of at most four digits; 0 for any other text."""
    return int(digits) if digits.isdecimal() and len(digits) <= 4 else 0  # noqa: PLR2004


def _show(text: str, most: int = MAX_SHOWN) -> str:
    return text if len(text) <= most else f"{text[:most]}…"
