"""Parameters for which the named queries return rows on the demo lake."""

from typing import Any

from duckdb import DuckDBPyConnection

from tonlake.lake.schema import TABLES
from tonlake.queries.loader import REQUIRED, NamedQuery

LISTS = {
    "hashes": "select hash from transactions order by lt limit 300",
    "tx_hashes": "select hash from transactions order by lt limit 300",
    "msg_hashes": "select distinct msg_hash from messages order by all limit 300",
    "trace_ids": "select trace_id from traces order by all limit 300",
    "action_ids": "select action_id from actions order by all limit 300",
    "indexes": "select distinct item_index from nft_items order by all",
    "members": "select distinct unnest(signers) from multisig_wallets order by all",
    "listed": "select distinct unnest(whitelist) from vesting_contracts order by all",
    "types": "select distinct type from actions order by all",
    "seqnos": "select seqno from blocks where workchain = -1 order by all limit 50",
    "mc_seqnos": "select distinct mc_seqno from blocks order by all limit 50",
    "block_seqnos": "select block_seqno from transactions order by all limit 50",
    "trace_ends": "select distinct trace_end_lt from actions order by all",
    "uris": "select distinct uri from offchain_metadata order by all",
}
"""What a list parameter holds, by its name."""

OWN_LISTS = {
    ("cells", "hashes"): "select hash from state_cell_copies order by all limit 200",
    ("v2/libraries", "hashes"): "select distinct hash from libraries order by all",
    ("v3/codes", "hashes"): "select distinct code_hash from interfaces order by all",
    ("pending/landed", "hashes"): "select distinct msg_hash from messages order by all limit 300",
}
"""Lists of single queries, where the name says less."""

ACCOUNTS = " union ".join(
    f"(select workchain, account from {table.name} limit 100)"  # noqa: S608 - names of the schema
    for table in TABLES.values()
    if {"workchain", "account"} <= set(table.names) and table.name != "action_accounts"
)
STATES = "select workchain, account, hash from account_states order by all limit 200"
BLOCKS = """
    select mc_seqno, workchain, shard, block_seqno from transactions
    group by all order by all limit 60
"""
TRANSACTION = """
    select workchain, account, lt, hash, shard, block_seqno, mc_seqno from transactions
    order by outmsg_cnt desc, lt limit 1
"""
MESSAGE = """
    select source_workchain, source, destination_workchain, destination, created_lt, opcode,
        body_hash, direction
    from messages
    where opcode is not null and source is not null and destination is not null
    order by direction = 'in' desc, created_lt limit 1
"""
ACTION = "select action_id from actions order by len(tx_hashes) desc, action_id limit 1"
FETCHED = "select workchain, account, mc_seqno from fetched_accounts order by all limit 1"
CONFIGURED = "select mc_seqno from config_params order by all limit 1"
SHARDS = "select list(distinct shard) from blocks"
BOUNDS = """
    select min(lt) as start_lt, max(lt) as end_lt, min(now) as start_utime, max(now) as end_utime,
        min(lt) as first_lt, max(lt) as last_lt, 1 as first_mc_seqno,
        max(mc_seqno) as last_mc_seqno, 1 as first
    from transactions
"""


class Questions:
    """Builds parameters from the rows of a lake."""

    def __init__(self, connection: DuckDBPyConnection) -> None:
        self._connection = connection
        self._values = {
            **self._first(BOUNDS),
            **self._first(MESSAGE),
            **self._first(TRANSACTION),
            **self._first(ACTION),
            "limit": 500,
            "rows": 500,
            "offset": 0,
            "shards": self._first(SHARDS).popitem()[1],
            "low": b"\x80" + bytes(31),
            "high": b"\x8f" + b"\xff" * 31,
            "suffix": "",
            "bounceable": True,
            "test_only": False,
        }
        self._values["seqno"] = self._values["block_seqno"]
        self._values["utime"] = self._values["since"] = self._values["start_utime"]
        self._values["until"] = self._values["end_utime"] + 1
        pairs = sorted(connection.execute(ACCOUNTS).fetchall())
        self._accounts = [[row[at] for row in pairs] for at in range(2)]

    def _first(self, text: str) -> dict[str, Any]:
        cursor = self._connection.execute(text)
        names = [column[0] for column in cursor.description or ()]
        row = cursor.fetchone()
        assert row is not None
        return dict(zip(names, row, strict=True))

    def required(self, query: NamedQuery) -> dict[str, object]:
        """Return only the required parameters of a query; filter lists are empty."""
        filters = any("empty: any" in item.doc for item in query.parameters.values())
        given: dict[str, object] = {}
        for name, item in query.parameters.items():
            if item.default is REQUIRED:
                optional = "empty: any" in item.doc and item.type.endswith("[]")
                partner = filters and item.type == "integer[]"
                excluding = name in {"excluded", "hidden_under"} or name.startswith("excluded_")
                given[name] = (
                    [] if optional or partner or excluding else self._value(query, name, item.type)
                )
        return given | self._aligned(query)

    def filtered(self, query: NamedQuery) -> dict[str, object]:
        """Return lists for all filters, bounds of time, and the other direction."""
        given: dict[str, object] = {}
        for name, item in query.parameters.items():
            if item.default is REQUIRED or item.type.endswith("[]"):
                given[name] = self._value(query, name, item.type)
            elif name in {"start_lt", "end_lt", "start_utime", "end_utime"}:
                given[name] = self._values[name]
            elif item.type == "boolean":
                given[name] = not item.default
        return given | self._aligned(query)

    def _aligned(self, query: NamedQuery) -> dict[str, object]:
        """Return matching lists, row by row, or the values of one row."""
        if query.name == "v2/fetched_account":
            found = self._connection.execute(FETCHED).fetchall()
            return {
                name: value
                for row in found
                for name, value in zip(("workchain", "account", "mc_seqno"), row, strict=True)
            }
        rows: list[tuple[Any, ...]] = []
        names: tuple[str, ...] = ()
        if query.name == "v3/account_states_by_hash":
            rows, names = self._connection.execute(STATES).fetchall(), tuple(query.parameters)
        if query.name == "v3/transaction_keys_of_blocks":
            rows = self._connection.execute(BLOCKS).fetchall()
            names = ("mc_seqnos", "workchains", "shards", "block_seqnos")
        if query.name == "v3/transaction_keys_of_accounts":
            return {"workchains": self._accounts[0], "accounts": self._accounts[1]}
        return {name: [row[at] for row in rows] for at, name in enumerate(names)}

    def _value(self, query: NamedQuery, name: str, kind: str) -> object:
        own = OWN_LISTS.get((query.name, name)) or LISTS.get(name)
        if own is not None and kind.endswith("[]"):
            return [row[0] for row in self._connection.execute(own).fetchall()]
        if name in {"excluded", "hidden_under"} or name.startswith("excluded_"):
            return []
        if (query.name, name) == ("v2/config_params", "mc_seqno"):
            return self._first(CONFIGURED)[name]
        if kind == "integer[]":
            return self._accounts[0]
        if kind == "blob[]":
            return self._accounts[1]
        return self._values[name]
