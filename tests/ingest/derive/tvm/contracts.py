"""Contracts of networks, and calls of all get-methods that are known by name."""

import base64
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from tests.conftest import read_lines
from tests.ingest.derive.tvm.replay import Replay
from tonlake.ingest.decode.block.state import read_account
from tonlake.ingest.decode.cell.boc import parse_boc
from tonlake.ingest.decode.cell.build import CellBuilder
from tonlake.ingest.decode.cell.packed import assemble_boc
from tonlake.ingest.decode.cell.writer import serialize_boc
from tonlake.ingest.derive.contract.record import find_method_ids, load_interfaces
from tonlake.ingest.derive.tvm.call import StackValue, TvmSlice, split_shard_account


class Contract(NamedTuple):
    """Code and data of an account, as bags."""

    code: bytes
    data: bytes


def read_lake(lake_dir: Path) -> Iterator[Contract]:
    """Yield a contract of each code in a lake."""
    replay = Replay(lake_dir)
    for row in replay.rows(
        "select code_hash, min(data_hash) as data_hash from account_states "
        "where code_hash is not null group by code_hash order by code_hash"
    ):
        hashes = row["code_hash"], row["data_hash"]
        yield Contract(*(assemble_boc(cell_hash, replay.cells) for cell_hash in hashes))


def read_recorded(shared: Path) -> Iterator[Contract]:
    """Yield the recorded accounts of the main network."""
    path = shared / "data" / "accounts" / "mainnet_0_71398501_prestates.jsonl.zst"
    for line in read_lines(path):
        boc = base64.b64decode(line["shard_account_boc"])
        tree = parse_boc(split_shard_account(boc)[0])
        state = read_account(tree, tree.roots[0])
        if state.code is not None and state.data is not None:
            yield Contract(*(serialize_boc(tree, [cell]) for cell in (state.code, state.data)))


def _make_address() -> TvmSlice:
    builder = CellBuilder().store_uint(0b100, 3).store_int(0, 8).store_bytes(bytes(31) + b"\x01")
    return TvmSlice(serialize_boc(builder.tree, [builder.end()]))


ARGUMENTS: Sequence[tuple[StackValue, ...]] = ((), (0,), (1, 2), (_make_address(),))


def list_calls(contracts: Sequence[Contract]) -> list[tuple[Contract, tuple[StackValue, ...]]]:
    """Return contracts with stacks: arguments and the id of a method; of absent ones without."""
    return [
        (contract, (*arguments, method))
        for contract in contracts
        for method, is_own in _list_methods(contract.code)
        for arguments in (ARGUMENTS if is_own else ARGUMENTS[:1])
    ]


def _list_methods(code: bytes) -> list[tuple[int, bool]]:
    """Return the ids of the known methods and of the code's, and whether they are its own."""
    tree = parse_boc(code)
    own = find_method_ids(tree, tree.roots[0]) or []
    return [(method, method in own) for method in sorted({*load_interfaces().methods, *own})]
