"""Replays the transactions of a lake with the emulator, from the states before them."""

from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec

from tests.ingest.bags import read_bags
from tonlake.ingest.blocks import name_mc_block
from tonlake.ingest.decode.block.state import NONEXIST_HASH
from tonlake.ingest.decode.cell.boc import parse_boc
from tonlake.ingest.decode.cell.build import graft
from tonlake.ingest.decode.cell.dictionary import build_hashmap
from tonlake.ingest.decode.cell.packed import assemble_boc
from tonlake.ingest.decode.cell.tree import CellTree
from tonlake.ingest.decode.cell.writer import serialize_boc
from tonlake.ingest.derive.tvm.call import (
    Emulated,
    EmulationCall,
    NetworkConfig,
    NotAccepted,
    PreviousBlocks,
    build_previous,
    join_params,
    join_shard_account,
    split_shard_account,
)
from tonlake.ingest.derive.tvm.trace import estimate_unaccepted, list_messages, read_fees
from tonlake.lake.duck.connection import connect
from tonlake.lake.log.snapshot import open_snapshot
from tonlake.lake.settings import LakeSettings

Row = dict[str, Any]


class Replay:
    """The context of each transaction in a lake."""

    def __init__(self, lake_dir: Path) -> None:
        """Read blocks, configurations, libraries and cells."""
        self._snapshot = open_snapshot(lake_dir, check_digests=False)
        self._connection = connect(self._snapshot, LakeSettings())
        self.cells = {
            row["hash"]: (row["cell"], row["refs"])
            for row in self.rows("select hash, cell, refs from state_cells")
        }
        self._blocks = {
            (row["workchain"], row["shard"], row["seqno"]): row
            for row in self.rows("select * from blocks")
        }
        self._bags = read_bags(self._connection)
        self._configs = self._read_configs()
        self._libraries = self.rows("select * from libraries order by mc_seqno")
        self._masters = {
            key[2]: name_mc_block(key[2], row["root_hash"], row["file_hash"])
            for key, row in self._blocks.items()
            if key[0] == -1
        }
        network = self._snapshot.state.network
        assert network is not None
        hashes = (network.zero_state_root_hash, network.zero_state_file_hash)
        self._masters[0] = name_mc_block(0, *(bytes.fromhex(text or "") for text in hashes))
        self._after: dict[bytes, bytes] = {}
        """States between two transactions of one block, by hash: blocks do not contain them."""

    def rows(self, sql: str) -> list[Row]:
        found = self._connection.execute(sql)
        names = [column[0] for column in found.description]
        return [dict(zip(names, row, strict=True)) for row in found.fetchall()]

    def transactions(self, where: str = "true") -> list[Row]:
        """Return transactions of the kinds that can be replayed, in chain order."""
        sql = f"select * from transactions where {where} order by lt, workchain"  # noqa: S608
        return self.rows(sql)

    def describe(self, transaction: Row) -> tuple[EmulationCall, NetworkConfig] | None:
        """Return the call that replays a transaction; None if the state before it is missing."""
        row = transaction
        before = self._read_state(row["account_state_hash_before"])
        if before is None and row["account_state_hash_before"] != NONEXIST_HASH:
            return None
        block = self._blocks[row["workchain"], row["shard"], row["block_seqno"]]
        is_master = row["workchain"] == -1
        referred = row["block_seqno"] - 1 if is_master else block["master_ref_seqno"]
        config = self._configs[self._find_key(referred)]
        received, _sent = list_messages(self._bags[row["hash"]])
        call = EmulationCall(
            account=join_shard_account(before, row["prev_trans_hash"], row["prev_trans_lt"]),
            message=received,
            config=config.root,
            now=row["now"],
            lt=row["lt"],
            libraries=self._join_libraries(referred),
            previous=build_previous(self._find_previous(referred), config.version),
            rand_seed=block["rand_seed"],
            is_tock=bool(row["is_tock"]),
        )
        return call, config

    def keep(self, made: Emulated) -> None:
        """Keep the state after a transaction."""
        account, _hash, _lt = split_shard_account(made.account)
        tree = parse_boc(account)
        self._after[tree.hash(tree.roots[0])] = account

    def _read_state(self, state_hash: bytes) -> bytes | None:
        if state_hash in self._after:
            return self._after[state_hash]
        return assemble_boc(state_hash, self.cells) if state_hash in self.cells else None

    def _read_configs(self) -> dict[int, NetworkConfig]:
        params: dict[int, dict[int, bytes]] = {}
        for row in self.rows("select mc_seqno, param, boc from config_params"):
            params.setdefault(row["mc_seqno"], {})[row["param"]] = row["boc"]
        return {seqno: NetworkConfig(join_params(found), found) for seqno, found in params.items()}

    def _find_key(self, seqno: int) -> int:
        keys = sorted(self._configs)
        return keys[bisect_right(keys, seqno) - 1]

    def _find_previous(self, seqno: int) -> PreviousBlocks:
        last = range(seqno, max(-1, seqno - 16), -1)
        newest = seqno // 100 * 100
        hundredths = range(newest, max(-1, newest - 1600), -100)
        masters = self._masters
        return PreviousBlocks(
            [masters[one] for one in last],
            masters[self._find_key(seqno)],
            [masters[one] for one in hundredths],
        )

    def _join_libraries(self, seqno: int) -> bytes | None:
        there = {row["hash"]: row["present"] for row in self._libraries if row["mc_seqno"] <= seqno}
        tree = CellTree()
        entries = [
            (int.from_bytes(key, "big"), graft(tree, parse_boc(assemble_boc(key, self.cells))))
            for key in sorted(there)
            if there[key]
        ]
        return serialize_boc(tree, [build_hashmap(tree, entries, 256)]) if entries else None


