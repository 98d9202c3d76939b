"""Generates a lake of any size with realistic skew: few accounts do most of the work.

The k-th account is used in proportion to 1/k, messages connect two transactions, hashes are random
(so they do not compress), every row continues the account's last one, and amounts, gas and
lifetimes repeat as they do in a chain. Whole columns are generated, a chunk of transactions at a
time. The same seed gives the same rows.
"""

import random
from array import array
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa

from tonlake.api.settings import Settings
from tonlake.lake.commit.commit import commit_range
from tonlake.lake.log.state import NetworkId
from tonlake.lake.schema import TABLES

CHUNK = 200_000
TX_PER_MC_BLOCK = 100
TX_PER_ACCOUNT = 10
MC_BLOCKS_PER_DAY = 36_000
FIRST_DAY_UTIME = 1_704_067_200
SHARD = -(2**63)
LT_STEP = 10_000
LT_SPAN = LT_STEP * 1000
SEND_BACK = 300
"""A message is consumed at most this many transactions after it was sent."""

ZERO = bytes(32)
_BODY_HEAD = bytes.fromhex("b5ee9c720101010100")

Columns = dict[str, Any]


class _Source:
    """Random columns of one chunk."""

    def __init__(self, seed: str, rows: int) -> None:
        self.rng = random.Random(seed)  # noqa: S311 - the same rows for the same seed
        self.rows = rows

    def hashes(self, count: int | None = None) -> list[bytes]:
        """Return random hashes."""
        data = self.rng.randbytes(32 * (self.rows if count is None else count))
        return [data[at : at + 32] for at in range(0, len(data), 32)]

    def skewed(self, most: int) -> list[int]:
        """Return numbers from 0 on below ``most``, k in proportion to 1/(k+1)."""
        draw = self.rng.random
        return [int(most ** draw()) - 1 for _ in range(self.rows)]

    def choose(self, values: list[Any], weights: list[float]) -> list[Any]:
        """Return weighted random values."""
        return self.rng.choices(values, weights, k=self.rows)


