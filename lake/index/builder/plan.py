"""Plans index segments, which end where commits do: few of them, and none too large to build."""

import hashlib
import re
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial

from msgspec import UNSET

from tonlake.lake.index.builder.compose import SOURCES
from tonlake.lake.index.segment.declared import CONTRACTS, TRANSFERS
from tonlake.lake.index.segment.file import SEGMENT_FORMAT
from tonlake.lake.log.place import list_files_between, read_place
from tonlake.lake.log.ranges import Range, subtract_ranges
from tonlake.lake.log.state import SEGMENT_FOLDER, DataFile, LogState

_DIGEST_LETTERS = 16
_DERIVED = frozenset(
    {
        *("transaction_traces", "actions", "action_accounts"),
        *(table.name for table in (*CONTRACTS, *TRANSFERS)),
    }
)
_PATH = re.compile(r"\w+/(\d+)-(\d+)-[0-9a-f]+\.(?:run|arrow)")


def segment_path(mc_range: Range, sha256: str) -> str:
    """Return the path of a segment in the lake; ``sha256`` is the digest of its bytes in hex."""
    return f"{SEGMENT_FOLDER}/{mc_range[0]}-{mc_range[1]}-{sha256[:_DIGEST_LETTERS]}.arrow"


def range_of(segment: DataFile) -> Range:
    """Return the blocks that a segment covers; ValueError: it is not a segment's path."""
    match = _PATH.fullmatch(segment.path)
    if match is None:
        raise ValueError(f"{segment.path!r} is not the path of an index segment")
    return int(match[1]), int(match[2])


def is_readable(segment: DataFile) -> bool:
    """Whether this version can read a segment; the blocks of others count as not indexed."""
    return segment.schema_version == SEGMENT_FORMAT


def cut_range(
    files: Sequence[DataFile], mc_range: Range
) -> list[tuple[Range, dict[str, DataFile]]]:
    """Cut a range where its files begin: pieces of a commit or of merged ones, and their files."""
    first, last = mc_range
    placed = [(read_place(file.path), file) for file in files]
    starts = {place.first for place, file in placed if file.table == "transactions"}
    cuts = [first, *sorted(start for start in starts if first < start <= last)]
    found: list[dict[str, DataFile]] = [{} for _ in cuts]
    for place, file in placed:
        at = max(0, bisect_right(cuts, place.first) - 1)
        for held in found[at : bisect_right(cuts, place.last)]:
            held[file.path] = file
    ends = [*(cut - 1 for cut in cuts[1:]), last]
    return [*zip(zip(cuts, ends, strict=True), found, strict=True)]


def count_rows(files: Iterable[DataFile], table: str = "transactions") -> int:
    """Return the number of rows of a table in files."""
    return sum(file.rows for file in files if file.table == table)


def list_within(state: LogState, mc_range: Range) -> list[DataFile]:
    """Return the live files that a segment of a range is built from."""
    return list_files_between(state, *mc_range, *SOURCES)


def digest_derived(files: Iterable[DataFile]) -> str:
    """Return the digest of the paths of those with traces, contracts or a baseline of some files.

    These are the files of ``list_within``.
    """
    paths = sorted(
        file.path for file in files if file.table in _DERIVED or read_place(file.path).is_baseline
    )
    return hashlib.sha256("\n".join(paths).encode()).hexdigest()


def is_current(state: LogState, segment: DataFile) -> bool:
    """Whether the traces and contracts in a segment are those of a state."""
    return segment.traces == digest_derived(list_within(state, range_of(segment)))


def lacks_baseline(state: LogState, segment: DataFile) -> bool:
    """Whether the baseline was added after a segment that covers its block without its rows."""
    if state.baseline is UNSET:
        return False
    at, mc_range = state.baseline.mc_seqno, range_of(segment)
    return (
        mc_range[0] <= at <= mc_range[1]
        and any(first <= at <= last for first, last in (*state.pruned_ranges, *state.ranges))
        and not is_current(state, segment)
    )


MIN_ROWS = 16_000
"""Minimum number of transactions of a segment built during an ingest, so that little is left to
index after the last commit, when no other work runs in parallel."""

_SHARE = 4
"""A segment also has at least the number of earlier transactions divided by this, while it fits the
writer's memory: so a short chain has few segments, and no row is written twice."""

