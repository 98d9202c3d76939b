"""Headers of blocks by place: from row groups that are kept decoded, or by query.

Every function gives what the named query in its docstring gives.
"""

from __future__ import annotations

from operator import itemgetter
from typing import TYPE_CHECKING, Any

from lake.lookup.merge import Hit
from lake.rowgroups import MOST_ROWS, gather
from lake.schema.block import BLOCKS, SHARD_BLOCKS
from queries.exact import Slice

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from lake.wanted import Bounds
    from queries.reader import Reader

Row = dict[str, Any]

MASTERCHAIN = -1
MOST_OF_BLOCKS = 5_000
"""Blocks with more transactions are left to the named query."""

_COLUMNS = tuple(name for name in BLOCKS.names if name != "time")
_EXACT = ("workchain", "shard", "seqno", "root_hash", "file_hash", "mc_seqno")


def find_blocks(reader: Reader, filters: Mapping[str, Any], page: Slice) -> list[Row]:
    """Return a page of blocks by filters of which None filters nothing, as ``v3/blocks``."""
    given = {name: value for name, value in filters.items() if value is not None}
    found = None
    if given.keys() <= set(_EXACT):
        if "mc_seqno" in given or {"workchain", "seqno"} <= given.keys():
            bounds = {name: (given[name], given[name]) for name in given}
            if given.get("workchain") == MASTERCHAIN and "seqno" in given:
                bounds["mc_seqno"] = bounds["seqno"]  # its own number
            found = _gather(reader, bounds)
        elif given == {"workchain": MASTERCHAIN}:
            found = _gather_masters(reader, page)
    if found is None:
        return reader.rows("v3/blocks", **filters, **page._asdict())
    found.sort(key=itemgetter("workchain", "shard"))
    found.sort(key=itemgetter("gen_utime", "start_lt"), reverse=page.descending)
    return found[page.offset : page.offset + page.limit]


def _gather(reader: Reader, bounds: Mapping[str, Bounds]) -> list[Row] | None:
    reader.check_may_query(BLOCKS.name)
    return gather(reader.snapshot, BLOCKS.name, _COLUMNS, bounds)


def _gather_masters(reader: Reader, page: Slice) -> list[Row] | None:
    """Return the masterchain blocks up to the last of a page: their seqnos tell their order.

    None where one of them is not there.
    """
    wanted = page.offset + page.limit
    if wanted > MOST_ROWS:
        return None
    seqnos: list[int] = []
    ranges = reader.snapshot.ranges
    for first, last in reversed(ranges) if page.descending else ranges:
        left = wanted - len(seqnos)
        if page.descending:
            seqnos += range(last, max(first - 1, last - left), -1)
        else:
            seqnos += range(first, min(last + 1, first + left))
    if not seqnos:
        return None
    bounds = {
        "mc_seqno": (min(seqnos), max(seqnos)),
        "workchain": (MASTERCHAIN, MASTERCHAIN),
    }
    found = _gather(reader, bounds)
    return None if found is None or len(found) != len(seqnos) else found


def find_masterchain_ends(reader: Reader) -> Sequence[Mapping[str, Any]]:
    """Return the oldest and the newest masterchain block, each as ``v3/blocks``."""
    first, last = max(1, reader.snapshot.first_mc_seqno), reader.snapshot.last_mc_seqno
    return reader.lasting(
        "masterchain ends",
        lambda: [row for seqno in sorted({first, last}) for row in _find_masters(reader, seqno)],
    )


def _find_masters(reader: Reader, seqno: int) -> list[Row]:
    """Return the masterchain block of a seqno, which is its own ``mc_seqno``, if it is there."""
    return find_blocks(reader, {"workchain": MASTERCHAIN, "mc_seqno": seqno}, Slice(1))


def find_block(reader: Reader, workchain: int, shards: Sequence[int], seqno: int) -> Row | None:
    """Return the block of a seqno in the last of some shards that has it, as ``v3/blocks``."""
    if workchain == MASTERCHAIN:
        found = _find_masters(reader, seqno)
    else:
        found = find_blocks(reader, {"workchain": workchain, "seqno": seqno}, Slice(MOST_ROWS))
    places = {shard: at for at, shard in enumerate(shards)}
    fitting = [row for row in found if row["shard"] in places]
    return max(fitting, key=lambda row: places[row["shard"]], default=None)


