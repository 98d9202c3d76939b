"""Views for people: readable names, times and amounts over the tables of the lake.

In all of them ``time`` is a UTC timestamp. An address is raw text, as in ``actions``, followed by
its binary key. Amounts are scaled by the decimals of their asset; the column ``…_units`` has them
in the smallest unit. The SQL of a view is ``lake/duck/sql/<name>.sql``.
"""

from collections.abc import Callable

import msgspec

from tonlake.lake.schema.action import EXCHANGES
from tonlake.lake.schema.action_type import SALES
from tonlake.lake.schema.column import DAY, Column, ColumnType, one_of, optional, raw_address
from tonlake.lake.schema.transaction import ACCOUNT_STATUSES, DESCRIPTIONS, MESSAGE_KINDS


def _columns_of(kind: ColumnType) -> Callable[[str, str], Column]:
    """Return what makes a column of a type from its name and description."""
    return lambda name, doc: Column(name, kind, doc)


text, number = _columns_of("text"), _columns_of("int64")
hash_column, double = _columns_of("hash"), _columns_of("double")


def _keyed(name: str, id_name: str, workchain_name: str, doc: str) -> tuple[Column, ...]:
    return (
        raw_address(name, f"{doc}, raw address"),
        Column(workchain_name, "int32", f"Its workchain, for {name}"),
        hash_column(id_name, f"Its account id, 32 bytes, for {name}"),
    )


def address(name: str, doc: str) -> tuple[Column, ...]:
    """Return the columns of an address: raw text, workchain and account id."""
    return _keyed(name, f"{name}_id", f"{name}_workchain", doc)


def labelled(name: str, doc: str) -> tuple[Column, ...]:
    """Return the columns of an address and of its label."""
    return (*address(name, doc), text(f"{name}_label", f"Label of {name}, from labels"))


def account(doc: str) -> tuple[Column, ...]:
    """Return the columns of a row's own account, with the key names of the tables."""
    return _keyed("address", "account", "workchain", doc)


def amount(
    name: str, doc: str, unit: str = "the smallest unit", *, exact: ColumnType = "amount"
) -> tuple[Column, ...]:
    """Return the columns of an amount, scaled and exact."""
    return (
        Column(name, "scaled", f"{doc}, to nine places; NULL if its decimals are unknown"),
        Column(f"{name}_units", exact, f"{doc}, exactly, in {unit}"),
    )


LABEL = text("label", "Label of the account, from labels")
COMMENT = text("comment", "Text comment; NULL if there is none, or an encrypted one")
MC_SEQNO = number("mc_seqno", "Masterchain block that commits the row")
INTERFACES = Column(
    "interfaces", "texts", "Interfaces of its code; NULL if none match", nullable=True
)
VALUE_TON = Column(
    "value_ton",
    "scaled",
    "Value in TON at the last price of the hour, or of the last hour with one within a day",
)


def time(doc: str) -> Column:
    """Return the column ``time``."""
    return Column("time", "time", f"{doc}, UTC")


class View(msgspec.Struct, frozen=True):
    """A view, or a table macro with its ``parameters`` as shown to users, and its columns."""

    name: str
    doc: str
    columns: tuple[Column, ...]
    parameters: str = ""

    @property
    def title(self) -> str:
        """The name, with the parameters of a macro."""
        return f"{self.name}({self.parameters})" if self.parameters else self.name


def make_view(name: str, doc: str, *columns: Column, parameters: str = "") -> View:
    """Return a view, any column of which may be NULL."""
    return View(name, doc, optional(*columns), parameters)


_TRACE_ID = hash_column("trace_id", "Hash of the root transaction of the trace")
_TRANSACTION = (
    hash_column("tx_hash", "Hash of the transaction"),
    number("lt", "Logical time of the transaction"),
    _TRACE_ID,
)
_ACTION = (
    _TRACE_ID,
    hash_column("action_id", "Id of the action in actions"),
    number("lt", "Greatest logical time of its transactions"),
    *(MC_SEQNO, DAY),
)
ASSET = address("asset", "Jetton master or NFT item; NULL: TON")

