"""Writes persistent states in a node's format from celldb: young networks have none."""

import hashlib
import shutil
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

from tonlake.ingest.decode.cell.build import CellBuilder
from tonlake.ingest.decode.cell.dictionary import read_label, write_label
from tonlake.ingest.decode.cell.packed import Loaded, append_packed
from tonlake.ingest.decode.cell.tree import CellTree, read_bits
from tonlake.ingest.decode.cell.writer import serialize_boc
from tonlake.ingest.decode.wholestate import Branch, WholeState
from tonlake.ingest.source.node.celldb import CellDb
from tonlake.ingest.source.node.source import open_node
from tonlake.ingest.source.node.statefile import NamedState, name_states

ACCOUNT_BITS, SHARD_BITS = 256, 64
Cells = dict[bytes, tuple[bytes, list[bytes]]]


class Split(NamedTuple):
    """How a state is split: prefix bits beyond the shard's, and in which of the known forms."""

    bits: int
    proof: bool
    """The head stands under a Merkle proof."""
    relabelled: bool
    """The root of a part has all of the prefix in its label."""


def write_states(node: Path, target: Path, mc_seqno: int, split: Split | None = None) -> list[Path]:
    """Copy a node's folder without celldb, with the states after a masterchain block as files."""
    shutil.copytree(node, target, ignore=shutil.ignore_patterns("celldb"))
    folder = target / "archive" / "states"
    folder.mkdir(exist_ok=True)
    paths = []
    with closing(open_node(node)) as source, closing(CellDb(node / "celldb")) as celldb:
        for state in name_states(source, mc_seqno).states:
            shard = f"{mc_seqno}_{state.workchain}_{state.shard & (1 << SHARD_BITS) - 1:016x}"
            cells = Loaded(celldb, [state.root_hash]).unpack()
            if split is None:
                # The node writes the shard of an unsplit state without leading zeros.
                whole = f"{mc_seqno}_{state.workchain}_{state.shard & (1 << SHARD_BITS) - 1:x}"
                found = {f"state_{whole}": _write(cells, state.root_hash)}
            else:
                accounts = WholeState(celldb, state.root_hash).find_accounts()
                cut = {} if accounts is None else cut_off(cells, accounts, _depth(state, split))
                found = {f"statesplit_{shard}": write_head(cells, state.root_hash, cut, split)}
                for prefix, branch in cut.items():
                    bits = len(prefix)
                    part = int(prefix + "1", 2) << SHARD_BITS - bits - 1
                    name = f"stateaccount_{shard}_{part:016x}"
                    found[name] = write_part(cells, branch, split)
            for name, data in found.items():
                # The last part of a name is a digest of the ids, which readers do not need.
                key = hashlib.sha256(name.encode()).hexdigest().upper()
                paths.append(folder / f"{name}_{key}")
                paths[-1].write_bytes(data)
    return paths


def _depth(state: NamedState, split: Split) -> int:
    low = state.shard & -state.shard
    return SHARD_BITS - low.bit_length() + split.bits


def _write(cells: Cells, root_hash: bytes) -> bytes:
    tree = CellTree()
    return serialize_boc(tree, [append_packed(tree, root_hash, cells, {})], crc32c=True)


def cut_off(cells: Cells, root: Branch, depth: int) -> dict[str, Branch]:
    """Return the branches of the accounts with each prefix of a length."""
    found = {}
    todo = [root]
    while todo:
        each = todo.pop()
        body, children = cells[each.cell]
        key, left, _ = read_label(*read_bits(body), each.bits_left, each.key)
        known = ACCOUNT_BITS - left
        if known >= depth:
            found[f"{key >> known - depth:0{depth}b}"] = each
        else:
            todo += [
                Branch(child, key << 1 | bit, left - 1) for bit, child in enumerate(children[:2])
            ]
    return found


def write_head(cells: Cells, root_hash: bytes, cut: dict[str, Branch], split: Split) -> bytes:
    """Return the bag of a state in which some branches are pruned."""
    whole, tree = CellTree(), CellTree()
    places: dict[bytes, int] = {}
    append_packed(whole, root_hash, cells, places)
    pruned = {branch.cell for branch in cut.values()}
    made: dict[bytes, int] = {}

    def copy(cell: bytes) -> int:
        if cell not in made:
            if cell in pruned:
                depth = whole.depth(places[cell]).to_bytes(2, "big")
                made[cell] = tree.append(bytes((0x28, 72, 1, 1)) + cell + depth)
            else:
                body, children = cells[cell]
                below = tuple(map(copy, children))
                mask = 0 if body[0] & 8 else max([0, *(tree.level_mask(each) for each in below)])
                made[cell] = tree.append(bytes((body[0] | mask << 5,)) + body[1:], below)
        return made[cell]

    root = copy(root_hash)
    if split.proof:
        depth = whole.depth(places[root_hash]).to_bytes(2, "big")
        root = tree.append(bytes((0x09, 70, 3)) + root_hash + depth, (root,))
    return serialize_boc(tree, [root])


def write_part(cells: Cells, branch: Branch, split: Split) -> bytes:
    tree = CellTree()
    places: dict[bytes, int] = {}
    root = append_packed(tree, branch.cell, cells, places)
    if split.relabelled:
        body, children = cells[branch.cell]
        value, size = read_bits(body)
        key, left, rest = read_label(value, size, branch.bits_left, branch.key)
        node = CellBuilder(tree)
        node.store_uint(*write_label(key, ACCOUNT_BITS - left, ACCOUNT_BITS))
        node.store_uint(value & (1 << rest) - 1, rest)
        for child in children:
            node.store_ref(places[child])
        root = node.end()
    return serialize_boc(tree, [root])
