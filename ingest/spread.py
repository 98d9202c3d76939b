"""Distributes independent work of a stage over processes."""

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future
from typing import Generic, Protocol, TypeVar

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)
R = TypeVar("R")


class Shared(Protocol[T_co]):
    """A value that is cheap to pass to several work items."""

    def open(self) -> T_co:
        """Return the value, or an equal copy."""


class Spread(Protocol):
    """Runs functions on items, in this process or in several others."""

    @property
    def count(self) -> int:
        """Return how many items are processed at a time."""

    def map(self, work: Callable[[T], R], items: Iterable[T]) -> Iterator[R]:
        """Yield ``work(item)`` in order; ``work`` is of a module, and depends on no process."""

    def share(self, value: T) -> Shared[T]:
        """Return a handle by which several work items open ``value``; tables may be large."""

    def submit(self, work: Callable[[T], R], item: T) -> Future[R]:
        """Start ``work(item)``, under the same conditions as ``map``."""


class _Held(Generic[T]):
    def __init__(self, value: T) -> None:
        self._value = value

    def open(self) -> T:
        return self._value


class OneProcess:
    """Runs all work in this process."""

    count = 1

    def map(self, work: Callable[[T], R], items: Iterable[T]) -> Iterator[R]:
        """Yield ``work(item)`` for each item."""
        return map(work, items)

    def share(self, value: T) -> Shared[T]:
        """Return a handle that holds ``value`` itself."""
        return _Held(value)

    def submit(self, work: Callable[[T], R], item: T) -> Future[R]:
        """Run ``work(item)`` and return a finished future."""
        done: Future[R] = Future()
        done.set_result(work(item))
        return done


HERE = OneProcess()
