"""Parses user-defined layouts: TL-B, an ABI of Tact or Tolk, or the name of a shipped layout.

Untrusted input is checked before it is compiled, so that decoding a body takes bounded work.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from importlib.resources import files
from typing import NamedTuple

from tonlake.ingest.derive.body.abi import read_abi
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
from tonlake.ingest.errors import BodyError, SignatureInvalid

OF_BLOCK = {
    "MsgAddressInt": "MsgAddress",
    "MsgAddressExt": "MsgAddress",
    "Message": "Message",
    "MessageRelaxed": "Message",
    "MessageAny": "Message",
    "OutList": "OutList",
    "SnakeData": "SnakeBytes",
}
"""Types of block.tlb by the name of the shipped type, which does not need their parameters."""

MAX_INSTANCES = 500
"""Maximum types that parameters make: a type may refer to itself with ever larger arguments."""


def _list_types(of: Constructor) -> dict[int, str]:
    """Return the names of parameters that are types, by their places."""
    places = {each: place for place, each in enumerate(of.parameters)}
    types = (name for name, kind in of.declared if kind == "Type" and Named(name) in places)
    return {places[Named(name)]: name for name in types}


class _Instances:
    """Makes constructors without types as parameters: those with some once for each use."""

    def __init__(self, own: Sequence[Constructor], shared: Sequence[Constructor]) -> None:
        constructors = [*shared, *own]
        self._plain = [each for each in constructors if not _list_types(each)]
        self._generic: dict[str, list[Constructor]] = {}
        for each in constructors:
            if _list_types(each):
                self._generic.setdefault(each.result, []).append(each)
        self._own = {each.result for each in own}
        self._names: dict[Named, str] = {}
        self._todo: list[Named] = []

    def make(self) -> list[Constructor]:
        """Return the constructors. Numbers stay parameters, and a body is used by none.

        Raises BodyError if a type has the wrong number of arguments, or makes too many types.
        """
        found = self._use([self._fill(each, {}) for each in self._plain])
        used = {use.name for use in self._names}
        bodies = [
            self._fill(each, {})
            for name, listed in self._generic.items()
            for each in listed
            if name not in used and each.tag_bits == OPCODE_BITS
        ]
        return found + self._use(bodies)

    def _use(self, found: list[Constructor]) -> list[Constructor]:
        """Add the types with parameters that constructors use."""
        while self._todo:
            use = self._todo.pop()
            for each in self._generic[use.name]:
                types = _list_types(each)
                values = dict(zip(types.values(), use.arguments, strict=True))
                numbers = [of for place, of in enumerate(each.parameters) if place not in types]
                made = self._fill(each, values)
                found.append(made._replace(result=self._names[use], parameters=tuple(numbers)))
        return found

    def _fill(self, of: Constructor, values: Mapping[str, Type]) -> Constructor:
        return of._replace(fields=self._fill_fields(of.fields, values))

    def _fill_fields(
        self, fields: Sequence[Field], values: Mapping[str, Type]
    ) -> tuple[Field, ...]:
        return tuple(Field(each.name, self._fill_type(each.type, values)) for each in fields)

    def _fill_type(self, of: Type, values: Mapping[str, Type]) -> Type:
        """Return a type with the values of parameters in their places."""
        if isinstance(of, Linked):
            return Linked(self._fill_type(of.of, values))
        if isinstance(of, Group):
            return Group(self._fill_fields(of.fields, values))
        if isinstance(of, Conditional):
            return of._replace(of=self._fill_type(of.of, values))
        return self._fill_named(of, values) if isinstance(of, Named) else of

    def _fill_named(self, of: Named, values: Mapping[str, Type]) -> Type:
        if of.name in values and not of.arguments:
            return values[of.name]
        arguments = tuple(self._fill_type(each, values) for each in of.arguments)
        if of.name in OF_BLOCK and of.name not in self._own:
            return Named(OF_BLOCK[of.name])
        if not arguments or of.name not in self._generic:
            return Named(of.name, arguments)
        for each in self._generic[of.name]:
            if len(each.parameters) != len(arguments):
                raise BodyError(f"{of.name} takes {len(each.parameters)} arguments")
        places = _list_types(self._generic[of.name][0])
        types = tuple(arguments[place] for place in places)
        numbers = tuple(each for place, each in enumerate(arguments) if place not in places)
        return Named(self._name(Named(of.name, types)), numbers)

    def _name(self, use: Named) -> str:
        """Return the name of the type that stands for a use, which is made on first use."""
        if use not in self._names:
            if len(self._names) == MAX_INSTANCES:
                raise BodyError(f"parameters of {use.name} make more than {MAX_INSTANCES} types")
            self._names[use] = f"{use.name}_{len(self._names)}"
            self._todo.append(use)
        return self._names[use]


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
        return _compile(read_abi(bare) if bare.startswith("{") else parse_scheme(bare))
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
    found = _Instances(defined, types).make()
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
