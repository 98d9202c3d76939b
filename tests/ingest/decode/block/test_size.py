"""Sizes reckoned from columns are those of the cells that are encoded from them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hypothesis import given, settings

from tests.ingest.decode.block.test_message import messages
from tests.ingest.decode.block.test_recipe import wrap_plain
from tests.ingest.decode.block.test_transaction import transactions
from tonlake.ingest.decode.block.encode import NAMED, encode_description, encode_info, encode_root
from tonlake.ingest.decode.block.size import (
    size_action,
    size_description,
    size_info,
    size_root,
    size_run,
)
from tonlake.ingest.decode.block.transaction import decode_transaction
from tonlake.lake.schema import MESSAGES, TRANSACTIONS

if TYPE_CHECKING:
    from tests.ingest.decode.block.samples import Columns
    from tonlake.ingest.decode.cell.tree import CellTree

_ROOT = (
    *("account", "lt", "prev_trans_hash", "prev_trans_lt", "now"),
    *("orig_status", "end_status", "outmsg_cnt", "total_fees"),
)
_RUN = ("compute_gas_used", "compute_vm_final_state_hash")
_ACTION = ("action_success", "action_tot_msg_size_bits")


def _count_bits(head: bytes) -> int:
    data = int.from_bytes(head[2:], "big")
    tag = (data & -data).bit_length() if head[1] & 1 else 0
    return (len(head) - 2) * 8 - tag


def _take(names: tuple[str, ...], row: Columns, first: str, last: str) -> list[object]:
    return [row[name] for name in names[names.index(first) : names.index(last) + 1]]


@settings(max_examples=200, deadline=None)
@given(transactions())
def test_transactions(sample: tuple[bytes, Columns]) -> None:
    row, _ = decode_transaction(sample[0])
    root = encode_root([row[name] for name in _ROOT])
    assert size_root(row["total_fees"]) == _count_bits(root)
    columns = _take(TRANSACTIONS.names, row, "descr", "split_info_sibling_addr")
    if row["descr"] in NAMED and row["credit_extra_currencies"] is None:
        sizes = [size_description(columns)]
        if not row["compute_skipped"]:
            sizes.append(size_run(_take(TRANSACTIONS.names, row, *_RUN)))
        if row["action_success"] is not None:
            sizes.append(size_action(_take(TRANSACTIONS.names, row, *_ACTION)))
        assert sizes == [_count_bits(head) for head in encode_description(columns)]


@settings(max_examples=200, deadline=None)
@given(messages())
def test_messages(sample: tuple[CellTree, int, Columns, int | None]) -> None:
    tree, message, _, version = sample
    _, rows = decode_transaction(wrap_plain(tree, message), global_version=version)
    columns = _take(MESSAGES.names, rows[0], "kind", "import_fee")
    for external in (None, (0b01_000000001_1, 12)):
        bits = encode_info(columns, external)
        assert size_info(columns, external) == (None if bits is None else bits[1])
