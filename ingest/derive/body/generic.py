"""Replaces types with parameters, such as ``(Pair X Y)``, by types of their own."""

from collections.abc import Mapping, Sequence

from tonlake.ingest.derive.body.grammar import (
    Conditional,
    Constraint,
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
}
"""Types of block.tlb by the name of the shipped type, which does not need their parameters."""

_SIZED = ("uint", "int", "bits")
MAX_INSTANCES = 500
"""Maximum types that parameters make: a type may refer to itself with ever larger arguments."""


def instantiate(constructors: Sequence[Constructor]) -> list[Constructor]:
    """Return constructors without parameters: those with some once for each use.

    A body, such as that of ``= InternalMsgBody n``, is used by none. Raises BodyError if a type is
    used with the wrong number of arguments, or makes too many types.
    """
    return _Instances(constructors).run()


def _rename(name: str, arguments: tuple[Type, ...], own: set[str]) -> Named:
    """Return a type as the table of layouts names it: ``(uint 8)`` is uint8."""
    if name in OF_BLOCK and name not in own:
        return Named(OF_BLOCK[name])
    if name in _SIZED and len(arguments) == 1:
        [size] = arguments
        if isinstance(size, Named) and size.name.isdecimal():
            return Named(f"{name}{size.name}")
    return Named(name, arguments)


class _Instances:
    def __init__(self, constructors: Sequence[Constructor]) -> None:
        self._plain = [each for each in constructors if not each.parameters]
        self._generic: dict[str, list[Constructor]] = {}
        for each in constructors:
            if each.parameters:
                self._generic.setdefault(each.result, []).append(each)
        self._own = {each.result for each in constructors}
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
                if len(each.parameters) != len(use.arguments):
                    raise BodyError(f"{use.name} takes {len(each.parameters)} arguments")
                values = dict(zip(each.parameters, use.arguments, strict=True))
                found.append(self._fill(each, values)._replace(result=self._names[use]))
        return found

    def _fill(self, of: Constructor, values: Mapping[str, Type]) -> Constructor:
        return of._replace(fields=self._fill_fields(of.fields, values), parameters=())

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
        return of if isinstance(of, Constraint) else self._fill_named(of, values)

    def _fill_named(self, of: Named, values: Mapping[str, Type]) -> Type:
        if of.name in values and not of.arguments:
            return values[of.name]
        arguments = tuple(self._fill_type(each, values) for each in of.arguments)
        if arguments and of.name in self._generic:
            return Named(self._name(Named(of.name, arguments)))
        return _rename(of.name, arguments, self._own)

    def _name(self, use: Named) -> str:
        """Return the name of the type that stands for a use, which is made on first use."""
        if use not in self._names:
            if len(self._names) == MAX_INSTANCES:
                raise BodyError(f"parameters of {use.name} make more than {MAX_INSTANCES} types")
            self._names[use] = f"{use.name}_{len(self._names)}"
            self._todo.append(use)
        return self._names[use]
