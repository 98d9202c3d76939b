"""The schema: ``tables.txt`` is the single definition of every table and column."""

from tonlake.lake.schema.column import ARROW_TYPES, Column, Table
from tonlake.lake.schema.dictionary import read_tables

SCHEMA_VERSION = 3
"""Raised when columns change, so that views can fill them in for older files, or leave them out."""

TABLES = read_tables()

BLOCKS = TABLES["blocks"]
SHARD_BLOCKS = TABLES["shard_blocks"]
TRANSACTIONS = TABLES["transactions"]
MESSAGES = TABLES["messages"]
ACCOUNT_STATES = TABLES["account_states"]
STATE_CELLS = TABLES["state_cells"]
CONFIG_PARAMS = TABLES["config_params"]
LIBRARIES = TABLES["libraries"]
BLOCK_PROOFS = TABLES["block_proofs"]
QUEUE_SIZES = TABLES["queue_sizes"]
OFFCHAIN_METADATA = TABLES["offchain_metadata"]
FETCHED_ACCOUNTS = TABLES["fetched_accounts"]
TRANSACTION_TRACES = TABLES["transaction_traces"]
TRACES = TABLES["traces"]
OPEN_EDGES = TABLES["open_edges"]
INTERFACES = TABLES["interfaces"]
WALLETS = TABLES["wallets"]
JETTON_MASTERS = TABLES["jetton_masters"]
JETTON_WALLETS = TABLES["jetton_wallets"]
NFT_COLLECTIONS = TABLES["nft_collections"]
NFT_ITEMS = TABLES["nft_items"]
NFT_SALES = TABLES["nft_sales"]
DNS_RECORDS = TABLES["dns_records"]
MULTISIG_WALLETS = TABLES["multisig_wallets"]
MULTISIG_ORDERS = TABLES["multisig_orders"]
VESTING_CONTRACTS = TABLES["vesting_contracts"]
DEX_POOLS = TABLES["dex_pools"]
JETTON_TRANSFERS = TABLES["jetton_transfers"]
JETTON_BURNS = TABLES["jetton_burns"]
NFT_TRANSFERS = TABLES["nft_transfers"]
UNANSWERED_METHODS = TABLES["unanswered_methods"]
ACTIONS = TABLES["actions"]
SUPERSEDED_ACTIONS = TABLES["superseded_actions"]
ACTION_ACCOUNTS = TABLES["action_accounts"]
ACTION_RANGES = TABLES["action_ranges"]
DEX_SWAPS = TABLES["dex_swaps"]
NFT_SALES_EVENTS = TABLES["nft_sales_events"]
MESSAGE_BODIES = TABLES["message_bodies"]

BASE_TABLES = (
    *(BLOCKS, SHARD_BLOCKS, TRANSACTIONS, MESSAGES, ACCOUNT_STATES, STATE_CELLS),
    *(CONFIG_PARAMS, LIBRARIES),
)

DECODED_TABLES = (*BASE_TABLES, QUEUE_SIZES)
"""Tables decoded from blocks; a lake may lack the last."""

HISTORY_TABLES = (
    *(WALLETS, JETTON_MASTERS, JETTON_WALLETS, NFT_COLLECTIONS, NFT_ITEMS, NFT_SALES),
    *(DNS_RECORDS, MULTISIG_WALLETS, MULTISIG_ORDERS, VESTING_CONTRACTS, DEX_POOLS),
)
"""Tables with a row per state of an account; each has a view ``latest_<name>``."""

CONTRACT_TABLES = (
    *(INTERFACES, *HISTORY_TABLES),
    *(JETTON_TRANSFERS, JETTON_BURNS, NFT_TRANSFERS, UNANSWERED_METHODS),
)
"""All tables of contracts and transfers: derived from base rows, except in recorded traces."""

ACTION_TABLES = (
    *(ACTIONS, SUPERSEDED_ACTIONS, ACTION_ACCOUNTS, ACTION_RANGES),
    *(DEX_SWAPS, NFT_SALES_EVENTS),
)

__all__ = ["ARROW_TYPES", "Column", "Table"]
