"""Values for parameters: columns of a lake by name and route, words, and what is wrong."""

ACCOUNTS = (
    *("transactions.account", "account_states.account", "wallets.account", "messages.source"),
    *("messages.destination", "jetton_wallets.account", "jetton_wallets.owner", "nft_items.owner"),
    *("jetton_masters.account", "nft_items.account", "nft_collections.account"),
)
HASHES = ("transactions.hash", "messages.msg_hash", "traces.trace_id", "blocks.root_hash")
MESSAGES = ("messages.msg_hash", "messages.hash_norm", "transactions.in_msg_hash")
CONTRACTS = (
    *("jetton_masters.account", "jetton_wallets.account", "nft_items.account", "wallets.account"),
    *("nft_collections.account", "dns_records.account", "multisig_wallets.account"),
    *("multisig_orders.account", "vesting_contracts.account", "nft_sales.account"),
)

PLACES: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(("account", "address", "exclude_account", "my_addr"), ACCOUNTS),
    **dict.fromkeys(("msg_hash", "ext_msg_hash"), MESSAGES),
    **dict.fromkeys(("workchain", "shard", "seqno", "root_hash", "file_hash"), ("blocks.{}",)),
    **dict.fromkeys(
        ("source", "destination", "created_lt", "body_hash", "opcode"), ("messages.{}",)
    ),
    **dict.fromkeys(("hash", "lt"), ("transactions.{}",)),
    **dict.fromkeys(("param", "config_id"), ("config_params.param",)),
    "owner_address": ("jetton_wallets.owner", "nft_items.owner", "wallets.account"),
    "mc_seqno": ("blocks.mc_seqno", "transactions.mc_seqno"),
    "from_seqno": ("shard_blocks.mc_seqno",),
    "start_lt": ("blocks.start_lt", "transactions.lt", "traces.start_lt"),
    "end_lt": ("shard_blocks.end_lt", "transactions.lt", "traces.end_lt"),
    "to_lt": ("blocks.start_lt",),
    "after_lt": ("transactions.lt",),
    "after_hash": ("transactions.account",),
    "start_utime": ("blocks.gen_utime", "transactions.now"),
    "end_utime": ("shard_blocks.gen_utime", "transactions.now"),
    "unixtime": ("blocks.gen_utime",),
    "tx_hash": ("transactions.hash", "actions.tx_hashes"),
    "opcodes": ("messages.opcode",),
    "bodies": ("messages.body",),
    "trace_id": ("traces.trace_id", "actions.trace_id"),
    "action_id": ("actions.action_id",),
    "action_type": ("actions.type",),
    "exclude_action_type": ("actions.type",),
    "code_hash": ("account_states.code_hash",),
    "jetton_wallet": ("jetton_wallets.account", "jetton_transfers.account"),
    "jetton_master": ("jetton_masters.account", "jetton_transfers.jetton"),
    "jetton_address": ("jetton_masters.account", "jetton_wallets.jetton"),
    "admin_address": ("jetton_masters.admin",),
    "collection_address": ("nft_collections.account", "nft_transfers.collection"),
    "item_address": ("nft_items.account", "nft_transfers.account"),
    "index": ("nft_items.item_index",),
    "wallet": ("dns_records.wallet", "dns_records.owner"),
    "domain": ("dns_records.domain",),
    "contract_address": ("vesting_contracts.account",),
    "wallet_address": ("multisig_wallets.signers", "vesting_contracts.owner", "wallets.account"),
    "multisig_address": ("multisig_wallets.account", "multisig_orders.multisig"),
    "libraries": ("libraries.hash",),
    "my_shard": ("blocks.shard",),
}
"""Columns by the name of the parameter, which stands for ``{}``."""

