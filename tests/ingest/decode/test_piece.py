"""Joined pieces of decoding have every row once; of equal state cells the first is kept."""

import pyarrow as pa

from tonlake.ingest.decode.piece import Piece, join_tables
from tonlake.ingest.decode.rows import keep_first_cells
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
