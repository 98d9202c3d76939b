"""Decodes whole genuine databases: blocks from their packages, grouped according to the facts."""

import json
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from typing import Any

import pyarrow as pa

from tests.ingest.packs import read_blocks
from tonlake.ingest.blocks import BlockId, McBundle, RawBlock, ZeroState
from tonlake.ingest.decode.block.block import decode_bundles
from tonlake.ingest.decode.block.header import BlockHeader, read_header, read_parts
from tonlake.ingest.decode.cell.boc import parse_boc
from tonlake.ingest.decode.wholestate import decode_zero_states

Cells = dict[bytes, tuple[bytes, list[bytes]]]
Row = dict[str, Any]


class Network:
    """A database, the facts about it, and its decoded blocks and zero states."""

    def __init__(self, db: Path, facts: Path) -> None:
        """Take the folders of the database and of its ``expected*`` files."""
        self.db = db
        self._facts = facts
        self._rows: dict[str, list[Row]] = {}

    def facts(self, name: str) -> list[Row]:
        """Return the lines of ``expected-<name>.jsonl``."""
        with (self._facts / f"expected-{name}.jsonl").open() as lines:
            return [json.loads(line) for line in lines]

    @cached_property
    def summary(self) -> Row:
        """The contents of ``expected.json``."""
        summary: Row = json.loads((self._facts / "expected.json").read_text())
        return summary

    @cached_property
    def bundles(self) -> list[McBundle]:
        """All blocks, with the masterchain block that commits them according to the facts."""
        data = read_blocks(self.db)
        groups: dict[int, list[RawBlock]] = {}
        for fact in self.facts("blocks"):
            key = fact["workchain"], fact["shard"], fact["seqno"]
            hashes = (bytes.fromhex(fact[name]) for name in ("root_hash", "file_hash"))
            block = RawBlock(BlockId(*key, *hashes), data[key])
            groups.setdefault(fact["mc_seqno"], []).append(block)
        return [
            McBundle(mc_seqno, tuple(sorted(blocks, key=lambda block: block.id)))
            for mc_seqno, blocks in sorted(groups.items())
        ]

    @cached_property
    def headers(self) -> list[tuple[BlockHeader, bytes]]:
        """The header of every block, and the hash of the state it begins with."""
        trees = (
            parse_boc(raw.data, check_crc=False) for bundle in self.bundles for raw in bundle.blocks
        )
        return [
            (read_header(tree), tree.payload(read_parts(tree).state_update)[1:33]) for tree in trees
        ]

    @cached_property
    def tables(self) -> dict[str, pa.Table]:
        return decode_bundles(self.bundles)

    @cached_property
    def zero(self) -> dict[str, pa.Table]:
        return decode_zero_states(read_zero_states(self.db))

    def rows(self, name: str) -> list[Row]:
        """Return the rows of one table, of zero states and blocks together, as dictionaries."""
        if name not in self._rows:
            zero = self.zero[name].to_pylist() if name in self.zero else []
            self._rows[name] = zero + self.tables[name].to_pylist()
        return self._rows[name]

    @cached_property
    def cells(self) -> Cells:
        """The state cells of zero states and blocks by hash."""
        return find_cells(self.zero) | find_cells(self.tables)


def find_cells(tables: dict[str, pa.Table]) -> Cells:
    """Return the rows of ``state_cells`` as ``assemble_boc`` takes them."""
    columns = (tables["state_cells"][name].to_pylist() for name in ("hash", "cell", "refs"))
    return {row[0]: (row[1], row[2]) for row in zip(*columns, strict=True)}


def read_zero_states(db: Path) -> list[ZeroState]:
    """Return the zero states that a database keeps as files."""
    states = []
    for path in sorted((db / "archive" / "states").glob("zerostate_*")):
        data = path.read_bytes()
        tree = parse_boc(data)
        root_hash = tree.hash(tree.roots[0])
        workchain = int(path.name.split("_")[1])
        states.append(ZeroState(workchain, root_hash, sha256(data).digest(), data))
    return states


def bundle_of(data: bytes) -> McBundle:
    """One block as a bundle of its own, under the hashes it has."""
    tree = parse_boc(data, check_crc=False)
    header = read_header(tree)
    root_hash = tree.hash(tree.roots[0])
    block_id = BlockId(
        header.workchain, header.shard, header.seqno, root_hash, sha256(data).digest()
    )
    return McBundle(header.master_ref_seqno or header.seqno, (RawBlock(block_id, data),))
