"""A cache of values by key, limited by their weight."""

from collections import OrderedDict
from collections.abc import Callable
from typing import Generic, TypeVar

K = TypeVar("K")
V = TypeVar("V")


class Cache(Generic[K, V]):
    """Keeps values until all weigh too much: those used longest ago go first; not thread-safe."""

    def __init__(self, most: int, weigh: Callable[[K, V], int] = lambda _key, _value: 1) -> None:
        """Take the most that all may weigh; a value must not change its weight while it is kept."""
        self._most, self._weigh = most, weigh
        self._values: OrderedDict[K, V] = OrderedDict()
        self.weight = 0
        """What all values weigh."""

    def get(self, key: K) -> V | None:
        """Return a value, which counts as used; None if there is none."""
        value = self._values.get(key)
        if value is not None:
            self._values.move_to_end(key)
        return value

    def put(self, key: K, value: V) -> V:
        """Keep a value, in place of the one before, and return it."""
        self.pop(key)
        self._values[key] = value
        self.weight += self._weigh(key, value)
        while self.weight > self._most:
            self.pop(next(iter(self._values)))
        return value

    def pop(self, key: K) -> V | None:
        """Remove and return a value; None if there is none."""
        value = self._values.pop(key, None)
        if value is not None:
            self.weight -= self._weigh(key, value)
        return value
