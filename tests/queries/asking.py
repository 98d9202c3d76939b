"""Draws parameters of queries from the rows of a lake."""

import time
from collections.abc import Sequence
from random import Random
from typing import Any, NamedTuple

from duckdb import DuckDBPyConnection

from tonlake.queries.loader import NamedQuery
from tonlake.queries.reader import Reader

Row = dict[str, Any]


class Answered(NamedTuple):
    """What the index did for a question: whether it answered, and with rows; the door's CPU ms."""

    by_index: bool
    filled: bool
    cpu_ms: float


def ask_both(
    indexed: Reader, plain: Reader, name: str, parameters: Row, columns: Sequence[str]
) -> Answered:
    """Ask a lake with its index and SQL alone, and compare these columns of their answers."""
    wanted = plain.rows(name, **parameters)
    indexed.answered_by.clear()
    began_s = time.process_time()
    found = indexed.rows(name, **parameters)
    cpu_ms = (time.process_time() - began_s) * 1000
    shown = [[[row[column] for column in columns] for row in rows] for rows in (found, wanted)]
    assert shown[0] == shown[1], parameters
    is_answered = indexed.answered_by == {"index"}
    return Answered(is_answered, is_answered and bool(found), cpu_ms)


LONG = {"v3/blocks", "v3/messages", "v3/nft_transfers", "v3/traces"}
"""Lists that have rows at any offset drawn."""

TABLES = {
    "transaction": "select * exclude (boc) from transactions",
    "message": "select * exclude (init_state) from messages",
    "block": "select * from blocks",
    "trace": "select * from traces",
    "action": "select * from actions",
    "cell": "select hash from state_cell_copies where hash < '\\x20'",
    "item": "select item_index from nft_items",
}
CONTRACTS = (
    *("jetton_masters", "jetton_wallets", "nft_collections", "nft_items", "nft_sales"),
    *("jetton_transfers", "jetton_burns", "nft_transfers"),
)
TOKENS = {
    "v3/token_collections": "nft_collections",
    "v3/token_items": "nft_items",
    "v3/token_masters": "jetton_masters",
    "v3/token_wallets": "jetton_wallets",
}
ADDRESSES = {
    "admin": "jetton_masters.admin",
    "owner": "jetton_wallets.owner nft_items.owner nft_collections.owner nft_sales.nft_owner",
    "jetton": "jetton_masters.account",
    "collection": "nft_collections.account",
}
"""Columns whose addresses a list of them is drawn from, by the prefix of the parameters."""

LISTS = {
    "msg_hashes": ("message", "msg_hash"),
    "tx_hashes": ("transaction", "hash"),
    "end_hashes": ("transaction", "hash"),
    "hashes": ("transaction", "hash"),
    "trace_ids": ("trace", "trace_id"),
    "action_ids": ("action", "action_id"),
    "trace_ends": ("action", "trace_end_lt"),
    "indexes": ("item", "item_index"),
    **dict.fromkeys(("types", "excluded", "hidden_under"), ("action", "type")),
}
ALWAYS = frozenset({"trace_ids", "action_ids", "trace_ends", "mc_seqnos"})
FLAGS = frozenset({"descending", "by_time"})


