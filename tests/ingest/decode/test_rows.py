"""Rows to Arrow: sorted, typed, and an out-of-range number is reported with its row."""

from decimal import Decimal

import pytest

from tonlake.ingest.decode.rows import RowSet
from tonlake.ingest.errors import DecodeError
from tonlake.lake.schema import TABLES


def test_amounts_keep_every_digit() -> None:
    hashes = dict.fromkeys(("tx_account", "tx_hash", "msg_hash", "body_hash"), bytes(32))
    numbers = dict.fromkeys(("tx_workchain", "tx_lt", "mc_seqno", "now", "msg_index"), 1)
    kinds = {"direction": "in", "kind": "int", "source_kind": "std", "destination_kind": "std"}
    row = dict.fromkeys(TABLES["messages"].names) | hashes | numbers | kinds
    row["extra_flags"] = (1 << 120) - 1
    rows = RowSet()
    rows["messages"].append(tuple(row.values()))
    found = rows.to_arrow()["messages"].to_pylist()[0]
    assert found == row | {"extra_flags": Decimal((1 << 120) - 1)}


@pytest.mark.parametrize("value", [1 << 63, -(1 << 63) - 1])
def test_a_number_that_does_not_fit_names_its_row(value: int) -> None:
    rows = RowSet()
    rows["state_cells"].append((b"\x01" * 32, 1, b"", []))
    rows["state_cells"].append((b"\x02" * 32, value, b"", []))
    with pytest.raises(DecodeError, match=rf"state_cells.mc_seqno of hash 0202.*: {value} is out"):
        rows.to_arrow()
