"""Tables of detected contracts (wallets, jettons, NFTs, domains, multisigs, vesting) and transfers.

A contract table has a row for every account state detected as such a contract, so the rows of an
account are its history: ``latest_<table>`` has the newest row of each, and the row with the
greatest ``mc_seqno`` not above N is valid at masterchain block N. Rows stay when an account changes
its code or is deleted. If several blocks that one masterchain block commits change an account, the
last state counts.

``unanswered_methods`` has the accounts of which it is unknown whether they are such contracts.

Addresses in lists and in JSON are raw (``0:`` and 64 uppercase hex digits). Integers that may
exceed 38 digits are decimal text.
"""

from tonlake.lake.schema.column import Column, Table, make_table, one_of, optional, raw_address

_ACCOUNT = (
    Column("workchain", "int32", "Workchain of the account"),
    Column("account", "hash", "Account id, 32 bytes"),
    Column("mc_seqno", "int64", "Masterchain block that commits the state"),
    Column("lt", "int64", "Logical time of the account's last transaction in that state"),
    Column("utime", "int64", "Unix seconds of the block"),
    *optional(
        Column("code_hash", "hash", "Hash of the code cell; NULL in recorded traces"),
        Column("data_hash", "hash", "Hash of the data cell; NULL in recorded traces"),
    ),
)


def _address(name: str, doc: str, *, nullable: bool = False) -> tuple[Column, Column]:
    """Return the two columns of an address; both are NULL for addr_none."""
    return (
        Column(f"{name}_workchain", "int32", f"Workchain of {name}", nullable=nullable),
        Column(name, "hash", doc, nullable=nullable),
    )


def _table(name: str, doc: str, *columns: Column) -> Table:
    return make_table(name, doc, *_ACCOUNT, *columns, key=("workchain", "account", "mc_seqno"))


INTERFACES = make_table(
    "interfaces",
    "One row per contract code and commit: its get-methods and the interfaces they imply. "
    "Join on code_hash; rows of the same code are equal in all files.",
    Column("code_hash", "hash", "Hash of the code cell (of the library cell)"),
    Column("mc_seqno", "int64", "First masterchain block of the commit with this code"),
    *optional(
        Column("methods", "ints", "Get-method ids, ascending; NULL without a method table"),
        Column("names", "texts", "Interface names, sorted; NULL if none match"),
    ),
    key=("code_hash", "mc_seqno"),
)

WALLET_KINDS = (
    *("wallet_v1r1", "wallet_v1r2", "wallet_v1r3", "wallet_v2r1", "wallet_v2r2", "wallet_v3r1"),
    *("wallet_v3r2", "wallet_v4r1", "wallet_v4r2", "wallet_v5_beta", "wallet_v5r1"),
    *("wallet_highload_v1r1", "wallet_highload_v1r2", "wallet_highload_v2"),
    *("wallet_highload_v2r1", "wallet_highload_v2r2", "wallet_highload_v3r1"),
    *("wallet_vesting", "wallet_preprocessed_v2"),
)
WALLETS = _table(
    "wallets",
    "Wallets of the known versions, read from their data cells.",
    one_of("kind", *WALLET_KINDS, doc="Interface name of the version"),
    *optional(
        Column("seqno", "int64", "Next seqno, if the version has one"),
        Column("wallet_id", "int64", "Wallet (subwallet) id, if the version has one"),
        Column("public_key", "hash", "Ed25519 public key, if the version has one"),
        Column("is_signature_allowed", "bool", "v5: whether signatures by the key are allowed"),
    ),
)

JETTON_MASTERS = _table(
    "jetton_masters",
    "Jetton masters (TEP-74): get_jetton_data.",
    Column("total_supply", "amount", "Jettons in the smallest unit"),
    Column("mintable", "bool", "Whether more can be minted"),
    *_address("admin", "Administrator", nullable=True),
    *optional(Column("content", "json", "TEP-64 content: key to text")),
    Column("wallet_code_hash", "hash", "Hash of the code of its wallets"),
)

JETTON_WALLETS = _table(
    "jetton_wallets",
    "Jetton wallets (TEP-74) confirmed by their master: get_wallet_data.",
    Column("balance", "amount", "Jettons in the smallest unit"),
    *_address("owner", "Owner", nullable=True),
    *_address("jetton", "Jetton master"),
    *optional(Column("is_claimed", "bool", "Mintless jettons: whether the airdrop was claimed")),
)

