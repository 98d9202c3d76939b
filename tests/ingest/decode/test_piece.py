"""Joined pieces of decoding have every row once; of equal state cells the first is kept."""

from collections import Counter
from pathlib import Path
from typing import cast

import pyarrow as pa
import pytest
from pytoniq_core import Builder, Cell, begin_cell
from pytoniq_core.boc.hashmap import HashMap

from tonlake.ingest.assemble.batch import Piece, join_tables
from tonlake.ingest.blocks import McBundle
from tonlake.ingest.decode.block.block import decode_bundles, measure_queue
from tonlake.ingest.decode.block.header import read_parts
from tonlake.ingest.decode.cell.boc import parse_boc
from tonlake.ingest.decode.cell.dictionary import iter_hashmap
from tonlake.ingest.decode.cell.tree import CellTree
from tonlake.ingest.decode.rows import keep_first_cells
from tonlake.ingest.errors import BocError
from tonlake.lake.duck.connection import connect
from tonlake.lake.log.snapshot import open_snapshot
from tonlake.lake.schema import STATE_CELLS


def make_piece(mc_seqno: int, hashes: list[int]) -> Piece:
    rows = [
        {"hash": bytes((at,)) * 32, "mc_seqno": mc_seqno, "cell": bytes((0, 0)), "refs": []}
        for at in hashes
    ]
    cells = pa.Table.from_pylist(rows, STATE_CELLS.arrow)
    return Piece(mc_seqno, mc_seqno, {"state_cells": cells})


def test_a_state_cell_stays_where_it_came_first() -> None:
    pieces = [
        make_piece(1, [3, 7]),
        make_piece(2, []),
        make_piece(3, [1, 3, 9]),
        make_piece(4, [7]),
    ]
    cells = keep_first_cells(join_tables(pieces)["state_cells"])
    assert cells.schema.equals(STATE_CELLS.arrow)
    found = [(row["hash"][0], row["mc_seqno"]) for row in cells.to_pylist()]
    assert sorted(found) == [(1, 3), (3, 1), (7, 1), (9, 3)]


def test_pieces_without_state_cells_are_joined() -> None:
    assert not join_tables([make_piece(1, []), make_piece(2, [])])["state_cells"].num_rows
    assert join_tables([make_piece(1, []), make_piece(2, [5])])["state_cells"].num_rows == 1


MOVES = {
    **dict.fromkeys(("001", "011", "10101"), 1),
    **dict.fromkeys(("1100", "1101", "100"), -1),
    **dict.fromkeys(("000", "010", "111", "10100"), 0),
}
"""OutMsg by constructor: what goes into the queue, what comes out of it, and all others."""


def measure_move(tree: CellTree) -> int:
    """Return how many messages more than before wait after a block, by its OutMsgDescr."""
    extra = tree.slice(read_parts(tree).extra)
    extra.skip(32)
    extra.load_ref()
    descr = tree.slice(extra.load_ref())
    root = descr.load_maybe_ref()
    moved = 0
    for _key, value in [] if root is None else iter_hashmap(tree, root, 256):
        value.skip(8 * value.load_uint(4))  # the sum of values: CurrencyCollection
        value.load_maybe_ref()
        bits = min(5, value.bits_left)
        tag = f"{value.peek_uint(bits):0{bits}b}"
        moved += next(move for start, move in MOVES.items() if tag.startswith(start))
    return moved


def test_a_queue_grows_by_what_blocks_put_in(bundles: list[McBundle]) -> None:
    rows = decode_bundles(bundles)["queue_sizes"].to_pylist()
    sizes = {(row["workchain"], row["shard"], row["seqno"]): row["out_queue_size"] for row in rows}
    compared = Counter[bool]()
    for bundle in bundles:
        for raw in bundle.blocks:
            name = (raw.id.workchain, raw.id.shard, raw.id.seqno)
            before = sizes.get((*name[:2], raw.id.seqno - 1), 0 if raw.id.seqno == 1 else None)
            if before is None:  # The first block after a split or a merge.
                continue
            moved = measure_move(parse_boc(raw.data, check_crc=False))
            assert sizes[name] == before + moved, name
            compared[moved != 0] += 1
    assert min(compared[True], compared[False]) > 100


