"""Reading ahead: every range once, in order, within the bounds, whatever workers do."""

import threading
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tonlake.ingest.decode.piece import Piece
from tonlake.ingest.errors import SourceError
from tonlake.ingest.run.workers import Part, ReadAhead, cut_span
from tonlake.ingest.span import Span

PART_MC_BLOCKS, BLOCK_BYTES = 3, 10


class Reader:
    """Reads ranges in threads, a few blocks at a time, and records the maximum read."""

    def __init__(self, pool: ThreadPoolExecutor, fails_at: int | None = None) -> None:
        self._pool = pool
        self._fails_at = fails_at
        self._lock = threading.Lock()
        self.busy = self.max_busy = 0
        self.begun: list[Span] = []

    def submit(self, span: Span) -> Future[Part]:
        with self._lock:
            self.begun.append(span)
            self.busy += 1
            self.max_busy = max(self.max_busy, self.busy)
        return self._pool.submit(self._read, span)

    def _read(self, span: Span) -> Part:
        with self._lock:
            self.busy -= 1
        if self._fails_at is not None and span.first <= self._fails_at <= span.last:
            raise SourceError(f"block {self._fails_at}")
        last = min(span.last, span.first + PART_MC_BLOCKS - 1)
        pieces = [Piece(seqno, seqno, {}) for seqno in range(span.first, last + 1)]
        rest = Span(last + 1, span.last) if last < span.last else None
        return Part(list(pieces), BLOCK_BYTES * len(pieces), rest)


@contextmanager
def reading(threads: int, fails_at: int | None = None) -> Iterator[Reader]:
    with ThreadPoolExecutor(threads) as pool:
        yield Reader(pool, fails_at)


def iter_seqnos(ahead: ReadAhead) -> Iterator[int]:
    for pieces in ahead:
        yield from (piece.first for piece in pieces if isinstance(piece, Piece))


@given(
    mc_blocks=st.integers(1, 60),
    size=st.integers(1, 20),
    tasks=st.integers(1, 6),
    limit_bytes=st.integers(0, 300),
)
@settings(max_examples=50, deadline=None)
def test_every_block_comes_once_and_in_order(
    mc_blocks: int, size: int, tasks: int, limit_bytes: int
) -> None:
    with reading(3) as reader:
        spans = cut_span(Span(1, mc_blocks), size)
        ahead = ReadAhead(reader.submit, spans, tasks=tasks, limit_bytes=limit_bytes)
        assert list(iter_seqnos(ahead)) == list(range(1, mc_blocks + 1))
        assert reader.max_busy <= tasks


def test_nothing_is_begun_while_enough_waits() -> None:
    with reading(2) as reader:
        spans = cut_span(Span(1, 100), PART_MC_BLOCKS)
        ahead = iter(ReadAhead(reader.submit, spans, tasks=2, limit_bytes=BLOCK_BYTES))
        next(ahead)
        for _ in range(50):
            threading.Event().wait(0.001)
        # Two tasks may have been at work when the first part came.
        assert len(reader.begun) <= 4
        assert len(list(ahead)) == 33


def test_a_failure_is_raised_behind_what_could_be_read() -> None:
    with reading(1, fails_at=50) as reader:
        spans = cut_span(Span(1, 100), 10)
        ahead = ReadAhead(reader.submit, spans, tasks=1, limit_bytes=0)
        found: list[int] = []
        with pytest.raises(SourceError, match="block 50"):
            found.extend(iter_seqnos(ahead))
        assert found == list(range(1, len(found) + 1))
        assert all(span.first <= 50 for span in reader.begun)


def test_nothing_begins_after_the_reader_has_left() -> None:
    with reading(2) as reader:
        ahead = iter(ReadAhead(reader.submit, cut_span(Span(1, 900), 3), tasks=2, limit_bytes=60))
        next(ahead)
        ahead.close()  # type: ignore[attr-defined]
        begun = len(reader.begun)
        threading.Event().wait(0.05)
        assert len(reader.begun) == begun
