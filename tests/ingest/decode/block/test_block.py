"""Whole blocks: recorded ones match their summaries; damaged ones are refused by name."""

import json
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
import pytest

from tests.damage import flip, flip_bit
from tests.ingest.decode.block.oracle import read_transaction
from tests.ingest.networks import Network, bundle_of
from tests.ingest.packs import scan_pack
from tonlake.ingest.blocks import BlockId, McBundle, RawBlock
from tonlake.ingest.decode import native
from tonlake.ingest.decode.block.block import decode_bundle, decode_bundles
from tonlake.ingest.decode.cell.boc import parse_boc
from tonlake.ingest.decode.cell.writer import serialize_boc
from tonlake.ingest.errors import BlockCorrupt, DecodeError
from tonlake.lake.schema import DECODED_TABLES

SORTS = {table.name: table.sort for table in DECODED_TABLES}


@pytest.fixture(params=["python", "native"])
def decoder(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run a test with both decoders."""
    if request.param == "python":
        monkeypatch.setattr(native, "_extension", None)
    elif not native.is_used():
        pytest.skip(native.describe())


def _list_transactions(tables: dict[str, pa.Table]) -> list[list[Any]]:
    rows = tables["transactions"].select(["account", "lt", "hash"]).to_pylist()
    return sorted([row["account"].hex(), row["lt"], row["hash"].hex()] for row in rows)


def _check_against_oracle(tables: dict[str, pa.Table]) -> None:
    messages: dict[bytes, list[dict[str, Any]]] = {}
    for message in tables["messages"].to_pylist():
        messages.setdefault(message["tx_hash"], []).append(message)
    for row in tables["transactions"].to_pylist():
        mine = messages.get(row["hash"], [])
        expected, expected_messages = read_transaction(row["boc"])
        assert {name: row[name] for name in expected} == expected
        assert len(mine) == len(expected_messages)
        for message, other in zip(mine, expected_messages, strict=True):
            other_x = other.pop("field_x")
            assert {name: message[name] for name in other} == other
            mine_x = message["extra_flags"]
            assert (message["ihr_fee"] if mine_x is None else mine_x) == other_x
            assert parse_boc(message["body"]).hash(0) == message["body_hash"]
            if message["init_state"] is not None:
                assert parse_boc(message["init_state"]).hash(0) == message["init_state_hash"]


def test_another_implementation_reads_the_same(demo: Network) -> None:
    _check_against_oracle(demo.tables)


@pytest.mark.usefixtures("decoder")
def test_the_version_of_the_configuration_decides_about_extra_flags(demo: Network) -> None:
    """All blocks of the network name the zero state, and their makers have version 11."""
    few = [bundle for bundle in demo.bundles if len(bundle.blocks) > 2][:2]

    def list_fees(versions: dict[int, int]) -> set[tuple[bool, bool]]:
        versioned = [msgspec.structs.replace(bundle, versions=versions) for bundle in few]
        rows = decode_bundles(versioned)["messages"].to_pylist()
        return {
            (row["ihr_fee"] is not None, row["extra_flags"] is not None)
            for row in rows
            if row["kind"] == "int"
        }

    assert list_fees({}) == list_fees({0: 11}) == list_fees({5: 12}) == {(True, False)}
    assert list_fees({0: 12}) == list_fees({5: 11, 0: 12}) == {(True, True)}


def test_every_block_is_written_back_to_its_root_hash(network: Network) -> None:
    for bundle in network.bundles[::7]:
        for raw in bundle.blocks:
            tree = parse_boc(raw.data, check_crc=False)
            again = parse_boc(serialize_boc(tree, tree.roots))
            assert again.hash(again.roots[0]) == raw.id.root_hash


@pytest.mark.usefixtures("decoder")
def test_tables_are_sorted_typed_and_independent_of_grouping(demo: Network) -> None:
    few = demo.bundles[100:130]
    together = decode_bundles(few)
    assert {name: table.schema for name, table in together.items()} == {
        table.name: table.arrow for table in DECODED_TABLES
    }
    for name, table in together.items():
        keys = list(zip(*(table[key].to_pylist() for key in SORTS[name]), strict=True))
        assert keys == sorted(keys)
    alone = [decode_bundle(bundle) for bundle in few]
    for name in ("transactions", "messages", "blocks", "account_states", "shard_blocks"):
        assert sum(tables[name].num_rows for tables in alone) == together[name].num_rows
    assert together == decode_bundles(tuple(few))
    hashes = together["state_cells"]["hash"].to_pylist()
    assert len(set(hashes)) == len(hashes)


@pytest.mark.usefixtures("decoder")
def test_nothing_gives_empty_tables() -> None:
    tables = decode_bundles([])
    assert {name: table.num_rows for name, table in tables.items()} == {
        table.name: 0 for table in DECODED_TABLES
    }


def _replace(bundle: McBundle, **changes: object) -> McBundle:
    raw = bundle.blocks[0]
    block_id = msgspec.structs.replace(
        raw.id, **{name: value for name, value in changes.items() if name != "data"}
    )
    return McBundle(bundle.mc_seqno, (RawBlock(block_id, changes.get("data", raw.data)),))  # type: ignore[arg-type]


@pytest.mark.usefixtures("decoder")
def test_damaged_blocks_are_refused_by_name(demo: Network) -> None:
    bundle = demo.bundles[5]
    raw = bundle.blocks[0]
    spoiled = flip(raw.data, len(raw.data) // 2, 4)
    corrupt = [
        _replace(bundle, data=spoiled),
        _replace(bundle, file_hash=bytes(32)),
        _replace(bundle, root_hash=bytes(32)),
        _replace(bundle, data=spoiled, file_hash=sha256(spoiled).digest()),
        _replace(bundle, data=b"\x00" * 40, file_hash=sha256(b"\x00" * 40).digest()),
    ]
    for damaged in corrupt:
        with pytest.raises(BlockCorrupt) as refused:
            decode_bundle(damaged)
        assert str(raw.id) in str(refused.value)
    with pytest.raises(DecodeError, match="its header is of block"):
        decode_bundle(_replace(bundle, seqno=raw.id.seqno + 1))


@pytest.mark.usefixtures("decoder")
def test_cells_that_are_no_block_are_refused_by_name() -> None:
    data = bytes.fromhex("b5ee9c72010101010002000000")
    tree = parse_boc(data)
    block_id = BlockId(0, -(1 << 63), 7, tree.hash(0), sha256(data).digest())
    with pytest.raises(DecodeError, match=r"block \(0,8000000000000000,7\)"):
        decode_bundle(McBundle(1, (RawBlock(block_id, data),)))


# What follows of the reference data is asked of the decoder that users have: that the other one
# says the same of all these blocks is proven beside the native one.


def _summaries(shared: Path) -> Iterator[tuple[Path, dict[str, Any]]]:
    """Single blocks and bundles of the reference data with what is expected of each."""
    for folder in ("blocks", "bundles"):
        for expected in sorted((shared / "data/expected" / folder).rglob("*.summary.json")):
            relative = expected.relative_to(shared / "data/expected")
            name = relative.name.replace(".summary.json", ".boc")
            yield shared / "data" / relative.with_name(name), json.loads(expected.read_text())


def _check_summary(tables: dict[str, pa.Table], summary: dict[str, Any]) -> None:
    block = tables["blocks"].to_pylist()[0]
    for name, expected in summary.items():
        if name in block and name != "shard":
            found = block[name]
            assert (found.hex() if isinstance(found, bytes) else found) == expected, name
    assert f"{block['shard'] & 0xFFFFFFFFFFFFFFFF:016x}" == summary["shard"]
    assert tables["account_states"].num_rows == summary["account_count"]


def test_reference_blocks_decode_as_expected(shared: Path) -> None:
    count = 0
    for file, summary in _summaries(shared):
        tables = decode_bundle(bundle_of(file.read_bytes()))
        _check_summary(tables, summary)
        assert _list_transactions(tables) == sorted(summary["transactions"])
        _check_against_oracle(tables)
        count += 1
    assert count >= 16


def test_reference_chains_decode_as_expected(shared: Path) -> None:
    entries = [
        (shared / "data/chains" / chain.stem / entry["file"], entry)
        for chain in sorted((shared / "data/expected/chains").glob("*.json"))
        for entry in json.loads(chain.read_text())
        if "transactions" in entry
    ]
    assert len(entries) >= 52
    for file, entry in entries:
        tables = decode_bundle(bundle_of(file.read_bytes()))
        _check_summary(tables, entry)
        assert _list_transactions(tables) == sorted(entry["transactions"])


def test_reference_packages_decode_as_expected(shared: Path) -> None:
    total = 0
    for index in sorted((shared / "data/expected/packs").glob("*.index.json")):
        entries = [entry for entry in json.loads(index.read_text()) if "transactions" in entry]
        file = shared / "data/packs" / index.name.removesuffix(".index.json")
        blocks = list(scan_pack(file))
        assert len(blocks) == len(entries)
        for (*_, data), entry in zip(blocks, entries, strict=True):
            tables = decode_bundle(bundle_of(data))
            _check_summary(tables, entry["block"] | {"file_hash": entry["sha256"]})
            assert _list_transactions(tables) == sorted(entry["transactions"])
            total += len(entry["transactions"])
    assert total >= 2187


def _named(network: Network) -> list[McBundle]:
    """Bundles whose masterchain block names a shard block with transactions."""
    found = [bundle for bundle in network.bundles[100:140] if len(bundle.blocks) > 1]
    assert len(found) > 10
    return found


@pytest.mark.usefixtures("decoder")
def test_named_blocks_give_the_same_rows_as_alone(demo: Network) -> None:
    """Of a block that the masterchain names not all hashes are computed, but all that show."""
    for bundle in _named(demo)[::4]:
        tables = decode_bundle(bundle)
        alone = [decode_bundle(McBundle(bundle.mc_seqno, (raw,))) for raw in bundle.blocks]
        for table in DECODED_TABLES:
            rows = pa.concat_tables([part[table.name] for part in alone])
            if table.name == "state_cells":  # once each in a bundle
                hashes = set(rows["hash"].to_pylist())
                assert tables[table.name]["hash"].to_pylist() == sorted(hashes)
            else:
                order = [(name, "ascending") for name in table.sort]
                assert tables[table.name] == rows.sort_by(order)


@pytest.mark.usefixtures("decoder")
def test_every_flipped_bit_of_a_named_block_is_found(demo: Network) -> None:
    bundle = _named(demo)[3]
    master, raw, *others = bundle.blocks
    for at in range(0, 8 * len(raw.data), 8 * len(raw.data) // 150 | 1):
        blocks = (master, RawBlock(raw.id, flip_bit(raw.data, at)), *others)
        with pytest.raises(BlockCorrupt, match="file hash"):
            decode_bundle(McBundle(bundle.mc_seqno, blocks))


@pytest.mark.usefixtures("decoder")
def test_the_root_hash_is_checked_unless_both_hashes_are_named(demo: Network) -> None:
    bundle = _named(demo)[3]
    master, raw, *_others = bundle.blocks
    other = RawBlock(msgspec.structs.replace(raw.id, root_hash=bytes(32)), raw.data)
    for blocks in ((master, other), (other,)):
        with pytest.raises(BlockCorrupt, match="root hash"):
            decode_bundle(McBundle(bundle.mc_seqno, blocks))
