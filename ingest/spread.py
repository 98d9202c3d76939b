"""How a stage shares out work that can be done in any process."""

from __future__ import annotations

from concurrent.futures import Future
from typing import TYPE_CHECKING, Generic, Protocol, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)
R = TypeVar("R")


class Shared(Protocol[T_co]):
    """A value that is cheap to hand to several works, as a part of their items."""

    def open(self) -> T_co:
        """Return the value, or an equal one."""


class Spread(Protocol):
    """Processes that do work on items: this one, or several others."""

    @property
    def count(self) -> int:
        """Return how many items are worked on at a time."""

    def map(self, work: Callable[[T], R], items: Iterable[T]) -> Iterator[R]:
        """Yield what the work makes of each item, in order.

        ``work`` is a function of a module and all values can be pickled. What it returns does not
        depend on the process, so neither do the rows of the lake.
        """

    def share(self, value: T) -> Shared[T]:
        """Return what several works open as one value, with tables of any size."""

    def submit(self, work: Callable[[T], R], item: T) -> Future[R]:
        """Begin one piece of work, as ``map`` does."""


class _Held(Generic[T]):
    def __init__(self, value: T) -> None:
        self._value = value

    def open(self) -> T:
        return self._value


class OneProcess:
    """This process alone."""

    count = 1

    def map(self, work: Callable[[T], R], items: Iterable[T]) -> Iterator[R]:
        """Yield what the work makes of each item."""
        return map(work, items)

    def share(self, value: T) -> Shared[T]:
        """Return what gives the value itself."""
        return _Held(value)

    def submit(self, work: Callable[[T], R], item: T) -> Future[R]:
        """Do one piece of work."""
        done: Future[R] = Future()
        done.set_result(work(item))
        return done


HERE = OneProcess()