def make_block(info: Cell) -> CellTree:
    """Return a block whose new state has this OutMsgQueueInfo, and nothing else worth a look."""
    nothing = begin_cell().end_cell()
    shard = begin_cell().store_uint(0, 2).store_uint(0, 6).store_int(0, 32).store_uint(0, 64)
    state = begin_cell().store_uint(0x9023AFE2, 32).store_int(-239, 32)
    state = state.store_cell(shard.end_cell()).store_uint(0, 32 * 3 + 64 + 32)
    state = state.store_ref(info).store_bit(0).store_ref(nothing).store_ref(nothing).store_bit(0)
    new = state.end_cell()
    update = Builder(type_=4).store_uint(4, 8)
    for _ in range(2):
        update = update.store_bytes(new.get_hash(0))
    for _ in range(2):
        update = update.store_uint(new.get_depth(0), 16)
    update = update.store_ref(new).store_ref(new)
    block = begin_cell().store_uint(0x11EF55AA, 32).store_int(-239, 32)
    block = block.store_ref(nothing).store_ref(nothing)
    block = block.store_ref(update.end_cell()).store_ref(nothing)
    return parse_boc(block.end_cell().to_boc())


def make_info(queue: Cell | None, size: int | None = None, *, has_extra: bool = False) -> Cell:
    info = begin_cell().store_maybe_ref(queue).store_uint(0, 64).store_bit(0).store_bit(has_extra)
    if has_extra:
        info = info.store_uint(0, 4).store_bit(0).store_uint(0, 64).store_bit(size is not None)
        info = info if size is None else info.store_uint(size, 48)
    return cast("Cell", info.end_cell())


def make_queue(count: int) -> Cell:
    """Return a queue of messages: to the counting they are leaves with one child."""
    queue = HashMap(352)
    for key in range(count):
        leaf = begin_cell().store_uint(0, 64).store_uint(key, 64)
        queue.set_int_key(key * 7919, leaf.store_ref(begin_cell().end_cell()).end_cell())
    root = queue.serialize()
    assert root is not None
    return root


def test_queues_without_a_count() -> None:
    assert measure_queue(make_block(make_info(None))) == 0
    assert measure_queue(make_block(make_info(None, has_extra=True))) == 0
    for count in (1, 2, 3, 40):
        queue = make_queue(count)
        assert measure_queue(make_block(make_info(queue))) == count
        assert measure_queue(make_block(make_info(queue, has_extra=True))) == count
        assert measure_queue(make_block(make_info(queue, 2**48 - 1, has_extra=True))) == 2**48 - 1


def test_what_is_not_known_of_a_queue_refuses_no_block() -> None:
    """Older states have ihr_pending in the place of the extra, and later ones may have another."""
    for queue, count in ((None, 0), (make_queue(3), 3)):
        info = begin_cell().store_maybe_ref(queue).store_uint(0, 64 + 1).store_bit(1)
        assert measure_queue(make_block(info.end_cell())) == count
        assert measure_queue(make_block(info.store_uint(3, 4 + 80).end_cell())) == count


def test_a_queue_of_few_cells_that_stand_for_many_messages_is_refused() -> None:
    """Sixty such cells would be counted for ever."""
    node = begin_cell().end_cell()
    for _ in range(12):
        node = begin_cell().store_ref(node).store_ref(node).end_cell()
    with pytest.raises(BocError, match="repeats its cells"):
        measure_queue(make_block(make_info(node)))


def test_a_queue_of_which_a_part_is_left_out_is_unknown() -> None:
    queue = make_queue(8)
    left, right = queue.refs
    data = bytes((1, 1)) + left.hash + left.get_depth().to_bytes(2, "big")
    pruned = Builder(type_=1).store_bytes(data).end_cell()
    fork = begin_cell().store_bits(queue.bits).store_ref(pruned).store_ref(right).end_cell()
    for cell in (make_info(fork), make_info(pruned), pruned):
        assert measure_queue(make_block(cell)) is None
    assert measure_queue(make_block(make_info(fork, 8, has_extra=True))) == 8


def test_the_lake_keeps_them(demo_lake: Path, bundles: list[McBundle]) -> None:
    connection = connect(open_snapshot(demo_lake), statement="from queue_sizes")
    found = connection.sql("select * exclude (day) from queue_sizes order by all").fetchall()
    wanted = sorted(
        tuple(row.values()) for row in decode_bundles(bundles)["queue_sizes"].to_pylist()
    )
    assert found == wanted