def find_first_block(
    reader: Reader,
    workchain: int,
    shards: Sequence[int],
    *,
    lt: int | None = None,
    utime: int | None = None,
) -> Row | None:
    """Return the first block, in a line of shards, from a logical time or a time on.

    One of both is given; ``v2/first_block`` finds the place.
    """
    place = reader.one(
        "v2/first_block", workchain=workchain, shards=list(shards), lt=lt, utime=utime
    )
    return place and next(iter(find_blocks(reader, place, Slice(1))), None)


def list_shards(reader: Reader, mc_seqno: int) -> list[Row]:
    """Return the newest block of every shard as of a masterchain block, as ``v2/shards``."""
    bounds = {"mc_seqno": (mc_seqno, mc_seqno)}
    found = gather(reader.snapshot, SHARD_BLOCKS.name, SHARD_BLOCKS.names, bounds)
    if found is None:
        return reader.rows("v2/shards", mc_seqno=mc_seqno)
    found = [row for row in found if row["workchain"] != MASTERCHAIN]
    found.sort(
        key=lambda row: (row["workchain"] < 0, row["workchain"], row["shard"] < 0, row["shard"])
    )
    return found


def list_tops(reader: Reader, mc_seqno: int) -> list[Row]:
    """Return the newest blocks of all shards as of a masterchain block, as ``v3/shard_tops``."""
    bounds = {"mc_seqno": (mc_seqno, mc_seqno)}
    tops = gather(reader.snapshot, SHARD_BLOCKS.name, ("workchain", "shard", "seqno"), bounds)
    if tops is None:
        return reader.rows("v3/shard_tops", mc_seqno=mc_seqno)
    nothing = dict.fromkeys(_COLUMNS)
    rows = []
    for top in sorted(tops, key=itemgetter("workchain", "shard", "seqno")):
        held = _gather(reader, {name: (value, value) for name, value in top.items()})
        if held is None:
            return reader.rows("v3/shard_tops", mc_seqno=mc_seqno)
        named = {f"top_{name}": value for name, value in top.items()}
        rows += [named | row for row in held or [nothing]]
    return rows


def find_block_transactions(reader: Reader, blocks: Sequence[Row], page: Slice) -> list[Row] | None:
    """Return the keys of the transactions of some blocks, as ``v3/transaction_keys_of_blocks``.

    None without look-ups, or where they are too many to look at each.
    """
    found = _look_up_transactions(reader, blocks)
    if found is None:
        return None
    found.sort(key=itemgetter("workchain", "account"))
    found.sort(key=itemgetter("lt"), reverse=page.descending)
    return found[page.offset : page.offset + page.limit]


def list_block_transactions(
    reader: Reader, block: Mapping[str, Any], after: tuple[bytes, int] | None, most: int
) -> list[Row]:
    """Return the transactions of a block by account and logical time, as ``v2/block_transactions``.

    Those that come after an account and a logical time, if these are given.
    """
    found = _look_up_transactions(reader, [block])
    if found is None:
        account, lt = after or (None, 0)
        return reader.rows(
            "v2/block_transactions",
            workchain=block["workchain"],
            shard=block["shard"],
            seqno=block["seqno"],
            mc_seqno=block["mc_seqno"],
            after_account=account,
            after_lt=lt,
            rows=most,
        )
    place_of = itemgetter("account", "lt")
    found = [row for row in found if after is None or place_of(row) > after]
    return sorted(found, key=place_of)[:most]


def _look_up_transactions(reader: Reader, blocks: Sequence[Mapping[str, Any]]) -> list[Row] | None:
    """Return the keys of the transactions of some blocks, in no order; None as said above."""
    lookups = reader.lookups
    if lookups is None:
        return None
    seqnos = {block["mc_seqno"] for block in blocks}
    lists = [listed for seqno in sorted(seqnos) for listed in lookups.list_block(seqno)]
    if sum(listed.size for listed in lists) > MOST_OF_BLOCKS:
        return None
    hits = [
        Hit(listed.run, row) for listed in lists for row in listed.rows[listed.start : listed.end]
    ]
    wanted = {(block["workchain"], block["shard"], block["seqno"]) for block in blocks}
    rows = (record.row for record in lookups.read_records(hits))
    return [
        {**{name: row[name] for name in _KEY}, "hit": hit}
        for hit, row in zip(hits, rows, strict=True)
        if (row["workchain"], row["shard"], row["block_seqno"]) in wanted
    ]


_KEY = ("workchain", "account", "lt", "hash")
