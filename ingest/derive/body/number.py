"""Numbers that fields and types depend on: sums and products of earlier fields and parameters."""

import operator
from collections.abc import Callable, Iterator
from typing import TypeAlias

from tonlake.ingest.derive.body.grammar import ADD, MULTIPLY, Constructor, Named, Type
from tonlake.ingest.errors import BodyError

Numbers: TypeAlias = dict[str, int]
"""Those that are known of a constructor, by name."""
_OPERATIONS: dict[str, Callable[[int, int], int]] = {ADD: operator.add, MULTIPLY: operator.mul}


def evaluate(of: Type, numbers: Numbers) -> int | None:
    """Return the value of an expression; None if a name in it has none."""
    if not isinstance(of, Named):
        return None
    if of.name in _OPERATIONS:
        left, right = (evaluate(each, numbers) for each in of.arguments)
        return None if left is None or right is None else _OPERATIONS[of.name](left, right)
    return int(of.name) if of.name.isdecimal() else numbers.get(of.name)


def match(of: Type, value: int, numbers: Numbers) -> bool:
    """Return whether an expression has a value; the only unknown name in it is given one."""
    known = evaluate(of, numbers)
    if known is not None or not isinstance(of, Named):
        return known == value
    if of.name not in _OPERATIONS:
        numbers[of.name] = value
        return True
    sides = [(evaluate(each, numbers), each) for each in of.arguments]
    (_unknown, open_side), (other, _side) = sorted(sides, key=lambda side: side[0] is not None)
    if other is None:
        return False
    if of.name == ADD:
        return value >= other and match(open_side, value - other, numbers)
    return other > 0 and value % other == 0 and match(open_side, value // other, numbers)


def list_names(of: Type) -> Iterator[str]:
    """Yield the names in an expression."""
    if isinstance(of, Named) and of.name in _OPERATIONS:
        for each in of.arguments:
            yield from list_names(each)
    elif isinstance(of, Named) and not of.name.isdecimal():
        yield of.name


MAX_BITS = 64
"""Maximum bits of a number that others depend on."""


class NumberScope:
    """The numbers that are known at a place in a constructor.

    ``bits`` has how many bits they have, by name; ``is_late`` means that a type depends on one.
    """

    def __init__(self, of: Constructor) -> None:
        self._name = of.name[:MAX_BITS]
        self._free = {name for name, kind in of.declared if kind == "#"}
        self.bits: dict[str, int] = {}
        self.is_late = False
        for each in of.parameters:
            self.add(each)

    def add(self, of: Type) -> None:
        """Add the names in an expression, which is known from here on."""
        for name in list_names(of):
            self.bits.setdefault(name, MAX_BITS)

    def check(self, of: Type, *, is_open: bool = False) -> None:
        """Raise BodyError for an unknown name in an expression, unless it was declared."""
        for name in list_names(of):
            if name not in self.bits and not (is_open and name in self._free):
                raise BodyError(
                    f"{name[:MAX_BITS]} in {self._name} is not an earlier number of at most "
                    f"{MAX_BITS} bits"
                )
        self.add(of)