class Verdict(msgspec.Struct):
    """The number of transactions that equal those of the chain, by kind, and the differences."""

    equal: Counter[str]
    others: list[str]


def replay_all(
    replay: Replay,
    emulate: Callable[[EmulationCall], Emulated | NotAccepted],
    where: str = "true",
) -> Verdict:
    """Replay every transaction and compare its hash, and the fees of external messages."""
    verdict = Verdict(Counter(), [])
    for row in replay.transactions(where):
        name = f"{row['workchain']}:{row['account'].hex()} {row['lt']} ({row['descr']})"
        asked = replay.describe(row)
        if asked is None:
            verdict.others.append(f"{name}: the state before is not at hand")
            continue
        call, config = asked
        made = emulate(call)
        if isinstance(made, NotAccepted):
            verdict.others.append(f"{name}: not accepted, exit code {made.exit_code}")
            continue
        replay.keep(made)
        verdict.others += [f"{name}: {text}" for text in find_differences(row, made, call, config)]
        external = is_external(call.message)
        verdict.equal["external" if external else row["descr"]] += 1
    return verdict


def find_differences(
    row: Row, made: Emulated, call: EmulationCall, config: NetworkConfig
) -> Iterator[str]:
    """Yield the differences between an emulated transaction and that of the chain."""
    tree = parse_boc(made.transaction)
    if tree.hash(tree.roots[0]) != row["hash"]:
        yield "another transaction"
    fees = read_fees(made, global_version=config.version)
    if (fees.storage_fee, fees.gas_fee, fees.fwd_fee) != (
        row["storage_fees_collected"] or 0,
        row["compute_gas_fees"] or 0,
        row["action_total_fwd_fees"] or 0,
    ):
        yield f"other fees: {fees}"
    if is_external(call.message):
        assert call.message is not None
        # The price alone: the account itself is of no account to it.
        price = estimate_unaccepted(None, call.message, config.params, 0).in_fwd_fee
        if fees.in_fwd_fee != price:
            yield f"brought in for {fees.in_fwd_fee}, where {price} is the price"


def is_external(message: bytes | None) -> bool:
    """Return whether a message is external: ext_in_msg_info$10."""
    if message is None:
        return False
    tree = parse_boc(message)
    return tree.slice(tree.roots[0]).load_uint(2) == 0b10
