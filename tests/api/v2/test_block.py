"""Blocks compared with the demo node's list of blocks."""

import base64
import time
from collections import Counter
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from nacl.signing import VerifyKey
from pytoniq_core import Cell

from tests.api.v2.conftest import Asker
from tests.api.v3.conftest import to_base64
from tests.conftest import Facts
from tonlake.api.chain.block import list_ancestors

MASTER = -(1 << 63)
UNKNOWN = (500, "LITE_SERVER_NOTREADY: seqno not in db")


def _id(row: dict[str, Any]) -> dict[str, Any]:
    return {
        "@type": "ton.blockIdExt",
        "workchain": row["workchain"],
        "shard": str(row["shard"]),
        "seqno": row["seqno"],
        "root_hash": to_base64(row["root_hash"]),
        "file_hash": to_base64(row["file_hash"]),
    }


def _contains(shard: int, prefix: int) -> bool:
    """By the definition of a shard's id, in plain bits."""
    bits = f"{shard & 0xFFFFFFFFFFFFFFFF:064b}".rstrip("0")[:-1]
    return f"{prefix & 0xFFFFFFFFFFFFFFFF:064b}".startswith(bits)


def test_masterchain_info(ask: Asker, facts: Facts) -> None:
    found = ask("getMasterchainInfo")
    assert found["@type"] == "blocks.masterchainInfo"
    assert found["last"] == _id(facts.summary["last_mc_block"])
    zero = facts.summary["zero_state"]
    assert found["init"] == {
        "@type": "ton.blockIdExt",
        "workchain": -1,
        "shard": "0",
        "seqno": 0,
        "root_hash": zero["root_hash"],
        "file_hash": zero["file_hash"],
    }
    assert len(base64.b64decode(found["state_root_hash"])) == 32


def test_consensus_block(ask: Asker) -> None:
    found = ask("getConsensusBlock")
    assert found["consensus_block"] == 238
    assert abs(found["timestamp"] - time.time()) < 60


def test_every_header(ask: Asker, facts: Facts) -> None:
    for row in facts.blocks[::7]:
        where = {"workchain": row["workchain"], "shard": row["shard"], "seqno": row["seqno"]}
        found = ask("getBlockHeader", **where)
        assert found["@type"] == "blocks.header"
        assert found["id"] == _id(row)
        for name in ("after_merge", "before_split", "after_split", "want_split", "want_merge"):
            assert found[name] is bool(row[name])
        assert found["is_key_block"] is bool(row["key_block"])
        for name in ("gen_utime", "catchain_seqno", "min_ref_mc_seqno"):
            assert found[name] == row[name]
        short = row["validator_list_hash_short"]
        assert found["validator_list_hash_short"] in (short, short - (1 << 32))
        assert -(1 << 31) <= found["validator_list_hash_short"] < 1 << 31
        assert (found["start_lt"], found["end_lt"]) == (str(row["start_lt"]), str(row["end_lt"]))
        assert found["global_id"] == facts.summary["global_id"]
        assert found["prev_key_block_seqno"] == 0
        assert found["prev_blocks"] == [_id(prev) for prev in row["prev"]]


def test_a_header_by_whole_identity(ask: Asker, facts: Facts) -> None:
    row = facts.blocks[100]
    where = {"workchain": row["workchain"], "shard": row["shard"], "seqno": row["seqno"]}
    hashes = {"root_hash": row["root_hash"], "file_hash": to_base64(row["file_hash"])}
    assert ask("getBlockHeader", **where, **hashes)["id"] == _id(row)
    wrong = hashes | {"root_hash": "0" * 64}
    assert ask.refused("getBlockHeader", **where, **wrong)[0] == 500
    only_one = {"root_hash": "0" * 64}
    assert ask("getBlockHeader", **where, **only_one)["id"] == _id(row)


def test_shards_of_every_masterchain_block(ask: Asker, facts: Facts) -> None:
    tops: dict[int, dict[str, Any]] = {}
    for seqno in range(1, 239):
        for row in facts.blocks:
            if row["workchain"] == 0 and row["mc_seqno"] == seqno:
                tops = {key: top for key, top in tops.items() if not _overlap(key, row["shard"])}
                tops[row["shard"]] = row
        if not tops or seqno % 20 not in (0, 9, 10, 11):
            continue
        expected = [_id(tops[shard]) for shard in sorted(tops, key=lambda shard: shard % (1 << 64))]
        assert ask("getShards", seqno=seqno) == {"@type": "blocks.shards", "shards": expected}
        assert ask("shards", seqno=seqno)["shards"] == expected
    assert [top["shard"] for top in ask("shards", seqno=238)["shards"]] == [
        str(1 << 62),
        str(-(1 << 62)),
    ]