class LakeMaker:
    """Generates the chunks of one lake."""

    def __init__(self, transactions: int, seed: int) -> None:
        """Create the accounts, codes and opcodes that the whole lake uses."""
        self._seed = seed
        rng = _Source(f"{seed} fixed", max(1000, transactions // TX_PER_ACCOUNT))
        self._accounts = rng.hashes()
        self._codes = rng.hashes(300)
        self._opcodes = [
            int.from_bytes(rng.rng.randbytes(4), "big", signed=True) for _ in range(2000)
        ]
        self._bodies = [self._make_body(rng.rng, 0, 20) for _ in range(2000)]
        self._last_hash = [ZERO] * len(self._accounts)
        self._last_state = [ZERO] * len(self._accounts)
        self._last_lt = array("q", bytes(8 * len(self._accounts)))
        rich = (int(10**9 * 1.5 ** (at % 40)) for at in range(len(self._accounts)))
        self._balance = array("q", rich)
        self._done = 0

    def make(self, count: int) -> dict[str, pa.Table]:
        """Return the rows of the next ``count`` transactions."""
        source = _Source(f"{self._seed} {self._done}", count)
        who = source.skewed(len(self._accounts))
        first = self._done
        self._done += count
        numbers = range(first, first + count)
        columns = self._chain(source, who, numbers)
        messages = self._exchange(source, who, columns)
        _add_phases(source, columns)
        columns["boc"] = _make_bags(columns, messages)
        return {
            "transactions": fit("transactions", columns, count),
            "messages": messages,
            "account_states": self._states(source, who, columns),
            "blocks": make_blocks(source, columns["mc_seqno"]),
        }

    def _chain(self, source: _Source, who: list[int], numbers: range) -> Columns:
        """Return the columns in which a transaction continues its account's last one."""
        mc_seqnos = [number // TX_PER_MC_BLOCK + 1 for number in numbers]
        columns: Columns = {
            "workchain": [0] * len(who),
            "account": [self._accounts[at] for at in who],
            "lt": [
                mc_seqno * LT_SPAN + number % TX_PER_MC_BLOCK * LT_STEP
                for mc_seqno, number in zip(mc_seqnos, numbers, strict=True)
            ],
            "hash": source.hashes(),
            "account_state_hash_after": source.hashes(),
            "shard": [SHARD] * len(who),
            "block_seqno": mc_seqnos,
            "mc_seqno": mc_seqnos,
            "now": [utime_of(mc_seqno) for mc_seqno in mc_seqnos],
            "time": [utime_of(mc_seqno) * 1_000_000 for mc_seqno in mc_seqnos],
            "prev_trans_hash": [],
            "prev_trans_lt": [],
            "account_state_hash_before": [],
        }
        rows = zip(
            who, columns["hash"], columns["lt"], columns["account_state_hash_after"], strict=True
        )
        for at, tx_hash, lt, state in rows:
            columns["prev_trans_hash"].append(self._last_hash[at])
            columns["prev_trans_lt"].append(self._last_lt[at])
            columns["account_state_hash_before"].append(self._last_state[at])
            self._last_hash[at], self._last_lt[at], self._last_state[at] = tx_hash, lt, state
        return columns

    def _exchange(self, source: _Source, who: list[int], columns: Columns) -> pa.Table:
        """Return the messages: most are sent by one transaction and consumed by a later one."""
        rng = source.rng
        kinds = source.choose(["int", "ext_in", None], [0.75, 0.15, 0.1])
        sent = [0] * len(who)
        ends: list[tuple[int, str, int, int, int]] = []
        columns["in_msg_hash"] = []
        made: list[tuple[bytes, bytes, bytes | None, int | None, str, int]] = []
        for row, kind in enumerate(kinds):
            if kind is None:
                columns["in_msg_hash"].append(None)
                continue
            msg_hash = rng.randbytes(32)
            opcode, body_hash, body = self._draw_body(rng)
            sender = max(0, row - int(SEND_BACK ** rng.random()))
            lt = columns["lt"][sender] + 1 + sent[sender]
            made.append((msg_hash, body_hash, body, opcode, kind, lt))
            ends.append((row, "in", 0, len(made) - 1, sender))
            if kind == "int" and sender != row:
                ends.append((sender, "out", sent[sender], len(made) - 1, row))
                sent[sender] += 1
            columns["in_msg_hash"].append(msg_hash)
        columns["outmsg_cnt"] = sent
        return _write_messages(rng, columns, ends, made)

    def _draw_body(self, rng: random.Random) -> tuple[int | None, bytes, bytes | None]:
        """Return opcode, hash and bag of cells: a third repeat, most of those empty."""
        if rng.random() < 0.3:
            _, body_hash, body = self._bodies[int(2000 ** rng.random()) - 1]
            return None, body_hash, body
        at = int(2000 ** rng.random()) - 1
        return self._make_body(rng, self._opcodes[at], 12 + at % 60)

    @staticmethod
    def _make_body(
        rng: random.Random, opcode: int, length: int
    ) -> tuple[int | None, bytes, bytes | None]:
        data = opcode.to_bytes(4, "big", signed=True) + rng.randbytes(length)
        size = len(data)
        body = _BODY_HEAD + bytes((size + 2, 0, 0, size * 2)) + data
        return opcode, rng.randbytes(32), body

    def _states(self, source: _Source, who: list[int], columns: Columns) -> pa.Table:
        """Return the states of accounts after blocks, one per account and block."""
        last = {(at, seqno): row for row, (at, seqno) in enumerate(zip(who, columns["mc_seqno"]))}  # noqa: B905
        rows = list(last.values())
        data = source.hashes(len(rows))
        states: Columns = {
            "hash": [columns["account_state_hash_after"][row] for row in rows],
            "last_trans_lt": [columns["lt"][row] for row in rows],
            "last_trans_hash": [columns["hash"][row] for row in rows],
            "utime": [columns["now"][row] for row in rows],
            "account_status": ["active"] * len(rows),
            "balance": [],
            "code_hash": [self._codes[who[row] % 300] for row in rows],
            "data_hash": [
                data[number] if who[row] % 3 else self._codes[who[row] % 300]
                for number, row in enumerate(rows)
            ],
            "storage_cells": [who[row] % 90 for row in rows],
            "storage_bits": [who[row] % 90 * 611 for row in rows],
            "storage_last_paid": [columns["now"][row] for row in rows],
            "storage_last_trans_lt": [columns["lt"][row] + 1 for row in rows],
        }
        for row in rows:
            self._balance[who[row]] += source.rng.randrange(-(10**8), 10**8 + 10**7)
            states["balance"].append(max(0, self._balance[who[row]]))
        for name in ("workchain", "account", "mc_seqno", "shard", "block_seqno"):
            states[name] = [columns[name][row] for row in rows]
        return fit("account_states", states, len(rows))


def utime_of(mc_seqno: int) -> int:
    """Return the unix second of a masterchain block."""
    return FIRST_DAY_UTIME + (mc_seqno - 1) * 86_400 // MC_BLOCKS_PER_DAY


def _write_messages(
    rng: random.Random,
    columns: Columns,
    ends: list[tuple[int, str, int, int, int]],
    made: list[tuple[bytes, bytes, bytes | None, int | None, str, int]],
) -> pa.Table:
    rows = [end[0] for end in ends]
    what = [made[end[3]] for end in ends]
    internal = [item[4] == "int" for item in what]
    carried = [int(10 ** (6 + 6 * rng.random())) for _ in made]
    other = [columns["account"][end[4]] for end in ends]
    own = [columns["account"][end[0]] for end in ends]
    inward = [end[1] == "in" for end in ends]
    sender = [end[4] if end[1] == "in" else end[0] for end in ends]

    def only(values: list[Any]) -> list[Any]:
        return [value if holds else None for value, holds in zip(values, internal, strict=True)]

    messages: Columns = {
        "tx_workchain": [0] * len(ends),
        "tx_account": own,
        "direction": [end[1] for end in ends],
        "msg_index": [end[2] for end in ends],
        "msg_hash": [item[0] for item in what],
        "hash_norm": [
            None if holds else bytes(reversed(item[0]))
            for item, holds in zip(what, internal, strict=True)
        ],
        "kind": [item[4] for item in what],
        "source_workchain": only([0] * len(ends)),
        "source": only([b if i else a for a, b, i in zip(own, other, inward, strict=True)]),
        "source_kind": ["std" if holds else "none" for holds in internal],
        "destination_workchain": [0] * len(ends),
        "destination": [a if i else b for a, b, i in zip(own, other, inward, strict=True)],
        "destination_kind": ["std"] * len(ends),
        "value": only([carried[end[3]] for end in ends]),
        "fwd_fee": only([266_669 + carried[end[3]] % 7 * 44_000 for end in ends]),
        "ihr_fee": only([0] * len(ends)),
        "created_lt": only([item[5] for item in what]),
        "created_at": only([columns["now"][at] for at in sender]),
        "ihr_disabled": only([True] * len(ends)),
        "bounce": only([end[3] % 5 > 0 for end in ends]),
        "bounced": only([end[3] % 50 == 0 for end in ends]),
        "import_fee": [None if holds else 0 for holds in internal],
        "opcode": [item[3] for item in what],
        "body_hash": [item[1] for item in what],
        "body": [item[2] for item in what],
    }
    for name, column in (
        ("tx_lt", "lt"),
        ("tx_hash", "hash"),
        ("mc_seqno", "mc_seqno"),
        ("now", "now"),
    ):
        messages[name] = [columns[column][row] for row in rows]
    return fit("messages", messages, len(ends))


def _add_phases(source: _Source, columns: Columns) -> None:
    """Add statuses and phases: most succeed, fees and gas come in a few hundred sizes."""
    count = source.rows
    gas = [1000 + 37 * size for size in source.skewed(3000)]
    exits = source.choose([0, 37, 709, -14], [93, 4, 2, 1])
    failed = [exit_code != 0 for exit_code in exits]
    columns.update(
        orig_status=["active"] * count,
        end_status=["active"] * count,
        total_fees=[used * 400 + 123_000 + used % 11 for used in gas],
        descr=["ord"] * count,
        aborted=failed,
        destroyed=[False] * count,
        credit_first=[False] * count,
        storage_fees_collected=source.skewed(4000),
        storage_status_change=["unchanged"] * count,
        credit=[used * 1000 for used in gas],
        compute_skipped=[False] * count,
        compute_success=[not bad for bad in failed],
        compute_msg_state_used=[False] * count,
        compute_account_activated=[False] * count,
        compute_gas_fees=[used * 400 for used in gas],
        compute_gas_used=gas,
        compute_gas_limit=[1_000_000 if used % 3 else used * 2 for used in gas],
        compute_mode=[0] * count,
        compute_exit_code=exits,
        compute_vm_steps=[used // 30 for used in gas],
        compute_vm_init_state_hash=[ZERO] * count,
        compute_vm_final_state_hash=[ZERO] * count,
        action_success=[not bad for bad in failed],
        action_valid=[True] * count,
        action_no_funds=[False] * count,
        action_status_change=["unchanged"] * count,
        action_total_fwd_fees=[400_000 if sent else None for sent in columns["outmsg_cnt"]],
        action_total_action_fees=[133_331 if sent else None for sent in columns["outmsg_cnt"]],
        action_result_code=[0] * count,
        action_tot_actions=columns["outmsg_cnt"],
        action_spec_actions=[0] * count,
        action_skipped_actions=[0] * count,
        action_msgs_created=columns["outmsg_cnt"],
        action_list_hash=[
            tx_hash if sent else ZERO
            for tx_hash, sent in zip(source.hashes(), columns["outmsg_cnt"], strict=True)
        ],
        action_tot_msg_size_cells=columns["outmsg_cnt"],
        action_tot_msg_size_bits=[sent * 705 for sent in columns["outmsg_cnt"]],
    )


def _make_bags(columns: Columns, messages: pa.Table) -> list[bytes]:
    """Return what makes up the size of a bag: hashes, addresses and bodies, not at whole bytes."""
    bits = {"account": 4, "prev_trans_hash": 4, "action_list_hash": 7}
    names = (*bits, "account_state_hash_before", "account_state_hash_after")
    moved = (_begin_at(columns[name], bits.get(name, 0)) for name in names)
    every = zip(columns["hash"], zip(*moved, strict=True), strict=True)
    bags = {tx_hash: [_BODY_HEAD, *row] for tx_hash, row in every}
    bits = {"source": 7, "destination": 2, "body": 0}
    moved = (_begin_at(messages[name].to_pylist(), bit) for name, bit in bits.items())
    for tx_hash, *parts in zip(messages["tx_hash"].to_pylist(), *moved, strict=True):
        bags[tx_hash] += [part for part in parts if part is not None]
    return [b"".join(parts) for parts in bags.values()]


def _begin_at(values: list[Any], bit: int) -> list[Any]:
    return [
        (int.from_bytes(value) << 8 - bit).to_bytes(len(value) + 1) if value and bit else value
        for value in values
    ]


def make_blocks(source: _Source, mc_seqnos: list[int]) -> pa.Table:
    """Return a masterchain block and a shard block for each masterchain seqno."""
    seqnos = sorted(set(mc_seqnos)) * 2
    count = len(seqnos)
    half = count // 2
    columns: Columns = {
        "workchain": [-1] * half + [0] * half,
        "shard": [SHARD] * count,
        "seqno": seqnos,
        "mc_seqno": seqnos,
        "gen_utime": [utime_of(seqno) for seqno in seqnos],
        "time": [utime_of(seqno) * 1_000_000 for seqno in seqnos],
        "start_lt": [seqno * LT_SPAN for seqno in seqnos],
        "end_lt": [seqno * LT_SPAN + LT_SPAN - 1 for seqno in seqnos],
        "tx_count": [0] * half + [TX_PER_MC_BLOCK] * half,
        "global_id": [-239] * count,
    }
    for name in ("root_hash", "file_hash", "prev_root_hash", "prev_file_hash", "state_root_hash"):
        columns[name] = source.hashes(count)
    for name in ("rand_seed", "created_by"):
        columns[name] = source.hashes(count)
    return fit("blocks", columns, count)


_EMPTY: dict[str, Any] = {"bool": False, "hash": ZERO, "bytes": b"", "text": "", "time": 0}


def fit(name: str, columns: Columns, count: int) -> pa.Table:
    """Return a table of the schema; missing columns are NULL or empty."""
    arrays = []
    for column in TABLES[name].columns:
        values = columns.get(column.name)
        if values is None:
            empty = None if column.nullable else _EMPTY.get(column.type, 0)
            arrays.append(pa.repeat(pa.scalar(empty, column.arrow.type), count))
        else:
            arrays.append(pa.array(values, column.arrow.type))
    return pa.table(arrays, schema=TABLES[name].arrow)


def make_lake(lake_dir: Path, *, transactions: int, seed: int) -> None:
    """Create a lake of ``transactions`` rows, without look-ups."""
    maker = LakeMaker(transactions, seed)
    settings = Settings()
    done = 0
    while done < transactions:
        first_mc_seqno = done // TX_PER_MC_BLOCK + 1
        day = (first_mc_seqno - 1) // MC_BLOCKS_PER_DAY
        left_today = ((day + 1) * MC_BLOCKS_PER_DAY - (first_mc_seqno - 1)) * TX_PER_MC_BLOCK
        count = min(CHUNK, transactions - done, left_today)
        count -= count % TX_PER_MC_BLOCK if done + count < transactions else 0
        commit_range(
            lake_dir,
            maker.make(count),
            first_mc_seqno=first_mc_seqno,
            last_mc_seqno=(done + count - 1) // TX_PER_MC_BLOCK + 1,
            day=str(datetime.fromtimestamp(utime_of(first_mc_seqno), UTC).date()),
            source={"kind": "generated", "seed": str(seed)},
            network=NetworkId(-239),
            settings=settings.lake,
        )
        done += count
