"""Parses user-defined layouts: TL-B, an ABI of Tact or Tolk, or the name of a shipped layout.

Untrusted input is checked before it is compiled, so that decoding a body takes bounded work.
"""

import re
from collections.abc import Iterable, Sequence
from functools import cache
from importlib.resources import files
from typing import NamedTuple

from tonlake.ingest.derive.body.abi import read_abi
from tonlake.ingest.derive.body.generic import OF_BLOCK, instantiate
from tonlake.ingest.derive.body.grammar import (
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
from tonlake.ingest.derive.body.number import evaluate
from tonlake.ingest.derive.body.record import OPCODE_BITS, Record
from tonlake.ingest.derive.body.scheme import BODY_TYPES, BUILT_IN, OWN_BODY, Scheme, load_scheme
from tonlake.ingest.derive.body.tolk import is_tolk, read_tolk_abi
from tonlake.ingest.errors import BodyError, SignatureInvalid

MAX_CHARACTERS = 65_536
"""Maximum length of a signature."""

NESTED = "the types of the signature are nested too deeply"

MAX_CONSTRUCTORS, MAX_INLINE, MAX_NESTED = 500, 1000, 12
"""Maximum constructors, types in one cell when fully expanded, and levels of nested types."""

MAX_SHOWN, MAX_ERROR = 60, 300
"""Maximum characters of a name in an error, and of an error of the grammar."""

MAX_PARTS = 64
"""Maximum fields of a constructor."""

_NAME = re.compile(r"[A-Za-z_]\w{0,62}", re.ASCII)


class Layout(NamedTuple):
    """The layout of bodies that begin with ``opcode``, an unsigned 32-bit number."""

    name: str
    opcode: int
    record: Record


def parse_signature(text: str) -> list[Layout]:
    """Return the layouts in a signature; those with equal name and opcode in the order tried.

    A signature is TL-B (constructors with 32-bit tags are layouts, others types that they use;
    shipped types are available), the JSON of a Tact or Tolk ABI, or the name of a shipped layout;
    else SignatureInvalid.
    """
    if len(text) > MAX_CHARACTERS:
        raise SignatureInvalid(f"a signature has at most {MAX_CHARACTERS:,} characters")
    bare = text.removeprefix("\ufeff").strip()  # as some editors begin a file
    if _NAME.fullmatch(bare):
        return _find_shipped(bare)
    try:
        return _compile(read_json(bare) if bare.startswith("{") else parse_scheme(bare))
    except RecursionError as error:
        raise SignatureInvalid(NESTED) from error
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


@cache
def _load_types() -> list[Constructor]:
    """Return the types that signatures may name: those of shipped layouts and of block.tlb."""
    text = files("tonlake.ingest.derive.body").joinpath("block.tlb").read_text(encoding="utf-8")
    shipped = [each for each in load_scheme().constructors if each.result not in BODY_TYPES]
    return [*shipped, *parse_scheme(text)]


def _compile(parsed: Sequence[Constructor]) -> list[Layout]:
    """Check constructors and compile those with an opcode."""
    if len(parsed) > MAX_CONSTRUCTORS:
        raise SignatureInvalid(f"a signature has at most {MAX_CONSTRUCTORS} constructors")
    own = {each.result for each in parsed}
    types = [each for each in _load_types() if each.result not in own]
    shared = {each.result for each in types}
    defined = [each for each in parsed if OF_BLOCK.get(each.result, each.result) not in BUILT_IN]
    found = instantiate(defined, types)
    constructors = [each for each in found if each.result not in shared]
    bodies = [each for each in constructors if each.tag_bits == OPCODE_BITS]
    if not bodies:
        raise SignatureInvalid(
            "no constructor of the signature has a 32-bit opcode: write it after the name, "
            "as in 'transfer#0f8a7ea5 query_id:uint64 = Body'"
        )
    known = [each for each in found if each.result not in BODY_TYPES]
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


class _Checker:
    """Counts the types in a cell, with every type expanded where it is used.

    Uses of types with numbers, and of types inside themselves, are counted when they are read.
    """

    def __init__(self, known: Iterable[Constructor]) -> None:
        self._types: dict[str, list[Constructor]] = {}
        for each in known:
            self._types.setdefault(each.result, []).append(each)
        self._sizes: dict[str, int] = {}
        self._path: list[str] = []
        self._linked: list[str] = []
        self._optional = 0

    def measure(self, name: str, fields: Sequence[Field]) -> int:
        """Return the count of a record; referenced types are queued for ``check_links``."""
        if len(fields) > MAX_PARTS:
            raise SignatureInvalid(f"{_show(name)} has more than {MAX_PARTS} fields")
        names = [field.name.lower() for field in fields if field.name]
        for each in names:
            if names.count(each) > 1:
                raise SignatureInvalid(f"{_show(name)} has two fields {_show(each)!r}")
        total = 1 + sum(self._count(name, field.type) for field in fields)
        if total > MAX_INLINE:
            raise SignatureInvalid(
                f"{_show(name)} has more than {MAX_INLINE} fields in one cell with its types"
            )
        return total

    def check_links(self) -> None:
        """Check all referenced types, which may contain themselves."""
        while self._linked:
            name = self._linked.pop()
            if name not in self._sizes:
                self._sizes[name] = self._count_type(name)

    def _count(self, name: str, of: Type, *, is_linked: bool = False) -> int:
        if isinstance(of, Linked):
            self._count(name, of.of, is_linked=True)
            return 1
        if isinstance(of, Group):
            return self.measure(name, of.fields)
        if isinstance(of, Constraint) or evaluate(of, {}) is not None:
            return 0
        if isinstance(of, Named) and of.name in self._types:
            return self._count_named(of, is_linked=is_linked)
        inner, count = ((of.of,), None) if isinstance(of, Conditional) else (of.arguments, None)
        if of[0] == REPEATED and len(inner) > 1:
            count = evaluate(inner[0], {})
        self._optional += 1
        total = sum(self._count(name, each, is_linked=is_linked) for each in inner)
        self._optional -= 1
        return 1 + total * (count or 1)

    def _count_named(self, of: Named, *, is_linked: bool) -> int:
        name = of.name
        inside = self._path[self._path.index(name) :] if name in self._path else []
        may_end = self._optional or any(len(self._types[each]) > 1 for each in inside)
        if is_linked or of.arguments or (inside and may_end):
            self._linked.append(name)
            return 1
        if inside:
            raise SignatureInvalid(f"type {_show(name)} contains itself without a reference (^)")
        if name not in self._sizes:
            self._sizes[name] = self._count_type(name)
        return self._sizes[name]

    def _count_type(self, name: str) -> int:
        if len(self._path) == MAX_NESTED:
            raise SignatureInvalid(
                f"more than {MAX_NESTED} types are nested in each other: {_show(name)}"
            )
        self._path.append(name)
        choices = self._types[name]
        total = sum(self.measure(each.name or name, each.fields) for each in choices)
        self._path.pop()
        # If several tags fit, the chosen constructor is read twice.
        return total * min(len(choices), 2)


def _show(text: str, most: int = MAX_SHOWN) -> str:
    return text if len(text) <= most else f"{text[:most]}…"
