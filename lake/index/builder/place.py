"""Maps masterchain blocks to the segments, or data files, that cover them."""

from __future__ import annotations

import hashlib
import re
from typing import TYPE_CHECKING

from msgspec import UNSET

from tonlake.lake.index.builder.source import SOURCES
from tonlake.lake.index.segment.declared import CONTRACTS, TRANSFERS
from tonlake.lake.index.segment.file import SEGMENT_FORMAT
from tonlake.lake.log.place import list_files_between, read_place
from tonlake.lake.log.state import SEGMENT_FOLDER

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from tonlake.lake.log.ranges import Range
    from tonlake.lake.log.state import DataFile, LogState

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
    """Return the masterchain blocks that a segment covers.

    Raises:
        ValueError: it is not the path of a segment.
    """
    match = _PATH.fullmatch(segment.path)
    if match is None:
        raise ValueError(f"{segment.path!r} is not the path of an index segment")
    return int(match[1]), int(match[2])


def is_readable(segment: DataFile) -> bool:
    """Whether this version can read a segment; the blocks of others count as not indexed."""
    return segment.schema_version == SEGMENT_FORMAT


def files_within(files: Iterable[DataFile], mc_range: Range) -> list[DataFile]:
    """Return the files that a segment of a range is built from."""
    first, last = mc_range
    found = []
    for file in files:
        if file.table in SOURCES:
            place = read_place(file.path)
            if place.first <= last and first <= place.last:
                found.append(file)
    return found


def cut_range(files: Sequence[DataFile], mc_range: Range) -> list[Range]:
    """Cut a range where its files begin, into pieces of one commit, or of merged ones."""
    first, last = mc_range
    starts = {read_place(file.path).first for file in files if file.table == "transactions"}
    cuts = [first, *sorted(start for start in starts if first < start <= last)]
    return [(start, end - 1) for start, end in zip(cuts, [*cuts[1:], last + 1], strict=True)]


def count_rows(files: Iterable[DataFile]) -> int:
    """Return the number of transactions in files."""
    return sum(file.rows for file in files if file.table == "transactions")


def list_within(state: LogState, mc_range: Range) -> list[DataFile]:
    """Return the live files that a segment of a range is built from."""
    return list_files_between(state, *mc_range, *SOURCES)


def digest_derived(files: Iterable[DataFile], mc_range: Range) -> str:
    """Return the digest of the paths of files that may arrive after the blocks of a range.

    These are the files with traces and contracts, and those of a baseline.
    """
    paths = sorted(
        file.path
        for file in files_within(files, mc_range)
        if file.table in _DERIVED or read_place(file.path).is_baseline
    )
    return hashlib.sha256("\n".join(paths).encode()).hexdigest()


def is_current(state: LogState, segment: DataFile) -> bool:
    """Whether the traces and contracts in a segment are those of a state."""
    mc_range = range_of(segment)
    return segment.traces == digest_derived(list_within(state, mc_range), mc_range)


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