PLACES_AT: dict[tuple[str, str], tuple[str, ...]] = {
    ("/api/v3/jetton/masters", "address"): ("jetton_masters.account",),
    ("/api/v3/jetton/wallets", "address"): ("jetton_wallets.account",),
    ("/api/v3/jetton/transfers", "address"): ("jetton_transfers.source",),
    ("/api/v3/jetton/transfers", "owner_address"): (
        *("jetton_transfers.source", "jetton_transfers.destination"),
    ),
    ("/api/v3/jetton/burns", "address"): ("jetton_burns.owner",),
    ("/api/v3/nft/items", "address"): ("nft_items.account",),
    ("/api/v3/nft/sales", "address"): ("nft_sales.account", "nft_sales.nft", "nft_items.account"),
    ("/api/v3/nft/transfers", "owner_address"): (
        *("nft_transfers.old_owner", "nft_transfers.new_owner"),
    ),
    ("/api/v3/multisig/wallets", "address"): ("multisig_wallets.account",),
    ("/api/v3/multisig/orders", "address"): ("multisig_orders.account",),
    ("/api/v3/walletStates", "address"): ("wallets.account", "account_states.account"),
    ("/api/v3/messages", "hash"): MESSAGES,
    ("/api/v3/actions", "account"): ("action_accounts.account",),
    ("/api/v3/masterchainBlockShards", "seqno"): ("blocks.mc_seqno",),
    ("/api/v3/masterchainBlockShardState", "seqno"): ("blocks.mc_seqno",),
    ("/api/v3/transactionsByMasterchainBlock", "seqno"): ("transactions.mc_seqno",),
    ("/api/v2/getTokenData", "address"): CONTRACTS,
    ("/api/v2/getWalletInformation", "address"): ("wallets.account", "account_states.account"),
    ("/api/v2/dnsResolve", "address"): ("dns_records.collection", "dns_records.account"),
    ("/api/v2/dnsResolve", "name"): ("dns_records.domain",),
}
"""The same where a route means something else by the name."""

WORDS: dict[str, tuple[str, ...]] = {
    "limit": ("1", "2", "3", "10", "100", "1000"),
    "count": ("1", "5", "40", "256"),
    "offset": ("0", "1", "7", "100"),
    "sort": ("asc", "desc"),
    "direction": ("in", "out"),
    "supported_action_types": ("latest", "v1", "v2", "v3", "jetton_transfer,call_contract"),
    "category": ("wallet", "0"),
    "ttl": ("0", "1", "4"),
}
"""Values that are no rows'."""

MODIFIERS = frozenset(
    {
        *("limit", "offset", "sort", "cursor", "start_lt", "end_lt", "start_utime", "end_utime"),
        *("mc_seqno", "direction", "include_boc", "exclude_account", "archival", "to_lt", "count"),
        *("include_actions", "include_accounts", "include_transactions", "supported_action_types"),
        *("exclude_externals", "only_externals", "exclude_action_type", "exclude_zero_balance"),
        *("include_on_sale", "sort_by_last_transaction_lt", "include_orders", "parse_actions"),
        *("check_whitelist", "use_v2", "aborted", "from_seqno", "ttl", "category"),
    }
)
"""Parameters that change a response, and find nothing by themselves."""

TOGETHER = (
    ("lt", "hash"),
    ("after_lt", "after_hash"),
    ("workchain", "shard", "seqno"),
    ("index", "collection_address"),
)
"""Parameters that are of use only together."""

ALONE = (
    (("/api/v2/lookupBlock",), ("seqno", "lt", "unixtime")),
    (("/api/v2/getConfigParam",), ("param", "config_id")),
    (("/api/v3/traces", "/api/v3/events"), ("account", "trace_id", "tx_hash", "msg_hash")),
    (("/api/v3/dns",), ("wallet", "domain")),
    (("/api/v3/vesting",), ("contract_address", "wallet_address")),
    (("/api/v3/transactionsByMessage",), ("msg_hash", "body_hash", "opcode")),
)
"""Parameters of which routes take one."""

WRONG = ("", "x", "-1", "0", "1.5", "true", "99999999999999999999", "zz:zz", "\u00e4", "1,2,,3")
"""What no parameter means, or few."""


def find_places(path: str, name: str) -> tuple[str, ...]:
    """Return the columns whose values a parameter of a route takes."""
    if path.startswith("/api/v2/") and name == "seqno" and "lock" not in path:
        return ("blocks.mc_seqno",)
    places = PLACES_AT.get((path, name)) or PLACES.get(name)
    if places is None:
        places = HASHES if "hash" in name or name.endswith("_id") else ACCOUNTS
    return tuple(place.format(name) for place in places)