LABELS = make_view(
    "labels",
    "Labels of well-known accounts, and those of the file that [lake] labels names.",
    *account("Account"),
    text("label", "What it is called"),
    text("category", "Such as system, exchange, stablecoin; wrapped_ton counts as TON"),
    text("source", "Where the label comes from"),
)

CODE_LABELS = make_view(
    "code_labels",
    "Labels of contract codes, for accounts without a label of their own.",
    text("code", "Hash of the code cell in base64, or the name of an interface"),
    text("label", "What the contract is"),
    text("category", "Such as dex, staking"),
    text("source", "Where the label comes from"),
)

STABLECOINS = make_view(
    "stablecoins",
    "Jettons worth one US dollar, from the setting [lake] stablecoins.",
    *account("Jetton master"),
)

REFERENCE_TABLES = (LABELS, CODE_LABELS, STABLECOINS)
"""Tables filled from settings rather than from the lake; every connection has them."""

V_JETTONS = make_view(
    "v_jettons",
    "Jetton masters as of their newest state, with their metadata.",
    *account("Jetton master"),
    text("symbol", "Symbol of its metadata"),
    text("name", "Name of its metadata"),
    Column(
        "decimals",
        "int32",
        "Decimals; NULL if its off-chain metadata was not fetched and the chain has none",
    ),
    *amount("supply", "Total supply"),
    Column("mintable", "bool", "Whether more can be minted"),
    *address("admin", "Administrator"),
    text("uri", "URI of its off-chain metadata"),
    time("Time of the newest state"),
    MC_SEQNO,
)

V_ACCOUNTS = make_view(
    "v_accounts",
    "The newest state of every account, with its interfaces, name and label.",
    *account("Account"),
    text("label", "Label of the account, from labels, or of its code, from code_labels"),
    text("category", "Category of the label"),
    text("name", "First domain in the alphabet whose wallet record is the account"),
    INTERFACES,
    one_of("status", *ACCOUNT_STATUSES),
    *amount("balance", "Balance in TON", "nanoton", exact="int64"),
    hash_column("code_hash", "active: hash of the code cell"),
    number("last_lt", "Logical time of its last transaction"),
    hash_column("last_tx_hash", "Hash of its last transaction"),
    Column("deployed_at", "time", "When its code first came, UTC, in the lake"),
    *address("first_funded_by", "Sender of the message that first made it exist, in the lake"),
    Column("first_funded_at", "time", "When that was, UTC"),
    *(time("Time of the block"), MC_SEQNO),
)

V_TRANSACTIONS = make_view(
    "v_transactions",
    "Transactions, with the reason of a failure in words.",
    time("Time of the transaction"),
    *_TRANSACTION,
    *account("Account"),
    LABEL,
    one_of("kind", *DESCRIPTIONS),
    Column("success", "bool", "Whether it was not aborted"),
    one_of("failed_phase", "compute", "action", doc="Phase that aborted it"),
    Column(
        "exit_code", "int32", "TVM exit code, or the result code of the action phase if that failed"
    ),
    text("exit_words", "The exit code in words, or why the compute phase did not run"),
    number("gas_used", "Gas used"),
    *amount("fee", "Fees in TON", "nanoton", exact="int64"),
    one_of("status_before", *ACCOUNT_STATUSES),
    one_of("status_after", *ACCOUNT_STATUSES),
    Column("out_messages", "int32", "Number of out messages"),
    hash_column("in_msg_hash", "Hash of the in message"),
    hash_column("prev_tx_hash", "Previous transaction of the account"),
    *amount(
        "balance_after",
        "Balance in TON after it; NULL if a later one of the block changed it",
        "nanoton",
        exact="int64",
    ),
    hash_column("code_hash_after", "active: hash of its code after it, where known, too"),
    *(MC_SEQNO, DAY),
)