def _overlap(left: int, right: int) -> bool:
    return _contains(left, right) or _contains(right, left)


few = settings(max_examples=40, deadline=None)


_ENDS = st.tuples(st.just(("lt", "end_lt", "lt")), st.integers(0, 250_000_000))
_TIMES = st.tuples(st.just(("unixtime", "gen_utime", "ts")), st.integers(1795234600, 1795238700))


@settings(max_examples=40, deadline=None)
@given(st.sampled_from([-1, 0]), st.integers(-(1 << 63), (1 << 63) - 1), _ENDS | _TIMES)
def test_lookup_is_the_first_block_that_ends_or_was_made_there(
    ask: Asker, facts: Facts, workchain: int, prefix: int, place: tuple[tuple[str, str, str], int]
) -> None:
    (parameter, column, name), least = place
    line = _line(facts, workchain, prefix)
    expected = [row for row in line if row[column] >= least]
    params = {"workchain": workchain, "shard": prefix, parameter: least}
    if expected:
        assert ask("lookupBlock", **params) == _id(expected[0])
    else:
        refusal = (500, f"LITE_SERVER_NOTREADY: {name} not in db")
        assert ask.refused("lookupBlock", **params) == refusal


@few
@given(st.sampled_from([-1, 0]), st.integers(-(1 << 63), (1 << 63) - 1), st.integers(1, 300))
def test_lookup_by_seqno_finds_the_shard_that_contains_the_prefix(
    ask: Asker, facts: Facts, workchain: int, prefix: int, seqno: int
) -> None:
    expected = [row for row in _line(facts, workchain, prefix) if row["seqno"] == seqno]
    params = {"workchain": workchain, "shard": prefix, "seqno": seqno}
    if expected:
        assert [ask("lookupBlock", **params)] == [_id(row) for row in expected]
    else:
        assert ask.refused("lookupBlock", **params) == UNKNOWN


def _line(facts: Facts, workchain: int, prefix: int) -> list[dict[str, Any]]:
    rows = [
        row
        for row in facts.blocks
        if row["workchain"] == workchain and _contains(row["shard"], prefix)
    ]
    return sorted(rows, key=lambda row: row["seqno"])


@given(st.integers(-(1 << 63), (1 << 63) - 1), st.integers(0, 60), st.integers(0, (1 << 64) - 1))
def test_ancestors_are_the_shards_that_contain_a_prefix(prefix: int, bits: int, other: int) -> None:
    shards = list_ancestors(prefix)
    assert len(set(shards)) == 61
    assert shards[0] == MASTER
    assert all(_contains(shard, prefix) for shard in shards)
    tail = 64 - bits
    shard = other >> tail << tail | 1 << tail - 1
    signed = shard - (1 << 64) if shard >> 63 else shard
    assert (signed in shards) == _contains(signed, prefix)


def test_rules_of_lookup(ask: Asker) -> None:
    where = {"workchain": -1, "shard": MASTER}
    exactly = "exactly one of seqno, lt, unixtime should be specified"
    params: dict[str, Any]
    for params, rule in (
        ({}, exactly),
        ({"seqno": 1, "lt": 1}, exactly),
        ({"unixtime": 1, "lt": 1}, exactly),
        ({"seqno": 0}, "seqno should be positive"),
        ({"lt": -1}, "lt should be non-negative"),
        ({"unixtime": -1}, "unixtime should be non-negative"),
    ):
        text = f"failed to validate request: {rule}"
        assert ask.refused("lookupBlock", **where, **params) == (422, text)
    for params, name in (
        ({"workchain": -1}, "shard"),
        ({"shard": MASTER}, "workchain"),
        (where | {"shard": 1 << 63}, "shard"),
        (where | {"workchain": 1 << 31}, "workchain"),
        (where | {"shard": "8000000000000000x"}, "shard"),
    ):
        text = f"failed to parse get request: failed to parse {name}"
        assert ask.refused("lookupBlock", seqno=1, **params) == (422, text)
    for method in ("getBlockHeader", "getBlockTransactions", "getBlockTransactionsExt"):
        assert ask.refused(method, **where, seqno=999) == UNKNOWN
        assert ask.refused(method, **where)[1].endswith("failed to parse seqno")
    assert ask.refused("shards", seqno=239) == UNKNOWN


def _in_order(facts: Facts, row: dict[str, Any]) -> list[dict[str, Any]]:
    rows = [
        tx
        for tx in facts.transactions
        if (tx["workchain"], tx["shard"], tx["block_seqno"])
        == (row["workchain"], row["shard"], row["seqno"])
    ]
    return sorted(rows, key=lambda tx: (bytes.fromhex(tx["account"]), tx["lt"]))


