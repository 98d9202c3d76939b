"""Distributes independent work of a stage over processes."""

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future
from typing import Generic, TypeVar

T = TypeVar("T")
R = TypeVar("R")


class Shared(Generic[T]):
    """A value that is cheap to pass to several work items."""

    def __init__(self, value: T) -> None:
        self._value = value

    def open(self) -> T:
        """Return the value, or an equal copy."""
        return self._value


class Spread:
    """Runs functions on items in this process; ``Workers`` in several others."""

    count = 1
    """How many items are processed at a time."""

    def map(self, work: Callable[[T], R], items: Iterable[T]) -> Iterator[R]:
        """Yield ``work(item)`` in order; ``work`` is of a module, and depends on no process."""
        return map(work, items)

    def share(self, value: T) -> Shared[T]:
        """Return a handle by which several work items open ``value``; tables may be large."""
        return Shared(value)

    def submit(self, work: Callable[[T], R], item: T) -> Future[R]:
        """Start ``work(item)``, under the same conditions as ``map``."""
        done: Future[R] = Future()
        done.set_result(work(item))
        return done


HERE = Spread()
