"""Replaces types with parameters, such as ``(Pair X Y)``, by types of their own."""

from collections.abc import Mapping, Sequence

from tonlake.ingest.derive.body.grammar import (
    Conditional,
    Constructor,
    Field,
    Group,
    Linked,
    Named,
    Type,
)
from tonlake.ingest.derive.body.record import OPCODE_BITS
from tonlake.ingest.errors import BodyError

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


def instantiate(own: Sequence[Constructor], shared: Sequence[Constructor]) -> list[Constructor]:
    """Return constructors without types as parameters: those with some once for each use.

    ``shared`` has other types that are available. Numbers stay parameters: values decide them. A
    body is used by none. Raises BodyError if a type is used with the wrong number of arguments, or
    makes too many types.
    """
    return _Instances(own, shared).run()


def _list_types(of: Constructor) -> dict[int, str]:
    """Return the names of parameters that are types, by their places."""
    places = {each: place for place, each in enumerate(of.parameters)}
    types = (name for name, kind in of.declared if kind == "Type" and Named(name) in places)
    return {places[Named(name)]: name for name in types}


class _Instances:
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

    def run(self) -> list[Constructor]:
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