V_COMMENTS = make_view(
    "v_comments",
    "Text comments by message body, including those in forward payloads of token transfers.",
    hash_column("body_hash", "Hash of the body cell"),
    text("opcode_name", "Name of the opcode, such as text_comment or jetton_transfer"),
    text("comment", "The comment"),
)

V_MESSAGES = make_view(
    "v_messages",
    "Messages, one row each: at the transaction that consumed it, else at its sender.",
    time("Time of the transaction"),
    one_of("kind", *MESSAGE_KINDS),
    hash_column("msg_hash", "Hash of the message"),
    hash_column("tx_hash", "Transaction that consumed it, or that sent it if none is known"),
    number("tx_lt", "Logical time of that transaction"),
    _TRACE_ID,
    *labelled("sender", "Sender; NULL: from outside"),
    *labelled("recipient", "Recipient; NULL: to outside"),
    *amount("amount", "TON that it carries", "nanoton", exact="int64"),
    Column("extra_currencies", "json", "Extra currencies, id to amount"),
    Column("bounced", "bool", "Whether it is a bounced message"),
    Column("delivered", "bool", "Whether it was consumed, or left the chain"),
    Column("opcode", "int32", "First 32 bits of the body, signed"),
    text("opcode_name", "Name of the opcode; NULL if unknown"),
    COMMENT,
    Column("body", "json", "The decoded body; NULL if no layout matches"),
    hash_column("body_hash", "Hash of the body cell"),
    number("created_lt", "Logical time of its creation"),
    *(MC_SEQNO, DAY),
)

V_JETTON_TRANSFERS = make_view(
    "v_jetton_transfers",
    "Transfers and mints of jettons (TEP-74), failed ones included.",
    time("Time of the transaction"),
    one_of("kind", "transfer", "mint"),
    Column("success", "bool", "Whether the jetton wallet did not abort"),
    *labelled("sender", "Owner that sent the jettons; NULL: minted"),
    *labelled("recipient", "New owner"),
    *address("jetton", "Jetton master"),
    text("symbol", "Symbol of the jetton"),
    *amount("amount", "Jettons"),
    VALUE_TON,
    COMMENT,
    Column("forward_amount", "scaled", "TON forwarded to the new owner"),
    *address("jetton_wallet", "Jetton wallet of the sender; minted: of the new owner"),
    Column("query_id", "amount", "Query id of the message"),
    *_TRANSACTION,
    *(MC_SEQNO, DAY),
)

V_TRANSFERS = make_view(
    "v_transfers",
    "Everything that moved, in one shape: TON and extra currencies by delivered messages "
    "(bounced ones too), jettons and NFTs by transfers that were not aborted.",
    time("Time of the transaction"),
    one_of("kind", "ton", "extra_currency", "jetton", "nft"),
    *labelled("sender", "Sender"),
    *labelled("recipient", "Recipient"),
    text("asset", "Jetton master, NFT item, or id of the extra currency; NULL: TON"),
    *ASSET[1:],
    text("symbol", "TON, symbol of the jetton, or name of the NFT collection"),
    *amount("amount", "Amount; 1 for an NFT, NULL for an extra currency"),
    VALUE_TON,
    COMMENT,
    *_TRANSACTION,
    *(MC_SEQNO, DAY),
)

