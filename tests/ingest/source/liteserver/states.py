"""Builds proofs of states from a node's celldb, as a lite server does."""

from tonlake.api.chain.block import list_ancestors
from tonlake.ingest.blocks import BlockId, RawBlock
from tonlake.ingest.decode.block.header import read_header
from tonlake.ingest.decode.block.proof import prove_header
from tonlake.ingest.decode.block.state import find_account, read_config, read_state
from tonlake.ingest.decode.cell.boc import parse_boc
from tonlake.ingest.decode.cell.build import append_cell, graft_cell
from tonlake.ingest.decode.cell.dictionary import load_label
from tonlake.ingest.decode.cell.packed import HASH_BYTES, append_packed, split_packed
from tonlake.ingest.decode.cell.tree import MERKLE_PROOF, PRUNED, CellTree
from tonlake.ingest.decode.cell.writer import serialize_boc
from tonlake.ingest.source.node.celldb import CellDb
from tonlake.ingest.source.node.source import NodeSource
from tonlake.ingest.source.node.statefile import NamedState, name_states


class ProvenStates:
    """The states after the blocks of a node's folder; both sources stay open meanwhile."""

    def __init__(self, source: NodeSource, celldb: CellDb) -> None:
        self._source, self._celldb = source, celldb
        self._trees: dict[bytes, CellTree] = {}

    def prove_account(
        self, mc_seqno: int, workchain: int, account: bytes
    ) -> tuple[BlockId, bytes, bytes] | None:
        """Return the shard's block, the two proofs in one bag, and the state."""
        shards = list_ancestors(int.from_bytes(account[:8], "big"))
        for named in name_states(self._source, mc_seqno).states:
            if named.workchain != workchain or named.shard not in shards:
                continue
            tree = self._load(named.root_hash)
            accounts = read_state(tree, tree.roots[0]).accounts
            keep = {tree.roots[0], accounts, *_list_way(tree, accounts, account)}
            block = self._find_block(mc_seqno, named)
            assert block.proof is not None
            header, proof = parse_boc(prove_header(block.proof)), CellTree()
            first = graft_cell(proof, header, header.roots[0])
            entry = find_account(tree, accounts, account)
            state = b"" if entry is None else serialize_boc(tree, [entry.cell])
            return block.id, serialize_boc(proof, [first, _prove(proof, tree, keep)]), state
        return None

    def prove_config(self, mc_seqno: int) -> tuple[bytes, bytes]:
        """Return the proof of the state's hash, and that of its whole configuration."""
        (block,) = (
            one for one in self._source.read_bundle(mc_seqno).blocks if one.id.workchain < 0
        )
        assert block.proof is not None
        tree = self._load(name_states(self._source, mc_seqno).states[0].root_hash)
        root = tree.roots[0]
        top = read_state(tree, root)
        config = read_config(tree, top)
        assert config is not None
        assert top.custom is not None
        keep, todo = {root, top.custom}, [config]
        while todo:
            keep.add(cell := todo.pop())
            todo += tree.links[cell]
        proof = CellTree()
        return prove_header(block.proof), serialize_boc(proof, [_prove(proof, tree, keep)])

    def _find_block(self, mc_seqno: int, named: NamedState) -> RawBlock:
        """Return the block that produced a state."""
        for seqno in range(mc_seqno, 0, -1):
            for block in self._source.read_bundle(seqno).blocks:
                if block.id.workchain != named.workchain:
                    continue
                if read_header(parse_boc(block.data)).state_root_hash == named.root_hash:
                    return block
        raise LookupError(named)

    def _load(self, root_hash: bytes) -> CellTree:
        if root_hash not in self._trees:
            cells: dict[bytes, tuple[bytes, list[bytes]]] = {}
            keys = [root_hash]
            while keys:
                packed = self._celldb.fetch(keys)
                level = [split_packed(cell, HASH_BYTES) for cell in packed]
                cells |= dict(zip(keys, level, strict=True))
                keys = list({child for _, below in level for child in below} - cells.keys())
            tree = CellTree()
            tree.roots = [append_packed(tree, root_hash, cells, {})]
            self._trees[root_hash] = tree
        return self._trees[root_hash]


def _list_way(tree: CellTree, accounts: int, account: bytes) -> list[int]:
    """Return the nodes of ShardAccounts on the path to an account, or to its missing place."""
    cell = tree.slice(accounts).load_maybe_ref()
    key, left, way = int.from_bytes(account, "big"), 256, []
    while cell is not None:
        way.append(cell)
        label, rest = load_label(tree.slice(cell), left, 0)
        if not rest or label != key >> rest & (1 << left - rest) - 1:
            break
        left = rest - 1
        cell = tree.links[cell][key >> left & 1]
    return way


def _prove(target: CellTree, source: CellTree, keep: set[int]) -> int:
    """Append the Merkle proof of a tree that shows some of its cells."""

    def copy(cell: int) -> int:
        if cell not in keep:
            depth = source.depth(cell).to_bytes(2, "big")
            return _append_exotic(target, bytes((PRUNED, 1)) + source.hash(cell) + depth)
        return append_cell(target, *source.bits(cell), tuple(map(copy, source.links[cell])))

    root = copy(source.roots[0])
    depth = target.depth(root, 0).to_bytes(2, "big")
    return _append_exotic(target, bytes((MERKLE_PROOF,)) + target.hash(root, 0) + depth, root)


def _append_exotic(target: CellTree, data: bytes, *children: int) -> int:
    return append_cell(target, int.from_bytes(data, "big"), len(data) * 8, children, exotic=True)