NFT_COLLECTIONS = _table(
    "nft_collections",
    "NFT collections (TEP-62): get_collection_data.",
    Column("next_item_index", "text", "Decimal; -1 if indexes are not sequential"),
    *_address("owner", "Owner", nullable=True),
    *optional(Column("content", "json", "TEP-64 content: key to text")),
)

NFT_ITEMS = _table(
    "nft_items",
    "NFT items (TEP-62), confirmed by their collection if they have one: get_nft_data.",
    Column("init", "bool", "Whether the item is initialised"),
    Column("item_index", "text", "Index in the collection, decimal"),
    *_address("collection", "Collection", nullable=True),
    *_address("owner", "Owner", nullable=True),
    *optional(
        Column("content", "json", "TEP-64 content of the item; includes the domain of DNS items")
    ),
)

NFT_SALES = _table(
    "nft_sales",
    "NFT sale and auction contracts, and items that auction themselves (telemint).",
    one_of("kind", "getgems_sale", "getgems_auction", "telemint"),
    *_address("nft", "Item on sale", nullable=True),
    *_address("nft_owner", "Seller", nullable=True),
    *_address("marketplace", "Marketplace", nullable=True),
    *optional(Column("created_at", "int64", "Unix seconds")),
    Column("details", "json", "Other fields of this kind; amounts and addresses are text"),
)

DNS_RECORDS = _table(
    "dns_records",
    "Domains (TEP-81) in a root collection, with their records.",
    Column("domain", "text", "Domain name, such as example.ton"),
    *_address("collection", "Root collection"),
    *_address("owner", "Owner of the item", nullable=True),
    *_address("next_resolver", "dns_next_resolver (ba93)", nullable=True),
    *_address("wallet", "dns_smc_address (9fd3) under the key wallet", nullable=True),
    *optional(
        Column("site_adnl", "hash", "dns_adnl_address (ad01) under the key site"),
        Column("storage_bag_id", "hash", "dns_storage_address (7473) under the key storage"),
    ),
)

MULTISIG_WALLETS = _table(
    "multisig_wallets",
    "Multisig v2 wallets: get_multisig_data.",
    Column("next_order_seqno", "text", "Decimal; -1 if orders may have any seqno"),
    Column("threshold", "int64", "Approvals required"),
    Column("signers", "texts", "Raw addresses, by index"),
    Column("proposers", "texts", "Raw addresses, by index"),
)

MULTISIG_ORDERS = _table(
    "multisig_orders",
    "Orders of multisig v2, confirmed by their wallet: get_order_data.",
    *_address("multisig", "Multisig wallet"),
    Column("order_seqno", "text", "Decimal"),
    *optional(
        Column("threshold", "int64", "Approvals required; NULL: not initialised, as all below"),
        Column("sent_for_execution", "bool", "Whether the order was sent to the multisig wallet"),
        Column("signers", "texts", "Raw addresses, by index"),
        Column("approvals_mask", "text", "Bit mask by signer index, decimal"),
        Column("approvals_num", "int64", "Number of approvals"),
        Column("expiration_date", "int64", "Unix seconds"),
        Column("order_boc", "bytes", "Actions as bag of cells: Hashmap 8 ^Action"),
    ),
)

VESTING_CONTRACTS = _table(
    "vesting_contracts",
    "Vesting wallets: get_vesting_data.",
    Column("start_time", "int64", "Unix seconds"),
    Column("total_duration", "int64", "Seconds"),
    Column("unlock_period", "int64", "Seconds"),
    Column("cliff_duration", "int64", "Seconds"),
    Column("total_amount", "amount", "Nanoton"),
    *_address("sender", "Sender of the vested coins", nullable=True),
    *_address("owner", "Beneficiary", nullable=True),
    Column("whitelist", "texts", "Raw addresses, sorted"),
)

DEX_POOLS = _table(
    "dex_pools",
    "Liquidity pools confirmed by their factory.",
    one_of("dex", "dedust"),
    *optional(
        one_of("pool_type", "stable", "volatile", doc="NULL in recorded traces"),
        raw_address("asset_1", "Raw address of a jetton master; NULL: TON"),
        raw_address("asset_2", "Raw address of a jetton master; NULL: TON"),
        Column("reserve_1", "amount", "Smallest units of asset_1; NULL in recorded traces"),
        Column("reserve_2", "amount", "Smallest units of asset_2; NULL in recorded traces"),
        Column("fee", "text", "Trade fee, as numerator/denominator; NULL in recorded traces"),
    ),
)