_MAX_SEGMENTS = 32
"""A segment always has at least the number of earlier transactions divided by this, so the number
of segments grows with the logarithm of a long chain."""

_FAN_IN = 8
"""Neighbours are built again with new rows if the result has this many times the rows of the
largest, or fills a segment with at least twice its rows.

So each row is written about 2.8 times, however long the chain, 64 small commits at a time. When a
neighbour of up to 1.5 times the new rows was built again, it was 2.7 times at first and 4.1 after
3,000,000 transactions, with as many segments."""

_FULL = 0.75
"""The share of the largest size from which a segment counts as full."""


def plan_missing(state: LogState, segments: tuple[DataFile, ...], max_rows: int) -> list[Range]:
    """Return the ranges to build, given these sound segments.

    A segment never spans a hole. Neighbours are rebuilt with it if they become a much larger one
    together: so few remain, and each row is written only a few times.
    """
    kept = segments
    planned: list[Range] = []
    for first, last in subtract_ranges(state.known_ranges, map(range_of, segments)):
        piece = (first, last)
        rows = 1 + count_rows(list_within(state, piece))
        for neighbour in _list_neighbours(kept, piece, rows, max_rows):
            start, end = range_of(neighbour)
            piece = (min(piece[0], start), max(piece[1], end))
            kept = tuple(each for each in kept if each is not neighbour)
        full = [mc_range for mc_range, _ in _list_full(state, piece, lambda _done: max_rows)]
        planned += full + list(subtract_ranges([piece], full))
    return planned


def list_due(
    state: LogState, ahead: Mapping[Range, int], max_rows: int, easy_rows: int
) -> dict[Range, int]:
    """Return the unindexed ranges large enough for a segment, with their transactions.

    ``ahead`` are ranges whose segments are being built; the limits are those of ``choose_rows``.
    """
    before = sum(segment.rows for segment in state.segments) + sum(ahead.values())
    covered = [*map(range_of, state.segments), *ahead]
    due: dict[Range, int] = {}
    for piece in subtract_ranges(state.known_ranges, covered):
        target = partial(choose_rows, max_rows=max_rows, easy_rows=easy_rows, earlier=before)
        full = dict(_list_full(state, piece, target))
        before += sum(full.values())
        due |= full
    return due


def choose_rows(before: int, max_rows: int, easy_rows: int, earlier: int = 0) -> int:
    """Return the number of transactions of the next segment, given that of all earlier ones.

    It is ``easy_rows``, what the writer's memory holds, up to ``max_rows`` if segments are many.
    """
    done = before + earlier
    return min(max_rows, max(MIN_ROWS, min(easy_rows, done // _SHARE), done // _MAX_SEGMENTS))


def _list_full(
    state: LogState, piece: Range, target: Callable[[int], int]
) -> Iterator[tuple[Range, int]]:
    """Yield full parts of a range, each with its transactions; they end where commits do.

    ``target`` returns the size of a part, given the transactions in earlier parts.
    """
    files = list_within(state, piece)
    start, held, done = piece[0], 0, 0
    for (_first, last), within in cut_range(files, piece):
        held += count_rows(within.values())
        if held >= target(done):
            yield (start, last), held
            start, held, done = last + 1, 0, done + held


def _list_neighbours(
    segments: Sequence[DataFile], piece: Range, rows: int, max_rows: int
) -> list[DataFile]:
    """Return the segments to build again together with a range that has this many rows."""
    before = {range_of(segment)[1]: segment for segment in segments}
    after = {range_of(segment)[0]: segment for segment in segments}
    (first, last), largest, chosen = piece, 0, 0
    found: list[DataFile] = []
    while beside := [each for each in (before.get(first - 1), after.get(last + 1)) if each]:
        nearest = min(beside, key=lambda segment: segment.rows)
        rows += nearest.rows
        if rows > max_rows:
            break
        found.append(nearest)
        start, end = range_of(nearest)
        first, last, largest = min(first, start), max(last, end), max(largest, nearest.rows)
        is_full = rows >= _FULL * max_rows and rows >= 2 * largest
        if is_full or rows >= _FAN_IN * largest:
            chosen = len(found)
    return found[:chosen]