def test_transactions_of_every_block(ask: Asker, facts: Facts) -> None:
    total = 0
    for row in facts.blocks:
        expected = _in_order(facts, row)
        total += len(expected)
        if row["seqno"] % 11 and len(expected) < 9:
            continue
        where = {"workchain": row["workchain"], "shard": row["shard"], "seqno": row["seqno"]}
        found = ask("getBlockTransactions", **where)
        assert found["@type"] == "blocks.transactions"
        assert found["id"] == _id(row)
        assert found["req_count"] == 40
        assert found["incomplete"] is False
        assert found["transactions"] == [
            {
                "@type": "blocks.shortTxId",
                "mode": 135,
                "account": f"{tx['workchain']}:{tx['account']}",
                "lt": str(tx["lt"]),
                "hash": to_base64(tx["hash"]),
            }
            for tx in expected
        ]
    assert total == len(facts.transactions)


def test_pages_of_a_block_are_complete(ask: Asker, facts: Facts) -> None:
    row = max(facts.blocks, key=lambda row: row["tx_count"])
    expected = _in_order(facts, row)
    assert len(expected) > 8
    where = {"workchain": row["workchain"], "shard": row["shard"], "seqno": row["seqno"]}
    for count in (1, 4, len(expected)):
        for method in ("getBlockTransactions", "getBlockTransactionsExt"):
            found: list[tuple[str, str]] = []
            after: dict[str, Any] = {}
            while True:
                page = ask(method, **where, count=count, **after)
                found += [_key(tx) for tx in page["transactions"]]
                assert page["incomplete"] is (len(found) < len(expected))
                if not page["incomplete"]:
                    break
                account, lt = found[-1]
                after = {"after_hash": account.split(":")[1], "after_lt": lt}
            assert found == [(f"0:{tx['account']}", str(tx["lt"])) for tx in expected]


def _key(tx: dict[str, Any]) -> tuple[str, str]:
    lt = tx["lt"] if "lt" in tx else tx["transaction_id"]["lt"]
    return tx["account"].lower(), lt


def test_after_takes_any_form_of_the_account(ask: Asker, facts: Facts) -> None:
    row = max(facts.blocks, key=lambda row: row["tx_count"])
    first = _in_order(facts, row)[0]
    where = {"workchain": row["workchain"], "shard": row["shard"], "seqno": row["seqno"]}
    forms = ask("detectAddress", address=f"0:{first['account']}")
    texts = [
        first["account"],
        to_base64(first["account"]),
        forms["raw_form"],
        forms["bounceable"]["b64url"],
    ]
    pages = [
        ask("getBlockTransactions", **where, after_hash=text, after_lt=first["lt"])
        for text in texts
    ]
    assert all(page == pages[0] for page in pages)
    assert len(pages[0]["transactions"]) == row["tx_count"] - 1


def test_whole_transactions_of_a_block(ask: Asker, facts: Facts) -> None:
    row = max(facts.blocks, key=lambda row: row["tx_count"])
    where = {"workchain": row["workchain"], "shard": row["shard"], "seqno": row["seqno"]}
    found = ask("getBlockTransactionsExt", **where)
    assert found["@type"] == "blocks.transactionsExt"
    for tx in found["transactions"]:
        assert tx["@type"] == "raw.transactionExt"
        single = ask(
            "getTransactionsStd",
            address=tx["account"],
            limit=1,
            lt=tx["transaction_id"]["lt"],
            hash=tx["transaction_id"]["hash"],
        )["transactions"][0]
        assert {**tx, "@type": "raw.transaction"} == {**single, "account": tx["account"]}


def test_rules_of_a_page_of_a_block(ask: Asker) -> None:
    where = {"workchain": -1, "shard": MASTER, "seqno": 3}
    for params, rule in (
        ({"count": 0}, "count should be positive"),
        ({"count": 10001}, "count should be less or equal 10000"),
        ({"after_lt": 1}, "after_lt and after_hash should be used together"),
        ({"after_hash": "0" * 64}, "after_lt and after_hash should be used together"),
        ({"after_hash": "0" * 64, "after_lt": -1}, "after_lt should be non-negative"),
    ):
        for method in ("getBlockTransactions", "getBlockTransactionsExt"):
            text = f"failed to validate request: {rule}"
            assert ask.refused(method, **where, **params) == (422, text)
    status, text = ask.refused("getBlockTransactions", **where, after_hash="q", after_lt=1)
    assert (status, text) == (422, "failed to parse get request: invalid hash: 'q'")
    assert ask("getBlockTransactions", **where, count=10000)["req_count"] == 10000