V_SWAPS = make_view(
    "v_swaps",
    "Swaps on decentralised exchanges.",
    time("Time of its last transaction"),
    one_of("dex", *EXCHANGES),
    Column("success", "bool", "Whether the swap succeeded"),
    *labelled("pool", "First pool on the route; router or vault if its messages are unknown"),
    *labelled("sender", "Account that swapped"),
    *address("asset_in", "Jetton master given; NULL: TON"),
    text("symbol_in", "Symbol of asset_in"),
    *amount("amount_in", "Amount given"),
    *address("asset_out", "Jetton master received; NULL: TON"),
    text("symbol_out", "Symbol of asset_out"),
    *amount("amount_out", "Amount received"),
    Column(
        "value_ton",
        "scaled",
        "The TON of the swap; without TON, asset_in at its last price within a day",
    ),
    Column(
        "value_usd",
        "scaled",
        "value_ton in US dollars, at the last price of TON within a day (ton_prices)",
    ),
    Column("hops", "int32", "Number of pools on the route"),
    hash_column("tx_hash", "Transaction of the first pool on the route, where known"),
    Column("query_id", "amount", "Query id of the message to that pool"),
    *address("referral", "Who referred the swap, by the message to that pool"),
    *_ACTION,
)

_NFT = (
    *address("item", "NFT item"),
    *address("collection", "Collection of the item"),
    text("collection_name", "Name of the collection, if it is on the chain"),
    *labelled("seller", "Seller; minted: who deployed it"),
    *labelled("buyer", "New owner, or bidder"),
    *amount("price", "Price or bid in TON", "nanoton"),
    *amount("marketplace_fee", "sold, listed: part of the price for the marketplace", "nanoton"),
    *amount("royalty", "sold, listed: part of the price for the author", "nanoton"),
    text("marketplace", "Name of the marketplace"),
    *address("sale_contract", "Contract of the sale or auction"),
    *_ACTION[:1],
    hash_column("action_id", "Id of the action in actions; NULL: seen by the contract's state"),
    number("lt", "Greatest logical time of its transactions"),
    *(MC_SEQNO, DAY),
)

V_NFT_EVENTS = make_view(
    "v_nft_events",
    "What happened to NFTs and domains, by successful actions; and transfers to and from a "
    "contract of a sale, by its state, where no action says so: out of a completed sale to "
    "someone other than the owner, the item is sold.",
    time("Time of its last transaction"),
    one_of(
        "event",
        *("minted", "listed", "auctioned", "changed", "cancelled", "bid", "outbid", "sold"),
        *("ended", "released"),
    ),
    msgspec.structs.replace(
        text("action_type", "Type of the action; NULL: seen by the contract's state"),
        values=(*SALES, "nft_mint"),
    ),
    *_NFT,
)

V_NFT_SALES = make_view(
    "v_nft_sales",
    "Purchases of NFTs and domains, at a fixed price or by auction.",
    time("Time of its last transaction"),
    one_of("event", "nft_purchase", "dns_purchase"),
    *_NFT,
)


V_BALANCES = make_view(
    "v_balances",
    "Balances in TON and jettons after every block that touched their account.",
    time("Time of the block with the change"),
    *account("Owner"),
    LABEL,
    *ASSET,
    text("symbol", "TON, or symbol of the jetton"),
    *amount("balance", "Balance after the block"),
    *address("jetton_wallet", "Jetton wallet that holds it; NULL: TON"),
    number("lt", "Logical time of the last transaction before"),
    MC_SEQNO,
    number("block_seqno", "Seqno of the block in its shard; NULL for jettons"),
    DAY,
)

DEX_PRICES = make_view(
    "dex_prices",
    "Jettons in TON by hour, from successful swaps through one pool between the jetton and TON "
    "(or wrapped TON), of at least 0.1 TON. A pool counts on a day with at least 3 of them and "
    "10 TON. A swap counts if its price is within half and twice the median of those of the "
    "jetton around it, 10 before and 10 after.",
    time("Beginning of the hour"),
    *account("Jetton master"),
    text("symbol", "Symbol of the jetton"),
    double("open", "First price, TON for one jetton"),
    double("high", "Highest price"),
    double("low", "Lowest price"),
    double("close", "Last price"),
    double("volume_ton", "TON of the swaps that count"),
    double("volume", "Jettons of the swaps that count"),
    number("trades", "Swaps that count"),
    number("pools", "Pools (or routers, as dex_swaps.pool) that they went through"),
    double("close_usd", "close in US dollars, by stablecoins of the last hour with any in a day"),
)

