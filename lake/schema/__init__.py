"""The schema: the single description of every table, from which all else is derived."""

from lake.schema.account import ACCOUNT_STATES, STATE_CELLS
from lake.schema.block import BLOCKS, SHARD_BLOCKS
from lake.schema.column import ARROW_TYPES, Column, Table
from lake.schema.config import CONFIG_PARAMS, LIBRARIES
from lake.schema.message import MESSAGES
from lake.schema.transaction import TRANSACTIONS

SCHEMA_VERSION = 1
"""Raised when a column is added, so that old files can be bridged by views."""

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

TABLES: dict[str, Table] = {table.name: table for table in BASE_TABLES}

__all__ = [
    "ACCOUNT_STATES",
    "ARROW_TYPES",
    "BASE_TABLES",
    "BLOCKS",
    "CONFIG_PARAMS",
    "LIBRARIES",
    "MESSAGES",
    "SCHEMA_VERSION",
    "SHARD_BLOCKS",
    "STATE_CELLS",
    "TABLES",
    "TRANSACTIONS",
    "Column",
    "Table",
]
