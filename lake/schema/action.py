"""Tables of actions, derived from complete traces: transfers, swaps, bids and so on.

Accounts are raw addresses (``0:`` and 64 uppercase hex digits) as text. The rows of a trace are in
the file of the masterchain blocks in which it ends.
"""

from tonlake.lake.schema.action_type import ACTION_TYPES, SALES
from tonlake.lake.schema.column import Column, Table, make_table, one_of, optional, raw_address

EXCHANGES = ("stonfi", "stonfi_v2", "dedust", "dedust_v2", "tonco", "coffee")

_TRACE = (
    Column("trace_id", "hash", "Hash of the root transaction of the trace"),
    Column("action_id", "hash", "Id of the action, from its first message and its type"),
)
_TIME = (
    Column("mc_seqno", "int64", "Last masterchain block that commits a transaction of the trace"),
    Column("end_lt", "int64", "Greatest logical time of its transactions"),
    Column("end_utime", "int64", "Unix seconds of its last transaction"),
)

_ACTION_COLUMNS = (
    *_TRACE,
    Column("type", "text", "Action type, such as jetton_transfer", values=ACTION_TYPES),
    Column("success", "bool", "Whether the action succeeded"),
    Column("start_lt", "int64", "Least logical time of its messages"),
    Column("end_lt", "int64", "Greatest logical time of its transactions"),
    Column("start_utime", "int64", "Unix seconds of its first message"),
    Column("end_utime", "int64", "Unix seconds of its last transaction"),
    Column("mc_seqno_end", "int64", "Last masterchain block that commits a transaction of it"),
    Column("mc_seqno", "int64", "Last masterchain block that commits a transaction of the trace"),
    Column("trace_end_lt", "int64", "Greatest logical time of the trace"),
    Column("trace_end_utime", "int64", "Unix seconds of the trace's last transaction"),
    *optional(
        Column("trace_external_hash", "hash", "Hash of the in message of the trace's root"),
        Column("trace_external_hash_norm", "hash", "Its normal form (TEP-467), if it is ext_in"),
    ),
    Column("tx_hashes", "hashes", "Transactions, the sender of the first message included; sorted"),
    Column("accounts", "texts", "Participating accounts; sorted", is_address=True),
    *optional(
        raw_address("source", "Initiator of the action"),
        raw_address("source_secondary", "Secondary source, such as its jetton wallet"),
        raw_address("destination", "Recipient, or the contract called"),
        raw_address("destination_secondary", "Secondary destination, such as its jetton wallet"),
        raw_address("asset", "Jetton master or NFT collection; NULL: TON"),
        raw_address("asset_secondary", "NFT item, or part of the asset"),
        raw_address("asset2", "Second asset: what a swap returned; NULL: TON"),
        raw_address("asset2_secondary", "Part of the second asset"),
        Column("opcode", "int64", "Opcode of a call, unsigned"),
        Column("amount", "amount", "Amount in the smallest unit of the asset"),
        Column("value", "amount", "Value in nanoton"),
        Column("value_extra_currencies", "json", "Extra currencies, id to amount"),
        Column(
            "details", "json", "Fields of the type, such as jetton_swap_data; extra: later ones"
        ),
        Column("parent_action_id", "hash", "Enclosing action"),
    ),
    Column("ancestor_type", "texts", "Types of the enclosing actions, nearest first"),
    Column("rule", "text", "Classifier rule that produced it; empty: a single message"),
    Column("classifier_version", "int32", "Version of the classifier"),
)

ACTIONS = make_table(
    "actions",
    "One row per action of a complete trace, nested actions included.",
    *_ACTION_COLUMNS,
    key=("trace_id", "action_id"),
    sort=("trace_end_lt", "trace_id", "end_lt", "action_id"),
)

SUPERSEDED_ACTIONS = make_table(
    "superseded_actions",
    "Former rows of actions, for traces that a newer classifier version classifies differently.",
    *_ACTION_COLUMNS,
    key=ACTIONS.key,
    sort=ACTIONS.sort,
)

ACTION_ACCOUNTS = make_table(
    "action_accounts",
    "One row per action and participating account.",
    Column("workchain", "int32", "Workchain of the account"),
    Column("account", "hash", "Account id, 32 bytes"),
    Column("trace_end_lt", "int64", "Greatest logical time of the trace"),
    Column("trace_end_utime", "int64", "Unix seconds of the trace's last transaction"),
    *_TRACE,
    *_TIME,
    Column("type", "text", "Action type", values=ACTION_TYPES),
    Column("ancestor_type", "texts", "Types of the enclosing actions, nearest first"),
    key=("workchain", "account", "trace_id", "action_id"),
    sort=("workchain", "account", "trace_end_lt", "trace_id", "end_lt", "action_id"),
)

ACTION_RANGES = make_table(
    "action_ranges",
    "One row per classified range of masterchain blocks.",
    Column("first_mc_seqno", "int64", "First masterchain block"),
    Column("last_mc_seqno", "int64", "Last masterchain block"),
    Column("classifier_version", "int32", "Version of the classifier"),
    Column("traces", "int64", "Complete traces that end in the range"),
    Column("actions", "int64", "Their actions"),
    key=("first_mc_seqno",),
)

DEX_SWAPS = make_table(
    "dex_swaps",
    "One row per jetton_swap: assets in and out, on any supported exchange.",
    *_TRACE,
    *_TIME,
    Column("success", "bool", "Whether the action succeeded"),
    one_of("dex", *EXCHANGES),
    *optional(
        raw_address("sender", "Account that swapped"),
        raw_address("pool", "First pool, router or vault on the route"),
        raw_address("asset_in", "Jetton master; NULL: TON"),
        Column("amount_in", "amount", "Smallest units of asset_in"),
        raw_address("asset_out", "Jetton master; NULL: TON"),
        Column("amount_out", "amount", "Smallest units of asset_out"),
    ),
    Column("hops", "int32", "Number of pools on the route"),
    key=("trace_id", "action_id"),
    sort=("end_lt", "trace_id", "action_id"),
)

NFT_SALES_EVENTS = make_table(
    "nft_sales_events",
    "One row per listing, bid, purchase, cancellation and end of a sale or auction of an NFT.",
    *_TRACE,
    *_TIME,
    Column("event", "text", "Type of the action, such as nft_purchase", values=SALES),
    Column("success", "bool", "Whether the action succeeded"),
    *optional(
        raw_address("collection", "Collection of the item"),
        raw_address("item", "NFT item"),
        raw_address("seller", "Seller"),
        raw_address("buyer", "New owner, or bidder"),
        raw_address("sale", "Contract of the sale or auction"),
        Column("marketplace", "text", "Name of the marketplace"),
        raw_address("marketplace_address", "Contract of the marketplace"),
        Column("price", "amount", "Price or bid in nanoton"),
    ),
    key=("trace_id", "action_id"),
    sort=("end_lt", "trace_id", "action_id"),
)

ACTION_TABLES: tuple[Table, ...] = (
    *(ACTIONS, SUPERSEDED_ACTIONS, ACTION_ACCOUNTS, ACTION_RANGES),
    *(DEX_SWAPS, NFT_SALES_EVENTS),
)