def _moves(name: str, doc: str, *columns: Column) -> Table:
    head = (
        Column("workchain", "int32", "Workchain of the contract"),
        Column("account", "hash", "Contract that received the message, 32 bytes"),
        Column("lt", "int64", "Logical time of the transaction"),
        Column("mc_seqno", "int64", "Masterchain block that commits it"),
        Column("now", "int64", "Unix seconds of the transaction"),
        Column("tx_hash", "hash", "Hash of the transaction"),
        Column("aborted", "bool", "Whether it was aborted: then nothing was transferred"),
        Column("query_id", "amount", "Query id of the message"),
    )
    key, sort = ("workchain", "account", "lt"), ("lt", "workchain", "account")
    return make_table(name, doc, *head, *columns, key=key, sort=sort)


_FORWARD = optional(
    Column("custom_payload", "bytes", "custom_payload as bag of cells"),
    Column("forward_payload", "bytes", "forward_payload as bag of cells; NULL if inline and empty"),
    Column("forward_payload_inline", "bool", "Whether it was inline in the body (Either left)"),
)

JETTON_TRANSFERS = _moves(
    "jetton_transfers",
    "transfer#0f8a7ea5 messages (TEP-74) received by jetton wallets.",
    *_address("jetton", "Jetton master of the wallet"),
    *_address("source", "Sender of the message, the owner of the wallet", nullable=True),
    *_address("destination", "New owner of the jettons", nullable=True),
    Column("amount", "amount", "Jettons in the smallest unit"),
    *_address("response_destination", "Recipient of excesses", nullable=True),
    Column("forward_ton_amount", "amount", "Nanoton forwarded to the destination"),
    *_FORWARD,
)

JETTON_BURNS = _moves(
    "jetton_burns",
    "burn#595f07bc messages (TEP-74) received by jetton wallets.",
    *_address("jetton", "Jetton master of the wallet"),
    *_address("owner", "Sender of the message, the owner of the wallet", nullable=True),
    Column("amount", "amount", "Jettons in the smallest unit"),
    *_address("response_destination", "Recipient of excesses", nullable=True),
    *optional(Column("custom_payload", "bytes", "custom_payload as bag of cells")),
)

NFT_TRANSFERS = _moves(
    "nft_transfers",
    "transfer#5fcc3d14 messages (TEP-62) received by NFT items.",
    Column("item_index", "text", "Index in the collection, decimal"),
    *_address("collection", "Collection of the item", nullable=True),
    *_address("old_owner", "Sender of the message", nullable=True),
    *_address("new_owner", "New owner", nullable=True),
    *_address("response_destination", "Recipient of excesses", nullable=True),
    Column("forward_amount", "amount", "Nanoton forwarded to the new owner"),
    *_FORWARD,
)

UNANSWERED_METHODS = make_table(
    "unanswered_methods",
    "Account states of which it is unknown whether they are contracts of a table: no engine "
    "could run a get-method, or the lake lacks the library that is its code. tonlake rebuild "
    "contracts runs it again.",
    *_ACCOUNT,
    Column("method", "text", "Get-method that identifies such contracts"),
    Column("contract_table", "text", "Table that the account may belong to"),
    *_address("asked", "Account whose get-method could not be run"),
    Column("asked_method", "text", "Get-method that could not be run"),
    Column("reason", "text", "Why it could not be run"),
    key=("workchain", "account", "mc_seqno", "method"),
)

HISTORY_TABLES: tuple[Table, ...] = (
    WALLETS,
    JETTON_MASTERS,
    JETTON_WALLETS,
    NFT_COLLECTIONS,
    NFT_ITEMS,
    NFT_SALES,
    DNS_RECORDS,
    MULTISIG_WALLETS,
    MULTISIG_ORDERS,
    VESTING_CONTRACTS,
    DEX_POOLS,
)
"""Tables with a row per state of an account; each has a view ``latest_<name>``."""

CONTRACT_TABLES: tuple[Table, ...] = (
    *(INTERFACES, *HISTORY_TABLES),
    *(JETTON_TRANSFERS, JETTON_BURNS, NFT_TRANSFERS, UNANSWERED_METHODS),
)
"""All tables of contracts and transfers: derived from base rows, except in recorded traces."""
