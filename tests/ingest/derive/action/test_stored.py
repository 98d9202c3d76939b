"""Facts of accounts from rows of the lake."""

import base64
from typing import Any

import pyarrow as pa
import pytest

from tests.ingest.derive.action.protocol.test_telegram import write_rotation
from tonlake.ingest.derive.action.body import read_body
from tonlake.ingest.derive.action.derivation import classify_traces, read_known
from tonlake.ingest.derive.action.protocol.telegram import CHANGE_KEY_INTERNAL
from tonlake.ingest.derive.action.stored import (
    SOURCES,
    Rows,
    list_data_hashes,
    read_facts,
    read_stored,
)
from tonlake.lake.schema import TRACES

STAKE_WALLET, OTHER = b"s" * 32, b"o" * 32
DATA = b"d" * 32
TX = b"t" * 32
TX_HASHES = pa.array([TX])


def keep(**tables: list[dict[str, object]]) -> Rows:
    """Return rows of tables with the columns that are read; missing values are null."""
    return Rows(
        {
            name: pa.table({column: [row.get(column) for row in rows] for column in columns})
            for name, rows in tables.items()
            for columns in [SOURCES.get(name, ("hash", "cell"))]
        }
    )


def trace_table(**fields: object) -> pa.Table:
    """Return one trace; missing values are null."""
    return pa.table({name: [fields.get(name)] for name in TRACES.names})


def state(account: bytes, **fields: object) -> dict[str, object]:
    return {"workchain": 0, "account": account, "mc_seqno": 5, **fields}


def test_data_of_contracts_that_rules_look_into() -> None:
    data = bytes((2, 8)) + (0xABCD1234).to_bytes(4, "big")
    rows = keep(
        messages=[
            {"tx_hash": TX, "opcode": 0x499A9262, "destination": STAKE_WALLET},
            {"tx_hash": b"u" * 32, "opcode": 0x499A9262, "destination": OTHER},
            {"tx_hash": TX, "destination": OTHER, "body": b"\xfb\xba\x99\xc7" * 40},
        ],
        account_states=[state(STAKE_WALLET, data_hash=DATA), state(OTHER, data_hash=b"x" * 32)],
        state_cells=[{"hash": DATA, "cell": data}],
    )
    assert list_data_hashes(rows, TX_HASHES).to_pylist() == [DATA]
    ((at, interface, facts),) = read_facts(rows)[f"0:{STAKE_WALLET.hex().upper()}"]
    assert (at, interface) == (5, "data_boc")
    assert read_body(base64.b64decode(facts["data_boc"])).uint(32) == 0xABCD1234


def test_data_of_wallets_with_a_relayed_key_change() -> None:
    body = write_rotation(CHANGE_KEY_INTERNAL).boc()
    message = {"tx_hash": TX, "opcode": 0x12345678, "destination": OTHER, "body": body}
    rows = keep(messages=[message], account_states=[state(OTHER, data_hash=DATA)])
    assert list_data_hashes(rows, TX_HASHES).to_pylist() == [DATA]


def test_only_states_in_the_blocks_of_traces_are_kept() -> None:
    """The blocks of their transactions, and the first block of each trace."""
    traces = pa.table({"trace_id": [TX], "mc_seqno_start": [3]})
    states = [state(OTHER, mc_seqno=at, code_hash=bytes([at])) for at in range(1, 8)]
    rows = keep(
        transaction_traces=[{"hash": TX, "trace_id": TX, "mc_seqno": 5}],
        transactions=[{"hash": TX, "account": OTHER, "mc_seqno": 5}],
        account_states=[*states, state(STAKE_WALLET, code_hash=b"c")],
    )
    kept = rows.narrow(traces).take("account_states")
    assert kept["code_hash"].to_pylist() == [b"\3", b"\5"]


def test_a_slice_without_transactions_has_no_traces() -> None:
    """Their blocks may have gone, or are imported later; missing tables have untyped columns."""
    traces = pa.table({"trace_id": [TX], "mc_seqno_start": [3]})
    for rows in (keep(), keep(account_states=[state(OTHER, mc_seqno=3)])):
        assert list(read_stored(traces, rows)) == []


def test_nothing_to_look_into() -> None:
    assert list_data_hashes(keep(), TX_HASHES).to_pylist() == []