class Asking:
    """The rows of one lake, and parameters built from them."""

    def __init__(self, connection: DuckDBPyConnection, rng: Random) -> None:
        """Read the rows from which parameters are drawn."""
        self._rng, self._connection = rng, connection
        self.rows = {name: self._read(text) for name, text in TABLES.items()}
        self._accounts = {name: self._list_addresses(f"{name}.account") for name in CONTRACTS}
        self._addresses = {
            prefix: [pair for column in columns.split() for pair in self._list_addresses(column)]
            for prefix, columns in ADDRESSES.items()
        }
        listed = self._read("select distinct domain from dns_records")
        self._domains = ("none.ton", *(row["domain"] for row in listed))
        self._everybody = [(row["workchain"], row["account"]) for row in self.rows["transaction"]]

    def _read(self, text: str) -> list[Row]:
        cursor = self._connection.execute(f"{text} order by all")
        names = [column[0] for column in cursor.description or ()]
        return [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]

    def _list_addresses(self, column: str) -> list[tuple[int, bytes]]:
        table, name = column.split(".")
        workchain = "workchain" if name == "account" else f"{name}_workchain"
        text = f"select distinct {workchain}, {name} from {table} where {name} is not null"  # noqa: S608
        return [(row[workchain], row[name]) for row in self._read(text)]

    def draw(self, name: str, query: NamedQuery) -> Row:
        """Return one set of parameters of a query, or of a composed query's name."""
        rng = self._rng
        same = self._draw_same(query) if self.rows["transaction"] else {}
        optional = {
            key
            for key, item in query.parameters.items()
            if item.default is None and rng.random() < rng.choice((0.0, 0.1, 0.3))
        }
        if "block_seqno" in query.parameters and rng.random() < 0.3:
            optional = {"mc_seqno"}
        drawn: Row = {}
        for key, item in query.parameters.items():
            if item.default is None and (key not in optional or item.type == "blob"):
                continue
            drawn[key] = self._value(name, key, item.type, same)
        if name != "v3/transaction_keys_of_blocks":
            drawn |= self._pairs(name, query)
        return drawn | self._special(name, optional, same)

    def _draw_same(self, query: NamedQuery) -> Row:
        """Return columns of a transaction, its block, and a message."""
        transaction = self._rng.choice(self.rows["transaction"])
        block = self._draw_block(transaction)
        message = self._rng.choice(self.rows["message"])
        same: Row = {
            **{key: block[key] for key in ("workchain", "shard", "seqno", "mc_seqno")},
            **{key: block[key] for key in ("root_hash", "file_hash")},
            "block_seqno": block["seqno"],
            **{key: message[key] for key in ("opcode", "body_hash", "direction")},
            "hash": transaction["hash"],
            "lt": transaction["lt"],
            "aborted": True,
        }
        if "account" in query.parameters:
            same |= {key: transaction[key] for key in ("workchain", "account")}
        return same

    def _draw_block(self, transaction: Row) -> Row:
        place = {
            "workchain": transaction["workchain"],
            "shard": transaction["shard"],
            "seqno": transaction["block_seqno"],
        }
        fitting = [row for row in self.rows["block"] if place.items() <= row.items()]
        return fitting[0] if fitting else self._rng.choice(self.rows["block"])

    def _value(self, name: str, key: str, kind: str, same: Row) -> Any:
        rng = self._rng
        choices: dict[str, tuple[Any, ...]] = {
            "limit": (1, 5, 1000),
            "rows": (1, 5, 1000),
            "offset": (0, 0, 40 if name in LONG else 3),
            "domain": self._domains,
            "first_lt": (0,),
            "last_lt": (1 << 62,),
        }
        if key in choices:
            return rng.choice(choices[key])
        if key in {"start_lt", "end_lt", "start_utime", "end_utime"}:
            row = rng.choice(self.rows["transaction"] or [{"lt": 0, "now": 0}])
            return row["lt" if key.endswith("lt") else "now"]
        if kind == "boolean":
            return rng.random() < 0.5 if key in FLAGS else rng.random() < 0.1 or key == "aborted"
        if kind.endswith("[]"):
            return self._list(name, key)
        if (name, key) == ("v3/actions", "account"):
            return rng.choice(rng.choice(self.rows["action"])["accounts"])
        return same.get(key, 0)

    def _list(self, name: str, key: str) -> list[Any]:
        if key == "mc_seqnos":
            return sorted({row["mc_seqno"] for row in self.rows["action"]})
        table, column = LISTS.get(key, ("transaction", "account"))
        if name == "cells":
            table = "cell"
        rows = self.rows[table]
        needed = key in ALWAYS or key == "msg_hashes" or "_by_hash" in name or "_of_tr" in name
        if name == "v3/actions" and key != "trace_ids":
            rows = rows if self._rng.random() < 0.1 else []
        if not rows or not (needed or self._rng.random() < 0.5):
            return []
        chosen = self._rng.choices(rows, k=self._rng.choice((1, 3, 20)))
        return [row[column] for row in chosen]

    def _pairs(self, name: str, query: NamedQuery) -> Row:
        """Return matching lists of workchains and account ids."""
        drawn: Row = {}
        for key in query.parameters:
            if not key.endswith("workchains"):
                continue
            prefix = key.removesuffix("workchains").rstrip("_")
            known = self._addresses.get(prefix) or self._accounts.get(TOKENS.get(name, name[3:]))
            pairs = self._rng.choices(
                known or self._everybody,
                k=self._rng.choice((0, 1, 4)) if known or self._everybody else 0,
            )
            if prefix == "excluded":
                pairs = []
            drawn[key] = [workchain for workchain, _ in pairs]
            ids = {"": "accounts", "excluded": "excluded_accounts"}.get(prefix, f"{prefix}s")
            drawn[ids] = [account for _, account in pairs]
        return drawn

    def _special(  # noqa: PLR0911 - one a question
        self, name: str, optional: set[str], same: Row
    ) -> Row:
        """Return parameters of questions with unusual ones."""
        rng = self._rng
        if name in {"v2/bags", "v3/transactions"}:
            key = "keys" if name == "v3/transactions" else "records"
            return {key: rng.choices(self.rows["transaction"], k=9)}
        if name == "v3/transaction_keys_of_blocks":
            names = {"mc_seqnos": "mc_seqno", "workchains": "workchain", "shards": "shard"}
            listed = {key: [same[column]] for key, column in names.items()}
            return listed | {"block_seqnos": [same["seqno"]]}
        if name in {"v2/account_state", "v2/shards", "v3/shard_tops"}:
            last = max(row["mc_seqno"] for row in self.rows["block"])
            return {"mc_seqno": rng.choice((last, same["mc_seqno"], last + 9))}
        if name == "v3/blocks" and rng.random() < 0.5:
            keys = rng.choice((("mc_seqno",), ("workchain", "seqno"), ("workchain",)))
            return {key: same[key] for key in keys}
        if name == "v3/transaction_keys" and not self.rows["cell"]:
            # A synthetic chain: its blocks have random times, so no time ranges.
            return rng.choice(({"mc_seqno": same["mc_seqno"]}, {"aborted": True}))
        if name == "v3/actions" and self.rows["action"] and rng.random() < 0.7:
            return {"start_lt": 0, "end_lt": 1 << 62}
        if name in {"v3/messages", "v3/transaction_keys_by_message"} and not optional:
            return self._draw_one_filter(name)
        return {}

    def _draw_one_filter(self, name: str) -> Row:
        keys = ("body_hash", "opcode", "msg_hashes")
        key = keys[2] if name.endswith("by_message") else self._rng.choice(keys)
        flags = ("no_source", "no_destination", "exclude_externals", "only_externals", "by_time")
        row = self._rng.choice(self.rows["message"])
        alone: Row = dict.fromkeys(flags, False) if name == "v3/messages" else {}
        value = [row["msg_hash"]] if key == "msg_hashes" else row[key]
        return alone | {"msg_hashes": []} | {key: value}
