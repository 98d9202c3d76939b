"""Checks what a lake covers: requests outside of it get an error, not an empty result."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from tonlake.api.errors import NotCovered
from tonlake.api.text.encoding import name_ranges

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tonlake.api.text.encoding import Address
    from tonlake.queries.reader import Reader

Range = tuple[int, int]
Bounds = tuple[int | None, int | None]


class Extent(msgspec.Struct, frozen=True):
    """The extent of one contiguous range of masterchain blocks; both ends are included.

    At its edges other blocks may be of the same time: ``whole_utime`` and ``whole_lt`` are the
    parts in which every block of the chain is in the range.
    """

    mc_seqno: Range
    utime: Range
    lt: Range
    whole_utime: Range
    whole_lt: Range


def read_extents(reader: Reader) -> list[Extent]:
    """Return the extent of every contiguous range of the snapshot."""
    ranges = reader.snapshot.ranges
    rows = reader.lasting_rows("v3/coverage", mc_seqnos=[end for pair in ranges for end in pair])
    ends = {row["mc_seqno"]: row for row in rows}
    return [
        _make_extent(ends[first], ends[last])
        for first, last in ranges
        if first in ends and last in ends
    ]


def _make_extent(first: Mapping[str, Any], last: Mapping[str, Any]) -> Extent:
    is_begin = first["mc_seqno"] <= 1
    return Extent(
        mc_seqno=(first["mc_seqno"], last["mc_seqno"]),
        utime=(first["first_utime"], last["last_utime"]),
        lt=(first["first_lt"], last["last_lt"]),
        whole_utime=(0 if is_begin else first["own_utime"] + 1, last["settled_utime"] - 1),
        whole_lt=(0 if is_begin else first["own_lt"], last["settled_lt"]),
    )


def check_mc_seqno(reader: Reader, mc_seqno: int) -> None:
    """Refuse a masterchain seqno that the lake does not cover.

    Raises:
        NotCovered: with TON Center's text, and the covered ranges.
    """
    ranges = reader.snapshot.ranges
    if not any(first <= mc_seqno <= last for first, last in ranges):
        raise NotCovered(
            f"masterchain block {mc_seqno} not found; this lake covers {name_ranges(ranges)}"
        )


def check_seqno(reader: Reader, workchain: int | None, shard: int | None, seqno: int) -> None:
    """Refuse a seqno that is outside the covered range of every requested shard.

    Raises:
        NotCovered: with the covered seqnos of each shard.
    """
    rows = reader.rows("v3/seqno_ranges", workchain=workchain, shard=shard)
    held = [(row["first_seqno"], row["last_seqno"]) for row in rows]
    if not any(first <= seqno <= last for first, last in held):
        raise NotCovered(
            f"block {seqno} not found; this lake covers {name_ranges(held)} of these shards"
        )


def check_accounts_known(
    reader: Reader, unknown: Sequence[Address], mc_seqno: int | None = None
) -> None:
    """Refuse unknown accounts that may exist as of a block, the newest by default.

    An account missing from the lake does not exist if the lake is complete since the zero state or
    the baseline.

    Raises:
        NotCovered: with the first such account and the covered ranges.
    """
    ranges = reader.snapshot.known_ranges
    if reader.snapshot.has_every_account(ranges[-1][1] if mc_seqno is None else mc_seqno):
        return
    complete = len(ranges) == 1 and ranges[0][0] <= 1
    if complete and any(row["is_there"] for row in reader.lasting_rows("v3/zero_state")):
        return
    others = f" (and {len(unknown) - 1} more)" if len(unknown) > 1 else ""
    raise NotCovered(
        f"account {unknown[0]}{others} is not known: this lake does not have everything from the "
        f"zero state on, and no block of masterchain {name_ranges(ranges[-1:])} touched it"
    )


def is_current(reader: Reader, state: Mapping[str, Any], mc_seqno: int | None = None) -> bool:
    """Return whether an account's last known state is its state at a block: no gap lies in between.

    ``mc_seqno`` is a masterchain block that the lake covers; by default the newest.
    """
    ranges = reader.snapshot.known_ranges
    at_block = ranges[-1][1] if mc_seqno is None else mc_seqno
    begin = max(first for first, _last in ranges if first <= at_block)
    return begin == ranges[0][0] or bool(state["mc_seqno"] >= begin)


def describe_gaps(ranges: Sequence[Range]) -> str | None:
    """Return a warning about masterchain blocks missing at the start or in between, or None."""
    if len(ranges) > 1:
        return f"this lake has holes, it covers masterchain {name_ranges(ranges)}"
    if ranges and ranges[0][0] > 1:
        return f"this lake begins in the middle, it covers masterchain {name_ranges(ranges)}"
    return None


def check_no_gap(
    reader: Reader, *, utime: Bounds = (None, None), lt: Bounds = (None, None)
) -> None:
    """Refuse an empty result that a gap of the lake may have caused.

    Raises:
        NotCovered: neither span lies within one contiguous range.
    """
    ranges = reader.snapshot.ranges
    if describe_gaps(ranges) is None:
        return
    newest = ranges[-1]
    for extent in read_extents(reader):
        for (first, last), (start, end) in ((utime, extent.whole_utime), (lt, extent.whole_lt)):
            ends_inside = extent.mc_seqno == newest or (last is not None and last <= end)
            if first is not None and first >= start and ends_inside:
                return
    raise NotCovered(f"nothing found, and this lake covers only masterchain {name_ranges(ranges)}")


def check_no_contract_missing(reader: Reader, mc_seqno: int | None = None) -> None:
    """Refuse an empty list of contracts as of a block (default: newest) if a gap may be the cause.

    If the baseline was read from a later state than its own, contracts touched in between may not
    have been detected.

    Raises:
        NotCovered: changes of states are missing.
    """
    snapshot = reader.snapshot
    at_block = snapshot.last_mc_seqno if mc_seqno is None else mc_seqno
    baseline = snapshot.baseline
    is_exact = baseline is not None and baseline.state_mc_seqno == baseline.mc_seqno
    if is_exact and snapshot.has_every_account(at_block):
        return
    if describe_gaps(snapshot.known_ranges) is not None:
        covered = name_ranges(snapshot.ranges)
        raise NotCovered(f"nothing found, and this lake covers only masterchain {covered}")


def check_utime(reader: Reader, first: int | None, last: int | None) -> None:
    """Refuse a span of time that the lake does not cover at all.

    Raises:
        NotCovered: with the covered times.
    """
    _check_span("time", [extent.utime for extent in read_extents(reader)], first, last)


def check_lt(reader: Reader, first: int | None, last: int | None) -> None:
    """Refuse a span of logical time that the lake does not cover at all.

    Raises:
        NotCovered: with the covered logical times.
    """
    _check_span("logical time", [extent.lt for extent in read_extents(reader)], first, last)


def _check_span(what: str, held: list[Range], first: int | None, last: int | None) -> None:
    if first is None and last is None:
        return
    for start, end in held:
        if (first is None or first <= end) and (last is None or last >= start):
            return
    raise NotCovered(
        f"{what} {'' if first is None else first}..{'' if last is None else last} "
        f"is not indexed; this lake covers {name_ranges(held)}"
    )