TON_PRICES = make_view(
    "ton_prices",
    "TON in US dollars by hour: the median over the stablecoins in dex_prices.",
    time("Beginning of the hour"),
    double("usd", "US dollars for one TON, at the last prices of the hour"),
    double("volume_ton", "TON of the swaps that count"),
    number("stablecoins", "Number of stablecoins with a price"),
)

PRICES_DAILY = make_view(
    "prices_daily",
    "TON and jettons by UTC day: the last price in dex_prices, or, of a token of liquid "
    "staking without one, TON for a token in the day's deposits of at least one TON.",
    Column("date", "date", "UTC day of the swaps or deposits"),
    *ASSET,
    text("symbol", "TON, or symbol of the jetton"),
    double("price_ton", "TON for one"),
    double("price_usd", "US dollars for one, by the last price of TON that day"),
    double("volume_ton", "TON of the swaps or deposits that count"),
    number("trades", "Their number; NULL: TON"),
    one_of("source", "swaps", "staking"),
)

V_NEW_CONTRACTS = make_view(
    "v_new_contracts",
    "Deployments: transactions that made an account without code active.",
    time("Time of the transaction"),
    *account("New contract"),
    LABEL,
    hash_column("code_hash", "Hash of its code after the block"),
    INTERFACES,
    hash_column("tx_hash", "Hash of the transaction"),
    number("lt", "Logical time of the transaction"),
    *(MC_SEQNO, DAY),
)

V_DAILY = View(
    name="v_daily",
    doc="One row per UTC day with transactions: what happened.",
    columns=(
        Column("date", "date", "UTC day of the transactions"),
        *optional(
            number("transactions", "Transactions"),
            number("failed", "Transactions that were aborted"),
            number("active_accounts", "Accounts with a transaction"),
            number("active_wallets", "Accounts that received a message from outside"),
            number("messages", "Messages consumed"),
            Column("fees", "scaled", "Fees in TON"),
            Column("gas_used", "amount", "Gas used"),
            Column("ton_volume", "scaled", "TON carried by consumed messages"),
            number("jetton_transfers", "Jetton transfers that were not aborted"),
            number("swaps", "Successful swaps"),
            Column("swap_volume_ton", "scaled", "Their value in TON, where known"),
            number("new_contracts", "Deployments"),
            Column(
                "new_contracts_by_code",
                "json",
                "Deployments by hash of the code (base64), the most frequent first",
            ),
        ),
    ),
)

BALANCES_AT = make_view(
    "balances_at",
    "Balances of all accounts and jetton wallets at a time (UTC timestamp), from their newest "
    "states up to then, with the columns of v_balances.",
    *V_BALANCES.columns,
    parameters="ts",
)

JETTON_HOLDERS = make_view(
    "jetton_holders",
    "Holders of a jetton (address of the master in any form), at a time or, by default, at the "
    "end of the lake; without empty wallets.",
    *account("Owner"),
    LABEL,
    text("symbol", "Symbol of the jetton"),
    *amount("balance", "Balance"),
    double("share", "Share of the sum of all holders"),
    *address("jetton_wallet", "Jetton wallet"),
    time("Time of the last change"),
    parameters="master, at := NULL",
)

VIEWS: dict[str, View] = {
    view.name: view
    for view in (
        *(V_JETTONS, V_ACCOUNTS, V_TRANSACTIONS, V_COMMENTS, V_MESSAGES, V_NEW_CONTRACTS),
        *(DEX_PRICES, TON_PRICES, PRICES_DAILY, V_JETTON_TRANSFERS, V_TRANSFERS, V_SWAPS),
        *(V_NFT_EVENTS, V_NFT_SALES),
        *(V_BALANCES, V_DAILY, BALANCES_AT, JETTON_HOLDERS),
    )
}
"""Every view for people and every macro over them, each after the views that it reads."""

MACROS = frozenset(view.name for view in VIEWS.values() if view.parameters)