MASTER_SHARD = -(1 << 63)
SIGNED_PREFIX = bytes.fromhex("706e0bc5")  # ton.blockId
VALIDATORS = 34


def read_keys(ask: Asker) -> list[bytes]:
    """Return the public keys of the validators: validator#53 public_key:SigPubKey weight."""
    boc = ask("getConfigParam", param=VALIDATORS)["config"]["bytes"]
    root = Cell.one_from_boc(base64.b64decode(boc)).begin_parse()
    root.skip_bits(8 + 32 + 32 + 16 + 16 + 64)
    found = root.load_dict(16)
    assert found is not None
    keys = []
    for value in found.values():
        value.skip_bits(8 + 32)
        keys.append(value.load_bytes(32))
    return keys


def test_every_masterchain_block_is_signed(ask: Asker) -> None:
    keys = [VerifyKey(key) for key in read_keys(ask)]
    assert len(keys) == 1
    for seqno in (1, 2, 100, 101, 238):
        found = ask("getMasterchainBlockSignatures", seqno=seqno)
        assert found["@type"] == "blocks.blockSignatures"
        where = {"workchain": -1, "shard": MASTER_SHARD, "seqno": seqno}
        assert found["id"] == ask("lookupBlock", **where)
        hashes = (base64.b64decode(found["id"][name]) for name in ("root_hash", "file_hash"))
        signed = SIGNED_PREFIX + b"".join(hashes)
        for one in found["signatures"]:
            assert one["@type"] == "blocks.signature"
            assert len(base64.b64decode(one["node_id_short"])) == 32
            keys[0].verify(signed, base64.b64decode(one["signature"]))
        assert found["signatures"]


def test_shard_blocks_are_proven_from_their_masterchain_block(ask: Asker, facts: Facts) -> None:
    lengths = set()
    blocks = [block for block in facts.blocks if block["workchain"] == 0]
    together = Counter((block["mc_seqno"], block["shard"]) for block in blocks)
    chained = [block for block in blocks if together[block["mc_seqno"], block["shard"]] > 1]
    for block in blocks[::29] + chained[:6]:
        where = {name: block[name] for name in ("workchain", "shard", "seqno")}
        found = ask("getShardBlockProof", **where)
        assert found["from"] == found["mc_id"]
        assert found["mc_proof"] == []
        check_links(found)
        assert found["links"][-1]["id"] == ask("lookupBlock", **where)
        lengths.add(len(found["links"]))
    assert max(lengths) > 1


def check_links(found: dict[str, Any]) -> None:
    """Each proof is of the block named before it, and names the next one by its root hash."""
    before = found["mc_id"]
    for link in found["links"]:
        assert link["@type"] == "blocks.shardBlockLink"
        proof = Cell.one_from_boc(base64.b64decode(link["proof"]))
        assert proof.type_ == 3  # a Merkle proof
        root = base64.b64decode(before["root_hash"])
        assert proof.begin_parse().load_bytes(33)[1:] == root
        assert proof[0].get_hash(0) == root
        assert holds(proof[0], base64.b64decode(link["id"]["root_hash"]))
        before = link["id"]


def holds(cell: Cell, wanted: bytes) -> bool:
    """Tell whether bits of a cell, or of one below it, are these."""
    text = "".join(f"{byte:08b}" for byte in wanted)
    return text in cell.bits.to01() or any(holds(kid, wanted) for kid in cell.refs)


def test_a_masterchain_block_needs_no_links(ask: Asker) -> None:
    found = ask("getShardBlockProof", workchain=-1, shard=MASTER_SHARD, seqno=7, from_seqno=7)
    assert found["links"] == []
    assert found["mc_id"]["seqno"] == 7


@pytest.mark.parametrize(
    ("method", "params", "status", "text"),
    [
        ("getMasterchainBlockSignatures", {"seqno": 999}, 500, "seqno not in db"),
        ("getMasterchainBlockSignatures", {"seqno": 0}, 422, "seqno should be positive"),
        (
            "getShardBlockProof",
            {"workchain": -1, "shard": MASTER_SHARD, "seqno": 7, "from_seqno": 9},
            500,
            "block proof not in db",
        ),
        (
            "getShardBlockProof",
            {"workchain": -1, "shard": MASTER_SHARD, "seqno": 7, "from_seqno": -1},
            422,
            "from_seqno should be non-negative",
        ),
    ],
)
def test_what_is_refused(
    ask: Asker, method: str, params: dict[str, Any], status: int, text: str
) -> None:
    found_status, found_text = ask.refused(method, **params)
    assert found_status == status
    assert text in found_text
