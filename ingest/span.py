"""Parses ranges of masterchain seqnos, and computes which parts of a range are covered."""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

import msgspec

from tonlake.ingest.errors import IngestError
from tonlake.ingest.spread import HERE, Spread
from tonlake.lake.log.place import Place

_GRAMMAR = re.compile(r"(?P<first>-?[0-9]{1,10})?(?P<colon>:)?(?P<last>[0-9]{1,10})?")


class SpanError(IngestError):
    """A range does not follow the grammar or is empty."""


class Span(msgspec.Struct, frozen=True, order=True):
    """Masterchain seqnos from ``first`` to ``last``, both included."""

    first: int
    last: int

    def __str__(self) -> str:
        """Return the form that ``parse_span`` reads."""
        return f"{self.first}:{self.last}"

    def __len__(self) -> int:
        """Return the number of masterchain blocks."""
        return self.last - self.first + 1


def parse_span(text: str, *, oldest: int, newest: int) -> Span:
    """Parse a range such as ``1000:2000``, ``1000:``, ``:2000``, ``1500`` or ``-1000:``.

    Both ends are included. An omitted end is the oldest or newest block of the source; a negative
    start counts back from the newest, so ``-1000:`` means the last thousand.
    """
    found = _GRAMMAR.fullmatch(text.strip())
    if found is None or not text.strip(" :"):
        raise SpanError(f"range {text!r}: write 1000:2000, 1000:, :2000, 1500 or -1000:")
    first, last = found["first"], found["last"]
    if 0 in (first and int(first), last and int(last)):
        raise SpanError(f"range {text!r}: masterchain blocks have numbers from 1 on")
    start = oldest if first is None else int(first)
    if start < 0:
        start = max(oldest, newest + 1 + start)
    end = newest if last is None else int(last)
    if found["colon"] is None:
        end = start
    if end < start:
        raise SpanError(f"range {text!r} {_explain_empty(found, oldest=oldest, newest=newest)}")
    return Span(start, end)


def _explain_empty(found: re.Match[str], *, oldest: int, newest: int) -> str:
    first, last = found["first"], found["last"]
    if first is None:
        return f"ends before the oldest block of the source, {oldest}"
    if last is None:
        return f"begins after the newest block of the source, {newest}"
    if first.startswith("-"):
        return f"ends before it begins: {first} is block {max(oldest, newest + 1 + int(first))}"
    return f"ends before it begins: write {last}:{first}"


def missing_spans(requested: Span, covered: Iterable[Span]) -> Iterator[Span]:
    """Yield the parts of ``requested`` that no span of ``covered`` contains, in order."""
    start = requested.first
    for span in sorted(covered):
        if span.last < start:
            continue
        if span.first > requested.last:
            break
        if span.first > start:
            yield Span(start, span.first - 1)
        start = span.last + 1
    if start <= requested.last:
        yield Span(start, requested.last)


def list_shared(requested: Span, covered: Iterable[Span]) -> list[str]:
    """Return the parts of ``requested`` that ``covered`` contains, as text."""
    return [
        str(Span(max(span.first, requested.first), min(span.last, requested.last)))
        for span in covered
        if span.first <= requested.last and span.last >= requested.first
    ]


class Scope(NamedTuple):
    """Which ranges a rebuild derives; by default all that are outdated."""

    everything: bool = False
    """Whether to derive ranges that are up to date, too."""

    within: Sequence[Span] | None = None
    """Masterchain blocks to which the rebuild is limited; None means all."""

    on_range: Callable[[int, int], None] = lambda _done, _total: None
    """Called after each range with the numbers of finished ranges and of all ranges."""

    spread: Spread = HERE
    """Processes that derive ranges which do not depend on each other."""

    def covers(self, place: Place) -> bool:
        """Return whether the range at ``place`` begins in the masterchain blocks of ``within``."""
        return self.within is None or any(
            span.first <= place.first <= span.last for span in self.within
        )