def test_interfaces_of_accounts() -> None:
    owned = {"owner_workchain": 0, "owner": DATA, "jetton_workchain": -1, "jetton": STAKE_WALLET}
    sale = '{"full_price": "7", "marketplace_fee": "1"}'
    pool = "9a3ec14bc098f6b44064c305222caea2800f17dda85ee6a8198a7095ede10dcf"
    rows = keep(
        jetton_wallets=[state(OTHER, **owned)],
        multisig_orders=[state(OTHER, signers=["0:AB"])],
        nft_sales=[state(OTHER, kind="getgems_sale", details=sale)],
        account_states=[state(OTHER, code_hash=bytes.fromhex(pool))],
    )
    address = f"0:{OTHER.hex().upper()}"
    facts = {name: fields for _at, name, fields in read_facts(rows)[address]}
    assert facts["JettonWallet"]["jetton"] == f"-1:{STAKE_WALLET.hex().upper()}"
    assert facts["MultisigOrder"]["signers"] == ["0:AB"]
    assert facts["NftSale"]["full_price"] == "7"
    assert "NominatorPool" in facts


def test_facts_of_accounts_are_those_after_the_transactions_of_the_trace() -> None:
    """Earlier or later states are available in some commits only."""
    tx_hash, trace_id = b"x" * 32, b"t" * 32
    owned = {"owner_workchain": 0, "owner": DATA, "jetton_workchain": 0}
    before, within, later = (
        state(OTHER, mc_seqno=mc_seqno, jetton=bytes([mc_seqno] * 32), **owned)
        for mc_seqno in (6, 7, 8)
    )
    transaction = state(OTHER, hash=tx_hash, mc_seqno=7, lt=1, now=1, descr="ord", aborted=False)
    traces = trace_table(mc_seqno_start=5, mc_seqno_end=7, trace_id=trace_id, end_lt=1)
    for wallets, expected in (
        ([before, within, later], f"0:{'07' * 32}"),
        ([within], f"0:{'07' * 32}"),
        ([before, later], None),
    ):
        rows = keep(
            transactions=[transaction],
            transaction_traces=[{"hash": tx_hash, "trace_id": trace_id}],
            jetton_wallets=wallets,
        )
        ((_trace, interfaces),) = read_stored(traces, rows)
        wallet = interfaces.jetton_wallet(f"0:{OTHER.hex().upper()}")
        assert (None if wallet is None else wallet.jetton) == expected


@pytest.mark.parametrize(
    ("end_status", "opcode", "asked"),
    [
        ("uninit", 0x5FCC3D14, True),
        ("frozen", 0x5FCC3D14, True),
        ("active", 0x5FCC3D14, False),
        ("uninit", 0xD53276DB, False),
        ("uninit", None, False),
        ("uninit", 0, False),
    ],
)
def test_contracts_that_no_longer_exist_are_looked_up(
    end_status: str, opcode: int | None, *, asked: bool
) -> None:
    """An account that was called and is not active may have been a contract before."""
    tx_hash, trace_id, address = b"x" * 32, b"t" * 32, f"0:{OTHER.hex().upper()}"
    transaction = state(
        OTHER, hash=tx_hash, lt=1, now=1, descr="ord", aborted=True, end_status=end_status
    )
    message = {
        "tx_hash": tx_hash,
        "direction": "in",
        "msg_index": 0,
        "msg_hash": b"m" * 32,
        "source_workchain": 0,
        "source": STAKE_WALLET,
        "destination_workchain": 0,
        "destination": OTHER,
        "opcode": opcode,
        "value": 1,
        "created_lt": 1,
        "body": bytes.fromhex("b5ee9c72010101010002000000"),
    }
    start = {"mc_seqno_start": 5, "mc_seqno_end": 7, "trace_id": trace_id, "end_lt": 1}
    start |= {"state": "complete", "end_utime": 1, "external_hash": tx_hash, "transactions": 1}
    traces = trace_table(**start)
    rows = keep(
        transactions=[transaction],
        messages=[message],
        transaction_traces=[{"hash": tx_hash, "trace_id": trace_id}],
    )
    questions: set[tuple[str, int]] = set()

    def find_known(found: set[tuple[str, int]]) -> dict[tuple[str, int], dict[str, Any]]:
        questions.update(found)
        facts = {"address": address, "index": "1", "owner_address": "0:AA"}
        return {key: {"NftItem": facts} for key in found if key[0] == address}

    facts = classify_traces(traces, rows, find_known).facts
    ((_trace, interfaces),) = read_known(traces, rows, facts)
    assert ((address, 7) in questions) == asked
    assert (interfaces.nft_item(address) is not None) == asked
