"""The schema: the single definition of every table."""

from tonlake.lake.schema.action import ACTION_TABLES
from tonlake.lake.schema.block import (
    BLOCK_PROOFS,
    BLOCKS,
    CONFIG_PARAMS,
    LIBRARIES,
    QUEUE_SIZES,
    SHARD_BLOCKS,
)
from tonlake.lake.schema.column import ARROW_TYPES, Column, Table
from tonlake.lake.schema.contract import CONTRACT_TABLES
from tonlake.lake.schema.fetched import FETCHED_ACCOUNTS, OFFCHAIN_METADATA
from tonlake.lake.schema.trace import OPEN_EDGES, TRACES, TRANSACTION_TRACES
from tonlake.lake.schema.transaction import (
    ACCOUNT_STATES,
    MESSAGE_BODIES,
    MESSAGES,
    STATE_CELLS,
    TRANSACTIONS,
)

SCHEMA_VERSION = 3
"""Raised when columns change, so that views can fill them in for older files, or leave them out."""

BASE_TABLES: tuple[Table, ...] = (
    BLOCKS,
    SHARD_BLOCKS,
    TRANSACTIONS,
    MESSAGES,
    ACCOUNT_STATES,
    STATE_CELLS,
    CONFIG_PARAMS,
    LIBRARIES,
)

SIDE_TABLES: tuple[Table, ...] = (
    BLOCK_PROOFS,
    QUEUE_SIZES,
    OFFCHAIN_METADATA,
    FETCHED_ACCOUNTS,
)
"""Tables from sources other than blocks; optional in a lake."""

DERIVED_TABLES: tuple[Table, ...] = (
    *(TRANSACTION_TRACES, TRACES, OPEN_EDGES),
    *CONTRACT_TABLES,
    *ACTION_TABLES,
    MESSAGE_BODIES,
)
"""Tables derived from the base tables."""

TABLES: dict[str, Table] = {
    table.name: table for table in (*BASE_TABLES, *SIDE_TABLES, *DERIVED_TABLES)
}

__all__ = [
    "ACCOUNT_STATES",
    "ACTION_TABLES",
    "ARROW_TYPES",
    "BASE_TABLES",
    "BLOCKS",
    "BLOCK_PROOFS",
    "CONFIG_PARAMS",
    "CONTRACT_TABLES",
    "DERIVED_TABLES",
    "FETCHED_ACCOUNTS",
    "LIBRARIES",
    "MESSAGES",
    "MESSAGE_BODIES",
    "OFFCHAIN_METADATA",
    "OPEN_EDGES",
    "QUEUE_SIZES",
    "SCHEMA_VERSION",
    "SHARD_BLOCKS",
    "SIDE_TABLES",
    "STATE_CELLS",
    "TABLES",
    "TRACES",
    "TRANSACTIONS",
    "TRANSACTION_TRACES",
    "Column",
    "Table",
]
