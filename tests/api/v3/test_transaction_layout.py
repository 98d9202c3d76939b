"""Rows written without structs equal those written from structs, for every row of the lake."""

from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.patience import patient
from tonlake.api.request.snapshot import SnapshotHolder
from tonlake.api.text.native import NATIVE
from tonlake.api.v3.layout.transaction import Transaction
from tonlake.api.v3.resource import transaction
from tonlake.api.v3.resource.transaction import render_transaction, write_records

needs_native = pytest.mark.skipif(NATIVE is None, reason="the extension is not built")


@pytest.fixture(scope="module", params=[50_000, 0], ids=["look-ups", "queries"])
def found(demo_lake: Path, request: pytest.FixtureRequest) -> list[Any]:
    """Every transaction of the demo lake, as rows of look-ups and as rows of queries."""
    holder = SnapshotHolder(demo_lake, patient(lake={"index_memory_rows": request.param}))
    reader = holder.reader(timeout_ms=0)
    keys = reader.rows("v3/transaction_keys", limit=100_000)
    reader.answered_by.clear()
    found = list(reader.rows("v3/transactions", keys=keys))
    assert reader.answered_by == {"sql" if request.param == 0 else "index"}
    return found


@needs_native
@pytest.mark.parametrize("opcode_format", ["hex", "integer"])
def test_written_and_rendered_are_equal(
    found: list[Any], opcode_format: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    written, named = write_records(found, opcode_format)
    assert len(written) > 1000
    seen = {name for text in written for name in msgspec.json.decode(text)}
    assert seen == set(Transaction.__struct_fields__)
    monkeypatch.setattr(transaction, "NATIVE", None)
    assert write_records(found, opcode_format) == (written, named)


@needs_native
@pytest.mark.parametrize(
    "changes",
    [
        {"credit": None, "credit_due_fees_collected": 5},
        {"bounce": "nofunds", "bounce_msg_size_cells": 1, "bounce_msg_size_bits": 9},
        {"bounce": "negfunds", "bounce_msg_fees": 7},
        {"split_info_cur_shard_pfx_len": 3, "split_info_this_addr": bytes(32)},
        {"total_fees_extra_currencies": '{"100":"7"}', "credit_extra_currencies": '{"1":"2"}'},
        {"compute_skipped": True, "compute_skip_reason": "no_state", "compute_success": None},
        {"action_success": False, "action_tot_msg_size_cells": None, "action_status_change": "x"},
        {"storage_status_change": None, "block_seqno": None},
        {"shard": None, "mc_seqno": None, "compute_exit_arg": -(1 << 31)},
    ],
)
def test_rare_phases_are_equal(found: list[Any], changes: dict[str, Any]) -> None:
    changed = [each._replace(row=dict(each.row) | changes) for each in found[:50]]
    rendered = [msgspec.json.encode(render_transaction(each, "hex")) for each in changed]
    assert write_records(changed, "hex")[0] == rendered
