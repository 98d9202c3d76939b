"""Generates a small random but valid chain: each transaction continues the one before."""

import random
from pathlib import Path
from typing import Any

import pyarrow as pa

from tests.lake.rows import SHARD, make_blocks, make_value
from tonlake.lake.commit.commit import commit_range
from tonlake.lake.log.state import Commit, NetworkId
from tonlake.lake.schema import TABLES
from tonlake.lake.settings import LakeSettings

Row = dict[str, Any]
_DEFAULTS = LakeSettings()
LT_STEP = 1000
FIRST_UTIME = 1_700_000_000
ON_THE_WAY = 1000
"""Messages that were sent and may still be received."""

OPCODES = (None, 0, 0x0F8A7EA5, -1)


class Chain:
    """Generates consecutive masterchain blocks over few accounts, so that accounts recur."""

    def __init__(self, seed: int, *, accounts: int = 6) -> None:
        """Begin with accounts that have a state, as after a zero state."""
        self.rng = random.Random(seed)  # noqa: S311 - no secret, but a seed
        self.accounts = [
            (self.rng.choice((0, 0, 0, -1)), self._account(number)) for number in range(accounts)
        ]
        self.last: dict[tuple[int, bytes], tuple[bytes, int, bytes]] = {}
        self.sent: list[Row] = []
        self.bodies = [self.rng.randbytes(32) for _ in range(12)]

    def _account(self, number: int) -> bytes:
        """Let some accounts share their first 8 bytes, and two, by workchain, all of them."""
        return bytes(8) + self.rng.randbytes(24) if number < 3 else self.rng.randbytes(32)

    def make(self, first: int, last: int) -> dict[str, pa.Table]:
        """Return the rows of the masterchain blocks ``first..last``."""
        rows: dict[str, list[Row]] = {"transactions": [], "messages": [], "account_states": []}
        if first == 1:
            for workchain, account in self.accounts[:2]:
                rows["account_states"].append(self._state(workchain, account, 0, 0, bytes(32)))
        for mc_seqno in range(first, last + 1):
            self._make_block(mc_seqno, rows)
        tables = {
            name: pa.Table.from_pylist(listed, schema=TABLES[name].arrow)
            for name, listed in rows.items()
        }
        return tables | {"blocks": self._time_blocks(make_blocks(first, last))}

    @staticmethod
    def _time_blocks(blocks: pa.Table) -> pa.Table:
        """Return masterchain blocks with the times of the transactions in them."""
        seqnos = blocks["mc_seqno"].to_pylist()
        times = {
            "gen_utime": [FIRST_UTIME + seqno for seqno in seqnos],
            "start_lt": [seqno * LT_STEP for seqno in seqnos],
            "end_lt": [seqno * LT_STEP + LT_STEP - 1 for seqno in seqnos],
        }
        for name, column in times.items():
            at = blocks.schema.get_field_index(name)
            field = blocks.schema.field(at)
            blocks = blocks.set_column(at, field, pa.array(column, field.type))
        return blocks

    def _make_block(self, mc_seqno: int, rows: dict[str, list[Row]]) -> None:
        touched = self.rng.sample(self.accounts, self.rng.randrange(len(self.accounts)))
        for workchain, account in touched:
            for place in range(self.rng.choice((1, 1, 1, 2))):
                lt = mc_seqno * LT_STEP + place * 10
                self._make_transaction(mc_seqno, workchain, account, lt, rows)
            tx_hash, lt, _ = self.last[workchain, account]
            if self.rng.random() < 0.95:
                state = self._state(workchain, account, mc_seqno, lt, tx_hash)
                rows["account_states"].append(state)

    def _make_transaction(
        self, mc_seqno: int, workchain: int, account: bytes, lt: int, rows: dict[str, list[Row]]
    ) -> None:
        rng = self.rng
        prev_hash, prev_lt, before = self.last.get((workchain, account), (bytes(32), 0, bytes(32)))
        tx_hash, after = rng.randbytes(32), rng.randbytes(32)
        row = _random_row(rng, "transactions") | {
            "workchain": workchain,
            "account": account,
            "lt": lt,
            "hash": tx_hash,
            "mc_seqno": mc_seqno,
            "now": FIRST_UTIME + mc_seqno,
            "shard": SHARD,
            "block_seqno": mc_seqno,
            "prev_trans_hash": prev_hash,
            "prev_trans_lt": prev_lt,
            "account_state_hash_before": before,
            "account_state_hash_after": after,
        }
        messages = [self._receive()] if rng.random() < 0.8 else []
        row["in_msg_hash"] = messages[0]["msg_hash"] if messages else None
        messages += [self._send(workchain, account, lt, at) for at in range(rng.randrange(3))]
        for message in messages:
            rows["messages"].append(
                message
                | {
                    "tx_workchain": workchain,
                    "tx_account": account,
                    "tx_lt": lt,
                    "tx_hash": tx_hash,
                    "mc_seqno": mc_seqno,
                    "now": row["now"],
                }
            )
        rows["transactions"].append(row)
        self.last[workchain, account] = (tx_hash, lt, after)

    def _send(self, workchain: int, account: bytes, lt: int, index: int) -> Row:
        to_workchain, to = self.rng.choice(self.accounts)
        message = self._message("out") | {
            "kind": "int",
            "msg_index": index,
            "hash_norm": None,
            "source_workchain": workchain,
            "source": account,
            "destination_workchain": to_workchain,
            "destination": to,
            "created_lt": lt + 1 + index,
            "created_at": FIRST_UTIME + lt // LT_STEP,
        }
        self.sent.append(message)
        del self.sent[:-ON_THE_WAY]  # the oldest never arrives
        return message

    def _receive(self) -> Row:
        """Return an earlier message or an external one, now and then a duplicate."""
        if self.sent and self.rng.random() < 0.7:
            place = self.rng.randrange(len(self.sent))
            return self.sent.pop(place) | {"direction": "in", "msg_index": 0}
        message = self._message("in") | {
            "kind": "ext_in",
            "msg_index": 0,
            "hash_norm": self.rng.randbytes(32),
            "created_lt": None,
            "created_at": None,
        }
        if self.rng.random() < 0.2:
            message["hash_norm"] = message["msg_hash"]
        return message

    def _message(self, direction: str) -> Row:
        row = _random_row(self.rng, "messages")
        opcode = self.rng.choice(OPCODES)
        if opcode is not None and self.rng.random() < 0.7:
            head, tail = self.rng.randbytes(self.rng.randrange(70)), self.rng.randbytes(5)
            row["body"] = head + opcode.to_bytes(4, "big", signed=True) + tail
        return row | {
            "direction": direction,
            "opcode": opcode,
            "body_hash": self.rng.choice(self.bodies),
        }

    def _state(self, workchain: int, account: bytes, mc_seqno: int, lt: int, last: bytes) -> Row:
        row = _random_row(self.rng, "account_states") | {
            "workchain": workchain,
            "account": account,
            "mc_seqno": mc_seqno,
            "block_seqno": mc_seqno,
            "utime": FIRST_UTIME + mc_seqno,
            "balance": self.rng.randrange(5),
            "last_trans_lt": lt,
            "last_trans_hash": last,
        }
        known = self.last.get((workchain, account))
        if known is None:
            self.last[workchain, account] = (bytes(32), 0, row["hash"])
        else:
            row["hash"] = known[2]
        return row


def _random_row(rng: random.Random, table: str) -> Row:
    return {column.name: make_value(rng, column) for column in TABLES[table].columns}


def commit_chain(lake_dir: Path, chain: Chain, first: int, last: int) -> Commit:
    """Commit the next blocks ``first..last``, all on one day."""
    return commit_made(lake_dir, first, last, chain.make(first, last))


def commit_made(
    lake_dir: Path,
    first: int,
    last: int,
    tables: dict[str, pa.Table],
    settings: LakeSettings = _DEFAULTS,
    **options: Any,
) -> Commit:
    """Commit rows generated earlier; other options are the commit's."""
    place = {"first_mc_seqno": first, "last_mc_seqno": last, "settings": settings}
    own: dict[str, Any] = {"day": "2024-01-01", "source": {}, "network": NetworkId(-239), **place}
    return commit_range(lake_dir, tables, **(own | options))
